"""What a recurrent policy carries between steps, and a batch of whole sequences."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.nn.recurrent import LSTMState
from sensorium.representations.tensors import TableRows


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """Memory of each world: LSTM state, the last frames of clip encoders, steps since the episode began."""

    lstm: LSTMState
    clips: Mapping[str, Tensor]
    """Sensor -> (batch, num_frames - 1, ...) latest frames, oldest first, in the sensor's dtype."""
    steps: Int[Tensor, " batch"]
    """Steps since the first of the running episode."""

    def select(self, rows: Int[Tensor, " some"]) -> "PolicyState":
        """Memory of some worlds."""
        return PolicyState(
            lstm=LSTMState(self.lstm.hidden[rows], self.lstm.cell[rows]),
            clips={name: clip[rows] for name, clip in self.clips.items()},
            steps=self.steps[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceBatch:
    """Whole sequences of several worlds, time first."""

    dense: Mapping[str, Tensor]
    """Sensor -> (time, batch, ...), each frame stored once."""
    rows: Mapping[str, Int[Tensor, "time batch"]]
    tables: Mapping[str, TableRows]
    present: Bool[Tensor, "time batch sensors"]
    age_s: Float[Tensor, "time batch sensors"]
    starts: Bool[Tensor, "time batch"]
    """True where a step is the first of its episode."""
    state: PolicyState
    """Memory before the first step."""

    def head(self, count: int) -> "SequenceBatch":
        """The first `count` sequences, as views."""
        return SequenceBatch(
            dense={name: reading[:, :count] for name, reading in self.dense.items()},
            rows={name: rows[:, :count] for name, rows in self.rows.items()},
            tables=self.tables,
            present=self.present[:, :count],
            age_s=self.age_s[:, :count],
            starts=self.starts[:, :count],
            state=self.state.select(torch.arange(count, device=self.starts.device)),
        )


def steps_since_start(
    starts: Bool[Tensor, "time batch"], before: Int[Tensor, " batch"]
) -> Int[Tensor, "time batch"]:
    """Steps since the first of the running episode, at each step.

    Args:
        starts: True where a step is the first of its episode.
        before: The same count at the step before the first row.

    Example:
        >>> steps_since_start(torch.tensor([[False], [True], [False]]), torch.tensor([4])).squeeze(-1)
        tensor([5, 0, 1])
    """
    time = torch.arange(len(starts), device=starts.device).unsqueeze(-1).expand_as(starts)
    last_start = torch.where(starts, time, -1).cummax(0).values
    return torch.where(last_start >= 0, time - last_start, before + 1 + time)
