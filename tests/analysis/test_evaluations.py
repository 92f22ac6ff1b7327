import json
from pathlib import Path
from typing import Any

import pytest
from html_page import Page

from sensorium.analysis import RunDirectory, SubsetResult, wilson_interval, write_report
from sensorium.analysis.evaluation_sections import evaluation_sections, suite_question
from sensorium.analysis.evaluation_tables import Measured, result_tables
from sensorium.analysis.evaluations import (
    EVALUATIONS,
    CombinationResult,
    Evaluation,
    FailureResult,
    GateShift,
    GeneralisationEvaluation,
    GeneralisationResults,
    KindResults,
    MissingModalityEvaluation,
    RateSummary,
    SensorFailureEvaluation,
    SensorFailureResults,
    read_evaluations,
    write_evaluation,
)
from sensorium.analysis.row_charts import interval_dots, share_bars
from sensorium.analysis.senses import robustness
from sensorium.core import RunDirectoryError

HEADER: dict[str, Any] = {
    "command": "sensorium eval runs/x --suite y",
    "seed": 1,
    "episodes": 200,
    "env_steps": 1000,
    "config_digest": "0badcafe",
    "wall_s": 2.0,
}


def rate(successes: int, trials: int = 100) -> SubsetResult:
    return SubsetResult(
        success_rate=successes / trials,
        ci95=wilson_interval(successes, trials),
        episodes=trials,
        mean_return=0.5,
    )


def missing_modality(kinds: tuple[str, ...] = ("absent", "frozen", "noise")) -> MissingModalityEvaluation:
    subsets = {"rgb+speech": rate(90), "rgb": rate(40), "speech": rate(20)}
    results = {
        kind: KindResults(
            subsets=subsets,
            curve=(0.9, 0.3),
            relative_robustness=0.6,
            worst_sense="rgb",
            worst_drop=-0.7,
        )
        for kind in kinds
    }
    return MissingModalityEvaluation(**HEADER, results=results)


def failure(lost: str = "rgb", **changes: Any) -> FailureResult:
    values: dict[str, Any] = {
        "lost": lost,
        "sensors": (lost,),
        "kind": "absent",
        "duration": None,
        "struck": 180,
        "success_rate": 0.45,
        "ci95": (0.38, 0.52),
        "clean_success_rate": 0.9,
        "kept": 0.5,
        "kept_ci95": (0.42, 0.58),
        "gates": {
            "rgb": GateShift(before=0.7, during=0.0, undisturbed=0.6),
            "speech": GateShift(before=0.3, during=1.0, undisturbed=0.4),
        },
        "took_over": "speech",
    }
    return FailureResult(**(values | changes))


def sensor_failure() -> SensorFailureEvaluation:
    nothing = {"success_rate": None, "ci95": None, "clean_success_rate": None, "kept": None}
    nothing |= {"kept_ci95": None, "gates": {}, "took_over": None, "struck": 0}
    return SensorFailureEvaluation(
        **HEADER,
        results=SensorFailureResults(
            clean=rate(90),
            mean_length=20.5,
            onset=(1, 10),
            failures=(
                failure(),
                failure(duration=5, kept=1.02, kept_ci95=(0.95, 1.3)),
                failure("speech", **nothing),
            ),
        ),
    )


def generalisation() -> GeneralisationEvaluation:
    def combination(held_out: bool, *successes: int) -> CombinationResult:
        worlds = dict(zip(("trained", "shifted"), map(rate, successes), strict=True))
        return CombinationResult(sensors=("rgb",), held_out=held_out, worlds=worlds)

    def summed(mean: float) -> RateSummary:
        return RateSummary(interquartile_mean=mean, ci95=(mean - 0.1, mean + 0.1), combinations=2)

    return GeneralisationEvaluation(
        **HEADER,
        world={"backend_options": {"colors": ["grey"]}},
        results=GeneralisationResults(
            combinations={"rgb+speech": combination(False, 90, 60), "rgb": combination(True, 40, 30)},
            trained={"trained": summed(0.9), "shifted": summed(0.6)},
            held_out={"trained": summed(0.4), "shifted": summed(0.3)},
        ),
    )


EVERY = (missing_modality(), sensor_failure(), generalisation())


def test_robustness_by_hand() -> None:
    """Three senses: 0.9; pairs 0.8, 0.6, 0.7; singles 0.5, 0.2, 0.2. Trapezoids over [0, 1/2, 1]."""
    results = {"a+b+c": rate(90), "a+b": rate(80), "a+c": rate(60), "b+c": rate(70)}
    results |= {"a": rate(50), "b": rate(20), "c": rate(20)}
    found = robustness(results)
    assert found.curve == pytest.approx((0.9, 0.7, 0.3))
    assert found.relative_robustness == pytest.approx(0.5 * (0.9 + 0.7) / 2 + 0.5 * (0.7 + 0.3) / 2)
    assert found.worst is not None
    assert (found.worst.sense, found.worst.change) == ("b", pytest.approx(-0.3))
    alone = robustness({"a": rate(90)})
    assert (alone.curve, alone.relative_robustness, alone.worst) == ((0.9,), None, None)


@pytest.mark.parametrize("evaluation", EVERY, ids=lambda e: e.suite)
def test_what_is_written_is_read_again(evaluation: Evaluation, tmp_path: Path) -> None:
    path = write_evaluation(tmp_path, evaluation)
    assert path == tmp_path / "evals" / f"{evaluation.suite}.json"
    assert read_evaluations(tmp_path) == [evaluation]
    values = json.loads(path.read_text())
    assert {"suite", "command", "seed", "episodes", "config_digest", "results"} <= values.keys()


@pytest.mark.parametrize(("content", "said"), [("{", "is not JSON"), ('{"suite": "x"}', "does not fit")])
def test_a_broken_file_names_the_command_that_mends_it(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "sensor-failure.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=said) as error:
        read_evaluations(tmp_path)
    assert "sensorium eval" in str(error.value)


def test_tables_hold_every_figure() -> None:
    subsets, summary = result_tables(missing_modality())
    assert subsets.columns == ("intact", "absent", "frozen", "noise")
    assert [row.name for row in subsets.rows] == ["rgb + speech", "rgb", "speech"]
    assert [row.starts_group for row in subsets.rows] == [False, True, False]
    assert subsets.rows[1].cells == ("40 % (30.9–49.8 %)",) * 3
    assert summary.rows[0].cells == ("60 %", "rgb", "−70 points")
    kept, gates = result_tables(sensor_failure())
    assert kept.columns == ("lost", "absent", "absent for 5 steps")
    assert [row.cells for row in kept.rows] == [("50 % (42–58 %)", "102 % (95–130 %)"), ("–", "–")]
    assert kept.right_end == 1.3
    assert gates.rows[0].cells == ("180", "speech", "0.70 → 0.00 (0.60)", "0.30 → 1.00 (0.40)")
    assert gates.rows[2].cells == ("0", "none", "–", "–")
    (combinations,) = result_tables(generalisation())
    assert [row.name for row in combinations.rows] == [
        "rgb + speech",
        "interquartile mean",
        "rgb",
        "interquartile mean",
    ]
    assert combinations.rows[3].cells == ("held out", "40 % (30–50 %)", "30 % (20–40 %)")
    for evaluation in EVERY:
        for table in result_tables(evaluation):
            assert all(len(row.cells) == len(table.columns) - 1 for row in table.rows)


def test_every_suite_has_a_section_in_the_report(run_dir: Path) -> None:
    assert 'id="sensor-failure"' not in write_report(run_dir).read_text()
    for evaluation in EVERY:
        write_evaluation(run_dir, evaluation)
    html = write_report(run_dir).read_text()
    page = Page(html)
    position = page.headings().index("senses")
    assert page.headings()[position + 1 : position + 4] == list(EVALUATIONS)
    for text in ("102 % (95–130 %)", "0.30 → 1.00 (0.40)", "−70 points", "interquartile mean", "grey"):
        assert text in page.text, text
    assert page.text.count(HEADER["command"]) == 3
    for tag, attrs in page.seen:
        if tag == "svg":
            assert attrs["aria-label"]


def test_a_run_of_one_sense_makes_a_section_without_a_curve() -> None:
    alone = KindResults(
        subsets={"rgb": rate(9, 10)},
        curve=(0.9,),
        relative_robustness=None,
        worst_sense=None,
        worst_drop=None,
    )
    (section,) = evaluation_sections([MissingModalityEvaluation(**HEADER, results={"absent": alone})])
    assert section.charts == []
    assert section.tables[1].table.rows[0].cells == ("–", "–", "–")


def test_curves_count_whole_senses_below() -> None:
    (section, *_) = evaluation_sections(EVERY)
    (chart,) = section.charts
    assert [entry.name for entry in chart.legend] == ["absent", "frozen", "noise"]
    assert ">0.5 broken<" not in chart.svg
    assert ">1 broken<" in chart.svg


def test_dots_stay_inside_and_say_their_figures() -> None:
    svg = interval_dots(
        [Measured(0, 0.5, 0.25, 0.75), Measured(1, 3.0, 1.0, 4.0)], ("a<b", "c"), name="x", right_end=2.0
    )
    assert 'x1="12.50%" x2="37.50%"' in svg
    assert 'cx="25.00%"' in svg
    assert 'cx="100.00%"' in svg
    assert "a&lt;b 50 % (95 % interval 25–75 %)" in svg
    assert interval_dots([], (), name="x") == ""


def test_shares_are_stacked_and_never_wider_than_the_bar() -> None:
    svg = share_bars([(0.25, 0.75), (0.5, 0.9)], ("a", "b"), name="x")
    assert 'x="25.00%" y="3" width="75.00%"' in svg
    assert 'x="50.00%" y="18" width="50.00%"' in svg
    assert "a 0.25, b 0.75 → a 0.50, b 0.90" in svg
    assert share_bars([], (), name="x") == ""


def test_questions_are_sentences() -> None:
    for kind in EVALUATIONS.values():
        question = suite_question(kind)
        assert question[0].isupper()
        assert question.endswith(".")


def test_the_summary_is_not_touched(run_dir: Path) -> None:
    before = RunDirectory(run_dir).summary()
    write_evaluation(run_dir, missing_modality())
    assert RunDirectory(run_dir).summary() == before
