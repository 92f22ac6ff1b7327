"""A request to the engine and what comes of it; nothing here needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ModelError
from sensorium.llm.base import Completion


class QueueFullError(ModelError):
    """As many requests wait as are allowed to; the same request may be sent again later."""


class ModelClosedError(ModelError):
    """The model was closed before it answered."""


class RequestError(ModelError):
    """A request cannot be met as it is: a setting of sampling, a schema or a tool does not fit."""


class PictureError(RequestError):
    """A picture cannot be read, or pictures and their places in a prompt do not match."""


class Picture(NamedTuple):
    """A picture, ready for a model that sees."""

    digest: str
    """Hash of its content."""
    image: Any
    """As PIL reads it."""
    inputs: Mapping[str, Any]
    """Name -> tensor: what the model takes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are chosen; validated by `read_options`."""

    temperature: float = 1.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    """Only the likeliest tokens that have this probability together are drawn from."""
    top_k: int = 0
    """Only so many likeliest tokens are drawn from; 0: all."""
    seed: int | None = None
    """Of this request's own generator; None: a random one."""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Texts before which an answer ends; not looked for inside constrained parts."""
    logprobs: bool = False
    top_logprobs: int = 0
    """Likeliest tokens told at each place."""
    return_token_ids: bool = False


@runtime_checkable
class Guide(Protocol):
    """Which tokens may come next."""

    @property
    def is_free(self) -> bool:
        """Whether any token may come."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete."""
        ...

    def mask(self) -> NDArray[np.bool_] | None:
        """Which tokens may come, (vocabulary,); None: any."""
        ...

    def accept(self, token: int, remaining: int) -> int:
        """Go on by a token.

        Args:
            token: One that `mask` allows.
            remaining: Tokens that may follow it.

        Returns:
            The token, or the one that has to be taken instead so that the answer can still be completed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the engine is asked for."""

    prompt: tuple[int, ...]
    """Token ids, at least one."""
    sampling: Sampling = Sampling()
    guide: Guide | None = None
    """At its beginning, or after `said`."""
    pictures: tuple[Picture, ...] = ()
    """That the placeholders in the prompt stand for, in their order."""
    said: tuple[int, ...] = ()
    """Tokens that the answer begins with in any case: they are read with the prompt, but count as the
    answer's. They have no log-probabilities."""

    @property
    def is_plain(self) -> bool:
        """Whether tokens are drawn from the model's own distribution, nothing changed or cut."""
        sampling = self.sampling
        whole = sampling.temperature == 1.0 and sampling.top_p == 1.0 and sampling.top_k == 0
        return whole and self.guide is None


@dataclass(slots=True, kw_only=True)
class Generation:
    """What the engine answers."""

    token_ids: list[int] = field(default_factory=list)
    """Exactly the tokens that were sampled, a mark of the end included."""
    text: str = ""
    """Without special tokens, and without the stop text and what follows it."""
    finish_reason: str = "stop"
    """``stop`` or ``length``."""
    logprobs: list[float] = field(default_factory=list)
    """Of the model's own distribution, see `LocalCompletion`."""
    tempered_logprobs: list[float] = field(default_factory=list)
    sampled_logprobs: list[float] = field(default_factory=list)
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)
    seed: int = 0
    weights_version: int = 0
    reused_tokens: int = 0
    """Tokens of the prompt whose keys and values were there already."""


class LocalCompletion(Completion):
    """An answer of a model in this process.

    ``logprobs`` are those of the model's own distribution: log-softmax of its logits, at temperature 1,
    without truncation and constraints, as a plain forward pass over the same tokens gives them. Tokens are
    told when ``return_token_ids`` was asked for, those of the answer also with ``logprobs``;
    `weights_version` is the engine's.
    """

    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] | None = None
    """For each token of the answer the likeliest (token id, logprob), likeliest first."""
    seed: int = 0
    """Which the tokens were drawn with: the one asked for, or a random one."""
    reused_tokens: int = 0
    """Tokens of the prompt that had not to be read again."""


def common_prefix(first: Sequence[int] | NDArray[np.int64], second: Sequence[int] | NDArray[np.int64]) -> int:
    """How many tokens two sequences share at their beginning."""
    length = min(len(first), len(second))
    differs = np.nonzero(np.asarray(first[:length]) != np.asarray(second[:length]))[0]
    return int(differs[0]) if len(differs) else length
