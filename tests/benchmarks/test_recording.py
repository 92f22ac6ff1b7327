import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEER_MODULE = """
def fast(rate):
    return {"rate": rate, "check": 1, "steps": 60, "cpu_s": 60 / rate / 2}

def slow(rate):
    return {"rate": rate, "check": 1, "steps": 60, "cpu_s": 60 / rate}

def cheat(rate):
    return {"rate": rate, "check": 2}

def broken(rate):
    raise ValueError("no engine")
"""


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import recording

    return recording


@pytest.fixture
def measuring(recording: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    (tmp_path / "toy_speed.py").write_text(PEER_MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import measuring

    return measuring


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.123456, "0.123"), (12.345, "12.3"), (987.6, "988"), (54321.0, "54,300"), (-2.5, "-2.50")],
)
def test_a_figure_has_three_digits(recording: ModuleType, value: float, text: str) -> None:
    assert str(recording.Spread(value, value, value)) == f"{text} [{text}, {text}]"


def test_results_say_where_they_come_from(
    recording: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks/some.py", "--quick"])
    recording.write_results(tmp_path / "some.json", {"rows": []})
    written = json.loads((tmp_path / "some.json").read_text())
    assert written["command"] == "python benchmarks/some.py --quick"
    assert written.keys() >= {"git_revision", "modified", "rows"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["/somewhere/benchmarks/some.py", "--output", "/tmp/own/some.json"], "--output some.json"),
        (["some.py", "--output=/tmp/own/some.json", "-n", "3"], "--output=some.json -n 3"),
        (
            ["some.py", "--output", str(BENCHMARKS / "results" / "a b.json")],
            "--output 'benchmarks/results/a b.json'",
        ),
        (["some.py", "--runs", "runs/here", "a/b"], "--runs runs/here a/b"),
    ],
)
def test_a_command_names_no_place_of_this_machine(recording: ModuleType, typed: list[str], said: str) -> None:
    assert recording.describe_command(typed) == f"python benchmarks/some.py {said}"


def test_the_machine_is_described(recording: ModuleType) -> None:
    machine = recording.describe_machine()
    assert machine["cores"] >= 1
    assert machine["cpu_model"]
    assert recording.installed_versions(["torch", "no-such-package"])["no-such-package"] is None


def _benchmark(measuring: ModuleType, peer: str, **comparison: object) -> object:
    return measuring.Benchmark(
        measurements={
            "a": measuring.Measurement(target="toy_speed:fast", settings={"rate": 30.0}),
            "b": measuring.Measurement(target=f"toy_speed:{peer}", settings={"rate": 10.0}),
            "c": measuring.Measurement(target="toy_speed:slow", needs=("no_such_module",)),
        },
        comparisons=[
            measuring.Comparison(
                name="a to b", unit="1/s", ours="a", peer="b", peer_name="toy", **comparison
            ),
            measuring.Comparison(
                name="a to c",
                unit="1/s",
                ours="a",
                peer="c",
                goal=">= 2 x peer",
                reached=lambda _, ratio: ratio is not None and ratio >= 2,
            ),
        ],
    )


def test_measurements_run_in_turn_and_are_compared(measuring: ModuleType) -> None:
    said: list[str] = []
    goal = {
        "goal": ">= 4 x peer",
        "reached": lambda _, ratio: ratio >= 4.0,
        "same": "check",
        "cpu_tells": True,
    }
    rows = _benchmark(measuring, "slow", **goal).run(2, said.append)  # type: ignore[attr-defined]
    assert [line.partition(",")[0].partition(":")[0] for line in said] == ["a", "b", "c", "a", "b"]
    assert (rows[0].ours.median, rows[0].peer.median, rows[0].ratio.median, rows[0].met) == (30, 10, 3, False)
    assert rows[0].cpu_ratio.median == pytest.approx(6), "ours had half of the CPU"
    assert rows[1].peer is None
    assert rows[1].met is None, "without its peer a comparison says nothing"


def test_sides_that_did_not_do_the_same_are_not_compared(measuring: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="did not do the same"):
        _benchmark(measuring, "cheat", same="check").run(1, print)  # type: ignore[attr-defined]


def test_a_measurement_that_fails_says_why(measuring: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="unexpected keyword argument"):
        measuring.run_alone(measuring.Measurement(target="toy_speed:fast", settings={"speed": 1}))


def test_a_measurement_that_hangs_is_ended(measuring: ModuleType) -> None:
    hangs = measuring.Measurement(target="signal:pause", timeout_s=0.01)
    with pytest.raises(RuntimeError, match=r"took over 0\.01 s"):
        measuring.run_alone(hangs)


@pytest.mark.parametrize(
    ("python", "needs", "why"),
    [
        (Path("/no/such/python"), (), "/no/such/python does not exist; install it with: make it"),
        (
            Path(sys.executable),
            ("no_such_module",),
            "no_such_module is not installed; install it with: make it",
        ),
        (Path(sys.executable), ("json",), "ValueError: no engine"),
    ],
)
def test_a_peer_with_an_interpreter_of_its_own_may_be_missing_or_fail(
    measuring: ModuleType, python: Path, needs: tuple[str, ...], why: str
) -> None:
    peer = measuring.Measurement(
        target="toy_speed:broken", settings={"rate": 1.0}, python=python, needs=needs, install="make it"
    )
    ours = measuring.Measurement(target="toy_speed:fast", settings={"rate": 30.0})
    compared = measuring.Comparison(
        name="a to b",
        unit="1/s",
        ours="a",
        peer="b",
        goal=">= 2 x peer",
        reached=lambda *_: True,
        note="toys",
    )
    said: list[str] = []
    benchmark = measuring.Benchmark(measurements={"a": ours, "b": peer}, comparisons=[compared])
    [row] = benchmark.run(2, said.append)
    assert (row.ours.median, row.peer, row.met) == (30, None, None)
    assert row.note == f"toys (no figure of the peer: {why})"
    assert [line[0] for line in said] == ["a", "b", "a"], "a peer that failed is not tried again"


def test_speed_counts_work_after_the_warm_up(recording: ModuleType) -> None:
    import timing

    calls: list[int] = []

    def step() -> int:
        calls.append(1)
        return 5

    result = timing.speed(step, seconds=0.0, warm_up=3, fewest=4)
    assert (len(calls), result["steps"]) == (7, 20)
    assert result["rate"] == result["steps"] / result["wall_s"]
