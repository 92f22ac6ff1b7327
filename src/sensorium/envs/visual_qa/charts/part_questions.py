"""Questions about stacks, pies and heat maps."""

import random

from sensorium.envs.visual_qa.answers import YesNoAnswer
from sensorium.envs.visual_qa.charts import wording
from sensorium.envs.visual_qa.charts.model import Chart
from sensorium.envs.visual_qa.charts.row_questions import color_of, of_color, title
from sensorium.envs.visual_qa.questions import Question, Template, listed

_PIE_ERROR = 4.0  # percentage points, of a slice without a number
_COLOR_ERROR = 0.08  # share of the scale, of a cell without a number
_COLOR_GAP = 0.15


def stack_total(chart: Chart, rng: random.Random) -> Question | None:
    """The height of one whole bar."""
    at = rng.randrange(len(chart.categories))
    whole = sum(series.values[at] for series in chart.series)
    where = wording.place(chart, chart.categories[at])
    text = f"What is the total for {where}, all parts together? {wording.READ_OFF}"
    return Question(text=text, answer=wording.number(chart, whole, chart.value_axis.reading_error))


def stack_part(chart: Chart, rng: random.Random) -> Question | None:
    """The height of one part."""
    series, at = rng.choice(chart.series), rng.randrange(len(chart.categories))
    if series.values[at] < 0.04 * chart.value_axis.span:
        return None
    where = wording.place(chart, chart.categories[at])
    text = f"How large is the part {series.name} for {where}? {wording.READ_OFF}"
    error = 1.5 * chart.value_axis.reading_error
    return Question(text=text, answer=wording.number(chart, series.values[at], error))


def highest_stack(chart: Chart, rng: random.Random) -> Question | None:
    """Which bar is highest as a whole."""
    totals = [sum(series.values[i] for series in chart.series) for i in range(len(chart.categories))]
    order = sorted(range(len(totals)), key=totals.__getitem__, reverse=True)
    if not chart.value_axis.clear(totals[order[0]], totals[order[1]]):
        return None
    text = f"For which {chart.x_label} is the total of all parts highest?"
    return Question(text=text, answer=wording.category(chart, order[0]))


def largest_part(chart: Chart, rng: random.Random) -> Question | None:
    """Which part of one bar is largest."""
    at = rng.randrange(len(chart.categories))
    values = [series.values[at] for series in chart.series]
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    if not chart.value_axis.clear(values[order[0]], values[order[1]]):
        return None
    where = wording.place(chart, chart.categories[at])
    text = f"Which part is the largest for {where}?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def num_parts(chart: Chart, rng: random.Random) -> Question | None:
    """How many kinds of parts there are."""
    text = "Into how many kinds of parts are the bars divided?"
    return Question(text=text, answer=wording.count(chart, len(chart.series)))


def slice_share(chart: Chart, rng: random.Random) -> Question | None:
    """The share of one slice."""
    series = rng.choice(chart.series)
    text = f"What share of the whole is {series.name}, in percent?"
    return Question(text=text, answer=wording.number(chart, series.values[0], _pie_error(chart)))


def slice_sum(chart: Chart, rng: random.Random) -> Question | None:
    """The share of two slices together."""
    one, other = rng.sample(chart.series, 2)
    text = f"What share of the whole are {one.name} and {other.name} together, in percent?"
    error = 1.5 * _pie_error(chart)
    return Question(text=text, answer=wording.number(chart, one.values[0] + other.values[0], error))


def slice_extreme(chart: Chart, rng: random.Random) -> Question | None:
    """The largest or smallest slice."""
    largest = rng.random() < 0.5
    values = [series.values[0] for series in chart.series]
    order = sorted(range(len(values)), key=values.__getitem__, reverse=largest)
    if abs(values[order[0]] - values[order[1]]) < 3.0:
        return None
    text = f"Which slice is the {'largest' if largest else 'smallest'}?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def slice_half(chart: Chart, rng: random.Random) -> Question | None:
    """Whether a slice is more than a part of the whole."""
    series, (limit, words) = rng.choice(chart.series), rng.choice(((50.0, "half"), (25.0, "a quarter")))
    if abs(series.values[0] - limit) < 3.0:
        return None
    text = f"Is {series.name} more than {words} of the whole?"
    return Question(text=text, answer=YesNoAnswer(value=series.values[0] > limit))


def num_slices(chart: Chart, rng: random.Random) -> Question | None:
    """How many slices there are."""
    return Question(text="How many slices does the pie have?", answer=wording.count(chart, len(chart.series)))


def cell_value(chart: Chart, rng: random.Random) -> Question | None:
    """One cell."""
    series, at = rng.choice(chart.series), rng.randrange(len(chart.categories))
    error = chart.value_error if chart.labelled else _COLOR_ERROR * chart.value_axis.span
    hint = "" if chart.labelled else " Estimate it from the colour scale."
    where = wording.place(chart, chart.categories[at])
    text = f"What is the value in the row {series.name} for {where}?{hint}"
    return Question(text=text, answer=wording.number(chart, series.values[at], error))


def best_in_row(chart: Chart, rng: random.Random) -> Question | None:
    """Where a row has its highest value."""
    series = rng.choice(chart.series)
    order = sorted(range(len(series.values)), key=series.values.__getitem__, reverse=True)
    if not _cells_differ(chart, series.values[order[0]], series.values[order[1]]):
        return None
    text = f"For which {chart.x_label} does the row {series.name} have its highest value?"
    return Question(text=text, answer=wording.category(chart, order[0]))


def best_in_column(chart: Chart, rng: random.Random) -> Question | None:
    """Which row is lowest in a column."""
    at = rng.randrange(len(chart.categories))
    values = [series.values[at] for series in chart.series]
    order = sorted(range(len(values)), key=values.__getitem__)
    if not _cells_differ(chart, values[order[0]], values[order[1]]):
        return None
    where = wording.place(chart, chart.categories[at])
    text = f"Which row has the lowest value for {where}?"
    return Question(text=text, answer=wording.series_name(chart, order[0]))


def cells_above(chart: Chart, rng: random.Random) -> Question | None:
    """How many numbers of a row are above a limit."""
    series = rng.choice(chart.series)
    limits = [t for t in chart.value_axis.ticks if min(series.values) < t < max(series.values)]
    if not chart.labelled or not limits:
        return None
    limit = rng.choice(limits)
    if limit in series.values:
        return None
    text = f"How many values of the row {series.name} are greater than {limit:,g}?"
    return Question(text=text, answer=wording.count(chart, sum(v > limit for v in series.values)))


def row_sum(chart: Chart, rng: random.Random) -> Question | None:
    """The sum of two numbers of a row."""
    if not chart.labelled:
        return None
    series = rng.choice(chart.series)
    a, b = sorted(rng.sample(range(len(series.values)), 2))
    names = [wording.place(chart, chart.categories[i]) for i in (a, b)]
    text = f"What is the sum of the values in the row {series.name} for {listed(names, 'and')}?"
    both = series.values[a] + series.values[b]
    return Question(text=text, answer=wording.number(chart, both, chart.value_error))


def darker(chart: Chart, rng: random.Random) -> Question | None:
    """Whether one cell holds more than another."""
    series = rng.choice(chart.series)
    a, b = rng.sample(range(len(series.values)), 2)
    if not _cells_differ(chart, series.values[a], series.values[b]):
        return None
    one, other = (wording.place(chart, chart.categories[i]) for i in (a, b))
    text = f"In the row {series.name}, is the value for {one} higher than that for {other}?"
    return Question(text=text, answer=YesNoAnswer(value=series.values[a] > series.values[b]))


def _cells_differ(chart: Chart, a: float, b: float) -> bool:
    return a != b if chart.labelled else abs(a - b) > _COLOR_GAP * chart.value_axis.span


def _pie_error(chart: Chart) -> float:
    return chart.value_error if chart.labelled else _PIE_ERROR


STACKED: tuple[Template[Chart], ...] = (
    stack_total, stack_part, highest_stack, largest_part, num_parts, color_of, of_color, title,
)  # fmt: skip
PIE: tuple[Template[Chart], ...] = (
    slice_share, slice_sum, slice_extreme, slice_half, num_slices, color_of, of_color, title,
)  # fmt: skip
HEAT_MAP: tuple[Template[Chart], ...] = (
    cell_value, best_in_row, best_in_column, cells_above, row_sum, darker, title,
)  # fmt: skip
