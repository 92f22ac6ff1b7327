import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from analysis_runs import SENSORS
from html_page import Page

from sensorium.analysis import write_report
from sensorium.analysis.charts import Mark, Series, legend_of, line_chart
from sensorium.analysis.curves import Chart, Course, detail_charts, learning_charts
from sensorium.analysis.training_senses import attention_matrix, sense_charts
from sensorium.metrics import JsonlSink, Mean

PER_SENSE = {
    "Contribution": "contribution/{}",
    "Factor on the learning rate": "gate/{}",
    "Fusion gate": "fusion/gate/{}",
    "Gradient before clipping": "gradient/norm/{}",
    "Length of the step": "gradient/update_norm/{}",
    "Presence": "presence/{}",
    "Effective rank": "similarity/effective_rank/{}",
}


def rows_of(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"step": 1000 * (i + 1), "wall_s": float(i), **row} for i, row in enumerate(rows)]


def measured_every_second_time() -> list[dict[str, Any]]:
    sometimes: dict[str, Any] = {}
    for pattern in PER_SENSE.values():
        sometimes |= {pattern.format(name): 0.1 * (i + 1) for i, name in enumerate(SENSORS)}
    sometimes |= {"similarity/cka/rgb+env_sound": 0.3, "similarity/cka/env_sound+instruction": 0.1}
    return rows_of({"loss/policy": 1.0}, sometimes, {"loss/policy": 0.5}, sometimes)


def colours(chart: Chart) -> dict[str, tuple[int, int | None]]:
    return {entry.name: (entry.colour, entry.second_colour) for entry in chart.legend}


def test_a_sense_has_its_colour_in_every_chart_and_lines_follow_the_canonical_order() -> None:
    charts = {c.heading: c for c in sense_charts(Course(measured_every_second_time(), SENSORS))}
    assert set(charts) == {*PER_SENSE, "Likeness of pairs (CKA)"}
    for heading in PER_SENSE:
        assert list(colours(charts[heading]).items()) == [(s, (i, None)) for i, s in enumerate(SENSORS)]
    pairs = charts["Likeness of pairs (CKA)"]
    assert list(colours(pairs).items()) == [
        ("rgb+env_sound", (0, 1)),
        ("env_sound+instruction", (1, 2)),
    ]
    drawn = [p.attrib["class"] for p in ElementTree.fromstring(pairs.svg).findall("path")]
    assert drawn == ["line series-0", "line dashes series-1", "line series-1", "line dashes series-2"]


def test_every_chart_says_what_it_shows() -> None:
    charts = {c.heading: c.explanation for c in sense_charts(Course(measured_every_second_time(), SENSORS))}
    assert charts["Contribution"] == "What a sense adds to values and policy now: its Shapley value phi."
    assert charts["Likeness of pairs (CKA)"] == (
        "Likeness of the structure of two senses: 0 unrelated, 1 equal but for axes."
    )
    assert all(charts.values())


def test_only_what_was_measured_is_drawn() -> None:
    assert sense_charts(Course([], SENSORS)) == []
    never = rows_of({"contribution/rgb": None, "gate/rgb": math.nan, "rollout/success_rate": 0.5})
    assert sense_charts(Course(never, SENSORS)) == []
    (chart,) = sense_charts(Course(rows_of({"presence/rgb": 0.25}), SENSORS))
    assert chart.explanation == "Share of steps at which a reading of rgb was present."
    assert chart.latest == "0.25"
    assert colours(chart) == {"rgb": (0, None)}  # one line may be any sense: it is named


def test_a_factor_is_compared_with_one_and_a_contribution_with_nothing() -> None:
    rows = rows_of({"gate/rgb": 3.0, "contribution/rgb": 2.0, "presence/rgb": 1.0})
    lines = {
        c.heading: ElementTree.fromstring(c.svg).findall("line[@class='level']")
        for c in sense_charts(Course(rows, SENSORS))
    }
    assert {heading: len(found) for heading, found in lines.items()} == {
        "Contribution": 1,
        "Factor on the learning rate": 1,
        "Presence": 0,
    }


def test_lines_that_are_no_sense_take_the_colours_behind_those_of_the_senses() -> None:
    rates = {f"lr/{name}": 1e-3 for name in ("policy", *SENSORS, "value")}
    charts = {
        c.heading: c
        for c in detail_charts(
            Course(rows_of(rates | {"reward/step": -0.1, "reward/goal": 1.0, "lr": 1e-3}), SENSORS)
        )
    }
    assert {name: colour for name, (colour, _) in colours(charts["Learning rates of the parts"]).items()} == {
        "rgb": 0,
        "env_sound": 1,
        "instruction": 2,
        "policy": 3,
        "value": 4,
    }
    assert colours(charts["Reward terms"]) == {"goal": (0, None), "step": (1, None)}
    assert charts["Reward terms"].explanation == (
        "Mean of the reward term of each line, weighted: per step, of language models per episode."
    )
    assert charts["Learning rate"].latest == "0.001"


@pytest.mark.parametrize(
    ("metric", "heading"),
    [
        ("loss/alignment", "Alignment loss"),
        ("loss/contrastive", "Contrastive loss"),
        ("contrastive/accuracy", "Contrastive accuracy"),
        ("similarity/cosine/rgb+env_sound", "Direction of pairs"),
        ("attention/entropy/rgb", "Evenness of attention"),
        ("curriculum/stage", "Stage of the curriculum"),
        ("curriculum/success_lower", "Success that promotion looks at"),
        ("time/collect_s", "Seconds per update"),
    ],
)
def test_the_rest_is_among_the_details_each_explained(metric: str, heading: str) -> None:
    (chart,) = detail_charts(Course(rows_of({metric: 0.5, "time/steps_per_s": 900.0}), SENSORS))
    assert chart.heading == heading
    assert chart.explanation


ATTENTION: dict[str, Any] = {
    "attention/instruction->nothing": 0.5,
    "attention/instruction->rgb": 0.25,
    "attention/instruction->instruction": 0.25,
    "attention/rgb->nothing": 0.125,
    "attention/rgb->rgb": 0.875,
    "attention/rgb->instruction": 0.0,
    "attention/entropy/rgb": 0.4,
}


def test_attention_is_a_matrix_of_the_last_measurement() -> None:
    early = dict.fromkeys(ATTENTION, 0.01) | {"attention/env_sound->rgb": 1.0}
    matrix = attention_matrix(Course(rows_of(early, ATTENTION, {"lr": 1.0}), SENSORS))
    assert matrix is not None
    assert matrix.step == 2000
    assert matrix.columns == ["rgb", "instruction", "nothing"]
    assert [(row.sensor, row.colour, row.shares) for row in matrix.rows] == [
        ("rgb", 0, [0.875, 0.0, 0.125]),
        ("instruction", 2, [0.25, 0.25, 0.5]),
    ]
    assert (
        matrix.explanation == "Share of the attention of the row's sense that goes to the column's, 0 to 1."
    )


def test_attention_without_measurement_and_with_holes() -> None:
    assert attention_matrix(Course(rows_of({"attention/entropy/rgb": 0.4}), SENSORS)) is None
    assert attention_matrix(Course(rows_of({"attention/rgb->rgb": None}), SENSORS)) is None
    matrix = attention_matrix(
        Course(rows_of({"attention/odd->rgb": 1.0, "attention/rgb->nothing": 0.5}), SENSORS)
    )
    assert matrix is not None
    assert [(row.sensor, row.colour, row.shares) for row in matrix.rows] == [
        ("rgb", 0, [None, 0.5]),
        ("odd", None, [1.0, None]),
    ]


def test_the_page_shows_the_charts_under_their_meaning_and_the_matrix_as_percent(run_dir: Path) -> None:
    (run_dir / "metrics.jsonl").unlink()
    sink = JsonlSink(run_dir / "metrics.jsonl")
    values = {f"contribution/{name}": 0.5 for name in SENSORS} | ATTENTION
    sink.write(4096, {name: Mean.of(value) for name, value in values.items()})
    sink.close()
    html = write_report(run_dir).read_text()
    page = Page(html)
    assert "training-senses" in page.headings()
    assert re.search(r"<h3>Contribution</h3>\s*</figcaption>\s*<p class=\"explanation\">What a sense", html)
    text = page.text
    assert "from \\ to rgb instruction nothing rgb 87.5 % 0 % 12.5 % instruction 25 % 25 % 50 %" in text
    assert "step 4,096" in text
    cells = [attrs["style"] for tag, attrs in page.seen if tag == "td" and "style" in attrs]
    assert cells[0] == "--share: 87.5%"
    assert "How the senses joined" not in text


def test_marks_stand_in_the_chart_and_labels_that_would_collide_are_in_the_title_only() -> None:
    line = Series("a", [100.0, 200.0, 300.0], [0.0, 1.0, 0.0])
    marks = [Mark(290.0, "+ speech and more"), Mark(150.0, "+ depth"), Mark(151.0, "stage 2"), Mark(250.0)]
    root = ElementTree.fromstring(line_chart([line], title="t", marks=marks))
    kinds = [e.attrib["class"] for e in root.findall("line") if "mark" in e.attrib["class"]]
    assert kinds == ["mark labelled", "mark labelled", "mark", "mark labelled"]
    above = [e for e in root.findall("text") if float(e.attrib["y"]) < 12]
    assert [e.text for e in above] == ["+ depth", "+ speech and more"]
    assert float(above[1].attrib["x"]) < 400  # moved left, to end inside
    titles = [title.text for title in root.iter("title")]
    assert titles == [
        "100 steps\na: 0",
        "200 steps\n+ depth\nstage 2\na: 1",
        "300 steps\n+ speech and more\na: 0",
    ]


@pytest.mark.parametrize("at", [50.0, 400.0])
def test_the_axis_reaches_every_mark(at: float) -> None:
    svg = line_chart([Series("a", [100.0, 300.0], [0.0, 1.0])], title="t", marks=[Mark(at, "here")])
    (mark,) = ElementTree.fromstring(svg).findall("line[@class='mark labelled']")
    assert 46 <= float(mark.attrib["x1"]) <= 448
    assert svg.count("here\n") == 1


def test_a_level_is_inside_the_chart() -> None:
    svg = line_chart([Series("a", [0.0, 1.0], [3.0, 4.0])], title="t", level=1.0)
    (level,) = ElementTree.fromstring(svg).findall("line[@class='level']")
    assert 12 < float(level.attrib["y1"]) < 192


def test_colours_start_again_after_the_last() -> None:
    (entry,) = legend_of([Series("a+b", [0.0], [1.0], colour=7, second_colour=8)])
    assert (entry.colour, entry.second_colour) == (7, 0)


def test_marks_are_in_the_learning_curve_and_not_in_the_details() -> None:
    rows = rows_of({"rollout/success_rate": 0.5, "loss/policy": 0.1}, {"rollout/success_rate": 0.6})
    course = Course(rows, SENSORS, [Mark(1500.0, "+ depth")])
    assert "+ depth" in learning_charts(course)[0].svg
    assert "+ depth" not in detail_charts(course)[0].svg
