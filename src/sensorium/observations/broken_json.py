"""JSON that the standard parser cannot read: cut off, nested without end, wrong in one place, too large."""

import re
from collections.abc import Callable
from json import decoder
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
}
_WORD = re.compile(r"true|false|null|NaN|-?Infinity")
_STEP = re.compile(r'[\[{]+|[\]}]+|"')
_scan_string: Callable[[str, int, bool], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]
MAX_DIGITS = 4000
"""Digits of a number that Python turns into an integer; more are kept as text."""


class Saved(NamedTuple):
    """What could be read."""

    data: Any
    """None when nothing could."""
    what: str | None
    """What is wrong, or None when the text is read to its end."""
    line: int = 1
    """Where, from 1."""
    column: int = 1
    """Where, from 1."""
    is_empty: bool = False
    """Nothing could be read, not even a part."""
    is_cut: bool = False
    """It holds more values than were to be read; what is behind them was not looked at."""


def save_json(text: str, *, max_depth: int, max_items: int | None = None) -> Saved:
    """Read JSON as far as it goes, without recursion.

    Containers deeper than `max_depth` are replaced by ``<nested deeper>``. At the first mistake, at the end
    of a text that was cut off, or after `max_items` values, everything that was read so far is returned.
    """
    reader = _Reader(text, max_depth, max_items)
    what: str | None = None
    try:
        reader.run()
    except _MistakeError as error:
        what, position = str(error), error.position
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        return Saved(reader.root[0] if reader.root else None, what, line, column, not reader.root)
    return Saved(reader.root[0], None, is_cut=bool(reader.open))


class _MistakeError(Exception):
    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class _Reader:
    def __init__(self, text: str, max_depth: int, max_items: int | None) -> None:
        self.text = text
        self.left = len(text) if max_items is None else max_items
        self.at = 0
        self.max_depth = max_depth
        self.root: list[Any] = []
        self.open: list[tuple[list[Any] | dict[str, Any], str]] = []
        """Containers that are not closed, each with the character that closes it."""

    def run(self) -> None:
        self._value(self.root, None)
        while self.open:
            if self.left <= 0:
                return
            target, closing = self.open[-1]
            character = self._peek()
            if character == closing:
                self.at += 1
                self.open.pop()
                continue
            if target:
                if character != ",":
                    self._fail(f"expected `,` or `{closing}`", character)
                self.at += 1
                if self._peek() == closing:  # a comma too many does no harm
                    continue
            if isinstance(target, dict):
                key = self._key()
                self._value(target, key)
            else:
                self._value(target, None)
        if self._peek():
            self._fail("expected the end of the text", self._peek())

    def _peek(self) -> str:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def _fail(self, expected: str, found: str) -> None:
        said = f"found `{found}`" if found else "the text ends"
        raise _MistakeError(f"{expected}, {said}", self.at)

    def _key(self) -> str:
        if self._peek() != '"':
            self._fail("expected a name in double quotes", self._peek())
        key = self._string()
        if self._peek() != ":":
            self._fail("expected `:`", self._peek())
        self.at += 1
        return key

    def _string(self) -> str:
        begin = self.at
        try:
            value, self.at = _scan_string(self.text, self.at + 1, False)
        except ValueError as error:
            raise _MistakeError(f"a string is not closed or holds a wrong escape ({error})", begin) from error
        return str(value)

    def _value(self, target: list[Any] | dict[str, Any], key: str | None) -> None:
        self.left -= 1
        character = self._peek()
        value: Any
        if character in ("[", "{") and character:
            if len(self.open) >= self.max_depth:
                value = "<nested deeper>"
                self._skip()
            else:
                value = [] if character == "[" else {}
                self.at += 1
                self.open.append((value, "]" if character == "[" else "}"))
        elif character == '"':
            value = self._string()
        elif match := _WORD.match(self.text, self.at):
            value, self.at = _WORDS[match.group()], match.end()
        elif match := _NUMBER.match(self.text, self.at):
            value, self.at = _number(match.group()), match.end()
        else:
            self._fail("expected a value", character)
            return
        if isinstance(target, list):
            target.append(value)
        elif key is not None:
            target[key] = value

    def _skip(self) -> None:
        """Go behind a container without keeping anything of it."""
        begin, depth = self.at, 0
        while match := _STEP.search(self.text, self.at):
            self.at = match.start()
            if match.group() == '"':
                self._string()
                continue
            length = match.end() - self.at
            is_opening = match.group()[0] in "[{"
            if not is_opening and length >= depth:
                self.at += depth
                return
            depth += length if is_opening else -length
            self.at = match.end()
        raise _MistakeError("a container is not closed", begin)


def _number(digits: str) -> int | float | str:
    if len(digits) > MAX_DIGITS:
        return f"<number of {len(digits):,} digits>"
    return float(digits) if any(c in digits for c in ".eE") else int(digits)
