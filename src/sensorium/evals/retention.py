"""How much of what was in the raw state the language model is still told."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from sensorium.evals.facts import Fact, is_retained
from sensorium.features.extractors.sentence import Sentence
from sensorium.representations.base import Representation

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class Retention(BaseModel):
    """What became of planted facts."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", use_attribute_docstrings=True
    )

    planted: int
    retained: int
    by_kind: dict[str, float] = Field(default_factory=dict)
    """Kind of fact -> share of its facts that is still there."""
    lost: tuple[Fact, ...] = ()
    similarity: float | None = None
    """Cosine of the embeddings of the full text and of what was sent; None when it was not asked for."""

    @property
    def share(self) -> float:
        """Share of the facts that is still there, in [0, 1]; 1 when none were planted."""
        return self.retained / self.planted if self.planted else 1.0


def measure_retention(
    facts: Sequence[Fact],
    shown: Representation | str,
    *,
    full_text: str | None = None,
    embed: Embed | None = None,
    window: int | None = None,
) -> Retention:
    """Look for planted facts in a representation, and compare it with the full text where that is given.

    Args:
        facts: Planted facts.
        shown: The representation, or what it says.
        full_text: The raw state as text.
        embed: Texts to (N, D) vectors of length 1; MiniLM when not given.
        window: See `is_retained`.

    Raises:
        MissingDependencyError: `full_text` is given without `embed`, and MiniLM cannot be had.
    """
    text = shown if isinstance(shown, str) else representation_text(shown)
    found = [is_retained(fact, text, window=window) for fact in facts]
    kinds: dict[str, list[bool]] = {}
    for fact, is_there in zip(facts, found, strict=True):
        kinds.setdefault(fact.kind, []).append(is_there)
    return Retention(
        planted=len(facts),
        retained=sum(found),
        by_kind={kind: sum(those) / len(those) for kind, those in kinds.items()},
        lost=tuple(fact for fact, is_there in zip(facts, found, strict=True) if not is_there),
        similarity=None if full_text is None else embedding_similarity(full_text, text, embed=embed),
    )


def embedding_similarity(full_text: str, shown: str, *, embed: Embed | None = None) -> float:
    """Cosine of the embeddings of two texts, in [-1, 1]; 0 where one of them says nothing.

    Raises:
        MissingDependencyError: `embed` is not given, and MiniLM cannot be had.
    """
    vectors = (embed or Sentence().embed)([full_text, shown])
    return float(np.clip(vectors[0] @ vectors[1], -1.0, 1.0))


def representation_text(representation: Representation) -> str:
    """All that a representation says in words, message after message."""
    return "\n".join(message.text for message in representation.messages)
