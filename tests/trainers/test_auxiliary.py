"""Losses and rewards that compare senses with each other."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from cue_agents import cue_config, cue_round, perturb
from torch import Tensor

from sensorium.algorithms import PolicyHeads, policy_divergence
from sensorium.core import ActionKind
from sensorium.policies.embodied import ActorCritic
from sensorium.rollouts.embodied import Rollout
from sensorium.trainers.auxiliary import (
    Minibatch,
    alignment_loss,
    contrast,
    mixed_rewards,
    rollout_divergence,
)
from sensorium.trainers.dapo import DAPO, build_learner

pytestmark = pytest.mark.usefixtures("cue_backend")

SENSORS = ("rgb", "depth", "instruction")
EVERYONE = torch.arange(8)


def make(sensors: tuple[str, ...] = SENSORS, **algo: Any) -> tuple[DAPO, Rollout]:
    settings = {"type": "dapo", "num_epochs": 1, "num_minibatches": 2} | algo
    made = cue_round(cue_config(sensors, ActionKind.HYBRID, algo=settings))
    learner = build_learner(made.agent.policy, made.config.algo, torch.Generator().manual_seed(0))
    assert isinstance(learner, DAPO)
    return learner, made.collector.collect(12)


def minibatch(policy: ActorCritic, rollout: Rollout, envs: Tensor = EVERYONE) -> Minibatch:
    """As the trainer makes it."""
    batch = rollout.sequences(envs)
    prepared = policy.encode(batch)
    return Minibatch(batch, envs, rollout.valid[:, envs], prepared, policy.fuse_sequences(prepared, batch))


def aligned(policy: ActorCritic, rollout: Rollout, envs: Tensor = EVERYONE, *, rows: int = 96) -> Tensor:
    return alignment_loss(policy, minibatch(policy, rollout, envs), rows=rows)


def deafen(policy: ActorCritic) -> None:
    """Make the actor the same whatever is perceived."""
    last = policy.actor[-1]
    assert isinstance(last, torch.nn.Linear)
    torch.nn.init.zeros_(last.weight)


def test_a_policy_that_ignores_its_senses_is_aligned() -> None:
    learner, rollout = make()
    perturb(learner.policy)
    deafen(learner.policy)
    assert aligned(learner.policy, rollout).item() == pytest.approx(0, abs=1e-6)


def test_a_policy_that_uses_them_is_not() -> None:
    learner, rollout = make()
    perturb(learner.policy)
    loss = aligned(learner.policy, rollout)
    assert 0.01 < loss.item() < 2 * math.log(2)
    # With a single sense left, that sense is all there is.
    rollout.present[..., 1:] = False
    alone = aligned(learner.policy, rollout)
    assert alone.item() == pytest.approx(0, abs=1e-6)


def test_the_whole_policy_is_held_fixed() -> None:
    learner, rollout = make()
    policy = learner.policy
    perturb(policy)
    made = minibatch(policy, rollout)
    whole = made.output.distribution.logits
    assert whole is not None
    whole.retain_grad()
    alignment_loss(policy, made, rows=96).backward()
    assert whole.grad is None
    touched = [name for name, own in policy.perception.sensor_parameters().items() if own[0].grad is not None]
    assert touched == list(SENSORS)


def test_alignment_is_the_mean_divergence_of_single_senses() -> None:
    """Against passes of their own, sense by sense, and all absent senses left out."""
    learner, rollout = make()
    policy = learner.policy
    perturb(policy)
    rollout.present[:, 2:5, 1] = False
    envs = torch.tensor([5, 2, 7])
    batch = rollout.sequences(envs[:2])
    full = policy(batch).distribution
    terms, counts = 0.0, 0.0
    for m in range(len(SENSORS)):
        only = torch.arange(len(SENSORS)) == m
        single = policy(replace(batch, present=batch.present & only)).distribution
        mask = batch.present[..., m].flatten().float()
        heads = [PolicyHeads(x.logits, x.mean, x.log_std) for x in (single, full)]
        terms = terms + mask * policy_divergence(*heads, full.parameter_mask)
        counts = counts + mask
    expected = (terms / counts)[rollout.valid[:, envs[:2]].flatten()].mean()
    found = aligned(policy, rollout, envs, rows=24)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_rows_bound_what_is_looked_at() -> None:
    learner, rollout = make()
    perturb(learner.policy)
    first = aligned(learner.policy, rollout, EVERYONE[:2], rows=1000)
    assert torch.equal(aligned(learner.policy, rollout, rows=24), first)
    one = aligned(learner.policy, rollout, rows=1)
    assert torch.equal(one, aligned(learner.policy, rollout, EVERYONE[:1], rows=12))


def test_the_loss_aligns() -> None:
    plain, rollout = make(lr=0.01, num_epochs=8, gate={"type": "none"})
    trained, _ = make(lr=0.01, num_epochs=8, gate={"type": "none"}, alignment={"coef": 10.0})
    left = []
    for learner in (plain, trained):
        perturb(learner.policy)
        metrics = learner.update(rollout, progress=0.0)
        left.append(aligned(learner.policy, rollout).item())
    assert left[1] < 0.5 * left[0]
    assert "loss/alignment" in metrics
    assert metrics["loss/alignment"].value > 10 * left[1]  # type: ignore[operator]


def episodes_of(rollout: Rollout) -> list[list[tuple[int, int]]]:
    """(time, world) of the steps of each episode, worked out world by world."""
    found: list[list[tuple[int, int]]] = []
    for world in range(rollout.rewards.shape[1]):
        for t in range(len(rollout.rewards)):
            if t == 0 or rollout.starts[t, world]:
                found.append([])
            if rollout.valid[t, world]:
                found[-1].append((t, world))
    return [steps for steps in found if steps]


def contrasted(learner: DAPO, rollout: Rollout) -> tuple[float, float]:
    found = contrast(
        learner.policy,
        rollout,
        minibatch(learner.policy, rollout),
        temperature=0.1,
        generator=torch.Generator().manual_seed(1),
    )
    return found.loss.item(), found.chance.item()


def chance(labels: list[Any]) -> float:
    """Share of pairs of episodes, those of one with itself included, with the same label."""
    return sum(a == b for a in labels for b in labels) / len(labels) ** 2


def test_contrast_takes_one_row_per_episode_and_pairs_instructions() -> None:
    learner, rollout = make(("rgb", "instruction"))
    perturb(learner.policy)
    labels = [int(rollout.rows["instruction"][steps[0]]) for steps in episodes_of(rollout)]
    assert len(set(labels)) == 3
    assert len(labels) >= 16
    loss, share = contrasted(learner, rollout)
    assert share == pytest.approx(chance(labels))
    assert loss > 0


def test_an_instruction_that_was_not_perceived_makes_no_positives() -> None:
    """The empty text stands in for it everywhere; those episodes do not belong together."""
    learner, rollout = make(SENSORS)
    rollout.present[:, :4, SENSORS.index("instruction")] = False
    rollout.rows["instruction"][:, :4] = 0
    episodes = episodes_of(rollout)
    labels: list[Any] = [
        f"episode {number}" if steps[0][1] < 4 else int(rollout.rows["instruction"][steps[0]])
        for number, steps in enumerate(episodes)
    ]
    heard = [label for label in labels if isinstance(label, int)]
    _, share = contrasted(learner, rollout)
    # rgb and depth are compared over all episodes, the other two pairs where the instruction was perceived
    assert share == pytest.approx((chance(labels) + 2 * chance(heard)) / 3)


def test_without_instructions_an_episode_is_its_own_positive() -> None:
    learner, rollout = make(("rgb", "depth"))
    count = len(episodes_of(rollout))
    assert contrasted(learner, rollout)[1] == pytest.approx(1 / count)


def test_contrast_is_logged_and_draws_senses_together() -> None:
    learner, rollout = make(("rgb", "instruction"), lr=0.01, num_epochs=10, contrastive={"coef": 1.0})
    before = contrasted(learner, rollout)[0]
    metrics = learner.update(rollout, progress=0.0)
    assert contrasted(learner, rollout)[0] < before
    assert {"loss/contrastive", "contrastive/accuracy", "contrastive/chance"} <= set(metrics)


def numbers(x: Tensor) -> np.ndarray:
    return x.double().numpy()


def test_mixed_reward_is_the_weighted_sum_of_its_terms() -> None:
    learner, rollout = make(reward={}, reward_scale=0.5)
    perturb(learner.policy)
    rollout.solved[3, 0], rollout.violated[1, 0] = True, True
    rollout.violations[1:4, 0] = 1
    assert rollout.episode_steps[3, 0] == 4  # the last step of an episode
    total, metrics = learner.rewards(rollout)
    divergence = rollout_divergence(learner.policy, rollout, num_minibatches=3)
    task = np.where(numbers(rollout.valid) > 0, 0.5 * numbers(rollout.rewards), 0.0)
    penalty = np.where(numbers(rollout.valid) > 0, numbers(divergence) / 100, 0.0)  # of at most 100 steps
    safety = np.where(numbers(rollout.solved & rollout.valid) > 0, 1.0, 0.0)
    safety[3, 0] = 1 - 1 / 4
    safety[1, 0] -= 1 / 100
    assert numbers(total) == pytest.approx(task - 0.1 * penalty + 0.5 * safety, abs=1e-6)
    valid = numbers(rollout.valid) > 0
    means = {name: float(metrics[f"reward/{name}"].value) for name in ("task", "divergence", "safety")}  # type: ignore[arg-type]
    assert means["task"] == pytest.approx(task[valid].mean())
    assert means["divergence"] == pytest.approx(-0.1 * penalty[valid].mean())
    assert means["divergence"] < 0
    assert means["safety"] == pytest.approx(0.5 * safety[valid].mean())
    assert sum(means.values()) == pytest.approx(numbers(total)[valid].mean(), abs=1e-6)


def test_terms_of_weight_zero_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, rollout = make(reward={"divergence": 0.0, "safety": 0.0})
    monkeypatch.setattr(learner.policy, "encode", None)  # no divergence is measured
    assert learner.config.reward is not None
    total, parts = mixed_rewards(
        learner.policy, rollout, learner.config.reward, reward_scale=1.0, num_minibatches=2
    )
    assert torch.equal(total, torch.where(rollout.valid, rollout.rewards, 0.0))
    assert set(parts) == {"task"}


def test_divergence_is_that_of_each_step_in_its_place() -> None:
    """The rollout is gone through in chunks of worlds; the chunks do not matter."""
    learner, rollout = make()
    perturb(learner.policy)
    whole = rollout_divergence(learner.policy, rollout, num_minibatches=1)
    assert whole.shape == rollout.rewards.shape
    assert torch.allclose(rollout_divergence(learner.policy, rollout, num_minibatches=3), whole, atol=1e-6)
    mean = whole[rollout.valid].mean()
    loss = aligned(learner.policy, rollout)
    assert loss.item() == pytest.approx(mean.item(), rel=1e-5)


def test_a_reward_that_is_not_finite_skips_updates_as_it_does_without_mixing() -> None:
    learner, rollout = make(reward={})
    before = [p.detach().clone() for p in learner.policy.parameters()]
    rollout.rewards.fill_(float("nan"))
    learner.update(rollout, progress=0.0)
    assert learner.state.skipped == 2
    assert all(torch.equal(a, b) for a, b in zip(before, learner.policy.parameters(), strict=True))
