"""Keys and values of earlier conversations, for prompts that begin in the same way."""

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

    Args:
        max_bytes: Of keys and values; 0 keeps none.
    """

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._entries: OrderedDict[int, tuple[NDArray[np.int64], Layers, int]] = OrderedDict()
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, tokens: NDArray[np.int64]) -> tuple[int, "Layers | None"]:
        """The longest beginning that a kept conversation shares with `tokens`, and its keys and values."""
        longest, key = 0, -1
        for entry, (known, _, _) in self._entries.items():
            shared = common_prefix(known, tokens)
            if shared > longest:
                longest, key = shared, entry
        if longest < MIN_TOKENS:
            return 0, None
        self._entries.move_to_end(key)
        return longest, self._entries[key][1]

    def covers(self, tokens: NDArray[np.int64]) -> bool:
        """Whether a kept conversation begins with all of `tokens`."""
        return any(common_prefix(known, tokens) == len(tokens) for known, _, _ in self._entries.values())

    def keep(self, tokens: NDArray[np.int64], layers: "Layers") -> None:
        """Keep a conversation; those that it continues, and the longest unused, go."""
        size = sum(
            state.numel() * state.element_size() for pair in layers if pair is not None for state in pair
        )
        if size > self.max_bytes:
            return
        for key, (known, _, known_size) in list(self._entries.items()):
            if common_prefix(known, tokens) == len(known):
                del self._entries[key]
                self.num_bytes -= known_size
        while self._entries and self.num_bytes + size > self.max_bytes:
            self.num_bytes -= self._entries.popitem(last=False)[1][2]
        self._entries[self._next] = (tokens, layers, size)
        self._next += 1
        self.num_bytes += size

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._entries.clear()
        self.num_bytes = 0
