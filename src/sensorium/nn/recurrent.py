"""An LSTM over whole sequences that forgets at episode starts, without a loop over time."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class LSTMState(NamedTuple):
    """Hidden and cell state of each sequence."""

    hidden: Float[Tensor, "batch hidden"]
    cell: Float[Tensor, "batch hidden"]


class SegmentLSTM(nn.Module):
    """`nn.LSTM` whose state is zeroed wherever an episode starts.

    Each sequence is cut at its episode starts; the pieces, padded, go through one `nn.LSTM` call.

    Args:
        input_dim: Width of the input.
        hidden_dim: Width of the state and of the output.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.lstm = nn.LSTM(input_dim, hidden_dim)
        for name, parameter in self.lstm.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter)

    def initial_state(self, batch: int, device: torch.device) -> LSTMState:
        """Zeros, (batch, hidden) each."""
        zeros = torch.zeros(batch, self.hidden_dim, device=device)
        return LSTMState(zeros, zeros)

    def step(
        self, x: Float[Tensor, "batch input"], state: LSTMState, starts: Bool[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch hidden"], LSTMState]:
        """Advance one step; the state of rows that start an episode is zeroed first."""
        before = (_kept(state.hidden, ~starts)[None], _kept(state.cell, ~starts)[None])
        y, (hidden, cell) = self.lstm(x.unsqueeze(0), before)
        return y.squeeze(0), LSTMState(hidden.squeeze(0), cell.squeeze(0))

    def forward(
        self,
        x: Float[Tensor, "time batch input"],
        state: LSTMState,
        starts: Bool[Tensor, "time batch"],
    ) -> Float[Tensor, "time batch hidden"]:
        """Run whole sequences.

        Args:
            x: Inputs, time first.
            state: State before the first step.
            starts: True where a step is the first of its episode.
        """
        time, batch, _ = x.shape
        first = starts.clone()
        first[0] = True  # every sequence begins with a piece, fresh or carried over
        piece = first.t().reshape(-1).cumsum(0) - 1  # piece of each (sequence, time), sequence-major
        step_of_piece = first.t().reshape(-1).nonzero().squeeze(-1)
        position = torch.arange(batch * time, device=x.device) - step_of_piece[piece]
        num_pieces, longest = len(step_of_piece), int(position.max()) + 1
        padded = x.new_zeros(longest, num_pieces, x.shape[-1])
        padded[position, piece] = x.transpose(0, 1).reshape(batch * time, -1)
        sequence = torch.div(step_of_piece, time, rounding_mode="floor")
        carried = (step_of_piece % time == 0) & ~starts[0, sequence]
        before = (_kept(state.hidden[sequence], carried)[None], _kept(state.cell[sequence], carried)[None])
        y: Tensor = self.lstm(padded, before)[0]
        return y[position, piece].reshape(batch, time, -1).transpose(0, 1)


def _kept(
    state: Float[Tensor, "batch hidden"], keep: Bool[Tensor, " batch"]
) -> Float[Tensor, "batch hidden"]:
    """Zero where not kept. Chosen, not multiplied: NaN times 0 is NaN, and would outlive its episode."""
    return torch.where(keep.unsqueeze(-1), state, torch.zeros_like(state))
