import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from cue_agents import cue_config
from learnt_cue import LEARNING

from sensorium.analysis import RunDirectory
from sensorium.analysis.evaluations import (
    EVALUATIONS,
    GeneralisationEvaluation,
    MissingModalityEvaluation,
    SensorFailureEvaluation,
    read_evaluations,
)
from sensorium.cli.main import build_parser, main
from sensorium.core import ConfigError, EpisodeStatus, RunDirectoryError
from sensorium.evals import SUITES, Fault, FaultKind, SuiteRequest, finish_run, run_suite
from sensorium.evals.combinations import read_combinations
from sensorium.evals.episodes import EpisodeResults
from sensorium.evals.gates import FaultRecord
from sensorium.evals.sensor_failure import failure_result, failure_targets
from sensorium.rollouts.embodied import FinishedEpisode
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.training import Training

pytestmark = pytest.mark.usefixtures("cue_backend")

SENSORS = ("rgb", "speech", "instruction")


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of a few seconds that learnt its task; tests must not change its settings."""
    from sensorium.envs.embodied.registry import BACKENDS
    from sensorium.testing.cue import use_cue_backend

    use_cue_backend()
    config = cue_config(SENSORS, algo={**LEARNING, "total_steps": 32 * 16 * 25}, length=8)
    run = open_run(config, tmp_path_factory.mktemp("runs"), OnExisting.FAIL)
    Training(config, run).run(lambda _: None)
    finish_run(run)
    yield run
    BACKENDS.pop("cue", None)


def test_every_suite_has_a_result_type_with_a_question() -> None:
    assert set(SUITES) == set(EVALUATIONS)
    for function in SUITES.values():
        assert function.__doc__


@pytest.mark.parametrize(
    ("suite", "request_", "says"),
    [
        ("missing-modality", SuiteRequest(combinations="rgb"), "--combinations .*belongs to generalisation"),
        ("missing-modality", SuiteRequest(recovery_steps=2), "--recovery-steps .*belongs to sensor-failure"),
        (
            "generalisation",
            SuiteRequest(kinds=(FaultKind.NOISE,)),
            "--kinds .*missing-modality and sensor-failure",
        ),
        ("sensor-failure", SuiteRequest(sampled=True), "--sampled .*missing-modality and generalisation"),
        ("sensor-failure", SuiteRequest(trained="rgb"), "--trained-combinations .*belongs to generalisation"),
    ],
)
def test_a_setting_of_another_suite_is_refused(
    trained_run: Path, suite: str, request_: SuiteRequest, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        run_suite(trained_run, suite, request_)


def test_missing_modality_breaks_every_subset_in_three_ways(trained_run: Path) -> None:
    totals: list[int] = []
    seen: list[str] = []
    found = run_suite(
        trained_run,
        "missing-modality",
        SuiteRequest(episodes=16, seed=5),
        on_total=totals.append,
        on_episode=seen.append,
    )
    assert isinstance(found, MissingModalityEvaluation)
    assert totals == [len(seen)] == [16 * (1 + 3 * 6)]
    assert set(found.results) == {"absent", "frozen", "noise"}
    everything = "+".join(SENSORS)
    clean = {kind.subsets[everything].success_rate for kind in found.results.values()}
    assert len(clean) == 1
    assert clean.pop() >= 0.9
    for kind in found.results.values():
        assert len(kind.subsets) == 7
        assert len(kind.curve) == 3
        assert kind.relative_robustness is not None
        assert min(kind.curve) <= kind.relative_robustness <= max(kind.curve)
        assert kind.worst_sense in SENSORS
    assert read_evaluations(trained_run)[0] == found
    assert (found.seed, found.episodes, found.env_steps) == (5, 16, 32 * 16 * 25)
    assert trained_run.name == f"0-{found.config_digest}"


def test_the_summary_keeps_its_meaning(trained_run: Path) -> None:
    """It is written anew by the defaults only, and holds absent senses only."""
    before = RunDirectory(trained_run).summary()
    run_suite(trained_run, "missing-modality", SuiteRequest(episodes=8, kinds=(FaultKind.NOISE,)))
    assert RunDirectory(trained_run).summary() == before
    (trained_run / "summary.json").unlink()
    found = run_suite(trained_run, "missing-modality")
    after = RunDirectory(trained_run).summary()
    assert after == before
    assert isinstance(found, MissingModalityEvaluation)
    assert found.results["absent"].subsets == after.missing_modality


def test_sensor_failure_compares_the_same_episodes(trained_run: Path) -> None:
    found = run_suite(trained_run, "sensor-failure", SuiteRequest(episodes=32, recovery_steps=2))
    assert isinstance(found, SensorFailureEvaluation)
    results = found.results
    assert results.mean_length == 8
    assert results.onset == (1, 4)
    conditions = {(f.lost, f.kind, f.duration) for f in results.failures}
    # Speech and instruction are constant within an episode: there is nothing to freeze later on.
    assert conditions == {(s, "absent", d) for s in SENSORS for d in (None, 2)} | {
        ("rgb", "frozen", None),
        ("rgb", "frozen", 2),
    }
    for failure in results.failures:
        assert failure.struck == 32  # every episode lasts eight steps
        assert failure.kept is not None
        assert failure.kept_ci95 is not None
        assert failure.kept_ci95[0] <= failure.kept <= failure.kept_ci95[1]
        assert set(failure.gates) == set(SENSORS)
        if failure.kind == "absent":
            assert failure.gates[failure.lost].during == 0.0 < failure.gates[failure.lost].before
            assert failure.took_over not in (None, failure.lost)
    # The cue's picture does not change within an episode, so a frozen camera costs nothing.
    frozen = next(f for f in results.failures if (f.lost, f.kind) == ("rgb", "frozen"))
    assert frozen.kept == 1.0


def test_generalisation_compares_combinations_and_worlds(trained_run: Path) -> None:
    request = SuiteRequest(
        episodes=16,
        combinations="rgb+speech, instruction",
        trained="all,rgb",
        world={"backend_options": {"length": 2}},
    )
    found = run_suite(trained_run, "generalisation", request)
    assert isinstance(found, GeneralisationEvaluation)
    results = found.results
    assert {name: c.held_out for name, c in results.combinations.items()} == {
        "rgb+speech+instruction": False,
        "rgb": False,
        "rgb+speech": True,
        "instruction": True,
    }
    everything = results.combinations["rgb+speech+instruction"].worlds
    assert everything["trained"].mean_return > 6 > 2.1 > everything["shifted"].mean_return
    rates = [
        results.combinations[name].worlds["trained"].success_rate for name in ("rgb+speech", "instruction")
    ]
    summed = results.held_out["trained"]
    assert summed.interquartile_mean == pytest.approx(sum(rates) / 2)
    assert summed.ci95[0] <= summed.interquartile_mean <= summed.ci95[1]
    assert summed.combinations == 2


def test_the_command_of_a_result_does_it_again(trained_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = SuiteRequest(
        episodes=8, seed=3, combinations="rgb,speech", world={"backend_options": {"length": 3}}
    )
    first = run_suite(trained_run, "generalisation", request)
    words = shlex.split(first.command)
    assert words[0] == "sensorium"
    assert main([*words[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["results"] == first.model_dump(mode="json")["results"]
    assert again["command"] == first.command


@pytest.mark.parametrize(
    ("suite", "flags", "said"),
    [
        ("missing-modality", ["--kinds", "noise"], ["Success with some senses intact", "rgb + speech"]),
        ("sensor-failure", ["--kinds", "absent"], ["Which sense takes over", "instruction absent"]),
        ("generalisation", ["--combinations", "rgb,speech"], ["interquartile mean", "held out"]),
    ],
)
def test_the_command_prints_tables_and_the_report_has_a_section(
    suite: str,
    flags: list[str],
    said: list[str],
    trained_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["eval", str(trained_run), "--suite", suite, "--episodes", "8", *flags]) == 0
    printed = capsys.readouterr().out
    for text in [*said, str(trained_run / "evals" / f"{suite}.json"), "report.html"]:
        assert text in printed.replace("\n", " "), text
    assert f'id="{suite}"' in (trained_run / "report.html").read_text()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--suite", "sensor-failur"], "Did you mean 'sensor-failure'"),
        (["--suite", "generalisation"], '--combinations "rgb+instruction,speech+instruction"'),
        (["--suite", "generalisation", "--combinations", "rgb+speach"], "Did you mean 'speech'"),
        (["--suite", "generalisation", "--combinations", "all"], "held out and trained at once"),
        (["--suite", "generalisation", "--combinations", "nowhere.yaml"], "Cannot read config file"),
        (["--kinds", "frosen"], "Did you mean 'frozen'"),
        (["--episodes", "0"], "--episodes must be at least 1"),
        (["--algo.gamma", "0.9"], "changes only the world"),
        (["--env.augment.modal_dropout", "0.3"], "in training only"),
        (["--env.backend_options.lenght", "3"], "Did you mean 'length'"),
        (["--env.image_size", "32"], "delivers (32, 32, 3)"),
        (["--env.visual_obs", "[]"], "Unknown sensor 'rgb'"),
        (["--env.backend_options.num_cues", "5"], "Leave the actions as they were"),
    ],
)
def test_a_mistake_is_one_clear_paragraph(
    flags: list[str], said: str, trained_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(trained_run), *flags]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_a_run_without_a_checkpoint_is_said(tmp_path: Path) -> None:
    run = open_run(cue_config(("rgb",)), tmp_path, OnExisting.FAIL)
    with pytest.raises(RunDirectoryError, match="no checkpoint yet"):
        run_suite(run, "sensor-failure")


def test_help_names_every_suite_and_its_question() -> None:
    parser = build_parser()
    (choices,) = (action.choices for action in parser._actions if action.dest == "verb")
    assert choices is not None
    text = choices["eval"].format_help()  # type: ignore[call-overload]
    for suite in SUITES:
        assert f"  {suite} " in text


def test_combinations_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "held_out.yaml"
    path.write_text("held_out: [speech+rgb]\ntrained: [rgb+instruction, all]\n")
    trained, held_out = read_combinations(path, None, SENSORS)
    assert list(trained) == ["rgb+instruction", "rgb+speech+instruction"]
    assert held_out == {"rgb+speech": frozenset({"rgb", "speech"})}
    assert list(read_combinations(path, "speech", SENSORS)[0]) == ["speech"]
    path.write_text("held_outs: [rgb]\n")
    with pytest.raises(ConfigError, match="Did you mean 'held_out'"):
        read_combinations(path, None, SENSORS)


def test_senses_with_several_sensors_fail_together_too() -> None:
    senses = {"rgb": "sight", "depth": "sight", "speech": "hearing", "instruction": "language"}
    assert failure_targets(tuple(senses), senses) == {
        "sight": ("rgb", "depth"),
        "rgb": ("rgb",),
        "depth": ("depth",),
        "speech": ("speech",),
        "instruction": ("instruction",),
    }


def played(outcomes: dict[int, bool], records: tuple[FaultRecord, ...] = ()) -> EpisodeResults:
    status = {True: EpisodeStatus.SUCCESS, False: EpisodeStatus.TRUNCATED}
    episodes = tuple(
        FinishedEpisode(status=status[solved], episode_return=0.0, length=9, seed=seed)
        for seed, solved in outcomes.items()
    )
    return EpisodeResults(episodes, 0, records)


def record(seed: int, before: tuple[float, ...] | None, during: tuple[float, ...] | None) -> FaultRecord:
    return FaultRecord(
        seed=seed, onset=2, struck=during is not None, gates_before=before, gates_during=during
    )


def test_a_failure_by_hand() -> None:
    """Episode 1 ended before the failure, episode 5 has no clean partner."""
    first = (0.5, 0.25, 0.25)
    broken = played(
        {1: True, 2: True, 3: False, 4: False, 5: True},
        (record(1, (1.0, 0.0, 0.0), None), *(record(seed, first, (0.0, 0.6, 0.4)) for seed in (2, 3, 4, 5))),
    )
    # Without the failure, speech would have risen to 0.5 at the same steps, and instruction fallen to 0.2.
    clean = played(
        {1: True, 2: True, 3: True, 4: False},
        (record(1, (1.0, 0.0, 0.0), None), *(record(seed, first, (0.3, 0.5, 0.2)) for seed in (2, 3, 4))),
    )
    fault = Fault(sensors=frozenset({"rgb"}), onset=(1, 4))
    result = failure_result("rgb", fault, clean, broken, SENSORS)
    assert result.struck == 3
    assert result.success_rate == pytest.approx(1 / 3)
    assert result.clean_success_rate == pytest.approx(2 / 3)
    assert result.kept == pytest.approx(1 / 2)
    assert result.took_over == "instruction"
    speech = result.gates["speech"]
    assert (speech.before, speech.during, speech.undisturbed) == pytest.approx((0.25, 0.6, 0.5))


def test_a_failure_that_struck_nobody_claims_nothing() -> None:
    fault = Fault(sensors=frozenset({"rgb"}))
    result = failure_result("rgb", fault, played({1: True}), played({1: True}), SENSORS)
    assert (result.struck, result.kept, result.success_rate, result.took_over) == (0, None, None, None)


def test_equal_shares_name_no_sensor() -> None:
    """A fusion without gates spreads the lost share evenly; nobody took over."""
    third = (1 / 3, 1 / 3, 1 / 3)
    broken = played({1: True}, (record(1, third, (0.0, 0.5, 0.5)),))
    clean = played({1: True}, (record(1, third, third),))
    result = failure_result("rgb", Fault(sensors=frozenset({"rgb"})), clean, broken, SENSORS)
    assert result.took_over is None
    assert result.gates["rgb"].undisturbed == pytest.approx(1 / 3)
