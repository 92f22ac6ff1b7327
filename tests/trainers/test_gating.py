"""From contributions to gates, with numbers worked out by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from cue_agents import cue_config
from pydantic import TypeAdapter

from sensorium.core import ConfigError, parse_overrides, read_yaml
from sensorium.trainers.config import DAPOConfig, GateConfig, ShapleyGate
from sensorium.trainers.diagnostics import Contributions
from sensorium.trainers.gating import UpdateGate
from sensorium.trainers.run_directory import OnExisting, open_run, read_config

pytestmark = pytest.mark.usefixtures("cue_backend")


def gate(sensors: str = "ab", **config: Any) -> UpdateGate:
    return UpdateGate(TypeAdapter(GateConfig).validate_python(config), tuple(sensors))


def found(shapley: dict[str, float] | None = None, alone: dict[str, float] | None = None) -> Contributions:
    names = shapley or alone or {}
    zeros = dict.fromkeys(names, 0.0)
    return Contributions(shapley=shapley or zeros, alone=alone or zeros)


def test_shapley_by_hand() -> None:
    # z = 1.2247449, 0, -1.2247449; 3 softmax(-z) = 0.1876672, 0.6386873, 2.1736455, clipped to [0.3, 2]
    gates = gate("abc", type="shapley", k_min=0.3).update(found({"a": 3.0, "b": 2.0, "c": 1.0}))
    assert gates == pytest.approx({"a": 0.3, "b": 0.6386873, "c": 2.0}, abs=1e-6)


def test_shapley_averages_over_updates() -> None:
    made = gate(type="shapley", decay=0.5, k_min=0.0)
    # z = -1, 1: 2 softmax(1, -1) = 2 / (1 + exp(-2)) = 1.7615942 and 0.2384058
    assert made.update(found({"a": 1.0, "b": 3.0})) == pytest.approx({"a": 1.7615942, "b": 0.2384058})
    # a: (0.25 * 1 + 0.5 * 3) / 0.75 = 2.33, b: (0.25 * 3 + 0.5 * 1) / 0.75 = 1.67: a leads now
    assert made.update(found({"a": 3.0, "b": 1.0})) == pytest.approx({"a": 0.2384058, "b": 1.7615942})


def test_ogm_ge_by_hand() -> None:
    # 0.6 / 0.3 = 2, 1 - tanh(0.5 * 2) = 0.2384058
    gates = gate(type="ogm_ge", alpha=0.5).update(found(alone={"a": 0.6, "b": 0.3}))
    assert gates == pytest.approx({"a": 0.2384058, "b": 1.0})


def test_cggm_by_hand_and_its_first_update_is_neutral() -> None:
    made = gate(type="cggm", rho=1.3, decay=0.0)
    assert made.update(found(alone={"a": 0.5, "b": 0.1})) == {"a": 1.0, "b": 1.0}
    # improvements 0.3 and 0.1: 1.3 * (1 - 0.75) = 0.325 and 1.3 * (1 - 0.25) = 0.975
    gates = made.update(found(alone={"a": 0.8, "b": 0.2}))
    assert gates == pytest.approx({"a": 0.325, "b": 0.975})


def test_off_is_one() -> None:
    made = gate(type="none")
    assert not made.on
    assert made.update(found({"a": 9.0, "b": 0.0})) == {"a": 1.0, "b": 1.0}


def test_what_cannot_differ_from_one_is_off() -> None:
    assert not gate(type="shapley", tau=math.inf).on
    assert not gate("a", type="ogm_ge").on
    assert gate(type="shapley", tau=1e6).on


@pytest.mark.parametrize("kind", ["shapley", "ogm_ge", "cggm"])
def test_an_absent_sense_is_left_out_of_the_balance(kind: str) -> None:
    """It would count as the weakest of all, and slow the ones that are there down."""
    three, two = gate("abc", type=kind), gate("ab", type=kind)
    for numbers in ({"a": 0.6, "b": 0.3}, {"a": 0.7, "b": 0.7}):
        here = found(numbers, numbers)
        gates = three.update(here)
        assert gates == two.update(here) | {"c": 1.0}
    alone = gate("abc", type=kind)
    for x in (1.0, 2.0):
        assert alone.update(found({"a": x}, {"a": x})) == {"a": 1.0, "b": 1.0, "c": 1.0}


@pytest.mark.parametrize("kind", ["shapley", "ogm_ge", "cggm", "none"])
def test_json_round_trip(kind: str) -> None:
    made = gate("abc", type=kind)
    for i in range(3):
        numbers = {name: math.sin(i + m) for m, name in enumerate("abc")}
        made.update(found(numbers, numbers))
    again = gate("abc", type=kind)
    again.from_json(json.loads(json.dumps(made.to_json())))
    then = {"a": 0.3, "b": 0.1, "c": 0.7}
    assert again.update(found(then, then)) == made.update(found(then, then))
    assert again.to_json() == made.to_json()


def test_a_gate_without_a_type_is_the_default_one() -> None:
    assert DAPOConfig.model_validate({"gate": {"tau": 0.7}}).gate == ShapleyGate(tau=0.7)


def no_constants(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def test_infinite_temperature_from_flag_and_file_to_strict_json_and_back(tmp_path: Path) -> None:
    base = cue_config(("rgb", "depth"))
    flags = parse_overrides(["--algo.type", "dapo", "--algo.gate.tau", "inf"])
    (tmp_path / "my.yaml").write_text("algo:\n  type: dapo\n  gate: {type: shapley, tau: .inf}\n")
    config = base.updated(flags)
    assert config == base.updated(read_yaml(tmp_path / "my.yaml"))
    assert isinstance(config.algo, DAPOConfig)
    assert config.algo.gate == ShapleyGate(tau=math.inf)
    run = open_run(config, tmp_path / "runs", OnExisting.FAIL)
    values = json.loads((run / "config.json").read_text(), parse_constant=no_constants)
    assert values["config"]["algo"]["gate"]["tau"] == "Infinity"
    assert read_config(run) == config
    assert config.updated({}) == config
    assert config.digest() != config.updated({"algo": {"gate": {"tau": 1.0}}}).digest()
    assert run.parent.name == "cue-match_rgb+depth_dapo-1"


@pytest.mark.parametrize("tau", [0.0, -1.0, math.nan, -math.inf])
def test_other_temperatures_are_refused(tau: float) -> None:
    base = cue_config(("rgb", "depth"), algo={"type": "dapo"})
    with pytest.raises(ConfigError, match=r"tau"):
        base.updated({"algo": {"gate": {"tau": tau}}})
