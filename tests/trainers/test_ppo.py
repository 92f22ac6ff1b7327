import copy
import math
from typing import Any

import pytest
import torch
from cue_agents import CueRound, cue_config, cue_round
from torch import Tensor

from sensorium.core import ActionKind, TrainingError
from sensorium.rollouts.embodied import Rollout
from sensorium.trainers.ppo import PPO

pytestmark = pytest.mark.usefixtures("cue_backend")


def make(sensors: tuple[str, ...] = ("rgb",), **algo: Any) -> tuple[CueRound, PPO, Rollout]:
    made = cue_round(cue_config(sensors, ActionKind.HYBRID, algo=algo))
    learner = PPO(made.agent.policy, made.config.algo, torch.Generator().manual_seed(0))
    return made, learner, made.collector.collect(8)


def weights(learner: PPO) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in learner.policy.named_parameters()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def test_an_update_changes_every_parameter_and_says_how_it_went() -> None:
    _, learner, rollout = make(("rgb", "depth", "speech", "instruction", "proprio"))
    before = weights(learner)
    metrics = learner.update(rollout, progress=0.0)
    after = weights(learner)
    never_read = {"perception.fusion.missing", "perception.staleness"}  # everything was present and fresh
    assert {name for name in before if torch.equal(before[name], after[name])} <= never_read
    names = {
        "loss/policy",
        "loss/value",
        "policy/kl",
        "policy/entropy",
        "value/explained_variance",
        "gradient/norm",
    }
    assert names <= set(metrics)
    assert metrics["gradient/skipped_updates"].value == 0
    gates = [float(metrics[f"fusion/gate/{name}"].value) for name in learner.policy.perception.names]  # type: ignore[arg-type]
    assert sum(gates) == pytest.approx(1, abs=1e-4)


def test_the_first_minibatch_is_on_policy() -> None:
    _, learner, rollout = make(num_epochs=1, num_minibatches=1)
    metrics = learner.update(rollout, progress=0.0)
    assert float(metrics["policy/kl"].value) == pytest.approx(0, abs=1e-6)  # type: ignore[arg-type]
    assert metrics["policy/clip_fraction"].value == 0


def test_steps_that_are_not_valid_are_never_read() -> None:
    """Rewards, log-probabilities and actions at reset steps are whatever; nothing changes."""
    _, learner, rollout = make()
    other = copy.deepcopy(learner)
    changed = copy.deepcopy(rollout)
    assert not rollout.valid.all()
    changed.rewards[~rollout.valid] = 1e6
    changed.logprobs[~rollout.valid] = -40.0
    assert changed.discrete is not None
    changed.discrete[~rollout.valid] = 2
    learner.update(rollout, progress=0.0)
    other.update(changed, progress=0.0)
    assert same(weights(learner), weights(other))


def test_learning_rate_falls_to_a_tenth() -> None:
    _, learner, rollout = make(lr=0.01)
    for progress, lr in ((0.0, 0.01), (0.5, 0.0055), (1.0, 0.001)):
        metrics = learner.update(rollout, progress=progress)
        assert metrics["lr"].value == pytest.approx(lr)
    _, steady, rollout = make(lr=0.01, anneal_lr=False)
    assert steady.update(rollout, progress=1.0)["lr"].value == pytest.approx(0.01)


def test_reward_scale_scales_what_is_learnt() -> None:
    _, learner, rollout = make(reward_scale=0.5)
    _, plain, _ = make()
    halved = copy.deepcopy(rollout)
    halved.rewards *= 0.5
    learner.update(rollout, progress=0.0)
    plain.update(halved, progress=0.0)
    assert same(weights(learner), weights(plain))


def test_a_poisoned_reward_skips_the_update_and_counts_it() -> None:
    """One NaN reward spoils the minibatch of its world only."""
    _, learner, rollout = make(num_epochs=1, num_minibatches=8)
    rollout.rewards[3, 0] = math.nan
    before = weights(learner)
    metrics = learner.update(rollout, progress=0.0)
    assert learner.state.skipped == 1
    assert metrics["gradient/skipped_updates"].value == 1
    after = weights(learner)
    assert all(torch.isfinite(p).all() for p in after.values())
    assert not same(before, after)


def test_nothing_but_poison_leaves_the_parameters_alone_and_stops() -> None:
    _, learner, rollout = make(num_epochs=1, num_minibatches=2, max_skipped_updates=3)
    rollout.rewards[:] = math.nan
    before = weights(learner)
    learner.update(rollout, progress=0.0)
    assert learner.state.skipped_in_a_row == 2
    with pytest.raises(
        TrainingError, match=r"the loss was not finite in 3 updates in a row.*Lower algo\.lr"
    ) as caught:
        learner.update(rollout, progress=0.0)
    assert "Parameters that are not finite" not in str(caught.value)
    assert same(before, weights(learner))


def test_a_good_update_forgives_the_bad_ones_before() -> None:
    _, learner, rollout = make(num_epochs=1, num_minibatches=2, max_skipped_updates=3)
    poisoned = copy.deepcopy(rollout)
    poisoned.rewards[:] = math.nan
    for _ in range(3):
        learner.update(poisoned, progress=0.0)
        assert learner.state.skipped_in_a_row == 2
        learner.update(rollout, progress=0.0)
        assert learner.state.skipped_in_a_row == 0
    assert learner.state.skipped == 6


def test_a_bad_gradient_is_named() -> None:
    _, learner, rollout = make(num_epochs=1, num_minibatches=1, max_skipped_updates=1)
    learner.policy.critic[0].weight.register_hook(lambda grad: grad * math.nan)
    before = weights(learner)
    with pytest.raises(TrainingError, match=r"the gradient of .* was not finite"):
        learner.update(rollout, progress=0.0)
    assert same(before, weights(learner))


def test_bad_parameters_are_named() -> None:
    _, learner, rollout = make(max_skipped_updates=1)
    with torch.no_grad():
        learner.policy.critic[0].weight[0, 0] = math.nan
    with pytest.raises(TrainingError, match=r"Parameters that are not finite: critic\.0\.weight"):
        learner.update(rollout, progress=0.0)


def test_adaptive_kl_follows_the_target() -> None:
    _, timid, rollout = make(kl_coef=1.0, kl_target=1e-9, lr=0.01)
    timid.update(rollout, progress=0.0)
    assert timid.state.kl_coef == pytest.approx(1.5)
    _, bold, rollout = make(kl_coef=1.0, kl_target=1e3)
    bold.update(rollout, progress=0.0)
    assert bold.state.kl_coef == pytest.approx(0.5)
    _, off, rollout = make(kl_coef=0.0, kl_target=1e-9)
    off.update(rollout, progress=0.0)
    assert off.state.kl_coef == 0


def test_a_kl_penalty_holds_the_policy_back() -> None:
    moved = []
    for kl_coef in (0.0, 100.0):
        _, learner, rollout = make(kl_coef=kl_coef, lr=0.01, num_epochs=8)
        metrics = learner.update(rollout, progress=0.0)
        moved.append(float(metrics["policy/kl_last_epoch"].value))  # type: ignore[arg-type]
    assert moved[1] < 0.5 * moved[0]


def test_filters_see_the_rollout_after_the_update_only() -> None:
    _made, learner, rollout = make(("proprio", "speech", "rgb"))
    filters = learner.policy.perception.filters
    assert set(filters) == {"proprio", "speech"}
    seen = [filters["proprio"].mean.clone()]

    def watch(*_: object) -> None:
        seen.append(filters["proprio"].mean.clone())

    learner.policy.memory.register_forward_hook(watch)
    learner.update(rollout, progress=0.0)
    assert len(seen) > 2
    assert all(torch.equal(mean, torch.zeros(2)) for mean in seen)
    assert filters["proprio"].count > 0
    assert (filters["proprio"].mean != 0).any()


def test_absent_readings_do_not_enter_the_filters() -> None:
    _, learner, rollout = make(("proprio", "rgb"))
    absent = learner.policy.perception.names.index("proprio")
    rollout.present[:, 1:, absent] = False
    rollout.dense["proprio"][:, 1:] = 1e6
    learner.update(rollout, progress=0.0)
    mean = learner.policy.perception.filters["proprio"].mean
    assert (mean.abs() < 100).all()


def test_the_zeros_that_stand_in_for_an_absent_utterance_do_not_enter_the_filters() -> None:
    """Else a sense that a curriculum keeps away would have no spread at all when it joins."""
    config = cue_config(("rgb", "speech")).updated(
        {"env": {"augment": {"combinations": [["rgb"], ["rgb", "speech"]]}}}
    )
    made = cue_round(config, augmented=True)
    learner = PPO(made.agent.policy, made.config.algo, torch.Generator().manual_seed(0))
    rollout = made.collector.collect(8)
    heard = rollout.rows["speech"][rollout.present[..., 1]].unique()
    table = rollout.tables["speech"].values
    assert len(heard) < len(table)
    learner.update(rollout, progress=0.0)
    running = learner.policy.perception.filters["speech"]
    assert torch.allclose(running.mean, table[heard].flatten(0, 1).mean(0))
    assert running.count == table[heard].flatten(0, 1).shape[0]

    rollout.tables["speech"] = rollout.tables["speech"]._replace(values=0 * table)
    learner.update(rollout, progress=0.0)
    assert running.count == table[heard].flatten(0, 1).shape[0]
