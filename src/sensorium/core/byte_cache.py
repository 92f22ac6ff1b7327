"""Things kept in memory as long as their bytes fit: the least recently used one goes first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class ByteCache(Generic[ValueT]):
    """A thread-safe LRU cache that is bounded by bytes.

    Args:
        max_bytes: Sum of the sizes of what is kept; something larger than that is never kept.
        size_of: Bytes of one value.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[ValueT], int]) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        """Of what is kept now."""
        self._size_of = size_of
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, ValueT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> ValueT | None:
        """What was put under `key`; None when it never was, or had to go."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def discard(self, key: Hashable) -> None:
        """Let go of what was put under `key`, if anything."""
        with self._lock:
            if key in self._values:
                self.num_bytes -= self._size_of(self._values.pop(key))

    def put(self, key: Hashable, value: ValueT) -> None:
        """Keep `value`, and let go of what was used longest ago until the limit is met."""
        size = self._size_of(value)
        with self._lock:
            if key in self._values:
                self.num_bytes -= self._size_of(self._values.pop(key))
            if size > self.max_bytes:
                return
            self._values[key] = value
            self.num_bytes += size
            while self.num_bytes > self.max_bytes:
                _, old = self._values.popitem(last=False)
                self.num_bytes -= self._size_of(old)
