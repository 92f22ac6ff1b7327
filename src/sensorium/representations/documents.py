"""Documents of parts that were met before: most of what an agent sees is as it was one step ago."""

from collections.abc import Callable, Hashable
from functools import cached_property

from sensorium.core.byte_cache import ByteCache
from sensorium.llm.base import TokenCounter
from sensorium.observations.base import Part
from sensorium.representations.base import Document
from sensorium.representations.config import MultimodalConfig
from sensorium.representations.layout.dispatch import lay_out
from sensorium.representations.scoring import Shapes, worth

_LIMIT_BYTES = 32_000_000
_SEGMENT_BYTES = 400
"""Memory that a segment takes beside its text, about."""


class Measured:
    """A document with what is known of it whatever the task; each is computed when it is first asked for.

    Args:
        document: The document.
        counter: Counts tokens.
    """

    def __init__(self, document: Document, counter: TokenCounter) -> None:
        self.document = document
        self.num_bytes = sum(map(len, document.texts)) + _SEGMENT_BYTES * (1 + len(document.texts))
        """Memory it takes, about."""
        self._counter = counter

    @cached_property
    def costs(self) -> list[int]:
        """Tokens of every segment, with its line end."""
        count = self._counter.text
        return [count(text) + 1 for text in self.document.texts]

    @cached_property
    def worth(self) -> list[float]:
        """Value of every segment before the task is considered."""
        return worth(self.document, self._shapes)

    @cached_property
    def substance(self) -> float:
        """Tokens as far as they are new: of n lines of one shape, each counts ``n ** -0.7``."""
        each, counts = self._shapes
        if len(counts) == len(each):
            return float(sum(self.costs))
        tokens: float = sum(c * counts[shape] ** -0.7 for c, shape in zip(self.costs, each, strict=True))
        return tokens

    @cached_property
    def _shapes(self) -> Shapes:
        return Shapes.of(self.document)


class DocumentCache:
    """Lays parts out and keeps the documents; those that were not asked for longest go first. Thread-safe.

    Args:
        config: Limits of the layouts.
        counter: Counts tokens.
        limit_bytes: Memory, about; a document that takes more than a quarter of it is not kept.
    """

    def __init__(
        self, config: MultimodalConfig, counter: TokenCounter, limit_bytes: int = _LIMIT_BYTES
    ) -> None:
        self.counter = counter
        self._config, self._limit = config, limit_bytes
        self._kept = ByteCache[Measured](limit_bytes, lambda measured: measured.num_bytes)

    def __reduce__(self) -> tuple[type["DocumentCache"], tuple[MultimodalConfig, TokenCounter, int]]:
        """It travels to other processes empty."""
        return type(self), (self._config, self.counter, self._limit)

    def lay_out(self, part: Part) -> Measured | None:
        """A part as text; None for pictures and sounds."""
        if part.value.kind in ("image", "audio"):
            return None

        def make() -> Document:
            document = lay_out(part, self._config)
            assert document is not None
            return document

        return self._found(_key(part), make)

    def joined(self, parts: tuple[Part, ...], make: Callable[[], Document]) -> Measured:
        """A document made of those of several parts, or of one and its notes.

        Args:
            parts: They, and the last pieces of their ids, decide what it is.
            make: Makes it.
        """
        return self._found(tuple((_key(part), part.id.rpartition("/")[2]) for part in parts), make)

    def _found(self, key: Hashable, make: Callable[[], Document]) -> Measured:
        measured = self._kept.get(key)
        if measured is None:
            measured = Measured(make(), self.counter)
            if measured.num_bytes <= self._limit // 4:
                self._kept.put(key, measured)
        return measured


def _key(part: Part) -> Hashable:
    """What the layout of a part depends on."""
    return part.digest, part.modality, part.notes, part.id if part.value.kind == "problem" else ""
