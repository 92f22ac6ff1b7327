"""Keys and values of earlier conversations, for prompts that begin in the same way."""

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sensorium.llm.local.requests import common_prefix

if TYPE_CHECKING:
    from sensorium.llm.local.key_values import Layers

MIN_TOKENS = 16
"""A shorter common beginning is not worth keeping and looking up."""


class PrefixStore:
    """The most recently used conversations, within a limit of memory.

    Conversations are in the order of their bytes: what begins most like a given one stands next to its place.
    None of them is the beginning of another.

    Args:
        max_bytes: Of keys and values; 0 keeps none.
    """

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._entries: OrderedDict[bytes, tuple[Layers, int]] = OrderedDict()
        self._sorted: list[bytes] = []

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, tokens: NDArray[np.int64]) -> tuple[int, "Layers | None"]:
        """The longest beginning that a kept conversation shares with `tokens`, and its keys and values."""
        place = bisect_left(self._sorted, tokens.tobytes())
        beside = self._sorted[max(0, place - 1) : place + 1]
        shared = [common_prefix(np.frombuffer(known, dtype=np.int64), tokens) for known in beside]
        if max(shared, default=0) < MIN_TOKENS:
            return 0, None
        longest = max(shared)
        known = beside[shared.index(longest)]
        self._entries.move_to_end(known)
        return longest, self._entries[known][0]

    def covers(self, tokens: NDArray[np.int64]) -> bool:
        """Whether a kept conversation begins with all of `tokens`."""
        key = tokens.tobytes()
        place = bisect_left(self._sorted, key)
        return place < len(self._sorted) and self._sorted[place].startswith(key)

    def keep(self, tokens: NDArray[np.int64], layers: "Layers") -> None:
        """Keep a conversation unless it is covered; the one that it continues, and the longest unused, go."""
        size = sum(
            state.numel() * state.element_size() for pair in layers if pair is not None for state in pair
        )
        if size > self.max_bytes or self.covers(tokens):
            return
        key = tokens.tobytes()
        place = bisect_left(self._sorted, key)
        if place and key.startswith(self._sorted[place - 1]):
            self._drop(self._sorted[place - 1])
        while self._entries and self.num_bytes + size > self.max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = (layers, size)
        insort(self._sorted, key)
        self.num_bytes += size

    def _drop(self, key: bytes) -> None:
        self.num_bytes -= self._entries.pop(key)[1]
        del self._sorted[bisect_left(self._sorted, key)]

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._entries.clear()
        self._sorted.clear()
        self.num_bytes = 0
