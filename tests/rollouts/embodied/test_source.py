"""Rollouts that are collected while the trainer learns from the one before."""

import copy
import threading
from typing import Any

import pytest
import torch
from cue_agents import CueRound, cue_config, cue_round, perturb

from sensorium.core import derive_seed
from sensorium.rollouts.embodied import Collector, Rollout, RolloutSource
from sensorium.trainers.build import build_agent, build_env

pytestmark = pytest.mark.usefixtures("cue_backend")

STEPS = 8


def source(made: CueRound, max_staleness: int = 1) -> RolloutSource:
    generator = torch.Generator().manual_seed(0)
    agent = made.agent
    return RolloutSource(
        made.env, agent.policy, agent.representer, generator, num_steps=STEPS, max_staleness=max_staleness
    )


def expected(weights: list[dict[str, Any]]) -> list[Rollout]:
    """Rollouts of a collector that acts with these weights, one after the other."""
    config = cue_config(("rgb", "speech"))
    env = build_env(config)
    agent = build_agent(config, env)
    generator = torch.Generator().manual_seed(derive_seed(7, "actions"))
    collector = Collector(env, agent.policy, agent.representer, generator)
    collector.restart(7)
    rollouts = []
    for own in weights:
        agent.policy.load_state_dict(own)
        rollouts.append(collector.collect(STEPS))
    return rollouts


def same(a: Rollout, b: Rollout) -> bool:
    names = ("logits", "logprobs", "values", "discrete", "rewards", "valid", "starts")
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in names)


def test_a_rollout_is_from_the_policy_as_it_was_one_update_ago() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    rollouts = source(made)
    rollouts.restart(7)
    weights, seen = [], []
    for round_ in range(4):
        weights.append(copy.deepcopy(made.agent.policy.state_dict()))
        seen.append(rollouts.take(more=round_ < 3))
        perturb(made.agent.policy, seed=round_)  # an update, while the next rollout is under way
    rollouts.close()
    stale = expected([weights[0], weights[0], weights[1], weights[2]])
    assert all(same(a, b) for a, b in zip(seen, stale, strict=True))
    assert not same(seen[2], expected([weights[0], weights[1], weights[2]])[2])


def test_without_more_to_come_the_next_rollout_is_from_the_policy_as_it_is() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    rollouts = source(made)
    rollouts.restart(7)
    first = copy.deepcopy(made.agent.policy.state_dict())
    rollouts.take(more=False)
    perturb(made.agent.policy)
    newest = rollouts.take(more=False)
    rollouts.close()
    assert same(newest, expected([first, made.agent.policy.state_dict()])[1])


def test_taking_turns_needs_no_thread() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    before = threading.active_count()
    rollouts = source(made, max_staleness=0)
    rollouts.restart(7)
    rollouts.take(more=True)
    assert threading.active_count() == before
    assert rollouts.seconds["wait"] == pytest.approx(rollouts.seconds["collect"], abs=0.05)
    rollouts.close()


def test_what_acting_raises_is_raised_where_its_rollout_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    rollouts = source(made)
    rollouts.restart(7)
    rollouts.take(more=True)
    rollouts.settle()
    rollouts.take(more=False)

    def broken(actions: Any) -> None:
        raise RuntimeError("the engine is gone")

    monkeypatch.setattr(made.env, "step", broken)
    with pytest.raises(RuntimeError, match="the engine is gone"):
        rollouts.take(more=False)
    rollouts.close()


def test_closing_waits_for_what_is_under_way_and_ends_the_thread() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    before = threading.active_count()
    rollouts = source(made)
    rollouts.restart(7)
    rollouts.take(more=True)
    assert threading.active_count() == before + 1
    rollouts.close()
    assert threading.active_count() == before
