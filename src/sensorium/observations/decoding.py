"""Bytes of unknown origin become clean text: what a JSON file, a prompt and a hash can hold."""

import re
from typing import NamedTuple

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""The marks of UTF-32 come before those of UTF-16, which they begin with."""
_WIDE = tuple(mark for mark, encoding in _BOMS if encoding != "utf-8")
_BINARY_SHOWN = 64 * 1024
_CONTROL = bytes(c for c in range(32) if c not in (7, 8, 9, 10, 11, 12, 13, 27))
_SAMPLE = 8192
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Decoded(NamedTuple):
    """Text, and what had to be done to get it."""

    text: str
    """Valid Unicode without NUL and lone surrogates; line ends are ``\\n``."""
    notes: tuple[str, ...] = ()
    """What was replaced or left out, one sentence each."""
    is_binary: bool = False
    """The bytes are not text: `text` is an approximation that nobody wants to read."""


def decode(raw: str | bytes, *, max_bytes: int | None = None) -> Decoded:
    """Turn bytes or a string into clean text; never raises.

    Args:
        raw: Bytes in UTF-8, or UTF-16/32 (with a byte order mark, or recognised by its NULs); other bytes are
            read as UTF-8 with replacement characters. A string is only cleaned.
        max_bytes: Bytes (of a string: characters) that are looked at; the rest is left out, which is noted.
    """
    notes: list[str] = []
    whole = len(raw)
    if max_bytes is not None and whole > max_bytes:
        raw = raw[:max_bytes]
        unit = "bytes" if isinstance(raw, bytes) else "characters"
        notes.append(f"first {max_bytes:,} of {whole:,} {unit}")
    is_binary = False
    if isinstance(raw, str):
        text = raw.removeprefix("\ufeff")
    else:
        is_wide = raw.startswith(_WIDE) or _wide_encoding(raw) is not None
        if len(raw) > _BINARY_SHOWN and not is_wide and _is_binary(raw):
            raw = raw[:_BINARY_SHOWN]  # nobody reads it, and decoding what is no text takes seconds
        text, is_binary = _decode_bytes(raw, notes, is_cut=bool(notes))
    return Decoded(_cleaned(text, notes), tuple(notes), is_binary)


def strip_ansi(text: str) -> str:
    """Remove terminal colours and other escape sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _decode_bytes(raw: bytes, notes: list[str], *, is_cut: bool) -> tuple[str, bool]:
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            body = raw[len(mark) :]
            return _decode_as(body, encoding, notes, is_cut=is_cut), encoding == "utf-8" and _is_binary(body)
    guessed = _wide_encoding(raw)
    if guessed is not None:
        notes.append(f"read as {guessed.upper()}: it has no byte order mark, but every second byte is 0")
        return _decode_as(raw, guessed, notes, is_cut=is_cut), False
    return _decode_as(raw, "utf-8", notes, is_cut=is_cut), _is_binary(raw)


def _decode_as(raw: bytes, encoding: str, notes: list[str], *, is_cut: bool) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        if is_cut and error.start >= len(raw) - 4:  # the limit fell into the middle of a character
            return raw[: error.start].decode(encoding)
        text = raw.decode(encoding, "replace")
        count = text.count("\ufffd") - raw.count("\ufffd".encode(encoding))
        notes.append(
            f"not valid {encoding.upper()} at byte {error.start:,}: "
            f"{count:,} places are shown as the replacement character \ufffd"
        )
        return text


def _wide_encoding(raw: bytes) -> str | None:
    """UTF-16 without a mark: mostly Latin text has a 0 in every second byte and nowhere else."""
    sample = raw[: _SAMPLE - _SAMPLE % 2]
    if len(sample) < 8 or b"\0" not in sample or len(raw) % 2:
        return None
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.7 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.7 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None


def _is_binary(raw: bytes) -> bool:
    sample = raw[:_SAMPLE]
    if not sample:
        return False
    control = len(sample) - len(sample.translate(None, _CONTROL))
    if control > 0.1 * len(sample):
        return True
    return control > 0 and sample.decode("utf-8", "replace").count("\ufffd") > 0.1 * len(sample)


def _cleaned(text: str, notes: list[str]) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        notes.append(f"{text.count(chr(0)):,} NUL characters are shown as \u2400")
        text = text.replace("\0", "\u2400")
    if not text.isascii() and (count := len(_SURROGATE.findall(text))):
        notes.append(f"{count:,} lone surrogates are shown as the replacement character \ufffd")
        text = _SURROGATE.sub("\ufffd", text)
    return text
