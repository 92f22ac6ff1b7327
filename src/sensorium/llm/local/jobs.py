"""One request on its way through the engine."""

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ModelError
from sensorium.llm.local.requests import Generation, Request

if TYPE_CHECKING:
    from sensorium.llm.local.key_values import KeyValueRows

_SEEDS = 2**63
_MARGIN_TOKENS = 12
"""A stop text may begin in the middle of a token, and a character may take several tokens."""


@runtime_checkable
class Vocabulary(Protocol):
    """What the engine needs of a tokenizer."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens, special ones left out."""
        ...


class Choice(NamedTuple):
    """How one request chooses."""

    temperature: float
    top_k: int
    top_p: float
    uniform: float
    """In [0, 1); unused at temperature 0."""
    mask: NDArray[np.bool_] | None
    """Tokens that may come, (vocabulary of the tokenizer,); None: any."""


class TokenTold(NamedTuple):
    """Log-probabilities of a token that was taken."""

    own: float
    """Under the model's own distribution."""
    tempered: float
    """At the temperature of its request, nothing cut or masked; as `own` where that is 0."""
    drawn: float
    """Under the distribution that was drawn from."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request, and what has been sampled of its answer."""

    request: Request
    limit: int
    """Tokens that the answer may have."""
    is_cancelled: bool = False
    """Nobody waits for the answer any more."""
    generation: Generation = field(default_factory=Generation)
    rng: np.random.Generator = field(init=False)
    reads: tuple[int, ...] = field(init=False)
    """Tokens that are read before the first is sampled: the prompt, and what is said in any case."""
    identity: NDArray[np.int64] = field(init=False)
    """As `reads`, but negative where pictures stand: equal only where the same is read."""
    key: bytes = field(init=False)
    """Of `reads` and of pictures: the same where the same is read."""
    embeddings: Any = None
    """Of `reads`, (tokens, width), where pictures are among them."""
    num_read: int = 0
    """How many of them have their keys and values."""
    own: "KeyValueRows | None" = None
    """Keys and values while the prompt is read."""
    failure: Exception | None = None
    is_done: bool = False

    def __post_init__(self) -> None:
        self.reads = self.request.prompt + self.request.said
        self.identity = np.asarray(self.reads, dtype=np.int64)
        digests = "".join(picture.digest for picture in self.request.pictures)
        self.key = self.identity.tobytes() + digests.encode()
        self.generation.token_ids += self.request.said
        seed = self.request.sampling.seed
        self.generation.seed = secrets.randbelow(_SEEDS) if seed is None else seed
        self.rng = np.random.default_rng(self.generation.seed % 2**128)  # negative seeds are fine, too

    @property
    def remaining(self) -> int:
        """Tokens that may still be sampled."""
        return self.limit - len(self.generation.token_ids)

    @property
    def fed(self) -> NDArray[np.int64]:
        """Tokens whose keys and values are there: prompt and answer, but for the last token sampled."""
        if len(self.generation.token_ids) == len(self.request.said):
            return self.identity[: self.num_read]
        prompt = self.identity[: len(self.request.prompt)]
        return np.concatenate((prompt, np.asarray(self.generation.token_ids[:-1], dtype=np.int64)))

    def choice(self) -> Choice:
        """How the next token is chosen; draws the next random number unless there is nothing to choose.

        Raises:
            ModelError: The constraint leaves no token.
        """
        sampling, guide = self.request.sampling, self.request.guide
        mask, is_open = None, sampling.temperature > 0
        if guide is not None and (mask := guide.mask()) is not None:
            num_allowed = int(mask.sum())
            if num_allowed == 0:
                raise ModelError("The constraint of this answer leaves no token that may come next.")
            is_open = is_open and num_allowed > 1
        uniform = float(self.rng.random()) if is_open else 0.0
        return Choice(sampling.temperature, sampling.top_k, sampling.top_p, uniform, mask)

    def take(self, token: int, vocabulary: Vocabulary) -> None:
        """Add a token to the answer, and end it where that is due."""
        generation, guide = self.generation, self.request.guide
        generation.token_ids.append(token)
        if token in vocabulary.end_ids:
            self._end("stop", vocabulary.decode(generation.token_ids[:-1]))
        elif guide is not None and guide.is_finished:
            self._end("stop", vocabulary.decode(generation.token_ids))
        elif (guide is None or guide.is_free) and self._is_stopped(vocabulary):
            text = vocabulary.decode(generation.token_ids)
            places = [text.find(stop) for stop in self.request.sampling.stop]
            self._end("stop", text[: min(place for place in places if place >= 0)])
        elif self.remaining <= 0:
            self._end("length", vocabulary.decode(generation.token_ids))

    def note(self, told: TokenTold, was_forced: bool) -> None:
        """Note the log-probabilities of the token that is taken next.

        Args:
            told: Of it.
            was_forced: Whether another token had been drawn, but this one was the only one left.
        """
        self.generation.logprobs.append(told.own)
        self.generation.tempered_logprobs.append(told.tempered)
        self.generation.sampled_logprobs.append(0.0 if was_forced else told.drawn)

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self.failure, self.is_done = error, True

    def _end(self, reason: str, text: str) -> None:
        self.generation.finish_reason, self.generation.text, self.is_done = reason, text, True

    def _is_stopped(self, vocabulary: Vocabulary) -> bool:
        stops = self.request.sampling.stop
        if not stops:
            return False
        length = max(len(stop.encode()) for stop in stops) + _MARGIN_TOKENS  # every token has a byte at least
        tail = vocabulary.decode(self.generation.token_ids[-length:])
        if not any(stop in tail for stop in stops):
            return False
        text = vocabulary.decode(self.generation.token_ids)
        return any(stop in text for stop in stops)
