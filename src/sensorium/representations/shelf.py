"""Documents of parts that were met before: most of what an agent sees is as it was one step ago."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property

from sensorium.llm.base import TokenCounter
from sensorium.observations.base import Part
from sensorium.representations.base import Document
from sensorium.representations.config import MultimodalConfig
from sensorium.representations.layout.dispatch import lay_out
from sensorium.representations.scoring import shape_of, worth

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
        self._counter = counter

    @cached_property
    def costs(self) -> list[int]:
        """Tokens of every segment, with its line end."""
        count = self._counter.text
        return [count(segment.text) + 1 for segment in self.document.segments]

    @cached_property
    def worth(self) -> list[float]:
        """Value of every segment before the task is considered."""
        return worth(self.document)

    @cached_property
    def substance(self) -> float:
        """Tokens as far as they are new: of n lines of one shape, each counts ``n ** -0.7``."""
        shapes = [shape_of(segment.text) for segment in self.document.segments]
        counts = Counter(shapes)
        tokens: float = sum(c * counts[shape] ** -0.7 for c, shape in zip(self.costs, shapes, strict=True))
        return tokens


class Shelf:
    """Lays parts out and keeps the documents, those that were not asked for longest go first.

    It may be used by several threads at once.

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
        self._kept: OrderedDict[Hashable, tuple[Measured, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Shelf"], tuple[MultimodalConfig, TokenCounter, int]]:
        """It travels to other processes empty."""
        return type(self), (self._config, self.counter, self._limit)

    def lay_out(self, part: Part) -> Measured | None:
        """A part as text; None for pictures and sounds."""

        def make() -> Document | None:
            return lay_out(part, self._config)

        return self._found(_key(part), make) if part.value.kind not in ("image", "audio") else None

    def joined(self, parts: tuple[Part, ...], make: Callable[[], Document]) -> Measured:
        """A document made of those of several parts, or of one and its notes.

        Args:
            parts: They, and the last pieces of their ids, decide what it is.
            make: Makes it.
        """
        key = tuple((_key(part), part.id.rpartition("/")[2]) for part in parts)
        found = self._found(key, make)
        assert found is not None
        return found

    def _found(self, key: Hashable, make: Callable[[], Document | None]) -> Measured | None:
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known[0]
        document = make()
        if document is None:
            return None
        measured = Measured(document, self.counter)
        size = sum([len(segment.text) for segment in document.segments])
        size += _SEGMENT_BYTES * (1 + len(document.segments))
        if size <= self._limit // 4:
            with self._lock:
                self._bytes += size - self._kept.pop(key, (measured, 0))[1]
                self._kept[key] = measured, size
                while self._bytes > self._limit:
                    self._bytes -= self._kept.popitem(last=False)[1][1]
        return measured


def _key(part: Part) -> Hashable:
    """What the layout of a part depends on."""
    return part.digest, part.modality, part.notes, part.id if part.value.kind == "problem" else ""
