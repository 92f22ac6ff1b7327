"""What all token counters share: pictures and sounds by rule, and a bounded memory of texts."""

import hashlib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sensorium.llm.config import CounterConfig
from sensorium.llm.image_rules import image_tokens

SHORT_CHARS = 512
"""Texts up to here are remembered themselves, longer ones by their hash."""
_SHORT_ENTRIES = 32_768
_LONG_ENTRIES = 16_384


class RuledCounter:
    """A token counter whose pictures, sounds and overhead follow a config.

    Counts are remembered: at most 32,768 texts of up to 512 characters and the hashes of 16,384 longer ones.

    Args:
        config: Rules.
        name: Whose vocabulary, e.g. ``tiktoken/o200k_base``; part of the identity.
        count: Counts a text anew.
    """

    def __init__(self, config: CounterConfig, name: str, count: Callable[[str], int]) -> None:
        self.config = config
        self.message_overhead = config.message_overhead
        self.identity = f"{name}-{config.digest()}"
        """Name and hash: counters with the same identity count alike."""
        self._short = lru_cache(maxsize=_SHORT_ENTRIES)(count)
        self._count = count
        self._long: dict[bytes, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Counters travel to other processes as their config; counts stay behind."""
        return type(self), (self.config,)

    def text(self, text: str) -> int:
        """Tokens of a text; 0 of an empty one. Unpaired surrogates are counted, too."""
        return self._remembered(text)

    def _remembered(self, text: str) -> int:
        if len(text) <= SHORT_CHARS:
            return self._short(text)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        count = self._long.get(key)
        if count is None:
            count = self._count(text)
            if len(self._long) >= _LONG_ENTRIES:
                self._long.clear()
            self._long[key] = count
        return count

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of so many pixels."""
        return image_tokens(self.config.image_rule, width, height)

    def audio(self, duration_s: float) -> int:
        """Tokens of a sound of so many seconds, rounded up."""
        return math.ceil(max(0.0, duration_s) * self.config.audio_tokens_per_second)
