"""Acting in many worlds at once, and writing down what happened."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sensorium.core import ActionKind, EpisodeStatus
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.policies.embodied import ActionBatch, ActorCritic, PolicyStep
from sensorium.representations.tensors import TensorObservation, TensorRepresenter
from sensorium.rollouts.embodied.rollout import FinishedEpisode, Rollout
from sensorium.rollouts.embodied.table_tokens import TableTokens


class Collector:
    """Steps a vector environment with a policy; keeps observation and memory between rounds.

    Args:
        env: The worlds.
        policy: Chooses actions.
        representer: Turns observations into tensors.
        generator: Source of the actions' randomness.
    """

    def __init__(
        self,
        env: MultiModalVectorEnv,
        policy: ActorCritic,
        representer: TensorRepresenter,
        generator: torch.Generator,
    ) -> None:
        self.env = env
        self.policy = policy
        self.representer = representer
        self.generator = generator
        self._observation: dict[str, Any] | None = None
        self._now_s = np.zeros(env.num_envs, np.float32)
        self._starts = np.ones(env.num_envs, np.bool_)
        self._ended = np.zeros(env.num_envs, np.bool_)
        self._state = policy.initial_state(env.num_envs)
        self._table_tokens = TableTokens(policy)

    def restart(self, seed: int) -> None:
        """Start new episodes everywhere; what follows depends on `seed`, the policy and the generator."""
        self._observation, _ = self.env.reset(seed=seed)
        self._now_s = np.zeros(self.env.num_envs, np.float32)
        self._starts = np.ones(self.env.num_envs, np.bool_)
        self._ended = np.zeros(self.env.num_envs, np.bool_)
        self._state = self.policy.initial_state(self.env.num_envs)
        self.representer.forget()  # the order of table rows must not depend on what was before

    @torch.no_grad()
    def collect(self, num_steps: int) -> Rollout:
        """Act for `num_steps` steps in every world. Call `restart` once before."""
        self.representer.trim()
        self._table_tokens.forget()  # the policy has changed since they were encoded
        rollout: Rollout | None = None
        before = self._state
        for t in range(num_steps):
            observation, step = self._perceive()
            action = step.distribution.draw(self.generator)
            if rollout is None:
                rollout = Rollout.allocate(
                    num_steps,
                    observation,
                    step.distribution,
                    action,
                    before,
                    max_episode_steps=self.env.config.max_episode_steps,
                )
            rollout.record_observation(t, observation, torch.from_numpy(self._starts.copy()))
            rollout.record_action(t, action, step.distribution, step.values)
            self._state = step.state
            self._advance(rollout, t, action)
        assert rollout is not None, "num_steps is at least 1"
        _, step = self._perceive()
        rollout.values[num_steps] = step.values
        return rollout

    def _perceive(self) -> tuple[TensorObservation, PolicyStep]:
        assert self._observation is not None, "restart() comes first"
        observation = self.representer(self._observation, self._now_s, self._starts)
        starts = torch.from_numpy(self._starts).to(observation.present.device)
        tokens = self._table_tokens(observation.tables)
        return observation, self.policy.step(observation, self._state, starts, tokens)

    def _advance(self, rollout: Rollout, t: int, action: ActionBatch) -> None:
        resetting = self._ended
        observation, reward, terminated, truncated, info = self.env.step(env_action(action, self.env))
        failed = info["status"] == EpisodeStatus.ERROR.value
        ended = terminated | truncated
        rollout.rewards[t] = torch.from_numpy(reward)
        rollout.terminated[t] = torch.from_numpy(terminated)
        rollout.ended[t] = torch.from_numpy(ended)
        rollout.valid[t] = torch.from_numpy(~resetting & ~failed)
        rollout.solved[t] = torch.from_numpy(info["status"] == EpisodeStatus.SUCCESS.value)
        rollout.violated[t] = torch.from_numpy(info["violated"])
        rollout.violations[t] = torch.from_numpy(info["episode_violations"])
        rollout.episode_steps[t] = torch.from_numpy(info["episode_length"])
        for world in np.flatnonzero(ended):
            rollout.episodes.append(finished_episode(info, int(world)))
        self._observation = observation
        self._now_s = (info["episode_length"] / self.env.worlds.backend.control_hz).astype(np.float32)
        self._starts = resetting
        self._ended = ended


def finished_episode(info: Mapping[str, Any], world: int) -> FinishedEpisode:
    """Read an episode's outcome from a vector environment's info."""
    return FinishedEpisode(
        status=EpisodeStatus(str(info["status"][world])),
        episode_return=float(info["episode_return"][world]),
        length=int(info["episode_length"][world]),
        seed=int(info["episode_seed"][world]),
        stage=int(info["stage"][world]),
    )


def env_action(action: ActionBatch, env: MultiModalVectorEnv) -> Any:
    """A policy's actions in the shape that the environment's action space has."""
    kind = env.worlds.action.kind
    discrete, continuous = _numpy(action.discrete), _numpy(action.continuous)
    if kind is ActionKind.DISCRETE:
        return discrete
    if kind is ActionKind.CONTINUOUS:
        return continuous
    return {"discrete": discrete, "continuous": continuous}


def _numpy(x: Tensor | None) -> Any:
    return None if x is None else x.cpu().numpy()
