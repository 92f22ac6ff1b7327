"""Questions whose files must be mended or joined first: missing values, duplicates, units, two files."""

import math

from sensorium.envs.notebook import measures
from sensorium.envs.notebook.questions.question import Draw, Question, Unsuitable, count, number
from sensorium.envs.notebook.table import Column, Table


def join(draw: Draw) -> Question:
    """A mean over the rows that two files share."""
    y, g = draw.numbers(1)[0], draw.category()
    level = draw.level(g, 25)
    total, (left, right) = len(draw.table), _two_tables(draw, y)
    left = left.take(sorted(draw.rng.sample(range(total), round(0.9 * total))))
    right = right.take(draw.rng.sample(range(total), round(0.85 * total)))
    found = dict(zip(right.texts("id"), right.texts(y.name), strict=True))
    values = [
        float(found[key])
        for key, cell in zip(left.texts("id"), left.texts(g.name), strict=True)
        if cell == level and found.get(key)
    ]
    if len(values) < 10:
        raise Unsuitable
    name, other = draw.file, f"{draw.dataset.name}_{y.name}.csv"
    return Question(
        "Join the two files on id; ids that only one of them has are left out. What is the mean of "
        f"{y.name} over the rows where {g.name} is {level!r}?",
        number(measures.mean(values)),
        f"d = df.merge(pd.read_csv({other!r}), on='id', how='inner')\n"
        f"answer = d.loc[d[{g.name!r}].astype(str) == {level!r}, {y.name!r}].mean()",
        (y.name, g.name),
        {name: left, other: right},
        f"{other} has {y.name} of each id.",
    )


def unmatched(draw: Draw) -> Question:
    """How many ids one of two files lacks."""
    y = draw.numbers(1)[0]
    total, (left, right) = len(draw.table), _two_tables(draw, y)
    left = left.take(sorted(draw.rng.sample(range(total), round(draw.rng.uniform(0.7, 0.9) * total))))
    right = right.take(draw.rng.sample(range(total), round(draw.rng.uniform(0.6, 0.9) * total)))
    name, other = draw.file, f"{draw.dataset.name}_{y.name}.csv"
    lacking = len(set(left.texts("id")) - set(right.texts("id")))
    return Question(
        f"How many ids of {name} are not in {other}?",
        count(lacking),
        f"answer = int((~df['id'].isin(pd.read_csv({other!r})['id'])).sum())",
        (y.name,),
        {name: left, other: right},
        f"{other} has {y.name} of each id.",
    )


def missing_values(draw: Draw) -> Question:
    """How many rows are complete, or lack something."""
    columns = draw.numbers(draw.rng.choice((2, 3)))
    table = draw.table
    for column in columns:
        table = _with_gaps(draw, table, column, draw.rng.uniform(0.04, 0.15))
    names = [c.name for c in columns]
    lacking = sum(1 for row in range(len(table)) if any(not table.columns[name][row] for name in names))
    complete = draw.rng.random() < 0.5
    said, test = ("no", "notna().all") if complete else ("at least one", "isna().any")
    return Question(
        f"How many rows have {said} missing value among the columns {', '.join(names)}?",
        count(len(table) - lacking if complete else lacking),
        f"answer = int(df[{names!r}].{test}(axis=1).sum())",
        tuple(names),
        {draw.file: table},
    )


def filled_values(draw: Draw) -> Question:
    """A statistic after missing values were replaced by the median of their group or column."""
    y = draw.numbers(1)[0]
    table = _with_gaps(draw, draw.table, y, draw.rng.uniform(0.08, 0.2))
    values = [float(cell) for cell in table.texts(y.name) if cell]
    if len(values) < 20:
        raise Unsuitable
    median = measures.quantile(measures.as_numbers(values), 0.5)
    filled = measures.as_numbers([float(cell) if cell else median for cell in table.texts(y.name)])
    return Question(
        f"Replace the missing values of {y.name} by the median of its other values. What is the sample "
        f"standard deviation (n - 1) of {y.name} then?",
        number(math.sqrt(measures.variance(filled))),
        f"answer = df[{y.name!r}].fillna(df[{y.name!r}].median()).std()",
        (y.name,),
        {draw.file: table},
    )


def duplicates(draw: Draw) -> Question:
    """A mean after repeated rows were removed."""
    y = draw.numbers(1)[0]
    table = Table({"id": _ids(draw), **draw.table.columns})
    total = len(table)
    repeated = [draw.rng.randrange(total) for _ in range(max(10, round(draw.rng.uniform(0.1, 0.3) * total)))]
    rows = [*range(total), *repeated]
    draw.rng.shuffle(rows)
    values = draw.complete(y).numbers(y.name)
    if draw.rng.random() < 0.5:
        text = "How many rows are left when rows that repeat an earlier row exactly are removed?"
        key, code = count(total), "answer = len(df.drop_duplicates())"
    else:
        text = f"Remove the rows that repeat an earlier row exactly. What is the mean of {y.name} then?"
        key, code = (
            number(measures.mean(values)),
            f"answer = df.drop_duplicates()[{y.name!r}].mean()",
        )
    return Question(text, key, code, (y.name,), {draw.file: table.take(rows)})


def written_numbers(draw: Draw) -> Question:
    """A statistic of a column whose numbers are written with units, separators and words for nothing."""
    y = draw.numbers(1)[0]
    style = draw.rng.choice(("unit", "percent", "comma"))
    cells, values = [], []
    for cell in draw.table.texts(y.name):
        if not cell or draw.rng.random() < 0.06:
            cells.append(draw.rng.choice(("n/a", "unknown", "-")))
            continue
        text = _written(float(cell), style)
        cells.append(text)
        values.append(_read(text))
    if len(values) < 20:
        raise Unsuitable
    array = measures.as_numbers(values)
    how = draw.rng.choice(("mean", "median"))
    value = measures.mean(array) if how == "mean" else measures.quantile(array, 0.5)
    return Question(
        f"In the column {y.name} numbers are written with thousands separators, units or signs, and what "
        f"is not known is said in words. What is the {how} of its numbers?",
        number(value),
        f"text = df[{y.name!r}].astype(str).str.replace(',', '').str.extract(r'(-?\\d+(?:\\.\\d+)?)')[0]\n"
        f"answer = text.dropna().astype(float).{how}()",
        (y.name,),
        {draw.file: draw.table.with_column(y.name, cells)},
    )


def _ids(draw: Draw) -> tuple[str, ...]:
    """An id for each row, in no order."""
    numbers = draw.rng.sample(range(10_000, 99_999), len(draw.table))
    return tuple(f"R{number}" for number in numbers)


def _two_tables(draw: Draw, y: Column) -> tuple[Table, Table]:
    """All other columns, and `y`, with the ids of their rows."""
    ids = _ids(draw)
    rest = draw.table.only([column.name for column in draw.columns if column.name != y.name])
    return Table({"id": ids, **rest.columns}), Table({"id": ids, y.name: draw.table.texts(y.name)})


def _with_gaps(draw: Draw, table: Table, column: Column, share: float) -> Table:
    return table.with_column(
        column.name, ["" if draw.rng.random() < share else cell for cell in table.texts(column.name)]
    )


def _written(value: float, style: str) -> str:
    plain = f"{value:,.4f}" if abs(value) < 100 else f"{value:,.2f}"
    return {"unit": f"{plain} units", "percent": f"{plain} %", "comma": plain}[style]


def _read(text: str) -> float:
    return float(text.replace(",", "").split()[0])
