"""Data sets whose rows may stand in any order."""

from sensorium.envs.notebook.dataset import Dataset, columns, renamed, sklearn, statsmodels, vega_datasets
from sensorium.envs.notebook.table import Column

_IRIS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")
_WINE = (
    "alcohol",
    "malic_acid",
    "ash",
    "alcalinity_of_ash",
    "magnesium",
    "total_phenols",
    "flavanoids",
    "nonflavanoid_phenols",
    "proanthocyanins",
    "color_intensity",
    "hue",
    "od280_od315",
    "proline",
    "cultivar",
)
_CELLS = tuple(
    f"{how}_{what}"
    for how in ("mean", "error", "worst")
    for what in (
        "radius",
        "texture",
        "perimeter",
        "area",
        "smoothness",
        "compactness",
        "concavity",
        "concave_points",
        "symmetry",
        "fractal_dimension",
    )
)
_DIGITS = (*(f"pixel_{row}_{column}" for row in range(8) for column in range(8)), "digit")
_COUNTS = 1  # the first row of some files of scikit-learn holds numbers of rows and classes
_NO_YES = {"0": "no", "1": "yes"}
_MODES = {"1": "air", "2": "train", "3": "bus", "4": "car"}
_OCCUPATIONS = {
    "1": "student",
    "2": "farming or unskilled",
    "3": "white-collar",
    "4": "teacher or skilled",
    "5": "managerial",
    "6": "professional",
}
_PARTIES = {
    "0": "strong Democrat",
    "1": "weak Democrat",
    "2": "independent Democrat",
    "3": "independent",
    "4": "independent Republican",
    "5": "weak Republican",
    "6": "strong Republican",
}
_PIXELS = tuple(Column(name, "number", "brightness of a pixel, 0 to 16") for name in _DIGITS[:-1])

PEOPLE = (
    statsmodels(
        "marriages",
        "A row is a married woman who answered a survey of 1974.",
        (
            *columns(
                "number",
                age="age in years",
                yrs_married="years married",
                children="number of children",
                educ="education in years",
                affairs="time spent in extramarital affairs",
            ),
            Column("occupation", "category", "her occupation", _OCCUPATIONS),
            Column("occupation_husb", "category", "her husband's occupation", _OCCUPATIONS),
            Column(
                "religious",
                "category",
                "how religious she is",
                {"1": "not", "2": "mildly", "3": "fairly", "4": "strongly"},
            ),
            Column(
                "rate_marriage",
                "category",
                "how she rates the marriage",
                {"1": "very poor", "2": "poor", "3": "fair", "4": "good", "5": "very good"},
            ),
        ),
        path="fair/fair.csv",
    ),
    statsmodels(
        "election_1996",
        "A row is a respondent of the American National Election Study of 1996.",
        (
            *columns(
                "number",
                popul="population of the place in 1000s",
                TVnews="days a week with TV news",
                age="age in years",
                income="income bracket, 1 to 24",
                selfLR="own position from left (1) to right (7)",
            ),
            Column("PID", "category", "party identification", _PARTIES),
            Column("vote", "category", "expected vote", {"0": "Clinton", "1": "Dole"}),
        ),
        path="anes96/anes96.csv",
        delimiter="\t",
    ),
    statsmodels(
        "health_insurance",
        "A row is a person in a year of the RAND health insurance experiment.",
        (
            *columns(
                "number",
                mdvis="outpatient visits to a doctor",
                lncoins="log of coinsurance + 1",
                lpi="log of the participation incentive",
                disea="number of chronic diseases",
            ),
            Column("idp", "category", "individual deductible plan", _NO_YES),
        ),
        path="randhie/randhie.csv",
    ),
    statsmodels(
        "credit_cards",
        "A row is a holder of a credit card.",
        (
            *renamed(
                "number",
                ("AVGEXP", "avg_expenditure", "average monthly expenditure"),
                ("AGE", "age", "age in years"),
                ("INCOME", "income", "income in 10,000 dollars"),
            ),
            Column("owns_home", "category", "owns the home", _NO_YES, source="OWNRENT"),
        ),
        path="ccard/ccard.csv",
    ),
    statsmodels(
        "engel",
        "A row is a Belgian working-class household of 1857.",
        columns("number", income="annual income in francs", foodexp="annual expenditure on food in francs"),
        path="engel/engel.csv",
    ),
    statsmodels(
        "heart_transplants",
        "A row is a patient with a heart transplant.",
        (
            *columns("number", survival="days survived after surgery", age="age at surgery in years"),
            Column(
                "censors",
                "category",
                "whether the death was observed",
                {"1.000000": "observed", "0.000000": "censored"},
            ),
        ),
        path="heart/heart.csv",
    ),
    statsmodels(
        "travel_modes",
        "A row is one of four ways of travelling that a traveller had between Sydney and Melbourne.",
        (
            *columns(
                "number",
                ttme="waiting time at the terminal in minutes",
                invc="cost in the vehicle in dollars",
                invt="time in the vehicle in minutes",
                gc="generalised cost in dollars",
                hinc="household income in 1000 dollars",
            ),
            Column("mode", "category", "way of travelling", _MODES),
            Column("choice", "category", "whether it was chosen", _NO_YES),
        ),
        path="modechoice/modechoice.csv",
        delimiter=";",
    ),
)
"""About people."""
PLACES = (
    statsmodels(
        "schools",
        "A row is a county of California with the results of the STAR test of 1998.",
        renamed(
            "number",
            ("LOWINC", "low_income", "per cent of students with low income"),
            ("AVYRSEXP", "teacher_experience", "years of service per teacher"),
            ("AVSALK", "teacher_salary", "salary per teacher in 1000 dollars"),
            ("PERSPENK", "spending", "spending per pupil in 1000 dollars"),
            ("PTRATIO", "pupils_per_teacher", "pupils per teacher"),
            ("PR50M", "below_median", "students below the national median in mathematics"),
            ("MATHTOT", "above_median", "students above the national median in mathematics"),
        ),
        path="star98/star98.csv",
    ),
    statsmodels(
        "state_crime",
        "A row is a state of the USA in 2009.",
        (
            *columns("key", state="name of the state"),
            *columns(
                "number",
                violent="violent crimes per 100,000 people",
                murder="murders per 100,000 people",
                hs_grad="per cent with a high-school degree",
                poverty="per cent below the poverty line",
                single="per cent of families with one parent",
                urban="per cent living in urbanised areas",
            ),
        ),
        path="statecrime/statecrime.csv",
    ),
    statsmodels(
        "fertility",
        "A row is a country with its births per woman in some years.",
        (
            *renamed("key", ("Country Name", "country", "name of the country")),
            *renamed(
                "number",
                *((str(y), f"births_{y}", f"births per woman in {y}") for y in range(1960, 2009, 8)),
            ),
        ),
        path="fertility/fertility.csv",
    ),
    statsmodels(
        "county_cancer",
        "A row is a county of the south-eastern USA.",
        columns("number", cancer="cases of breast cancer", population="women in the county"),
        path="cancer/cancer.csv",
    ),
    vega_datasets(
        "airports",
        "A row is an airport of the USA.",
        (
            *columns("key", iata="code of the airport"),
            *columns("category", state="state, two letters"),
            *columns("number", latitude="degrees north", longitude="degrees east"),
        ),
        path="airports.csv",
    ),
)
"""About places."""
NATURE = (
    sklearn(
        "iris",
        "A row is an iris flower.",
        (
            *(Column(name, "number", f"{name.replace('_', ' ')} in cm") for name in _IRIS[:-1]),
            Column("species", "category", "species", {"0": "setosa", "1": "versicolor", "2": "virginica"}),
        ),
        path="iris.csv",
        header=_IRIS,
        skipped_rows=_COUNTS,
    ),
    sklearn(
        "wine",
        "A row is a chemical analysis of an Italian wine.",
        (
            *(Column(name, "number", name.replace("_", " ")) for name in _WINE[:-1]),
            Column(
                "cultivar", "category", "grape", {"0": "cultivar A", "1": "cultivar B", "2": "cultivar C"}
            ),
        ),
        path="wine_data.csv",
        header=_WINE,
        skipped_rows=_COUNTS,
    ),
    sklearn(
        "breast_cancer",
        "A row is a digitised image of a breast mass; features describe its cell nuclei.",
        (
            *(Column(name, "number", f"{name.replace('_', ' ')} of the cell nuclei") for name in _CELLS),
            Column("diagnosis", "category", "diagnosis", {"0": "malignant", "1": "benign"}),
        ),
        path="breast_cancer.csv",
        header=(*_CELLS, "diagnosis"),
        skipped_rows=_COUNTS,
    ),
    Dataset(
        "diabetes",
        "A row is a patient with diabetes.",
        "sklearn",
        "datasets/data/diabetes_data_raw.csv.gz",
        (
            *columns(
                "number",
                age="age in years",
                bmi="body mass index",
                bp="average blood pressure",
                s1="total serum cholesterol",
                s2="low-density lipoproteins",
                s3="high-density lipoproteins",
                s5="log of serum triglycerides",
                s6="blood sugar level",
            ),
            Column("sex", "category", "sex as coded in the source", {"1": "group 1", "2": "group 2"}),
        ),
        delimiter=" ",
        header=("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"),
    ),
    sklearn(
        "digits",
        "A row is a handwritten digit of 8 by 8 pixels.",
        (
            *_PIXELS,
            Column("digit", "category", "which digit it is", {str(d): f"digit {d}" for d in range(10)}),
        ),
        path="digits.csv.gz",
        header=_DIGITS,
    ),
    vega_datasets(
        "barley",
        "A row is the yield of a variety of barley at a site in a year.",
        (
            Column("yield", "number", "yield in bushels per acre"),
            *columns("category", variety="variety", site="place", year="year"),
        ),
        path="barley.json",
    ),
    vega_datasets(
        "cars",
        "A row is a model of car of 1970 to 1982.",
        (
            *renamed(
                "number",
                ("Miles_per_Gallon", "mpg", "miles per gallon"),
                ("Displacement", "displacement", "displacement in cubic inches"),
                ("Horsepower", "horsepower", "power in horsepower"),
                ("Weight_in_lbs", "weight", "weight in pounds"),
                ("Acceleration", "acceleration", "seconds from 0 to 60 mph"),
            ),
            Column("origin", "category", "where it was made", source="Origin"),
            Column("model_date", "date", "first day of its model year", source="Year"),
        ),
        path="cars.json",
    ),
)
"""About plants, animals and things."""
