"""DAPO beside PPO: equal where nothing is balanced, and what a gate does where something is."""

import math
from typing import Any

import pytest
import torch
from cue_agents import cue_config, cue_round, perturb
from learnt_cue import LEARNING
from torch import Tensor

from sensorium.core import ActionKind, ConfigError
from sensorium.metrics import Metric
from sensorium.rollouts.embodied import Rollout
from sensorium.trainers.dapo import DAPO, build_learner
from sensorium.trainers.ppo import PPO

pytestmark = pytest.mark.usefixtures("cue_backend")

SENSORS = ("rgb", "speech", "instruction", "proprio")
SHORT = {"num_epochs": 2, "kl_coef": 0.2}


def make(sensors: tuple[str, ...] = SENSORS, **algo: Any) -> tuple[DAPO, Rollout]:
    made = cue_round(cue_config(sensors, ActionKind.HYBRID, algo={"type": "dapo", **SHORT, **algo}))
    learner = build_learner(made.agent.policy, made.config.algo, torch.Generator().manual_seed(0))
    assert isinstance(learner, DAPO)
    return learner, made.collector.collect(8)


def three_rollouts(**algo: Any) -> tuple[PPO, list[dict[str, Metric]]]:
    made = cue_round(cue_config(SENSORS, ActionKind.HYBRID, algo=SHORT | algo))
    learner = build_learner(made.agent.policy, made.config.algo, made.collector.generator)
    metrics = [learner.update(made.collector.collect(8), progress=step / 3) for step in range(3)]
    return learner, metrics


@pytest.fixture(scope="module")
def ppo() -> tuple[PPO, list[dict[str, Metric]]]:
    return three_rollouts()


def tensors(learner: PPO) -> dict[str, Tensor]:
    found = {name: x.clone() for name, x in learner.policy.state_dict().items()}
    for name, parameter in learner.policy.named_parameters():
        for key, value in learner.optimizer.state.get(parameter, {}).items():
            found[f"{name}/{key}"] = value
    return found


def equal(a: PPO, b: PPO) -> bool:
    one, other = tensors(a), tensors(b)
    assert one.keys() == other.keys()
    return all(torch.equal(x, other[name]) for name, x in one.items())


def number(metrics: dict[str, Metric], name: str) -> float:
    return float(metrics[name].value)  # type: ignore[arg-type]


NEUTRAL = [{"type": "none"}, {"tau": math.inf}, {"k_min": 1.0, "k_max": 1.0}]


@pytest.mark.parametrize("gate", NEUTRAL, ids=["none", "infinite tau", "k = 1"])
def test_without_balance_it_is_ppo_bit_for_bit(
    ppo: tuple[PPO, list[dict[str, Metric]]], gate: dict[str, Any]
) -> None:
    learner, metrics = three_rollouts(type="dapo", gate=gate)
    assert isinstance(learner, DAPO)
    assert equal(learner, ppo[0])
    assert torch.equal(learner.generator.get_state(), ppo[0].generator.get_state())
    for mine, theirs in zip(metrics, ppo[1], strict=True):
        assert theirs.keys() - mine.keys() == {"lr"}
        differing = [
            name
            for name in theirs.keys() & mine.keys()
            if number(mine, name) != number(theirs, name) and not math.isnan(number(mine, name))
        ]
        assert differing == []
        rates = {number(mine, name) for name in mine if name.startswith("lr/")}
        assert rates == {number(theirs, "lr")}


def test_gating_changes_what_is_learnt(ppo: tuple[PPO, list[dict[str, Metric]]]) -> None:
    learner, metrics = three_rollouts(type="dapo")
    assert not equal(learner, ppo[0])
    gates = {name: number(metrics[-1], f"gate/{name}") for name in SENSORS}
    assert len(set(gates.values())) > 1
    assert all(0.3 <= k <= 2.0 for k in gates.values())


def test_a_learning_rate_is_base_times_annealing_times_gate() -> None:
    rates = {"vision": 3e-5, "policy": 1e-4, "value": 5e-4}
    learner, rollout = make(lr=1e-3, learning_rates=rates)
    metrics = learner.update(rollout, progress=0.5)
    gates = {name: number(metrics, f"gate/{name}") for name in SENSORS}
    base = dict.fromkeys(SENSORS, 1e-3) | {"rgb": 3e-5, "policy": 1e-4, "value": 5e-4}
    for name, rate in base.items():
        assert number(metrics, f"lr/{name}") == pytest.approx(rate * 0.55 * gates.get(name, 1.0))


def test_gates_stand_still_during_an_update() -> None:
    learner, rollout = make()
    seen: list[tuple[float, ...]] = []
    step = learner.optimizer.step

    def watched(*args: Any, **kwargs: Any) -> Any:
        seen.append(tuple(group["lr"] for group in learner.optimizer.param_groups))
        return step(*args, **kwargs)

    learner.optimizer.step = watched  # type: ignore[method-assign]
    metrics = learner.update(rollout, progress=0.0)
    assert len(seen) == 4
    assert len(set(seen)) == 1
    learnt = {group["name"]: group["lr"] for group in learner.optimizer.param_groups}
    assert all(learnt[name] == pytest.approx(1e-3 * number(metrics, f"gate/{name}")) for name in SENSORS)


def test_the_sense_that_carries_everything_waits_for_the_others() -> None:
    """Depth is blank: the policy learns to use rgb, and rgb then learns slower."""
    config = cue_config(("rgb", "depth"), algo={"type": "dapo", **LEARNING, "gate": {"k_min": 0.3}})
    made = cue_round(config)
    backend = made.env.worlds.backend
    observe = backend.observe

    def blank_depth() -> Any:
        readings = dict(observe())
        return readings | {"depth": 0 * readings["depth"]}  # type: ignore[operator]

    backend.observe = blank_depth  # type: ignore[method-assign]
    learner = build_learner(made.agent.policy, config.algo, made.collector.generator)
    metrics: dict[str, Metric] = {}
    for step in range(25):
        metrics = learner.update(made.collector.collect(config.algo.num_steps), progress=step / 25)
    assert number(metrics, "contribution/rgb") > number(metrics, "contribution/depth") + 0.3
    # Two senses have scores of 1 and -1: 2 softmax(-1, 1) = 0.238 and 1.762, the first raised to k_min.
    assert number(metrics, "gate/rgb") == pytest.approx(0.3)
    assert number(metrics, "gate/depth") == pytest.approx(2 / (1 + math.exp(-2)))


def step_lengths(*, gradient: float = 1.0, gate: float = 1.0) -> dict[str, float]:
    """Length of the first step of each sense, with factors on what belongs to rgb."""
    learner, rollout = make(
        gate={"type": "none"}, num_epochs=1, num_minibatches=1, max_grad_norm=math.inf, anneal_lr=False
    )
    perturb(learner.policy)  # as made, the actor's last layer is so small that gradients are tiny
    for group in learner.optimizer.param_groups:
        # Adam's step is m / (sqrt(v) + eps): eps, 1e-5 in training, is a floor below which a gradient's size
        # does count. Far below all gradients, what is left is the invariance itself.
        group["eps"] = 1e-12
        if group["name"] == "rgb":
            group["gate"] = gate
    for parameter in learner.policy.perception.sensor_parameters()["rgb"]:
        parameter.register_hook(lambda grad: gradient * grad)
    metrics = learner.update(rollout, progress=0.0)
    return {name: number(metrics, f"gradient/update_norm/{name}") for name in SENSORS}


def test_adam_cancels_a_factor_on_gradients_but_not_a_gate() -> None:
    plain, scaled, gated = step_lengths(), step_lengths(gradient=0.3), step_lengths(gate=0.3)
    assert scaled == pytest.approx(plain, rel=1e-3)
    assert gated["rgb"] == pytest.approx(0.3 * plain["rgb"], rel=1e-4)
    assert {n: x for n, x in gated.items() if n != "rgb"} == {n: x for n, x in plain.items() if n != "rgb"}


def test_gates_and_averages_go_through_a_checkpoint() -> None:
    learner, rollout = make()
    learner.update(rollout, progress=0.0)
    fresh, _ = make()
    fresh.from_json(learner.to_json())
    assert fresh.to_json() == learner.to_json()
    assert learner.to_json()["gate"]["average"]["sums"].keys() == set(SENSORS)


@pytest.mark.parametrize("extra", ["alignment", "contrastive"])
def test_losses_that_compare_senses_need_two(extra: str) -> None:
    with pytest.raises(ConfigError, match="this policy has only 'rgb'"):
        make(("rgb",), **{extra: {}})


def test_one_sense_alone_is_never_gated() -> None:
    learner, rollout = make(("rgb",))
    assert not learner.gate.on
    assert "gate/rgb" not in learner.update(rollout, progress=0.0)


def test_a_poisoned_return_leaves_the_gates_alone() -> None:
    learner, rollout = make(num_minibatches=8)
    rollout.rewards[3, 0] = math.nan
    metrics = learner.update(rollout, progress=0.0)
    assert "gate/rgb" not in metrics
    assert {group["lr"] for group in learner.optimizer.param_groups} == {1e-3}
    assert learner.state.skipped == 2  # that world's minibatch, in each of two passes
