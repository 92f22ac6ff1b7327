"""Judging a policy: many worlds, a fixed number of episodes each, deterministic actions, unseen seeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sensorium.core import EnvError, EpisodeStatus
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.rollouts import FinishedEpisode, env_action, finished_episode
from sensorium.trainers.build import Agent

MAX_FAILED_SHARE = 0.5
"""Share of broken episodes above which an evaluation means nothing and stops."""


@dataclass(frozen=True, slots=True)
class EpisodeResults:
    """Episodes with an outcome; those that an engine failure ended are only counted."""

    finished: tuple[FinishedEpisode, ...]
    failed: int

    @property
    def successes(self) -> int:
        """Number of solved episodes."""
        return sum(episode.status is EpisodeStatus.SUCCESS for episode in self.finished)

    @property
    def mean_return(self) -> float:
        """Mean undiscounted return."""
        return float(np.mean([episode.episode_return for episode in self.finished]))


class Player:
    """Acts deterministically in a vector environment, one step at a time.

    Args:
        agent: Policy and representer.
        env: The worlds.
        blanked: Sensors that the policy does not get.
    """

    def __init__(self, agent: Agent, env: MultiModalVectorEnv, blanked: frozenset[str] = frozenset()) -> None:
        self.agent = agent
        self.env = env
        self.blanked = blanked
        self._order = agent.policy.perception.names
        self._hz = env.worlds.backend.control_hz

    def reset(self, seed: int) -> Mapping[str, Any]:
        """Start new episodes everywhere; returns the observation."""
        self.agent.representer.forget()
        self._state = self.agent.policy.initial_state(self.env.num_envs)
        self._starts = np.ones(self.env.num_envs, np.bool_)
        self._now_s = np.zeros(self.env.num_envs, np.float32)
        self.observation, _ = self.env.reset(seed=seed)
        self._ended = np.zeros(self.env.num_envs, np.bool_)
        return self.observation

    @torch.no_grad()
    def step(self) -> tuple[Any, torch.Tensor, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act once in every world.

        Returns:
            The actions, the critic's values, rewards, which worlds' episodes ended, and the info.
        """
        representation = self.agent.representer(self.observation, self._now_s, self._starts)
        if self.blanked:
            representation = representation.blank(self.blanked, self._order)
        step = self.agent.policy.step(
            representation, self._state, torch.from_numpy(self._starts).to(self.agent.device)
        )
        self._state = step.state
        actions = env_action(step.distribution.mode(), self.env)
        self.observation, reward, terminated, truncated, info = self.env.step(actions)
        self._starts, self._ended = self._ended, terminated | truncated
        self._now_s = (info["episode_length"] / self._hz).astype(np.float32)
        return actions, step.values, reward, self._ended, info


def play_episodes(
    agent: Agent,
    env: MultiModalVectorEnv,
    *,
    episodes: int,
    seed: int,
    blanked: frozenset[str] = frozenset(),
    on_episode: Callable[[], None] | None = None,
) -> EpisodeResults:
    """Play at least `episodes` episodes, equally many in every world, so that short ones have no advantage.

    Args:
        agent: Policy and representer.
        env: The worlds.
        episodes: Wanted number; rounded up to a multiple of the number of worlds.
        seed: Decides the episodes; choose one that training did not use.
        blanked: Sensors that the policy does not get.
        on_episode: Called when an episode ends.

    Raises:
        EnvError: More than half of the episodes broke.
    """
    per_world = -(-episodes // env.num_envs)
    missing = np.full(env.num_envs, per_world)
    finished: list[FinishedEpisode] = []
    failed = 0
    player = Player(agent, env, blanked)
    player.reset(seed)
    while (missing > 0).any():
        _, _, _, ended, info = player.step()
        for world in np.flatnonzero(ended & (missing > 0)):
            episode = finished_episode(info, int(world))
            if episode.status is EpisodeStatus.ERROR:
                failed += 1
                _stop_if_hopeless(failed, episodes)
                continue
            finished.append(episode)
            missing[world] -= 1
            if on_episode is not None:
                on_episode()
    return EpisodeResults(tuple(finished), failed)


def _stop_if_hopeless(failed: int, episodes: int) -> None:
    if failed > MAX_FAILED_SHARE * max(episodes, 2):
        raise EnvError(
            f"{failed} episodes broke while {episodes} were wanted; the evaluation was stopped. The log says "
            f"what happened to the workers."
        )
