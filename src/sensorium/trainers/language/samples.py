"""Steps of episodes as training samples: exactly the tokens that were read and sampled."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import TrainingError
from sensorium.llm.local import LocalCompletion
from sensorium.rollouts.trajectory import Trajectory

_CERTAIN = 1e-6


class Sample(NamedTuple):
    """One answer, and what it was an answer to."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    """Tokens as they were sampled."""
    logprobs: tuple[float, ...]
    """Of the answer's tokens, under the model that sampled them."""
    counts: tuple[bool, ...]
    """Which tokens the model chose; one that its grammar left no choice about teaches nothing."""
    trajectory: int
    """Number of its episode in the batch."""
    step: int
    """Number of the step in its episode, from 0."""
    is_cut: bool
    """The limit of tokens ended the answer."""


class Batch(NamedTuple):
    """Samples side by side: prompts end, and answers begin, at the same place."""

    ids: Int[Tensor, "rows tokens"]
    attention: Bool[Tensor, "rows tokens"]
    mask: Bool[Tensor, "rows answer"]
    """Tokens of answers that count."""
    logprobs: Float[Tensor, "rows answer"]
    """Under the model that sampled them; 0 beside answers."""

    @property
    def answer_tokens(self) -> int:
        """Width of the answers."""
        return self.mask.shape[1]


def samples_of(trajectories: Sequence[Trajectory], *, temperature: float) -> list[Sample]:
    """One sample per step, in order.

    Args:
        trajectories: Collected with ``logprobs`` and ``return_token_ids``.
        temperature: At which tokens were drawn.

    Raises:
        TrainingError: A step lacks its tokens: its model does not tell them.
    """
    samples = []
    for number, trajectory in enumerate(trajectories):
        for place, step in enumerate(trajectory.steps):
            made = step.completion
            if not isinstance(made, LocalCompletion) or made.token_ids is None or made.logprobs is None:
                raise TrainingError(
                    f"Step {place} of task {trajectory.task.id} lacks the tokens that were sampled. Only a "
                    "local model tells them; train with one."
                )
            drawn = made.sampled_logprobs or made.logprobs
            free = [
                not (drew > -_CERTAIN and own < -_CERTAIN)
                for drew, own in zip(drawn, made.logprobs, strict=True)
            ]
            samples.append(
                Sample(
                    prompt=tuple(made.prompt_token_ids or ()),
                    answer=tuple(made.token_ids),
                    logprobs=tuple(made.logprobs if temperature == 1.0 else drawn),
                    counts=tuple(free),
                    trajectory=number,
                    step=place,
                    is_cut=made.finish_reason == "length",
                )
            )
    return samples


def as_batch(samples: Sequence[Sample], *, pad: int, device: torch.device) -> Batch:
    """Put samples side by side; prompts are padded on the left, answers on the right.

    Args:
        samples: At least one.
        pad: Token that stands where nothing is.
        device: Of the result.
    """
    left = max(len(sample.prompt) for sample in samples)
    right = max(1, max(len(sample.answer) for sample in samples))
    ids = torch.full((len(samples), left + right), pad, dtype=torch.long)
    attention = torch.zeros(len(samples), left + right, dtype=torch.bool)
    mask = torch.zeros(len(samples), right, dtype=torch.bool)
    logprobs = torch.zeros(len(samples), right)
    for row, sample in enumerate(samples):
        start, stop = left - len(sample.prompt), left + len(sample.answer)
        ids[row, start:stop] = torch.tensor(sample.prompt + sample.answer)
        attention[row, start:stop] = True
        mask[row, : len(sample.answer)] = torch.tensor(sample.counts, dtype=torch.bool)
        logprobs[row, : len(sample.answer)] = torch.tensor(sample.logprobs)
    return Batch(ids.to(device), attention.to(device), mask.to(device), logprobs.to(device))


def micro_batches(samples: Sequence[Sample], rows: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Rows in pieces of similar length, each of at most `max_tokens` padded tokens and at least one row."""
    ordered = sorted(rows, key=lambda row: (len(samples[row].prompt) + len(samples[row].answer), row))
    piece: list[int] = []
    left = right = 0
    for row in ordered:
        wide = max(left, len(samples[row].prompt)), max(right, len(samples[row].answer))
        if piece and sum(wide) * (len(piece) + 1) > max_tokens:
            yield piece
            piece, wide = [], (len(samples[row].prompt), len(samples[row].answer))
        piece.append(row)
        left, right = wide
    if piece:
        yield piece
