"""Collect the tables that charts and printed tables of `visual_qa` are drawn from.

    pip install scikit-learn statsmodels vega_datasets pandas
    python scripts/collect_chart_tables.py

Writes src/sensorium/envs/visual_qa/data/tables.json: small extracts of data sets that ship with scikit-learn,
statsmodels and vega_datasets, each with its source. Environments then need none of these packages.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

TARGET = Path(__file__).parents[1] / "src/sensorium/envs/visual_qa/data/tables.json"
MAX_SAMPLE_ROWS = 150
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
ORDERED = ("year", "model year", "month")
"""Names of rows that have an order."""
JOBS = (
    "construction", "manufacturing", "retail_trade", "information", "financial_activities",
    "leisure_and_hospitality", "government",
)  # fmt: skip
COUNTRIES = (
    "Brazil", "China", "Germany", "India", "Japan", "Kenya", "Mexico", "Nigeria", "Norway", "Poland", "Spain",
    "Thailand", "Turkey", "Vietnam",
)  # fmt: skip
Table = dict[str, Any]
"""As `sensorium.envs.visual_qa.charts.tables.DataTable` reads it."""


def rows(
    name: str,
    title: str,
    source: str,
    frame: pd.DataFrame,
    unit: str,
    *,
    index: str = "year",
    additive: bool = False,
    decimals: int = 1,
) -> Table:
    """A table whose rows have names.

    Args:
        name: Its own.
        title: For people.
        source: Package and data set.
        frame: Rows; its index names them.
        unit: Of all columns.
        index: What the rows are; one of `ORDERED` makes them a ``series``, others ``categories``.
        additive: Whether columns of one row are parts of a whole.
        decimals: Digits after the point that are kept.
    """
    return {
        "name": name,
        "title": title,
        "source": source,
        "kind": "series" if index in ORDERED else "categories",
        "index_name": index,
        "index": [str(label) for label in frame.index],
        "groups": [],
        "additive": additive,
        "columns": [_column(str(column), unit, frame[column], decimals) for column in frame.columns],
    }


def sample(
    name: str,
    title: str,
    source: str,
    frame: pd.DataFrame,
    columns: Mapping[str, tuple[str, str]],
    *,
    group: str | None = None,
    decimals: int = 1,
) -> Table:
    """A table of single measurements, whose rows have no names.

    Args:
        name: Its own.
        title: For people.
        source: Package and data set.
        frame: Measurements; the first `MAX_SAMPLE_ROWS` are kept.
        columns: Column that is kept -> its name in the table, and its unit.
        group: The column that tells groups apart.
        decimals: Digits after the point that are kept.
    """
    frame = frame.iloc[:MAX_SAMPLE_ROWS]
    return {
        "name": name,
        "title": title,
        "source": source,
        "kind": "sample",
        "index_name": "",
        "index": [],
        "groups": frame[group].astype(str).tolist() if group else [],
        "additive": False,
        "columns": [_column(new, unit, frame[old], decimals) for old, (new, unit) in columns.items()],
    }


def _column(name: str, unit: str, values: "pd.Series[Any]", decimals: int) -> dict[str, Any]:
    return {"name": name, "unit": unit, "values": [_plain(value, decimals) for value in values]}


def _plain(value: Any, decimals: int) -> float | int:
    number = round(float(value), decimals)
    return int(number) if number.is_integer() else number


def vega() -> Iterator[Table]:
    """Power, harvests, cars and shares, of vega_datasets."""
    from vega_datasets import local_data as data

    source = "vega_datasets: iowa-electricity"
    iowa = data.iowa_electricity().assign(year=lambda f: pd.to_datetime(f.year).dt.year)
    iowa = iowa.pivot(index="year", columns="source", values="net_generation")
    title = "Net electricity generation in Iowa"
    yield rows("iowa_electricity", title, source, iowa, "GWh", additive=True, decimals=0)

    source = "vega_datasets: barley"
    barley = data.barley()
    for year in (1931, 1932):
        part = barley[barley.year == year].pivot(index="variety", columns="site", values="yield")
        title = f"Barley yield by variety, {year}"
        yield rows(f"barley_{year}", title, source, part, "bushels per acre", index="variety")

    source = "vega_datasets: cars"
    cars = data.cars().assign(Year=lambda f: pd.to_datetime(f.Year).dt.year)
    for column, unit, title in (
        ("Miles_per_Gallon", "mpg", "Fuel economy of new cars"),
        ("Horsepower", "hp", "Power of new cars"),
        ("Weight_in_lbs", "lb", "Weight of new cars"),
    ):
        means = cars.groupby(["Year", "Origin"])[column].mean().unstack().dropna()
        yield rows(f"cars_{column.lower()}", title, source, means, unit, index="model year")
    columns = {
        "Miles_per_Gallon": ("Fuel economy", "mpg"),
        "Horsepower": ("Power", "hp"),
        "Weight_in_lbs": ("Weight", "lb"),
        "Displacement": ("Displacement", "cu in"),
        "Acceleration": ("Time to 60 mph", "s"),
    }
    some = cars.dropna().iloc[::3]
    yield sample("cars_sample", "Cars of 1970 to 1982", source, some, columns, group="Origin")

    stocks = data.stocks().assign(year=lambda f: pd.to_datetime(f.date).dt.year)
    means = stocks.groupby(["year", "symbol"]).price.mean().unstack().dropna(axis=1)
    yield rows("stocks", "Mean share price", "vega_datasets: stocks", means, "USD")


def seattle() -> Iterator[Table]:
    """The weather of Seattle, of vega_datasets."""
    from vega_datasets import local_data as data

    source = "vega_datasets: seattle-weather"
    weather = data.seattle_weather().assign(date=lambda f: pd.to_datetime(f.date))
    weather["month"] = [MONTHS[m - 1] for m in weather.date.dt.month]
    names = {"temp_max": "daily high", "temp_min": "daily low"}
    for year in (2012, 2013, 2014, 2015):
        part = weather[weather.date.dt.year == year]
        days = part.groupby(["month", "weather"]).size().unstack(fill_value=0).loc[list(MONTHS)]
        means = part.groupby("month")[list(names)].mean().loc[list(MONTHS)].rename(columns=names)
        rain = part.groupby("month")[["precipitation"]].sum().loc[list(MONTHS)]
        about = f"Weather of Seattle in {year}"
        yield rows(
            f"seattle_days_{year}", about, source, days, "days", index="month", additive=True, decimals=0
        )
        about = f"Mean temperature in Seattle, {year}"
        yield rows(f"seattle_temperature_{year}", about, source, means, "°C", index="month")
        about = f"Precipitation in Seattle, {year}"
        yield rows(f"seattle_rain_{year}", about, source, rain, "mm", index="month")
    columns = {
        "temp_max": ("Daily high", "°C"),
        "temp_min": ("Daily low", "°C"),
        "wind": ("Wind speed", "m/s"),
    }
    yield sample("seattle_sample", "Days in Seattle", source, weather.iloc[::10], columns)


def vega_history() -> Iterator[Table]:
    """Work, prices, a war, driving and temperatures, of vega_datasets."""
    from vega_datasets import local_data as data

    work = data.us_employment().assign(year=lambda f: pd.to_datetime(f.month).dt.year)
    work = work.groupby("year")[list(JOBS)].mean().rename(columns=lambda job: job.replace("_", " "))
    title, source = "Employees in the United States", "vega_datasets: us-employment"
    yield rows("us_employment", title, source, work, "thousand", additive=True, decimals=0)

    wheat = data.wheat().set_index("year")[["wheat", "wages"]].dropna()
    yield rows("wheat", "Price of wheat and weekly wages", "vega_datasets: wheat", wheat, "shillings")

    crimea = data.crimea()
    crimea.index = pd.to_datetime(crimea.date).dt.strftime("%b %Y")
    crimea = crimea[["wounds", "other", "disease"]]
    title, source = "Deaths in the British army in the Crimea", "vega_datasets: crimea"
    yield rows("crimea", title, source, crimea, "deaths", index="month", additive=True, decimals=0)

    source, driving = "vega_datasets: driving", data.driving().set_index("year")
    miles, gas = driving[["miles"]], driving[["gas"]]
    yield rows("driving_miles", "Miles driven per person, USA", source, miles, "miles", decimals=0)
    yield rows("driving_gas", "Price of petrol, USA", source, gas, "USD per gallon", decimals=2)

    temperatures = {}
    for city, frame in (("Seattle", data.seattle_temps()), ("San Francisco", data.sf_temps())):
        temperatures[city] = frame.groupby(pd.to_datetime(frame.date).dt.month).temp.mean()
    both = pd.DataFrame(temperatures).set_axis(MONTHS)
    title, source = "Mean temperature in 2010", "vega_datasets: seattle-temps, sf-temps"
    yield rows("city_temperature", title, source, both, "°F", index="month")


def statsmodels_nature() -> Iterator[Table]:
    """A river, the sun, the sea and the air, of statsmodels."""
    from statsmodels import datasets as data

    nile = data.nile.load_pandas().data.astype({"year": int}).set_index("year")
    nile = nile.rename(columns={"volume": "flow"})
    yield rows("nile", "Flow of the Nile at Aswan", "statsmodels: nile", nile, "10^8 m3", decimals=0)

    spots = data.sunspots.load_pandas().data.astype({"YEAR": int}).set_index("YEAR")
    spots = spots.loc[1900:].rename(columns={"SUNACTIVITY": "sunspot number"})
    yield rows("sunspots", "Sunspots", "statsmodels: sunspots", spots, "")

    source = "statsmodels: elnino"
    nino = data.elnino.load_pandas().data.astype({"YEAR": int}).set_index("YEAR")
    nino = nino.set_axis(MONTHS, axis=1).T
    late, early = nino.loc[:, 2000:2010], nino.loc[:, 1980:1989]
    yield rows("elnino_years", "Sea temperature off Peru by month", source, late, "°C", index="month")
    yield rows("elnino_eighties", "Sea temperature off Peru", source, early, "°C", index="month")

    source = "statsmodels: co2"
    carbon = data.co2.load_pandas().data.co2.interpolate()
    monthly = carbon.groupby([carbon.index.month, carbon.index.year]).mean().unstack().set_axis(MONTHS)
    monthly = monthly[[1970, 1980, 1990, 2000]]
    yearly = carbon.groupby(carbon.index.year).mean().loc[1959:2000].to_frame()
    yield rows("co2_months", "Carbon dioxide at Mauna Loa", source, monthly, "ppm", index="month")
    yield rows("co2_years", "Carbon dioxide at Mauna Loa, yearly mean", source, yearly, "ppm")


def statsmodels_economy() -> Iterator[Table]:
    """Work, output and rates, of statsmodels."""
    from statsmodels import datasets as data

    longley = data.longley.load_pandas().data
    longley.index = longley.YEAR.astype(int)
    longley = longley[["UNEMP", "ARMED"]].rename(columns={"UNEMP": "unemployed", "ARMED": "armed forces"})
    title = "Labour force of the United States"
    yield rows("longley", title, "statsmodels: longley", longley, "thousand", decimals=0)

    macro = data.macrodata.load_pandas().data
    yearly = macro.assign(year=macro.year.astype(int)).groupby("year").mean()
    output = {"realgdp": "GDP", "realcons": "consumption", "realinv": "investment"}
    rates = {"unemp": "unemployment", "infl": "inflation", "tbilrate": "treasury bill rate"}
    for name, names, unit, title in (
        ("macro_output", output, "billion USD", "US output at constant prices"),
        ("macro_rates", rates, "%", "US unemployment, inflation and interest"),
    ):
        frame = yearly[list(names)].rename(columns=names)
        yield rows(name, title, "statsmodels: macrodata", frame, unit)


def statsmodels_trade() -> Iterator[Table]:
    """Metals, companies and countries, of statsmodels."""
    from statsmodels import datasets as data

    copper = data.copper.load_pandas().data
    copper.index = (copper.TIME + 1950).astype(int)
    names = {"COPPERPRICE": "copper", "ALUMPRICE": "aluminium"}
    copper = copper[list(names)].rename(columns=names)
    yield rows("copper", "Metal prices", "statsmodels: copper", copper, "index points")

    invest = data.grunfeld.load_pandas().data.astype({"year": int})
    invest = invest.pivot(index="year", columns="firm", values="invest")
    title = "Yearly investment of US companies"
    yield rows("grunfeld", title, "statsmodels: grunfeld", invest, "million USD")

    births = data.fertility.load_pandas().data.set_index("Country Name")
    births = births.loc[list(COUNTRIES), [str(year) for year in range(1960, 2011, 5)]].T.astype(float)
    yield rows("fertility", "Births per woman", "statsmodels: fertility", births, "births per woman")


def statsmodels_others() -> Iterator[Table]:
    """States, cities and households, of statsmodels."""
    from statsmodels import datasets as data

    source, crime = "statsmodels: statecrime", data.statecrime.load_pandas().data
    poverty = {"poverty": "poverty", "single": "single-parent families"}
    for part, names, unit, title in (
        ("poverty", poverty, "%", "Poverty and single-parent families in US states"),
        ("murder", {"murder": "murders"}, "per 100,000", "Murders in US states, 2009"),
        ("violent", {"violent": "violent crimes"}, "per 100,000", "Violent crime in US states, 2009"),
        ("school", {"hs_grad": "high school graduates"}, "%", "High school graduates in US states"),
    ):
        frame = crime[list(names)].rename(columns=names)
        yield rows(f"states_{part}", title, source, frame, unit, index="state")
    columns = {
        "poverty": ("Poverty", "%"),
        "hs_grad": ("High school graduates", "%"),
        "murder": ("Murders", "per 100,000"),
        "urban": ("Urban population", "%"),
    }
    yield sample("states_sample", "US states in 2009", source, crime, columns)

    smoking = data.china_smoking.load_pandas().data.rename(index={"Nanjng": "Nanjing"})
    smoking.columns = ["smokers, ill", "smokers, healthy", "others, ill", "others, healthy"]
    title, source = "Smoking and lung cancer in Chinese cities", "statsmodels: china_smoking"
    yield rows("china_smoking", title, source, smoking, "people", index="city", additive=True, decimals=0)

    engel = data.engel.load_pandas().data.iloc[::2]
    engel = engel[engel.income < 2500]
    columns = {"income": ("Income", "francs"), "foodexp": ("Food spending", "francs")}
    yield sample("engel", "Households in Belgium, 1857", "statsmodels: engel", engel, columns)


def learning() -> Iterator[Table]:
    """Flowers, wines, cells, patients and exercises, of scikit-learn."""
    from sklearn import datasets as data

    source, iris = "scikit-learn: iris", data.load_iris(as_frame=True)
    sizes = ["Sepal length", "Sepal width", "Petal length", "Petal width"]
    frame = iris.frame.drop(columns="target").set_axis(sizes, axis=1)
    frame["species"] = [iris.target_names[t] for t in iris.target]
    columns = {size: (size, "cm") for size in sizes}
    yield sample("iris_sample", "Iris flowers", source, frame, columns, group="species")
    means = frame.groupby("species").mean().T
    yield rows("iris_means", "Mean size of iris flowers", source, means, "cm", index="measure", decimals=2)

    source, wine = "scikit-learn: wine", data.load_wine(as_frame=True).frame
    wine["cultivar"] = [f"cultivar {'ABC'[t]}" for t in wine.target]
    columns = {
        "alcohol": ("Alcohol", "%"),
        "malic_acid": ("Malic acid", "g/l"),
        "color_intensity": ("Colour intensity", ""),
        "flavanoids": ("Flavonoids", "g/l"),
    }
    some = wine.iloc[::2]
    yield sample("wine_sample", "Wines from Italy", source, some, columns, group="cultivar", decimals=2)
    means = wine.groupby("cultivar")[["magnesium", "proline"]].mean()
    title = "Mean magnesium and proline of wines"
    yield rows("wine_magnesium", title, source, means, "mg/l", index="cultivar")

    cancer = data.load_breast_cancer(as_frame=True)
    cells = cancer.frame.assign(diagnosis=[cancer.target_names[t] for t in cancer.target]).iloc[::5]
    columns = {"mean radius": ("Mean radius", ""), "mean texture": ("Mean texture", "")}
    source = "scikit-learn: breast_cancer"
    yield sample("cells_sample", "Cell nuclei", source, cells, columns, group="diagnosis")

    sugar = data.load_diabetes(as_frame=True, scaled=False).frame.iloc[::4]
    columns = {
        "age": ("Age", "years"),
        "bmi": ("Body mass index", "kg/m2"),
        "bp": ("Blood pressure", "mmHg"),
        "target": ("Disease progression", ""),
    }
    yield sample("diabetes_sample", "Patients with diabetes", "scikit-learn: diabetes", sugar, columns)

    gym = data.load_linnerud(as_frame=True).frame[["Situps", "Jumps", "Chins"]]
    gym.index = [f"man {n}" for n in range(1, 21)]
    title, source = "Exercises of middle-aged men", "scikit-learn: linnerud"
    yield rows("linnerud", title, source, gym, "repetitions", index="man", decimals=0)


def main() -> None:
    """Collect and write; the place of a table decides in which split it is."""
    parts = (
        vega, seattle, vega_history, statsmodels_economy, statsmodels_nature, statsmodels_trade,
        statsmodels_others, learning,
    )  # fmt: skip
    tables = [table for part in parts for table in part()]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in tables)
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(tables)} tables, {TARGET.stat().st_size:,} bytes -> {TARGET}")


if __name__ == "__main__":
    main()
