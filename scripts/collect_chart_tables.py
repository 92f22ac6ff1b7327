"""Collect the tables that charts and printed tables of `visual_qa` are drawn from.

    pip install scikit-learn statsmodels vega_datasets pandas
    python scripts/collect_chart_tables.py

Writes src/sensorium/envs/visual_qa/data/tables.json: small extracts of data sets that ship with scikit-learn,
statsmodels and vega_datasets, each with its source. Environments then need none of these packages.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

TARGET = Path(__file__).parents[1] / "src/sensorium/envs/visual_qa/data/tables.json"
MAX_SAMPLE_ROWS = 150
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TABLES: list[dict[str, Any]] = []


def table(
    name: str,
    title: str,
    source: str,
    frame: pd.DataFrame,
    units: Mapping[str, str] | str,
    *,
    kind: str,
    index: str = "",
    additive: bool = False,
    group: str | None = None,
    decimals: int = 1,
) -> None:
    """Add a table.

    Args:
        name: Its own.
        title: For people.
        source: Package and data set.
        frame: Rows; its index names them, but in a sample, where rows have no names.
        units: Of the columns; one for all, or one each.
        kind: ``series`` (ordered rows), ``categories`` (rows without an order) or ``sample`` (rows of
            single measurements).
        index: What the rows are.
        additive: Whether columns of one row are parts of a whole.
        group: Of a sample: the column that tells groups apart.
        decimals: Digits after the point that are kept.
    """
    columns = [c for c in frame.columns if c != group]
    TABLES.append(
        {
            "name": name,
            "title": title,
            "source": source,
            "kind": kind,
            "index_name": index,
            "index": [] if kind == "sample" else [str(label) for label in frame.index],
            "groups": frame[group].astype(str).tolist() if group else [],
            "additive": additive,
            "columns": [
                {
                    "name": str(column),
                    "unit": units if isinstance(units, str) else units[column],
                    "values": [_plain(value, decimals) for value in frame[column]],
                }
                for column in columns
            ],
        }
    )


def _plain(value: Any, decimals: int) -> float | int:
    number = round(float(value), decimals)
    return int(number) if number.is_integer() else number


def vega() -> None:
    """Tables of vega_datasets."""
    from vega_datasets import local_data as data

    iowa = data.iowa_electricity().assign(year=lambda f: pd.to_datetime(f.year).dt.year)
    table(
        "iowa_electricity",
        "Net electricity generation in Iowa",
        "vega_datasets: iowa-electricity",
        iowa.pivot(index="year", columns="source", values="net_generation"),
        "GWh",
        kind="series",
        index="year",
        additive=True,
        decimals=0,
    )
    barley = data.barley()
    for year in (1931, 1932):
        part = barley[barley.year == year]
        table(
            f"barley_{year}",
            f"Barley yield by variety, {year}",
            "vega_datasets: barley",
            part.pivot(index="variety", columns="site", values="yield"),
            "bushels per acre",
            kind="categories",
            index="variety",
        )
    cars = data.cars().assign(Year=lambda f: pd.to_datetime(f.Year).dt.year)
    for column, unit, title in (
        ("Miles_per_Gallon", "mpg", "Fuel economy of new cars"),
        ("Horsepower", "hp", "Power of new cars"),
        ("Weight_in_lbs", "lb", "Weight of new cars"),
    ):
        table(
            f"cars_{column.lower()}",
            title,
            "vega_datasets: cars",
            cars.groupby(["Year", "Origin"])[column].mean().unstack().dropna(),
            unit,
            kind="series",
            index="model year",
        )
    sample = cars.dropna().iloc[::3][
        ["Miles_per_Gallon", "Horsepower", "Weight_in_lbs", "Displacement", "Acceleration", "Origin"]
    ]
    sample.columns = ["Fuel economy", "Power", "Weight", "Displacement", "Time to 60 mph", "Origin"]
    table(
        "cars_sample",
        "Cars of 1970 to 1982",
        "vega_datasets: cars",
        sample,
        {
            "Fuel economy": "mpg",
            "Power": "hp",
            "Weight": "lb",
            "Displacement": "cu in",
            "Time to 60 mph": "s",
        },
        kind="sample",
        group="Origin",
    )
    stocks = data.stocks().assign(date=lambda f: pd.to_datetime(f.date))
    table(
        "stocks",
        "Mean share price",
        "vega_datasets: stocks",
        stocks.assign(year=stocks.date.dt.year)
        .groupby(["year", "symbol"])
        .price.mean()
        .unstack()
        .dropna(axis=1),
        "USD",
        kind="series",
        index="year",
    )
    weather = data.seattle_weather().assign(date=lambda f: pd.to_datetime(f.date))
    weather["month"] = [MONTHS[m - 1] for m in weather.date.dt.month]
    for year in (2012, 2013, 2014, 2015):
        part = weather[weather.date.dt.year == year]
        counts = part.groupby(["month", "weather"]).size().unstack(fill_value=0).loc[list(MONTHS)]
        table(
            f"seattle_days_{year}",
            f"Weather of Seattle in {year}",
            "vega_datasets: seattle-weather",
            counts,
            "days",
            kind="series",
            index="month",
            additive=True,
            decimals=0,
        )
        means = part.groupby("month")[["temp_max", "temp_min"]].mean().loc[list(MONTHS)]
        means.columns = ["daily high", "daily low"]
        table(
            f"seattle_temperature_{year}",
            f"Mean temperature in Seattle, {year}",
            "vega_datasets: seattle-weather",
            means,
            "°C",
            kind="series",
            index="month",
        )
        rain = part.groupby("month")[["precipitation"]].sum().loc[list(MONTHS)]
        table(
            f"seattle_rain_{year}",
            f"Precipitation in Seattle, {year}",
            "vega_datasets: seattle-weather",
            rain,
            "mm",
            kind="series",
            index="month",
        )
    sample = weather[["temp_max", "temp_min", "wind"]].iloc[::10]
    sample.columns = ["Daily high", "Daily low", "Wind speed"]
    table(
        "seattle_sample",
        "Days in Seattle",
        "vega_datasets: seattle-weather",
        sample,
        {"Daily high": "°C", "Daily low": "°C", "Wind speed": "m/s"},
        kind="sample",
    )
    work = data.us_employment().assign(year=lambda f: pd.to_datetime(f.month).dt.year)
    columns = [
        "construction",
        "manufacturing",
        "retail_trade",
        "information",
        "financial_activities",
        "leisure_and_hospitality",
        "government",
    ]
    yearly = work.groupby("year")[columns].mean()
    yearly.columns = [c.replace("_", " ") for c in columns]
    table(
        "us_employment",
        "Employees in the United States",
        "vega_datasets: us-employment",
        yearly,
        "thousand",
        kind="series",
        index="year",
        additive=True,
        decimals=0,
    )
    wheat = data.wheat().set_index("year")[["wheat", "wages"]].dropna()
    table(
        "wheat",
        "Price of wheat and weekly wages",
        "vega_datasets: wheat",
        wheat,
        {"wheat": "shillings", "wages": "shillings"},
        kind="series",
        index="year",
    )
    crimea = data.crimea()
    crimea.index = pd.to_datetime(crimea.date).dt.strftime("%b %Y")
    deaths = crimea[["wounds", "other", "disease"]]
    table(
        "crimea",
        "Deaths in the British army in the Crimea",
        "vega_datasets: crimea",
        deaths,
        "deaths",
        kind="series",
        index="month",
        additive=True,
        decimals=0,
    )
    driving = data.driving().set_index("year")
    table(
        "driving_miles",
        "Miles driven per person, USA",
        "vega_datasets: driving",
        driving[["miles"]],
        "miles",
        kind="series",
        index="year",
        decimals=0,
    )
    table(
        "driving_gas",
        "Price of petrol, USA",
        "vega_datasets: driving",
        driving[["gas"]],
        "USD per gallon",
        kind="series",
        index="year",
        decimals=2,
    )
    temperatures = {}
    for city, frame in (("Seattle", data.seattle_temps()), ("San Francisco", data.sf_temps())):
        dates = pd.to_datetime(frame.date)
        temperatures[city] = frame.groupby(dates.dt.month).temp.mean()
    both = pd.DataFrame(temperatures)
    both.index = list(MONTHS)
    table(
        "city_temperature",
        "Mean temperature in 2010",
        "vega_datasets: seattle-temps, sf-temps",
        both,
        "°F",
        kind="series",
        index="month",
    )


def statsmodels_series() -> None:
    """Tables of statsmodels with an order."""
    from statsmodels import datasets as data

    longley = data.longley.load_pandas().data
    longley.index = longley.YEAR.astype(int)
    longley = longley[["UNEMP", "ARMED"]].rename(columns={"UNEMP": "unemployed", "ARMED": "armed forces"})
    table(
        "longley",
        "Labour force of the United States",
        "statsmodels: longley",
        longley,
        "thousand",
        kind="series",
        index="year",
        decimals=0,
    )
    macro = data.macrodata.load_pandas().data
    yearly = macro.assign(year=macro.year.astype(int)).groupby("year").mean()
    for part, columns, unit, title in (
        (
            "output",
            {"realgdp": "GDP", "realcons": "consumption", "realinv": "investment"},
            "billion USD",
            "US output at constant prices",
        ),
        (
            "rates",
            {"unemp": "unemployment", "infl": "inflation", "tbilrate": "treasury bill rate"},
            "%",
            "US unemployment, inflation and interest",
        ),
    ):
        frame = yearly[list(columns)].rename(columns=columns)
        table(f"macro_{part}", title, "statsmodels: macrodata", frame, unit, kind="series", index="year")
    nile = data.nile.load_pandas().data.astype({"year": int}).set_index("year")
    table(
        "nile",
        "Flow of the Nile at Aswan",
        "statsmodels: nile",
        nile.rename(columns={"volume": "flow"}),
        "10^8 m3",
        kind="series",
        index="year",
        decimals=0,
    )
    spots = data.sunspots.load_pandas().data.astype({"YEAR": int}).set_index("YEAR")
    table(
        "sunspots",
        "Sunspots",
        "statsmodels: sunspots",
        spots.loc[1900:].rename(columns={"SUNACTIVITY": "sunspot number"}),
        "",
        kind="series",
        index="year",
    )
    nino = data.elnino.load_pandas().data.astype({"YEAR": int}).set_index("YEAR")
    nino.columns = list(MONTHS)
    table(
        "elnino_years",
        "Sea temperature off Peru by month",
        "statsmodels: elnino",
        nino.loc[2000:2010].T,
        "°C",
        kind="series",
        index="month",
    )
    table(
        "elnino_eighties",
        "Sea temperature off Peru",
        "statsmodels: elnino",
        nino.loc[1980:1989].T,
        "°C",
        kind="series",
        index="month",
    )
    carbon = data.co2.load_pandas().data.co2.interpolate()
    monthly = carbon.groupby([carbon.index.month, carbon.index.year]).mean().unstack()
    monthly.index = list(MONTHS)
    table(
        "co2_months",
        "Carbon dioxide at Mauna Loa",
        "statsmodels: co2",
        monthly[[1970, 1980, 1990, 2000]],
        "ppm",
        kind="series",
        index="month",
    )
    table(
        "co2_years",
        "Carbon dioxide at Mauna Loa, yearly mean",
        "statsmodels: co2",
        carbon.groupby(carbon.index.year).mean().loc[1959:2000].to_frame(),
        "ppm",
        kind="series",
        index="year",
    )
    copper = data.copper.load_pandas().data
    copper.index = (copper.TIME + 1950).astype(int)
    prices = copper[["COPPERPRICE", "ALUMPRICE"]].rename(
        columns={"COPPERPRICE": "copper", "ALUMPRICE": "aluminium"}
    )
    table(
        "copper", "Metal prices", "statsmodels: copper", prices, "index points", kind="series", index="year"
    )
    invest = data.grunfeld.load_pandas().data
    invest["year"] = invest.year.astype(int)
    table(
        "grunfeld",
        "Yearly investment of US companies",
        "statsmodels: grunfeld",
        invest.pivot(index="year", columns="firm", values="invest"),
        "million USD",
        kind="series",
        index="year",
    )
    births = data.fertility.load_pandas().data.set_index("Country Name")
    years = [str(year) for year in range(1960, 2011, 5)]
    wanted = [
        "Brazil",
        "China",
        "Germany",
        "India",
        "Japan",
        "Kenya",
        "Mexico",
        "Nigeria",
        "Norway",
        "Poland",
        "Spain",
        "Thailand",
        "Turkey",
        "Vietnam",
    ]
    table(
        "fertility",
        "Births per woman",
        "statsmodels: fertility",
        births.loc[wanted, years].T.astype(float),
        "births per woman",
        kind="series",
        index="year",
    )


def statsmodels_others() -> None:
    """Tables of statsmodels by name, and samples."""
    from statsmodels import datasets as data

    crime = data.statecrime.load_pandas().data
    for part, columns, unit, title in (
        (
            "poverty",
            {"poverty": "poverty", "single": "single-parent families"},
            "%",
            "Poverty and single-parent families in US states",
        ),
        ("murder", {"murder": "murders"}, "per 100,000", "Murders in US states, 2009"),
        ("violent", {"violent": "violent crimes"}, "per 100,000", "Violent crime in US states, 2009"),
        ("school", {"hs_grad": "high school graduates"}, "%", "High school graduates in US states"),
    ):
        table(
            f"states_{part}",
            title,
            "statsmodels: statecrime",
            crime[list(columns)].rename(columns=columns),
            unit,
            kind="categories",
            index="state",
        )
    states = crime[["poverty", "hs_grad", "murder", "urban"]]
    states.columns = ["Poverty", "High school graduates", "Murders", "Urban population"]
    table(
        "states_sample",
        "US states in 2009",
        "statsmodels: statecrime",
        states,
        {"Poverty": "%", "High school graduates": "%", "Murders": "per 100,000", "Urban population": "%"},
        kind="sample",
    )
    smoking = data.china_smoking.load_pandas().data
    smoking.index = ["Nanjing" if city == "Nanjng" else city for city in smoking.index]
    smoking.columns = ["smokers, ill", "smokers, healthy", "others, ill", "others, healthy"]
    table(
        "china_smoking",
        "Smoking and lung cancer in Chinese cities",
        "statsmodels: china_smoking",
        smoking,
        "people",
        kind="categories",
        index="city",
        additive=True,
        decimals=0,
    )
    engel = data.engel.load_pandas().data.iloc[::2]
    engel.columns = ["Income", "Food spending"]
    table(
        "engel",
        "Households in Belgium, 1857",
        "statsmodels: engel",
        engel[engel.Income < 2500],
        "francs",
        kind="sample",
    )


def learning() -> None:
    """Tables of scikit-learn."""
    from sklearn import datasets as data

    iris = data.load_iris(as_frame=True)
    frame = iris.frame.drop(columns="target")
    frame.columns = ["Sepal length", "Sepal width", "Petal length", "Petal width"]
    frame["species"] = [iris.target_names[t] for t in iris.target]
    table("iris_sample", "Iris flowers", "scikit-learn: iris", frame, "cm", kind="sample", group="species")
    table(
        "iris_means",
        "Mean size of iris flowers",
        "scikit-learn: iris",
        frame.groupby("species").mean().T,
        "cm",
        kind="categories",
        index="measure",
        decimals=2,
    )
    wine = data.load_wine(as_frame=True).frame
    wine["cultivar"] = [f"cultivar {'ABC'[t]}" for t in wine.target]
    sample = wine[["alcohol", "malic_acid", "color_intensity", "flavanoids", "cultivar"]]
    sample.columns = ["Alcohol", "Malic acid", "Colour intensity", "Flavonoids", "cultivar"]
    table(
        "wine_sample",
        "Wines from Italy",
        "scikit-learn: wine",
        sample.iloc[::2],
        {"Alcohol": "%", "Malic acid": "g/l", "Colour intensity": "", "Flavonoids": "g/l"},
        kind="sample",
        group="cultivar",
        decimals=2,
    )
    table(
        "wine_magnesium",
        "Mean magnesium and proline of wines",
        "scikit-learn: wine",
        wine.groupby("cultivar")[["magnesium", "proline"]].mean(),
        "mg/l",
        kind="categories",
        index="cultivar",
    )
    cancer = data.load_breast_cancer(as_frame=True)
    sample = cancer.frame[["mean radius", "mean texture", "mean smoothness"]].iloc[::5].copy()
    sample.columns = ["Mean radius", "Mean texture", "Mean smoothness"]
    sample["diagnosis"] = [cancer.target_names[t] for t in cancer.target[::5]]
    table(
        "cells_sample",
        "Cell nuclei",
        "scikit-learn: breast_cancer",
        sample.drop(columns="Mean smoothness"),
        "",
        kind="sample",
        group="diagnosis",
    )
    sugar = data.load_diabetes(as_frame=True, scaled=False).frame.iloc[::4]
    sample = sugar[["age", "bmi", "bp", "target"]]
    sample.columns = ["Age", "Body mass index", "Blood pressure", "Disease progression"]
    table(
        "diabetes_sample",
        "Patients with diabetes",
        "scikit-learn: diabetes",
        sample,
        {"Age": "years", "Body mass index": "kg/m2", "Blood pressure": "mmHg", "Disease progression": ""},
        kind="sample",
    )
    gym = data.load_linnerud(as_frame=True).frame[["Situps", "Jumps", "Chins"]]
    gym.index = [f"man {n}" for n in range(1, 21)]
    table(
        "linnerud",
        "Exercises of middle-aged men",
        "scikit-learn: linnerud",
        gym,
        "repetitions",
        kind="categories",
        index="man",
        decimals=0,
    )


def main() -> None:
    """Collect and write."""
    steps: tuple[Callable[[], None], ...] = (vega, statsmodels_series, statsmodels_others, learning)
    for step in steps:
        step()
    for one in TABLES:
        if one["kind"] == "sample":
            for column in one["columns"]:
                column["values"] = column["values"][:MAX_SAMPLE_ROWS]
            one["groups"] = one["groups"][:MAX_SAMPLE_ROWS]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in TABLES)
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(TABLES)} tables, {TARGET.stat().st_size:,} bytes -> {TARGET}")


if __name__ == "__main__":
    main()
