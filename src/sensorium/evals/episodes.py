"""Judging a policy: many worlds, a fixed number of episodes each, unseen seeds, the likeliest actions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sensorium.core import EnvError, EpisodeStatus, derive_seed
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.evals.faults import Fault, FaultInjector
from sensorium.evals.gates import FaultRecord, GateTrace
from sensorium.evals.noise import noise_scales
from sensorium.nn import Tokens
from sensorium.representations.tensors import MAX_TABLE_ROWS, TensorObservation
from sensorium.rollouts.embodied import FinishedEpisode, env_action, finished_episode
from sensorium.rollouts.embodied.table_tokens import TableTokens
from sensorium.trainers.build import Agent

MAX_FAILED_SHARE = 0.5
"""Share of broken episodes above which an evaluation means nothing and stops."""


@dataclass(frozen=True, slots=True)
class EpisodeResults:
    """Episodes with an outcome; those that an engine failure ended are only counted."""

    finished: tuple[FinishedEpisode, ...]
    failed: int
    faults: tuple[FaultRecord, ...] = ()
    """What the fault did in each episode of `finished`, same order; empty when there was none."""

    @property
    def successes(self) -> int:
        """Number of solved episodes."""
        return sum(episode.status is EpisodeStatus.SUCCESS for episode in self.finished)

    @property
    def mean_return(self) -> float:
        """Mean undiscounted return."""
        return float(np.mean([episode.episode_return for episode in self.finished]))


class Player:
    """Acts in a vector environment, one step at a time: deterministically, or as it did in training.

    Args:
        agent: Policy and representer.
        env: The worlds.
        blanked: Sensors that the policy does not get, in all episodes.
        fault: A sensor fault that strikes in every episode.
        sampled: Whether actions are drawn, as in training; the seed of `reset` decides them.

    Raises:
        ConfigError: The fault names a sensor that is not there.
    """

    gates: np.ndarray
    """(N, sensors) gates of the fusion at the latest step."""

    def __init__(
        self,
        agent: Agent,
        env: MultiModalVectorEnv,
        blanked: frozenset[str] = frozenset(),
        fault: Fault | None = None,
        *,
        sampled: bool = False,
    ) -> None:
        self.agent = agent
        self.sampled = sampled
        self.env = env
        self.blanked = blanked
        self.fault = fault
        self.faults: FaultInjector | None = None
        self._order = agent.policy.perception.names
        self._hz = env.worlds.backend.control_hz
        if fault is not None:
            self._make_injector(fault, 0)  # here, so that an unknown sensor is said before anything runs

    def reset(self, seed: int) -> Mapping[str, Any]:
        """Start new episodes everywhere; returns the observation, as it is without a fault."""
        self.agent.representer.forget()
        self._draws = torch.Generator().manual_seed(derive_seed(seed, "evaluated actions"))
        self._table_tokens = TableTokens(self.agent.policy)
        self._state = self.agent.policy.initial_state(self.env.num_envs)
        self._starts = np.ones(self.env.num_envs, np.bool_)
        self._steps = np.zeros(self.env.num_envs, np.int64)
        if self.fault is not None:
            self.faults = self._make_injector(self.fault, seed)
            former: list[int | None] = [
                derive_seed(seed + world, "former episode") >> 1 for world in range(self.env.num_envs)
            ]
            self.faults.remember(self.env.reset(seed=former)[0])
        self.observation, info = self.env.reset(seed=seed)
        self._episode_seeds = info["episode_seed"]
        self._ended = np.zeros(self.env.num_envs, np.bool_)
        return self.observation

    def _make_injector(self, fault: Fault, seed: int) -> FaultInjector:
        sensors = self.env.worlds.sensors
        noise = noise_scales(sensors, self.agent.policy)
        return FaultInjector(fault, sensors, noise, derive_seed(seed, "faults"))

    @torch.no_grad()
    def step(self) -> tuple[Any, torch.Tensor, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act once in every world.

        Returns:
            The actions, the critic's values, rewards, which worlds' episodes ended, and the info.
        """
        representation = self._represent()
        step = self.agent.policy.step(
            representation,
            self._state,
            torch.from_numpy(self._starts).to(self.agent.device),
            self._encode_tables(representation),
        )
        self._state = step.state
        self.gates = step.fused.gates.cpu().numpy()
        chosen = step.distribution.draw(self._draws) if self.sampled else step.distribution.mode()
        actions = env_action(chosen, self.env)
        self.observation, reward, terminated, truncated, info = self.env.step(actions)
        self._starts, self._ended = self._ended, terminated | truncated
        self._steps, self._episode_seeds = info["episode_length"], info["episode_seed"]
        return actions, step.values, reward, self._ended, info

    def _represent(self) -> TensorObservation:
        observation, lookups = self.observation, self._starts
        if self.faults is not None:
            observation = self.faults(observation, self._steps, self._starts, self._episode_seeds)
            lookups = self.faults.changed
        now_s = (self._steps / self._hz).astype(np.float32)
        representation = self.agent.representer(observation, now_s, lookups)
        return representation.blank(self.blanked, self._order) if self.blanked else representation

    def _encode_tables(self, observation: TensorObservation) -> Mapping[str, Tokens]:
        """Tokens of every table row; rows are forgotten when there are many."""
        tokens = self._table_tokens(observation.tables)
        if any(len(table.values) > MAX_TABLE_ROWS for table in observation.tables.values()):
            self.agent.representer.forget()
            self._table_tokens.forget()
        return tokens


def play_episodes(
    agent: Agent,
    env: MultiModalVectorEnv,
    *,
    episodes: int,
    seed: int,
    blanked: frozenset[str] = frozenset(),
    fault: Fault | None = None,
    sampled: bool = False,
    on_episode: Callable[[], None] | None = None,
) -> EpisodeResults:
    """Play at least `episodes` episodes, equally many in every world, so that short ones have no advantage.

    Args:
        agent: Policy and representer.
        env: The worlds.
        episodes: Wanted number; rounded up to a multiple of the number of worlds.
        seed: Decides the episodes and faults; choose one that training did not use.
        blanked: Sensors that the policy does not get, in all episodes.
        fault: A sensor fault that strikes in every episode.
        sampled: Whether actions are drawn, as in training, instead of the likeliest ones.
        on_episode: Called when an episode ends.

    Raises:
        EnvError: More than half of the episodes broke.
        ConfigError: The fault names a sensor that is not there.
    """
    missing = np.full(env.num_envs, -(-episodes // env.num_envs))
    finished: list[FinishedEpisode] = []
    records: list[FaultRecord] = []
    failed = 0
    player = Player(agent, env, blanked, fault, sampled=sampled)
    player.reset(seed)
    trace = GateTrace(env.num_envs, len(agent.policy.perception.names))
    acting = np.ones(env.num_envs, np.bool_)
    while (missing > 0).any():
        _, _, _, ended, info = player.step()
        if player.faults is not None:
            trace.add(player.gates, acting & player.faults.before, acting & player.faults.active)
        acting = ~ended
        for world in np.flatnonzero(ended):
            episode = finished_episode(info, int(world))
            record = _record(trace, player, int(world), episode)
            if missing[world] == 0:
                continue
            if episode.status is EpisodeStatus.ERROR:
                failed += 1
                _stop_if_hopeless(failed, episodes)
                continue
            finished.append(episode)
            records += [record] if record is not None else []
            missing[world] -= 1
            if on_episode is not None:
                on_episode()
    return EpisodeResults(tuple(finished), failed, tuple(records))


def _record(trace: GateTrace, player: Player, world: int, episode: FinishedEpisode) -> FaultRecord | None:
    if player.faults is None:
        return None
    return trace.close(world, seed=episode.seed, onset=int(player.faults.onset[world]))


def _stop_if_hopeless(failed: int, episodes: int) -> None:
    if failed > MAX_FAILED_SHARE * max(episodes, 2):
        raise EnvError(
            f"{failed} episodes broke while {episodes} were wanted; the evaluation was stopped. The log says "
            f"what happened to the workers."
        )
