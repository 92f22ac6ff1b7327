"""Every trainable parameter has exactly one learning rate, and the right one."""

from typing import Any

import pytest
from cue_agents import ALL_SENSORS, CONV, cue_config
from torch import nn

from sensorium.core import TrainingError
from sensorium.policies.embodied import ActorCritic
from sensorium.trainers.build import build_agent, build_env
from sensorium.trainers.config import LearningRates
from sensorium.trainers.groups import parameter_groups

pytestmark = pytest.mark.usefixtures("cue_backend")

FUSIONS = ("cross_attention", "early", "late", "gated")
SENSOR_SETS = (("rgb",), ("rgb", "speech"), ("depth", "instruction", "proprio"), ALL_SENSORS)


def policy_of(sensors: tuple[str, ...], fusion: str = "cross_attention") -> ActorCritic:
    config = cue_config(sensors).updated(
        {"network": {"fusion": {"type": fusion, "embed_dim": 16, "hidden_dim": 16}}}
    )
    assert config.network.vision == CONV
    return build_agent(config, build_env(config, 1)).policy


def groups_of(policy: ActorCritic, /, **rates: float) -> dict[str, dict[str, Any]]:
    return {group["name"]: group for group in parameter_groups(policy, LearningRates(**rates), 1e-3)}


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("sensors", SENSOR_SETS, ids="+".join)
def test_each_parameter_is_in_one_group(sensors: tuple[str, ...], fusion: str) -> None:
    policy = policy_of(sensors, fusion)
    groups = groups_of(policy)
    assert set(groups) == {*sensors, "policy", "value"}
    placed = [id(parameter) for group in groups.values() for parameter in group["params"]]
    assert len(placed) == len(set(placed))
    assert set(placed) == {id(parameter) for parameter in policy.parameters()}
    assert all(group["base_lr"] == 1e-3 for group in groups.values())


@pytest.mark.parametrize("fusion", FUSIONS)
def test_rates_land_where_they_should(fusion: str) -> None:
    policy = policy_of(ALL_SENSORS, fusion)
    groups = groups_of(policy, vision=3e-5, audio=2e-4, text=4e-4, proprio=6e-4, policy=1e-4, value=5e-4)
    rates = {name: group["base_lr"] for name, group in groups.items()}
    assert rates == {
        "rgb": 3e-5,
        "depth": 3e-5,
        "speech": 2e-4,
        "env_sound": 2e-4,
        "instruction": 4e-4,
        "proprio": 6e-4,
        "policy": 1e-4,
        "value": 5e-4,
    }
    rate_of = {id(p): group["base_lr"] for group in groups.values() for p in group["params"]}

    def of(module: nn.Module) -> set[float]:
        return {rate_of[id(parameter)] for parameter in module.parameters()}

    assert {name: of(encoder) for name, encoder in policy.perception.encoders.items()} == {
        name: {rates[name]} for name in ALL_SENSORS
    }
    assert of(policy.critic) == {5e-4}
    assert of(policy.memory) == of(policy.actor) == {1e-4}
    assert rate_of[id(policy.perception.fusion.missing)] == 1e-4


def test_a_rate_that_is_not_given_is_the_common_one() -> None:
    groups = groups_of(policy_of(("rgb", "speech")), vision=3e-5)
    assert {name: group["base_lr"] for name, group in groups.items()} == {
        "rgb": 3e-5,
        "speech": 1e-3,
        "policy": 1e-3,
        "value": 1e-3,
    }


def test_a_frozen_part_is_in_no_group() -> None:
    policy = policy_of(("rgb", "speech"))
    for parameter in policy.perception.sensor_parameters()["rgb"]:
        parameter.requires_grad_(False)
    assert set(groups_of(policy)) == {"speech", "policy", "value"}


def test_overlapping_senses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(("rgb", "depth"))
    own = policy.perception.sensor_parameters()
    own["depth"] = [*own["depth"], own["rgb"][0]]
    monkeypatch.setattr(policy.perception, "sensor_parameters", lambda: own)
    with pytest.raises(TrainingError, match=r"in the groups 'rgb' and 'depth'.*disjoint"):
        groups_of(policy)
