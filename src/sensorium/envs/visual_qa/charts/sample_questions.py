"""Questions about scatter plots, histograms and boxes."""

import random
from collections.abc import Sequence

from sensorium.envs.visual_qa.answers import ChoiceAnswer, TextAnswer, YesNoAnswer
from sensorium.envs.visual_qa.charts import wording
from sensorium.envs.visual_qa.charts.model import Axis, Chart
from sensorium.envs.visual_qa.charts.row_questions import color_of, of_color, one_series, title
from sensorium.envs.visual_qa.charts.samples import quartiles
from sensorium.envs.visual_qa.questions import Question, Template, listed

_CLEAR_CORRELATION = 0.6
_SIGNS: dict[str, tuple[str, ...]] = {
    "rises": ("rise", "increase", "increases", "positive", "positively", "upward", "up", "higher", "grows"),
    "falls": (
        "fall",
        "decrease",
        "decreases",
        "negative",
        "negatively",
        "downward",
        "down",
        "lower",
        "drops",
    ),
}


def num_points(chart: Chart, rng: random.Random) -> Question | None:
    """How many points there are."""
    number = sum(len(series.values) for series in chart.series)
    return Question(text="How many points does the plot show?", answer=wording.count(chart, number))


def points_above(chart: Chart, rng: random.Random) -> Question | None:
    """How many points lie on one side of a line of the grid."""
    upward = rng.random() < 0.5
    scale = chart.value_axis if upward else chart.number_axis
    places = [v for s in chart.series for v in (s.values if upward else s.x)]
    useful = _levels(scale, places)
    if not useful:
        return None
    level = rng.choice(useful)
    where = "above" if upward else "to the right of"
    text = f"How many points lie {where} {level:,g} on the axis {scale.label!r}?"
    return Question(text=text, answer=wording.count(chart, sum(v > level for v in places)))


def num_groups(chart: Chart, rng: random.Random) -> Question | None:
    """How many groups are told apart."""
    if len(chart.series) < 2:
        return None
    return Question(
        text="How many groups does the legend name?", answer=wording.count(chart, len(chart.series))
    )


def group_size(chart: Chart, rng: random.Random) -> Question | None:
    """How many points a group has."""
    if len(chart.series) < 2:
        return None
    series = rng.choice(chart.series)
    text = f"How many points belong to {series.name}?"
    return Question(text=text, answer=wording.count(chart, len(series.values)))


def group_color(chart: Chart, rng: random.Random) -> Question | None:
    """The colour of the points."""
    series, of = one_series(chart, rng)
    return Question(text=f"Which colour are the points{of}?", answer=wording.color(series.color))


def extreme_point(chart: Chart, rng: random.Random) -> Question | None:
    """The value of the highest or lowest point."""
    places = [v for s in chart.series for v in s.values]
    highest = rng.random() < 0.5
    value = max(places) if highest else min(places)
    which = "highest" if highest else "lowest"
    label = chart.value_axis.label
    text = f"What is the value of the {which} point on the axis {label!r}? {wording.READ_OFF}"
    return Question(text=text, answer=wording.number(chart, value, chart.value_axis.reading_error))


def extreme_group(chart: Chart, rng: random.Random) -> Question | None:
    """To which group the highest point belongs."""
    if len(chart.series) < 2:
        return None
    tops = [max(series.values) for series in chart.series]
    order = sorted(range(len(tops)), key=tops.__getitem__, reverse=True)
    if not chart.value_axis.clear(tops[order[0]], tops[order[1]]):
        return None
    return Question(
        text="To which group does the highest point belong?", answer=wording.series_name(chart, order[0])
    )


def trend(chart: Chart, rng: random.Random) -> Question | None:
    """Whether one quantity rises or falls with the other."""
    xs = [x for s in chart.series for x in s.x]
    ys = [y for s in chart.series for y in s.values]
    strength = _correlation(xs, ys)
    if abs(strength) < _CLEAR_CORRELATION:
        return None
    text = f"As {chart.number_axis.label!r} grows, does {chart.value_axis.label!r} rise or fall on the whole?"
    right = "rises" if strength > 0 else "falls"
    answer = ChoiceAnswer(value=right, options=tuple(_SIGNS), synonyms=_SIGNS)
    return Question(text=text, answer=answer)


def axis_name(chart: Chart, rng: random.Random) -> Question | None:
    """What is written at an axis."""
    if rng.random() < 0.5:
        return None
    which, scale = rng.choice((("horizontal", chart.number_axis), ("vertical", chart.value_axis)))
    text = f"What does the {which} axis show, by its label?"
    return Question(text=text, answer=TextAnswer(value=scale.name, synonyms=(scale.label,)))


def bin_count(chart: Chart, rng: random.Random) -> Question | None:
    """How many values an interval holds."""
    (series,) = chart.series
    at = rng.randrange(len(series.values))
    text = f"How many values lie in {wording.place(chart, chart.categories[at])}? {wording.READ_OFF}"
    return Question(text=text, answer=wording.number(chart, series.values[at], chart.value_error))


def tallest_bin(chart: Chart, rng: random.Random) -> Question | None:
    """Which interval holds most."""
    (series,) = chart.series
    order = sorted(range(len(series.values)), key=series.values.__getitem__, reverse=True)
    if not chart.clear(series.values[order[0]], series.values[order[1]]):
        return None
    text = "Which interval holds most values? Give its two limits."
    return Question(text=text, answer=wording.category(chart, order[0]))


def num_bins(chart: Chart, rng: random.Random) -> Question | None:
    """How many bars are not empty."""
    (series,) = chart.series
    if any(0 < v < chart.value_axis.reading_error / 2 for v in series.values):
        return None
    number = sum(v > 0 for v in series.values)
    return Question(text="How many bars does the histogram have?", answer=wording.count(chart, number))


def bins_above(chart: Chart, rng: random.Random) -> Question | None:
    """How many bars are higher than a line of the grid."""
    (series,) = chart.series
    useful = _levels(chart.value_axis, series.values)
    if not useful:
        return None
    level = rng.choice(useful)
    number = sum(v > level for v in series.values)
    return Question(text=f"How many bars are higher than {level:,g}?", answer=wording.count(chart, number))


def larger_bin(chart: Chart, rng: random.Random) -> Question | None:
    """Whether one interval holds more than another."""
    (series,) = chart.series
    a, b = rng.sample(range(len(series.values)), 2)
    if not chart.clear(series.values[a], series.values[b]):
        return None
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"Does {one} hold more values than {other}?"
    return Question(text=text, answer=YesNoAnswer(value=series.values[a] > series.values[b]))


def median(chart: Chart, rng: random.Random) -> Question | None:
    """The line in a box."""
    series = rng.choice(chart.series)
    middle = quartiles(series.values)[1]
    text = f"What is the median of {series.name} (the line in its box)? {wording.READ_OFF}"
    return Question(text=text, answer=wording.number(chart, middle, chart.value_axis.reading_error))


def upper_quartile(chart: Chart, rng: random.Random) -> Question | None:
    """The upper end of a box."""
    series = rng.choice(chart.series)
    text = f"Where does the box of {series.name} end at the top (the upper quartile)? {wording.READ_OFF}"
    high = quartiles(series.values)[2]
    return Question(text=text, answer=wording.number(chart, high, chart.value_axis.reading_error))


def maximum(chart: Chart, rng: random.Random) -> Question | None:
    """The upper end of a whisker."""
    series = rng.choice(chart.series)
    text = f"Where does the upper whisker of {series.name} end? {wording.READ_OFF}"
    high = series.values[-1]
    return Question(text=text, answer=wording.number(chart, high, chart.value_axis.reading_error))


def highest_median(chart: Chart, rng: random.Random) -> Question | None:
    """Which box has the highest or lowest median."""
    highest = rng.random() < 0.5
    middles = [quartiles(series.values)[1] for series in chart.series]
    order = sorted(range(len(middles)), key=middles.__getitem__, reverse=highest)
    if not chart.value_axis.clear(middles[order[0]], middles[order[1]]):
        return None
    names = [series.name for series in chart.series]
    text = f"Which has the {'highest' if highest else 'lowest'} median: {listed(names)}?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def tallest_box(chart: Chart, rng: random.Random) -> Question | None:
    """Which box is the longest."""
    heights = [quartiles(series.values)[2] - quartiles(series.values)[0] for series in chart.series]
    order = sorted(range(len(heights)), key=heights.__getitem__, reverse=True)
    if not chart.value_axis.clear(heights[order[0]], heights[order[1]]):
        return None
    text = "Which box is the tallest (from lower to upper quartile)?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def num_boxes(chart: Chart, rng: random.Random) -> Question | None:
    """How many boxes there are."""
    return Question(
        text="How many boxes does the chart have?", answer=wording.count(chart, len(chart.series))
    )


def _levels(scale: Axis, places: Sequence[float]) -> list[float]:
    """Ticks that have values on both sides, none of them close."""
    return [
        tick
        for tick in scale.ticks
        if all(abs(tick - place) >= 0.02 * scale.span for place in places)
        and 0 < sum(place > tick for place in places) < len(places)
    ]


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    both = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    size = (sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys)) ** 0.5
    return both / size if size else 0.0


SCATTER: tuple[Template[Chart], ...] = (
    num_points, points_above, num_groups, group_size, group_color, extreme_point, extreme_group, trend,
    axis_name, of_color,
)  # fmt: skip
HISTOGRAM: tuple[Template[Chart], ...] = (
    bin_count, tallest_bin, num_bins, bins_above, larger_bin, axis_name,
)  # fmt: skip
BOX: tuple[Template[Chart], ...] = (
    median, upper_quartile, maximum, highest_median, tallest_box, num_boxes, color_of, title,
)  # fmt: skip
