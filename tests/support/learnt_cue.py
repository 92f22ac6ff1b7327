"""Policies that solved `cue/match`, in a second or two."""

from cue_agents import cue_round

from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.trainers.build import Agent
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.ppo import PPO

LEARNING = {"num_envs": 32, "num_steps": 16, "num_minibatches": 2, "num_epochs": 4, "lr": 3e-3, "gamma": 0.9}


def trained(config: TrainConfig, rounds: int = 30) -> tuple[Agent, MultiModalVectorEnv]:
    """Train by PPO; with `LEARNING` and a single sensor, 30 rounds solve the task."""
    made = cue_round(config)
    learner = PPO(made.agent.policy, config.algo, made.collector.generator)
    for round_ in range(rounds):
        learner.update(made.collector.collect(config.algo.num_steps), progress=round_ / rounds)
    return made.agent, made.env
