"""The record of one round of collection: N worlds for T steps, each observation stored once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import EpisodeStatus
from sensorium.policies.embodied import ActionBatch, ActionDistribution, PolicyState, SequenceBatch
from sensorium.representations.tensors import TableRows, TensorObservation


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEpisode:
    """An episode that ended during collection."""

    status: EpisodeStatus
    episode_return: float
    length: int
    """Steps."""
    seed: int
    stage: int = 0
    """Stage of the curriculum that it was played at."""


@dataclass(slots=True, kw_only=True)
class Rollout:
    """T steps in N worlds; time first, dtypes as the sensors have them."""

    dense: dict[str, Tensor]
    """Sensor -> (time, env, ...)."""
    rows: dict[str, Int[Tensor, "time env"]]
    tables: Mapping[str, TableRows]
    present: Bool[Tensor, "time env sensors"]
    age_s: Float[Tensor, "time env sensors"]
    starts: Bool[Tensor, "time env"]
    state: PolicyState
    """Memory before the first step."""
    discrete: Int[Tensor, "time env"] | None
    continuous: Float[Tensor, "time env dims"] | None
    logits: Float[Tensor, "time env options"] | None
    mean: Float[Tensor, "time env dims"] | None
    log_std: Float[Tensor, "time env dims"] | None
    logprobs: Float[Tensor, "time env"]
    values: Float[Tensor, "time+1 env"]
    rewards: Float[Tensor, "time env"]
    terminated: Bool[Tensor, "time env"]
    ended: Bool[Tensor, "time env"]
    valid: Bool[Tensor, "time env"]
    """False where a world was being reset or had broken: such steps are never trained on."""
    solved: Bool[Tensor, "time env"]
    """The episode ended with success at this step."""
    violated: Bool[Tensor, "time env"]
    """The step was unsafe, as the task defines it."""
    violations: Int[Tensor, "time env"]
    """Violations of the episode so far, this step included."""
    episode_steps: Int[Tensor, "time env"]
    """Steps of the episode so far, this one included."""
    max_episode_steps: int
    """Length of the longest episode."""
    episodes: list[FinishedEpisode]

    @classmethod
    def allocate(
        cls,
        num_steps: int,
        observation: TensorObservation,
        distribution: ActionDistribution,
        action: ActionBatch,
        state: PolicyState,
        *,
        max_episode_steps: int,
    ) -> "Rollout":
        """Make room for `num_steps` steps shaped like the given ones."""
        num_envs = len(observation.present)
        device = observation.present.device

        def room(like: Tensor) -> Tensor:
            return torch.empty(num_steps, *like.shape, dtype=like.dtype, device=like.device)

        def scalars(dtype: torch.dtype, extra: int = 0) -> Tensor:
            return torch.zeros(num_steps + extra, num_envs, dtype=dtype, device=device)

        return cls(
            dense={name: room(reading) for name, reading in observation.dense.items()},
            rows={name: room(rows) for name, rows in observation.rows.items()},
            tables=observation.tables,
            present=room(observation.present),
            age_s=room(observation.age_s),
            starts=scalars(torch.bool),
            state=state,
            discrete=None if action.discrete is None else room(action.discrete),
            continuous=None if action.continuous is None else room(action.continuous),
            logits=None if distribution.logits is None else room(distribution.logits),
            mean=None if distribution.mean is None else room(distribution.mean),
            log_std=None if distribution.log_std is None else room(distribution.log_std),
            logprobs=scalars(torch.float32),
            values=scalars(torch.float32, extra=1),
            rewards=scalars(torch.float32),
            terminated=scalars(torch.bool),
            ended=scalars(torch.bool),
            valid=scalars(torch.bool),
            solved=scalars(torch.bool),
            violated=scalars(torch.bool),
            violations=scalars(torch.int64),
            episode_steps=scalars(torch.int64),
            max_episode_steps=max_episode_steps,
            episodes=[],
        )

    def record_observation(self, t: int, observation: TensorObservation, starts: Tensor) -> None:
        """Store what was perceived at step t."""
        for name, reading in observation.dense.items():
            self.dense[name][t] = reading
        for name, rows in observation.rows.items():
            self.rows[name][t] = rows
        self.tables = observation.tables
        self.present[t] = observation.present
        self.age_s[t] = observation.age_s
        self.starts[t] = starts

    def record_action(
        self, t: int, action: ActionBatch, distribution: ActionDistribution, values: Tensor
    ) -> None:
        """Store what was done at step t, and under which distribution."""
        pairs = (
            (self.discrete, action.discrete),
            (self.continuous, action.continuous),
            (self.logits, distribution.logits),
            (self.mean, distribution.mean),
            (self.log_std, distribution.log_std),
        )
        for store, value in pairs:
            if store is not None and value is not None:
                store[t] = value
        self.logprobs[t] = distribution.logprobs(action)
        self.values[t] = values

    def sequences(self, envs: Int[Tensor, " some"]) -> SequenceBatch:
        """Whole sequences of some worlds, as the policy reads them; tables hold only the rows they use."""
        rows: dict[str, Tensor] = {}
        tables: dict[str, TableRows] = {}
        for name, table in self.tables.items():
            used, rows[name] = torch.unique(self.rows[name][:, envs], return_inverse=True)
            tables[name] = TableRows(table.values[used], table.mask[used])
        return SequenceBatch(
            # index_select copies whole readings, indexing copies single elements.
            dense={name: reading.index_select(1, envs) for name, reading in self.dense.items()},
            rows=rows,
            tables=tables,
            present=self.present[:, envs],
            age_s=self.age_s[:, envs],
            starts=self.starts[:, envs],
            state=self.state.select(envs),
        )

    def actions(self, envs: Int[Tensor, " some"]) -> ActionBatch:
        """Actions of some worlds, (time, env) flattened, time first."""
        return ActionBatch(_rows(self.discrete, envs), _rows(self.continuous, envs))

    def distribution(self, envs: Int[Tensor, " some"], like: ActionDistribution) -> ActionDistribution:
        """The distribution that acted, (time, env) flattened; the parameter mask is taken from `like`."""
        return ActionDistribution(
            _rows(self.logits, envs), _rows(self.mean, envs), _rows(self.log_std, envs), like.parameter_mask
        )

    @property
    def num_valid(self) -> int:
        """Number of steps that an agent really took."""
        return int(self.valid.sum())

    def success_rate(self) -> float:
        """Share of solved episodes among those with an outcome; NaN without any."""
        outcomes = [e.status for e in self.episodes if e.status is not EpisodeStatus.ERROR]
        return float(np.mean([s is EpisodeStatus.SUCCESS for s in outcomes])) if outcomes else float("nan")


def _rows(stored: Tensor | None, envs: Tensor) -> Tensor | None:
    return None if stored is None else stored[:, envs].flatten(0, 1)
