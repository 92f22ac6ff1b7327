"""A chart and a question about it, by kind."""

import random
from collections.abc import Callable, Mapping

from sensorium.envs.visual_qa.answers import ChoiceAnswer
from sensorium.envs.visual_qa.charts.content import bar_chart, heat_map, line_chart, pie_chart, stacked_chart
from sensorium.envs.visual_qa.charts.model import Chart
from sensorium.envs.visual_qa.charts.part_questions import HEAT_MAP, PIE, STACKED
from sensorium.envs.visual_qa.charts.row_questions import BAR, LINE
from sensorium.envs.visual_qa.charts.sample_questions import BOX, HISTOGRAM, SCATTER
from sensorium.envs.visual_qa.charts.samples import box_plot, histogram, panels, scatter_plot
from sensorium.envs.visual_qa.charts.wording import count
from sensorium.envs.visual_qa.questions import Question, Template, ask

_LETTERS = "ABCD"


def panel_titled(chart: Chart, rng: random.Random) -> Question | None:
    """Which panel has a title."""
    index = rng.randrange(len(chart.panels))
    text = f"Which panel is about {chart.panels[index].title!r}? Give its letter."
    return Question(text=text, answer=_letter(chart, index))


def num_panels(chart: Chart, rng: random.Random) -> Question | None:
    """How many panels there are."""
    return Question(text="How many panels does the picture have?", answer=count(chart, len(chart.panels)))


def lines_panel(chart: Chart, rng: random.Random) -> Question | None:
    """Which panel is the only one of its kind."""
    kinds = [panel.kind for panel in chart.panels]
    single = [i for i, kind in enumerate(kinds) if kinds.count(kind) == 1 and kind in ("line", "histogram")]
    if not single:
        return None
    index = rng.choice(single)
    what = {"line": "a line chart", "histogram": "a histogram"}[kinds[index]]
    return Question(text=f"Which panel is {what}? Give its letter.", answer=_letter(chart, index))


def in_panel(chart: Chart, rng: random.Random) -> Question | None:
    """Any question about one of the panels."""
    index = rng.randrange(len(chart.panels))
    panel = chart.panels[index]
    templates = [one for one in TEMPLATES[panel.kind] if one.__name__ != "title"]
    question = ask(panel, templates, rng)
    if question is None:
        return None
    text = f"Look at panel {_LETTERS[index]}. {question.text}"
    return question.model_copy(update={"text": text, "template": f"panel_{question.template}"})


def _letter(chart: Chart, index: int) -> ChoiceAnswer:
    options = tuple(_LETTERS[: len(chart.panels)])
    synonyms: dict[str, tuple[str, ...]] = {letter: (f"panel {letter}",) for letter in options}
    return ChoiceAnswer(value=options[index], options=options, synonyms=synonyms)


MAKERS: Mapping[str, Callable[[random.Random, str, int], Chart]] = {
    "bar": bar_chart,
    "line": line_chart,
    "scatter": scatter_plot,
    "histogram": histogram,
    "pie": pie_chart,
    "stacked": stacked_chart,
    "box": box_plot,
    "heat_map": heat_map,
    "panels": panels,
}
TEMPLATES: Mapping[str, tuple[Template[Chart], ...]] = {
    "bar": BAR,
    "line": LINE,
    "scatter": SCATTER,
    "histogram": HISTOGRAM,
    "pie": PIE,
    "stacked": STACKED,
    "box": BOX,
    "heat_map": HEAT_MAP,
    "panels": (in_panel, in_panel, in_panel, panel_titled, num_panels, lines_panel),
}


def chart_question(kind: str, rng: random.Random, split: str, width: int) -> tuple[Chart, Question]:
    """A chart of a kind, and a question that it answers clearly."""
    while True:
        chart = MAKERS[kind](rng, split, width)
        question = ask(chart, TEMPLATES[kind], rng)
        if question is not None:
            return chart, question
