"""Questions about bars and lines."""

import random
from collections.abc import Sequence

from sensorium.envs.visual_qa.answers import ChoiceAnswer, TextAnswer, YesNoAnswer
from sensorium.envs.visual_qa.charts import wording
from sensorium.envs.visual_qa.charts.model import Chart, Series
from sensorium.envs.visual_qa.questions import Question, Template, listed

_RANKS = {2: "second", 3: "third"}
_DIRECTIONS: dict[str, tuple[str, ...]] = {
    "rise": (
        "rises",
        "rose",
        "increase",
        "increases",
        "increased",
        "go up",
        "goes up",
        "went up",
        "up",
        "higher",
        "grow",
        "grew",
    ),
    "fall": (
        "falls",
        "fell",
        "decrease",
        "decreases",
        "decreased",
        "decline",
        "declined",
        "go down",
        "goes down",
        "went down",
        "down",
        "lower",
        "drop",
        "dropped",
    ),
}


def one_series(chart: Chart, rng: random.Random) -> tuple[Series, str]:
    """A series, and how a question names it (not at all when there is no other)."""
    series = rng.choice(chart.series)
    return series, f" of {series.name}" if len(chart.series) > 1 else ""


def title(chart: Chart, rng: random.Random) -> Question | None:
    """What is written above it."""
    if not chart.title or rng.random() < 0.7:
        return None
    return Question(text="What is the title of the chart?", answer=TextAnswer(value=chart.title))


def value(chart: Chart, rng: random.Random) -> Question | None:
    """One value."""
    series, of = one_series(chart, rng)
    at = rng.randrange(len(chart.categories))
    where = wording.place(chart, chart.categories[at])
    text = f"What is the value{of} for {where}? {wording.READ_OFF}"
    return Question(text=text, answer=wording.number(chart, series.values[at], chart.value_error))


def extreme(chart: Chart, rng: random.Random) -> Question | None:
    """Where the largest or the smallest value is."""
    series, of = one_series(chart, rng)
    highest = rng.random() < 0.5
    order = sorted(range(len(series.values)), key=series.values.__getitem__, reverse=highest)
    if not chart.clear(series.values[order[0]], series.values[order[1]]):
        return None
    text = f"For which {chart.x_label or 'category'} is the value{of} {'highest' if highest else 'lowest'}?"
    template = "highest" if highest else "lowest"
    return Question(text=text, answer=wording.category(chart, order[0]), template=template)


def rank(chart: Chart, rng: random.Random) -> Question | None:
    """Where the second or third largest value is."""
    series, of = one_series(chart, rng)
    order = sorted(range(len(series.values)), key=series.values.__getitem__, reverse=True)
    place = rng.choice(sorted(_RANKS))
    if len(order) <= place:
        return None
    ranked = [series.values[i] for i in order]
    if not all(chart.clear(ranked[i], ranked[i + 1]) for i in (place - 2, place - 1)):
        return None
    text = f"For which {chart.x_label or 'category'} is the value{of} the {_RANKS[place]} highest?"
    return Question(text=text, answer=wording.category(chart, order[place - 1]))


def difference(chart: Chart, rng: random.Random) -> Question | None:
    """How far two values are apart."""
    series, of = one_series(chart, rng)
    a, b = rng.sample(range(len(series.values)), 2)
    if not chart.clear(series.values[a], series.values[b]):
        return None
    if series.values[a] < series.values[b]:
        a, b = b, a
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"By how much is the value{of} for {one} higher than that for {other}? {wording.READ_OFF}"
    gap = series.values[a] - series.values[b]
    return Question(text=text, answer=wording.number(chart, gap, 1.5 * chart.value_error))


def total(chart: Chart, rng: random.Random) -> Question | None:
    """The sum of two values."""
    series, of = one_series(chart, rng)
    a, b = sorted(rng.sample(range(len(series.values)), 2))
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"What is the sum of the values{of} for {one} and {other}? {wording.READ_OFF}"
    both = series.values[a] + series.values[b]
    return Question(text=text, answer=wording.number(chart, both, 1.5 * chart.value_error))


def larger(chart: Chart, rng: random.Random) -> Question | None:
    """Which of two values is larger."""
    series, of = one_series(chart, rng)
    a, b = rng.sample(range(len(series.values)), 2)
    if not chart.clear(series.values[a], series.values[b]):
        return None
    names = chart.categories[a], chart.categories[b]
    text = f"Where is the value{of} higher: for {listed([wording.place(chart, n) for n in names])}?"
    best = a if series.values[a] > series.values[b] else b
    answer = wording.category(chart, best).model_copy(update={"options": names})
    return Question(text=text, answer=answer)


def is_larger(chart: Chart, rng: random.Random) -> Question | None:
    """Whether one value is larger than another."""
    series, of = one_series(chart, rng)
    a, b = rng.sample(range(len(series.values)), 2)
    if not chart.clear(series.values[a], series.values[b]):
        return None
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"Is the value{of} for {one} higher than that for {other}?"
    return Question(text=text, answer=YesNoAnswer(value=series.values[a] > series.values[b]))


def count_above(chart: Chart, rng: random.Random) -> Question | None:
    """How many values lie above a line of the grid."""
    series, of = one_series(chart, rng)
    levels = [t for t in chart.value_axis.ticks if all(chart.value_axis.clear(v, t) for v in series.values)]
    counts = {t: sum(v > t for v in series.values) for t in levels}
    useful = [t for t, n in counts.items() if 0 < n < len(series.values)]
    if not useful:
        return None
    level = rng.choice(useful)
    what = {"bar": "bars", "line": "points"}[chart.kind]
    text = f"How many {what}{of} lie above {level:,g}?"
    if chart.kind == "bar":
        text = f"How many bars{of} are larger than {level:,g}?"
    return Question(text=text, answer=wording.count(chart, counts[level]))


def count_marks(chart: Chart, rng: random.Random) -> Question | None:
    """How many bars or lines there are."""
    if chart.kind == "bar":
        if any(abs(v) < 0.015 * chart.value_axis.span for series in chart.series for v in series.values):
            return None
        text, number = "How many bars does the chart have?", len(chart.series) * len(chart.categories)
    elif len(chart.series) > 1:
        text, number = "How many lines does the chart have?", len(chart.series)
    else:
        text, number = "How many points are marked on the line?", len(chart.categories)
    return Question(text=text, answer=wording.count(chart, number))


def color_of(chart: Chart, rng: random.Random) -> Question | None:
    """The colour of a series."""
    series, of = one_series(chart, rng)
    what = {"bar": "bars", "line": "line", "stacked": "parts", "pie": "slice", "box": "box"}
    number = "are" if what[chart.kind].endswith("s") else "is"
    text = f"Which colour {number} the {what[chart.kind]}{of}?"
    return Question(text=text, answer=wording.color(series.color))


def of_color(chart: Chart, rng: random.Random) -> Question | None:
    """Which series has a colour."""
    if len(chart.series) < 2:
        return None
    index = rng.randrange(len(chart.series))
    text = f"What does the colour {chart.series[index].color} stand for?"
    return Question(text=text, answer=wording.series_name(chart, index))


def higher_series(chart: Chart, rng: random.Random) -> Question | None:
    """Which series is highest at one place."""
    if len(chart.series) < 2:
        return None
    at = rng.randrange(len(chart.categories))
    values = [series.values[at] for series in chart.series]
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    if not chart.clear(values[order[0]], values[order[1]]):
        return None
    names = [series.name for series in chart.series]
    where = wording.place(chart, chart.categories[at])
    text = f"Which is highest for {where}: {listed(names)}?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def direction(chart: Chart, rng: random.Random) -> Question | None:
    """Whether a line rises or falls between two places."""
    if chart.kind != "line":
        return None
    series, of = one_series(chart, rng)
    a, b = sorted(rng.sample(range(len(series.values)), 2))
    if not chart.clear(series.values[a], series.values[b]):
        return None
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"Did the value{of} rise or fall from {one} to {other}?"
    right = "rise" if series.values[b] > series.values[a] else "fall"
    answer = ChoiceAnswer(value=right, options=tuple(_DIRECTIONS), synonyms=_DIRECTIONS)
    return Question(text=text, answer=answer)


def first_above(chart: Chart, rng: random.Random) -> Question | None:
    """Where a line first lies above a line of the grid."""
    if chart.kind != "line":
        return None
    series, of = one_series(chart, rng)
    ticks: Sequence[float] = chart.value_axis.ticks
    useful = []
    for tick in ticks:
        above = [i for i, v in enumerate(series.values) if v > tick]
        if (
            above
            and above[0] > 0
            and all(chart.value_axis.clear(v, tick) for v in series.values[: above[0] + 1])
        ):
            useful.append((tick, above[0]))
    if not useful:
        return None
    level, at = rng.choice(useful)
    text = f"For which {chart.x_label or 'category'} does the value{of} first lie above {level:,g}?"
    return Question(text=text, answer=wording.category(chart, at))


BAR: tuple[Template[Chart], ...] = (
    value,
    extreme,
    rank,
    difference,
    total,
    larger,
    is_larger,
    count_above,
    count_marks,
    color_of,
    of_color,
    higher_series,
    title,
)
LINE: tuple[Template[Chart], ...] = (
    value,
    extreme,
    difference,
    larger,
    is_larger,
    count_above,
    count_marks,
    color_of,
    of_color,
    higher_series,
    direction,
    first_above,
    title,
)
