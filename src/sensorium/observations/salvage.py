"""Broken JSON: what can still be read of a file that was cut off or damaged."""

import json
import re
from collections.abc import Iterator, Set
from typing import Any

from sensorium.observations.broken_json import save_json

_DECODER = json.JSONDecoder(strict=False)
_LOOKAHEAD = 20
_MAX_DEPTH = 64
_MAX_ITEMS = 1_000_000
MAX_ATTEMPTS = 200
"""Places at which reading is taken up again; keeps hostile files from taking quadratic time."""


def decode_at(text: str, start: int) -> tuple[Any, int] | None:
    """The JSON value at `start` and where it ends; None when there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def closed(text: str) -> Any:
    """The value that a cut-off JSON text holds up to the cut; None when not even its beginning can be read.

    Example:
        >>> closed('{"cells": [{"source": "x = 1", "outp')
        {'cells': [{'source': 'x = 1'}]}
    """
    return save_json(text, max_depth=_MAX_DEPTH, max_items=_MAX_ITEMS).data


def salvaged_objects(
    text: str, start: int, first_key: re.Pattern[str], keys: Set[str]
) -> Iterator[dict[str, Any]]:
    """Objects of a damaged list; one that is cut is closed at the cut.

    Args:
        text: JSON text.
        start: Where the first object may begin.
        first_key: Matches the beginning of an object that may be meant, e.g. ``{"cell_type":``.
        keys: Only objects with one of these keys are meant.
    """
    position, attempts = start, 0
    while attempts < MAX_ATTEMPTS and (match := first_key.search(text, position)):
        found = decode_at(text, match.start())
        if found is not None:
            whole, position = found
            if whole.keys() & keys:
                yield whole
            continue
        attempts += 1
        position = _next_whole(text, match.end(), first_key, keys)
        part = closed(text[match.start() : position])
        if isinstance(part, dict) and part.keys() & keys:
            yield part


def _next_whole(text: str, start: int, first_key: re.Pattern[str], keys: Set[str]) -> int:
    """Where the next undamaged object begins; the end of the text when there is none."""
    end = len(text)
    for count, match in enumerate(first_key.finditer(text, start)):
        found = decode_at(text, match.start())
        if found is not None and found[0].keys() & keys:
            return match.start()
        if count == _LOOKAHEAD:
            return match.start()
    return end
