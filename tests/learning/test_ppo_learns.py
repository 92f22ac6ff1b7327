from typing import Any

import numpy as np
import pytest
import torch
from cue_agents import ALL_SENSORS, SPACE_TIME, cue_config, cue_round

from sensorium.core import ActionKind
from sensorium.evals import play_episodes
from sensorium.rollouts.embodied import RolloutSource
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.ppo import PPO

pytestmark = [pytest.mark.learning, pytest.mark.usefixtures("cue_backend")]


def success_after(config: TrainConfig, rounds: int) -> float:
    """Train, then play unseen episodes deterministically."""
    made = cue_round(config)
    learner = PPO(made.agent.policy, config.algo, made.collector.generator)
    for round_ in range(rounds):
        learner.update(made.collector.collect(config.algo.num_steps), progress=round_ / rounds)
    results = play_episodes(made.agent, made.env, episodes=96, seed=10_000)
    return results.successes / len(results.finished)


def learning_config(
    sensors: tuple[str, ...], kind: ActionKind = ActionKind.DISCRETE, **kwargs: Any
) -> TrainConfig:
    algo = {"num_envs": 32, "num_steps": 16, "num_minibatches": 2, "num_epochs": 4, "lr": 3e-3, "gamma": 0.9}
    return cue_config(sensors, kind, algo=algo | kwargs.pop("algo", {}), **kwargs)


QUICK = {"rgb", "speech", "instruction"}
"""One sensor per kind of encoder; the others take minutes together."""


@pytest.mark.parametrize(
    "sensor", [pytest.param(s, marks=[] if s in QUICK else [pytest.mark.slow]) for s in ALL_SENSORS]
)
def test_each_sensor_alone_is_enough(sensor: str) -> None:
    assert success_after(learning_config((sensor,)), rounds=30) >= 0.95


WIDER = {"network": {"fusion": {"hidden_dim": 64, "embed_dim": 32}}}


def test_continuous_actions_are_learnt() -> None:
    """Two cues: with three, a Gaussian about the middle earns something and holds some seeds there."""
    config = learning_config(("rgb",), ActionKind.CONTINUOUS, num_cues=2)
    assert success_after(config, rounds=30) >= 0.95


def test_hybrid_actions_are_learnt() -> None:
    algo = {"num_envs": 64, "num_minibatches": 4, "lr": 3e-3, "ent_coef": 0.02}
    config = learning_config(("rgb",), ActionKind.HYBRID, algo=algo, num_cues=2)
    assert success_after(config, rounds=30) >= 0.95


def test_clips_are_learnt_from() -> None:
    config = learning_config(("rgb",), vision=SPACE_TIME, algo={"lr": 2e-3, "num_minibatches": 4})
    assert success_after(config, rounds=25) >= 0.95


def test_memory_is_learnt() -> None:
    """The cue is shown at the first step, and only the action at the last step counts."""
    algo = {"num_envs": 64, "num_minibatches": 4, "lr": 1e-3}  # with more, rounding decides which seeds learn
    config = learning_config(("rgb",), first_step_only=True, length=2, algo=algo).updated(WIDER)
    assert success_after(config, rounds=50) >= 0.95


def test_without_the_cue_nothing_can_be_learnt() -> None:
    """A control for the tests above: an unseen cue leaves the policy at chance."""
    config = learning_config(("rgb",))
    made = cue_round(config)
    learner = PPO(made.agent.policy, config.algo, made.collector.generator)
    for round_ in range(15):
        rollout = made.collector.collect(16)
        rollout.dense["rgb"].zero_()
        learner.update(rollout, progress=round_ / 15)
    blind = play_episodes(made.agent, made.env, episodes=96, seed=10_000, blanked=frozenset({"rgb"}))
    assert blind.successes / len(blind.finished) < 0.6
    assert np.isfinite(torch.cat([p.flatten() for p in made.agent.policy.parameters()]).detach()).all()


def test_a_rollout_one_update_old_is_learnt_from() -> None:
    config = learning_config(("rgb",), algo={"max_staleness": 1})
    made = cue_round(config)
    rollouts = RolloutSource(
        made.env,
        made.agent.policy,
        made.agent.representer,
        made.collector.generator,
        num_steps=config.algo.num_steps,
        max_staleness=1,
    )
    rollouts.restart(7)
    learner = PPO(made.agent.policy, config.algo, made.collector.generator)
    for round_ in range(30):
        learner.update(rollouts.take(more=round_ < 29), progress=round_ / 30)
    rollouts.close()
    results = play_episodes(made.agent, made.env, episodes=96, seed=10_000)
    assert results.successes / len(results.finished) >= 0.95
