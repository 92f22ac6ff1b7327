"""What DAPO is for: a sense that an easier one hides is learnt, too."""

from typing import Any

import pytest
from cue_agents import cue_config, cue_round

from sensorium.evals import play_episodes
from sensorium.trainers.build import build_env
from sensorium.trainers.dapo import build_learner

pytestmark = [pytest.mark.learning, pytest.mark.usefixtures("cue_backend")]

EASY, HARD = "proprio", "rgb"
"""Both show the cue all the time, one as numbers and one as pixels; in the end only the second is left."""

ROUNDS = 60
LOOP = {"num_envs": 64, "num_steps": 16, "num_minibatches": 4, "num_epochs": 4, "lr": 2e-3, "gamma": 0.9}


def success(algo: dict[str, Any], augment: dict[str, Any], seed: int) -> tuple[float, float]:
    """Train with both senses; success with both, and with the hard one alone."""
    config = cue_config((HARD, EASY), seed=seed, num_cues=4, algo=LOOP | algo)
    made = cue_round(config.updated({"env": {"augment": augment}}), augmented=True, generator_seed=seed)
    learner = build_learner(made.agent.policy, config.algo, made.collector.generator)
    for round_ in range(ROUNDS):
        learner.update(made.collector.collect(config.algo.num_steps), progress=round_ / ROUNDS)
    made.env.close()
    env = build_env(made.config, 96)
    found = [
        play_episodes(made.agent, env, episodes=96, seed=10_000, blanked=blanked)
        for blanked in (frozenset[str](), frozenset({EASY}))
    ]
    env.close()
    both, hard = (played.successes / len(played.finished) for played in found)
    return both, hard


PPO: dict[str, Any] = {"type": "ppo"}
DAPO: dict[str, Any] = {"type": "dapo", "num_epochs": 4, "kl_coef": 0.0}
DROPOUT = {"modal_dropout": {"p": 0.3}}


def test_ppo_leans_on_the_easy_sense_and_dapo_uses_both() -> None:
    ppo_both, ppo_hard = success(PPO, {}, seed=2)
    dapo_both, dapo_hard = success(DAPO, DROPOUT, seed=2)
    assert min(ppo_both, dapo_both) >= 0.9
    assert dapo_hard >= 0.9
    assert ppo_hard <= dapo_hard - 0.4


@pytest.mark.slow
def test_so_it_is_over_seeds() -> None:
    ppo = [success(PPO, {}, seed)[1] for seed in range(4)]
    dapo = [success(DAPO, DROPOUT, seed)[1] for seed in range(4)]
    assert min(dapo) >= 0.9
    assert sum(ppo) / 4 <= 0.6
