"""Data sets about how something went in time."""

from sensorium.envs.notebook.dataset import columns, renamed, statsmodels, vega_datasets
from sensorium.envs.notebook.table import Column

TIMES = (
    statsmodels(
        "macro",
        "A row is a quarter of the economy of the USA, 1959 to 2009.",
        columns(
            "number",
            year="year",
            quarter="quarter, 1 to 4",
            realgdp="real gross domestic product in billion dollars",
            realcons="real private consumption",
            realinv="real private investment",
            cpi="consumer price index",
            tbilrate="rate of treasury bills in per cent",
            unemp="rate of unemployment in per cent",
            infl="inflation in per cent",
        ),
        path="macrodata/macrodata.csv",
        is_series=True,
    ),
    statsmodels(
        "co2",
        "A row is a week at Mauna Loa; some were not measured.",
        (
            Column("date", "date", "first day of the week"),
            *columns("number", co2="carbon dioxide in the air in ppm"),
        ),
        path="co2/co2.csv",
        is_series=True,
    ),
    statsmodels(
        "sunspots",
        "A row is a year.",
        renamed("number", ("YEAR", "year", "year"), ("SUNACTIVITY", "sunspots", "mean number of sunspots")),
        path="sunspots/sunspots.csv",
        is_series=True,
    ),
    statsmodels(
        "nile",
        "A row is a year.",
        columns("number", year="year", volume="volume of the Nile at Aswan in 100 million cubic metres"),
        path="nile/nile.csv",
        is_series=True,
    ),
    statsmodels(
        "el_nino",
        "A row is a year with the surface temperature of the Pacific in some months, degrees Celsius.",
        renamed(
            "number",
            ("YEAR", "year", "year"),
            *(
                (m, m.lower(), f"temperature in {m.title()}")
                for m in ("JAN", "MAR", "MAY", "JUL", "SEP", "NOV")
            ),
        ),
        path="elnino/elnino.csv",
        is_series=True,
    ),
    statsmodels(
        "interest",
        "A row is a quarter of the German economy.",
        columns(
            "number",
            year="year",
            quarter="quarter, 1 to 4",
            Dp="change of the log of the GDP deflator",
            R="nominal long-term interest rate",
        ),
        path="interest_inflation/E6.csv",
        is_series=True,
    ),
    statsmodels(
        "investment",
        "A row is a firm in a year.",
        (
            *columns(
                "number",
                invest="gross investment in million dollars",
                value="market value in million dollars",
                capital="stock of plant and equipment",
            ),
            *columns("category", firm="name of the firm"),
        ),
        path="grunfeld/grunfeld.csv",
    ),
    vega_datasets(
        "seattle_weather",
        "A row is a day in Seattle.",
        (
            *columns("date", date="the day"),
            *columns(
                "number",
                precipitation="precipitation in mm",
                temp_max="highest temperature in degrees Celsius",
                temp_min="lowest temperature in degrees Celsius",
                wind="wind in m/s",
            ),
            *columns("category", weather="kind of weather"),
        ),
        path="seattle-weather.csv",
        is_series=True,
    ),
    vega_datasets(
        "san_francisco",
        "A row is an hour of 2010 in San Francisco.",
        (
            *columns("date", date="the hour"),
            *columns("number", temp="temperature in degrees Fahrenheit"),
        ),
        path="sf-temps.csv",
        is_series=True,
    ),
    vega_datasets(
        "stocks",
        "A row is a stock in a month.",
        (
            *columns("category", symbol="symbol of the stock"),
            *columns("date", date="first day of the month"),
            *columns("number", price="price in dollars"),
        ),
        path="stocks.csv",
    ),
    vega_datasets(
        "employment",
        "A row is a month of employment in the USA, thousands of people.",
        (
            *columns("date", month="first day of the month"),
            *columns(
                "number",
                private="private sector",
                construction="construction",
                manufacturing="manufacturing",
                retail_trade="retail trade",
                information="information",
                financial_activities="financial activities",
            ),
        ),
        path="us-employment.csv",
        is_series=True,
    ),
    vega_datasets(
        "electricity",
        "A row is a kind of source in a year in Iowa.",
        (
            *columns("date", year="first day of the year"),
            *columns("category", source="source of energy"),
            *columns("number", net_generation="electricity in 1000 MWh"),
        ),
        path="iowa-electricity.csv",
    ),
    vega_datasets(
        "wheat",
        "A row is a span of five years in England.",
        columns(
            "number",
            year="first year",
            wheat="price of a quarter of wheat in shillings",
            wages="weekly wage in shillings",
        ),
        path="wheat.json",
        is_series=True,
    ),
    vega_datasets(
        "driving",
        "A row is a year in the USA.",
        columns("number", year="year", miles="miles driven per person", gas="price of a gallon in dollars"),
        path="driving.json",
        is_series=True,
    ),
)
"""About how things went."""
