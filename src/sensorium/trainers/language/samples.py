"""Steps of episodes as training samples: exactly the tokens that were read and sampled."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import TrainingError
from sensorium.llm.local.requests import Picture, common_prefix
from sensorium.llm.local.vision import picture_digest
from sensorium.llm.messages import ImageBlock
from sensorium.rollouts.trajectory import Trajectory, TrajectoryStep

_CERTAIN = 1e-6
_LOOKING_BACK = 8


class Sample(NamedTuple):
    """One answer, and what it was an answer to."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    """Tokens as they were sampled."""
    logprobs: tuple[float, ...]
    """Of the answer's tokens, under the model that sampled them and at its temperature."""
    counts: tuple[bool, ...]
    """Which tokens the model chose; one that its grammar left no choice about teaches nothing."""
    trajectory: int
    """Number of its episode in the batch."""
    step: int
    """Number of the step in its episode, from 0."""
    is_cut: bool
    """The limit of tokens ended the answer."""
    version: int
    """Updates that the weights had seen which sampled it."""
    weights: tuple[float, ...] | None = None
    """Importance of the answer's tokens where other weights learn from it than sampled it; None: 1 each."""
    pictures: tuple[str, ...] = ()
    """Hashes of the pictures in the prompt, in their order."""


class Batch(NamedTuple):
    """Samples side by side: prompts end, and answers begin, at the same place."""

    ids: Int[Tensor, "rows tokens"]
    attention: Bool[Tensor, "rows tokens"]
    mask: Bool[Tensor, "rows answer"]
    """Tokens of answers that count."""
    logprobs: Float[Tensor, "rows answer"]
    """Under the model that sampled them; 0 beside answers."""
    weights: Float[Tensor, "rows answer"]
    """Importance of tokens; 1 beside answers."""
    pictures: tuple[tuple[Picture, ...], ...] = ()
    """In the prompt of each row; empty where no row has any."""

    @property
    def answer_tokens(self) -> int:
        """Width of the answers."""
        return self.mask.shape[1]


def samples_of(trajectories: Sequence[Trajectory], *, sees: bool = False) -> list[Sample]:
    """One sample per step, in order.

    Args:
        trajectories: Collected with ``logprobs`` and ``return_token_ids``.
        sees: Whether pictures of the prompts were shown to the model.

    Raises:
        TrainingError: A step lacks its tokens: its model does not tell them.
    """
    samples = []
    for number, trajectory in enumerate(trajectories):
        for place, step in enumerate(trajectory.steps):
            made = step.completion
            if made.token_ids is None or made.logprobs is None or made.prompt_token_ids is None:
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
                    prompt=made.prompt_token_ids,
                    answer=made.token_ids,
                    logprobs=made.tempered_logprobs or made.logprobs,
                    counts=tuple(free),
                    trajectory=number,
                    step=place,
                    is_cut=made.finish_reason == "length",
                    version=made.weights_version or 0,
                    pictures=tuple(map(picture_digest, _urls(step))) if sees else (),
                )
            )
    return samples


def pictures_of(trajectories: Sequence[Trajectory]) -> dict[str, str]:
    """Hash -> ``data:`` URL of all pictures that prompts show, each once."""
    urls = [url for trajectory in trajectories for step in trajectory.steps for url in _urls(step)]
    return {picture_digest(url): url for url in urls}


def _urls(step: TrajectoryStep) -> list[str]:
    """Of the pictures that a step's prompt shows, in their order."""
    return [block.url for one in step.prompt for block in one.content if isinstance(block, ImageBlock)]


def as_batch(
    samples: Sequence[Sample],
    *,
    pad: int,
    device: torch.device,
    pictures: Mapping[str, Picture] = MappingProxyType({}),
) -> Batch:
    """Put samples side by side; prompts are padded on the left, answers on the right.

    Args:
        samples: At least one.
        pad: Token that stands where nothing is.
        device: Of the result.
        pictures: Hash -> picture; all that the samples show.
    """
    left = max(len(sample.prompt) for sample in samples)
    right = max(1, max(len(sample.answer) for sample in samples))
    rows = [(one, left - len(one.prompt), right - len(one.answer)) for one in samples]
    ids = torch.tensor(
        [(pad,) * before + one.prompt + one.answer + (pad,) * after for one, before, after in rows]
    )
    mask = torch.tensor([one.counts + (False,) * after for one, _, after in rows], dtype=torch.bool)
    logprobs = torch.tensor([one.logprobs + (0.0,) * after for one, _, after in rows], dtype=torch.float32)
    places = torch.arange(left + right)
    begins = torch.tensor([before for _, before, _ in rows])[:, None]
    ends = torch.tensor([left + right - after for _, _, after in rows])[:, None]
    attention = (places >= begins) & (places < ends)
    weights = torch.ones(len(samples), right)
    for row, sample in enumerate(samples):
        if sample.weights is not None:
            weights[row, : len(sample.answer)] = torch.tensor(sample.weights)
    seen = tuple(tuple(pictures[digest] for digest in sample.pictures) for sample in samples)
    ids, attention, mask, logprobs, weights = (
        made.to(device) for made in (ids, attention, mask, logprobs, weights)
    )
    return Batch(ids, attention, mask, logprobs, weights, seen if any(seen) else ())


def micro_batches(
    samples: Sequence[Sample], rows: Sequence[int], max_tokens: int, *, share_prompts: bool = True
) -> Iterator[list[int]]:
    """Rows in pieces of similar length, samples of one prompt side by side.

    Args:
        samples: All there are.
        rows: Which of them.
        max_tokens: That go through the model at once, padding included; a piece has at least one row.
        share_prompts: Whether what prompts of a piece have in common goes through the model once
            (`shared_prompts`).
    """
    order = {row: (len(samples[row].prompt), samples[row].prompt, len(samples[row].answer)) for row in rows}
    piece: list[int] = []
    size = _NOTHING
    for row in sorted(rows, key=lambda row: (order[row], row)):
        grown = size.grown(samples[row])
        if piece and grown.tokens(share_prompts=share_prompts) > max_tokens:
            yield piece
            piece, grown = [], _NOTHING.grown(samples[row])
        piece.append(row)
        size = grown
    if piece:
        yield piece


class _Size(NamedTuple):
    """Of samples side by side, those of one prompt after one another."""

    rows: int = 0
    prompts: int = 0
    """Different ones."""
    least: tuple[int, ...] = ()
    greatest: tuple[int, ...] = ()
    """First and last prompt in the order of their tokens: what these two have in common, all have."""
    common: int = 0
    """Tokens that all prompts begin with."""
    latest: tuple[int, ...] = ()
    """Prompt of the last sample."""
    longest: int = 0
    widest: int = 0
    """Tokens of the longest answer."""

    def grown(self, sample: Sample) -> "_Size":
        """With one more sample."""
        prompt, widest = sample.prompt, max(self.widest, len(sample.answer))
        if self.rows and prompt == self.latest:
            return self._replace(rows=self.rows + 1, widest=widest)
        least, greatest = min(self.least, prompt) if self.rows else prompt, max(self.greatest, prompt)
        return _Size(
            rows=self.rows + 1,
            prompts=self.prompts + 1,
            least=least,
            greatest=greatest,
            common=common_prefix(least, greatest),
            latest=prompt,
            longest=max(self.longest, len(prompt)),
            widest=widest,
        )

    def tokens(self, *, share_prompts: bool) -> int:
        """That go through the model, padding included.

        Where prompts are shared, an eighth of what answers look back at is added: keys and values of a prompt
        are there once for each answer, and take about an eighth of the memory of all that a token leaves
        behind for the gradient.
        """
        if not share_prompts:
            return self.rows * (self.longest + self.widest)
        own = self.common + self.prompts * (self.longest - self.common) + self.rows * self.widest
        return own + self.rows * self.longest // _LOOKING_BACK


_NOTHING = _Size()
