"""Questions about the course of time."""

import calendar
import math
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from sensorium.envs.notebook import measures
from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.questions.question import (
    Draw,
    Question,
    Unsuitable,
    best,
    category,
    count,
    number,
)
from sensorium.envs.notebook.table import Column

_WRITTEN = {
    "co2": "%Y%m%d",
    "seattle_weather": "%Y/%m/%d",
    "san_francisco": "%Y/%m/%d %H:%M:%S",
    "stocks": "%b %d %Y",
    "employment": "%Y-%m-%d",
    "electricity": "%Y-%m-%d",
    "cars": "%Y-%m-%d",
}
_FORMATS = ("%d.%m.%Y", "%d %b %Y", "%Y-%m-%d", "%m/%d/%Y", "%B %d, %Y", "%Y%m%d")
_MONTHS = tuple(calendar.month_name)[1:]
_DAYS = tuple(calendar.day_name)


def month_extreme(draw: Draw) -> Question:
    """The month of the year with the highest or lowest mean."""
    dated = _Dated(draw)
    scores = dated.means(lambda day: _MONTHS[day.month - 1])
    highest = draw.rng.random() < 0.5
    if len(scores) < 10:
        raise Unsuitable
    word, method = ("highest", "idxmax") if highest else ("lowest", "idxmin")
    return dated.question(
        f"In which month of the year (over all years) is the mean of {dated.y.name} "
        f"{word}? Answer with the name of the month.",
        category(best(scores, highest=highest), _MONTHS),
        f"answer = df.groupby(date.dt.month_name())[{dated.y.name!r}].mean().{method}()",
    )


def weekday_mean(draw: Draw) -> Question:
    """The mean on one day of the week."""
    dated = _Dated(draw)
    scores = dated.means(lambda day: _DAYS[day.weekday()])
    if len(scores) < 7:
        raise Unsuitable
    day = draw.rng.choice(_DAYS)
    return dated.question(
        f"What is the mean of {dated.y.name} on {day}s?",
        number(scores[day]),
        f"answer = df.loc[date.dt.day_name() == {day!r}, {dated.y.name!r}].mean()",
    )


def year_extreme(draw: Draw) -> Question:
    """The highest or lowest mean of a year."""
    dated = _Dated(draw)
    scores = dated.means(lambda day: str(day.year))
    if len(scores) < 3:
        raise Unsuitable
    highest = draw.rng.random() < 0.5
    value = max(scores.values()) if highest else min(scores.values())
    word, method = ("highest", "max") if highest else ("lowest", "min")
    return dated.question(
        f"Take the mean of {dated.y.name} for each calendar year. What is the {word} of these means?",
        number(value),
        f"answer = df.groupby(date.dt.year)[{dated.y.name!r}].mean().{method}()",
    )


def month_of_year(draw: Draw) -> Question:
    """The mean or sum of one month of one year."""
    dated = _Dated(draw)
    groups = defaultdict(list)
    for day, value in dated.rows:
        groups[(day.year, day.month)].append(value)
    full = sorted(key for key, values in groups.items() if len(values) >= 4)
    if not full:
        raise Unsuitable
    year, month = draw.rng.choice(full)
    values, how = groups[(year, month)], draw.rng.choice(("mean", "sum", "median"))
    array = measures.as_numbers(values)
    value = {
        "mean": measures.mean(array),
        "sum": math.fsum(array),
        "median": measures.quantile(array, 0.5),
    }[how]
    return dated.question(
        f"What is the {how} of {dated.y.name} in {_MONTHS[month - 1]} {year}?",
        number(value),
        f"answer = df.loc[(date.dt.year == {year}) & (date.dt.month == {month}), {dated.y.name!r}].{how}()",
    )


def trend(draw: Draw) -> Question:
    """The slope over the number of the row."""
    y, values = _series(draw)
    coefficients, _ = measures.least_squares([np.arange(len(values), dtype=np.float64)], values)
    return Question(
        f"{_in_order(y)}, number the others 0, 1, 2, ... and fit a line to {y.name} over that number by "
        "least squares. What is its slope?",
        number(float(coefficients[1])),
        f"import numpy as np\nv = df[{y.name!r}].dropna().to_numpy(float)\n"
        "answer = np.polyfit(np.arange(len(v)), v, 1)[0]",
        (y.name,),
    )


def rolling_extreme(draw: Draw) -> Question:
    """The greatest or smallest mean of consecutive rows."""
    y, values = _series(draw)
    width, highest = draw.rng.choice((4, 5, 7, 12)), draw.rng.random() < 0.5
    means = [math.fsum(values[i : i + width]) / width for i in range(len(values) - width + 1)]
    value, word, method = (max(means), "greatest", "max") if highest else (min(means), "smallest", "min")
    return Question(
        f"{_in_order(y)}. What is the {word} mean of {y.name} over {width} consecutive rows?",
        number(value),
        f"answer = df[{y.name!r}].dropna().rolling({width}).mean().{method}()",
        (y.name,),
    )


def autocorrelation(draw: Draw) -> Question:
    """The correlation of a series with itself some rows later."""
    y, values = _series(draw)
    lag = draw.rng.choice((1, 2, 3, 4, 6))
    return Question(
        f"{_in_order(y)}. What is Pearson's correlation of {y.name} with its own value {lag} "
        f"row{'s' if lag > 1 else ''} later (over the pairs of rows for which both exist)?",
        number(measures.pearson(values[:-lag], values[lag:])),
        f"answer = df[{y.name!r}].dropna().reset_index(drop=True).autocorr({lag})",
        (y.name,),
    )


def relative_change(draw: Draw) -> Question:
    """The greatest rise or fall from one row to the next."""
    y, values = _series(draw)
    if values.min() <= 0.0:
        raise Unsuitable
    changes = 100.0 * (values[1:] / values[:-1] - 1.0)
    highest = draw.rng.random() < 0.5
    value, word, method = (
        (float(changes.max()), "greatest increase", "max")
        if highest
        else (float(changes.min()), "greatest decrease (as a negative number)", "min")
    )
    if (value > 0) is not highest:
        raise Unsuitable
    return Question(
        f"{_in_order(y)}. What is the {word} of {y.name} from one row to the next, in per cent of the "
        "earlier value?",
        number(value),
        f"answer = 100 * df[{y.name!r}].dropna().pct_change().{method}()",
        (y.name,),
    )


def longest_run(draw: Draw) -> Question:
    """The longest stretch of rows above a threshold."""
    y, values = _series(draw)
    limit = draw.threshold(values, 0.3, 0.7)
    longest = run = 0
    for value in values:
        run = run + 1 if value > limit else 0
        longest = max(longest, run)
    return Question(
        f"{_in_order(y)}. What is the greatest number of consecutive rows with {y.name} greater than "
        f"{limit:g}?",
        count(longest, at_least=7),
        f"above = df[{y.name!r}].dropna() > {limit!r}\n"
        "answer = int(above.groupby((~above).cumsum()).sum().max())",
        (y.name,),
    )


class _Dated:
    """A number with the date of its row, the date written in some way.

    Args:
        draw: What is picked from.

    Raises:
        Unsuitable: There are no dates.
    """

    def __init__(self, draw: Draw) -> None:
        dates = [c for c in draw.columns if c.kind == "date"]
        if not dates:
            raise Unsuitable
        self._draw, self._date, self.y = draw, dates[0], draw.numbers(1)[0]
        written = _WRITTEN[draw.dataset.name]
        days = [
            datetime.strptime(cell, written).replace(tzinfo=UTC) for cell in draw.table.texts(dates[0].name)
        ]
        values = draw.table.numbers(self.y.name)
        self.rows = [(day, float(v)) for day, v in zip(days, values, strict=True) if not math.isnan(v)]
        self._format = draw.rng.choice(_FORMATS)
        if "%H" in written:
            self._format += " %H:%M"
        self._cells = [day.strftime(self._format) for day in days]

    def means(self, group: Callable[[datetime], str]) -> dict[str, float]:
        """Group -> mean of its rows."""
        groups = defaultdict(list)
        for day, value in self.rows:
            groups[group(day)].append(value)
        return {name: measures.mean(values) for name, values in groups.items()}

    def question(self, text: str, key: AnswerKey, code: str) -> Question:
        """A question about these rows."""
        name = self._date.name
        example = datetime(2012, 12, 31, 17, tzinfo=UTC).strftime(self._format)
        parse = f"date = pd.to_datetime(df[{name!r}].astype(str), format={self._format!r})\n"
        table = self._draw.table.with_column(name, self._cells)
        note = f"In {name} the last day of 2012 would be written {example}."
        return Question(text, key, parse + code, (name, self.y.name), {self._draw.file: table}, note)


def _in_order(y: Column) -> str:
    """How a question about consecutive rows begins."""
    return f"The rows are in the order of time. Leave out rows where {y.name} is missing"


def _series(draw: Draw) -> tuple[Column, measures.Numbers]:
    if not draw.dataset.is_series:
        raise Unsuitable
    y = draw.numbers(1)[0]
    values = draw.table.numbers(y.name)
    values = values[~np.isnan(values)]
    if len(values) < 30:
        raise Unsuitable
    return y, values
