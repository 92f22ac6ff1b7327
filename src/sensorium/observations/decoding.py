"""Bytes of unknown origin become clean text: what a JSON file, a prompt and a hash can hold."""

import base64
import re
import urllib.parse
from typing import NamedTuple

from sensorium.core.errors import ObservationError

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""The marks of UTF-32 come before those of UTF-16, which they begin with."""
WIDE = ("utf-16", "utf-32")
"""Beginnings of the names of encodings in which a line end is more than one byte."""
_BINARY_SHOWN = 64 * 1024
_CONTROL = bytes(c for c in range(32) if c not in (7, 8, 9, 10, 11, 12, 13, 27))
_SAMPLE = 8192
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
        raw: Bytes in UTF-8, UTF-16, UTF-32 or Windows-1252 (see `encoding_of`); what is wrong in them becomes
            replacement characters. A string is only cleaned.
        max_bytes: Bytes (of a string: characters) that are looked at; the rest is left out, which is noted.
    """
    notes: list[str] = []
    whole = len(raw)
    if max_bytes is not None and whole > max_bytes:
        raw = raw[:max_bytes]
        unit = "bytes" if isinstance(raw, bytes) else "characters"
        notes.append(f"first {max_bytes:,} of {whole:,} {unit}")
    if isinstance(raw, str):
        return Decoded(_cleaned(raw.removeprefix("\ufeff"), notes), tuple(notes))
    is_cut = bool(notes)
    encoding, note = encoding_of(raw)
    is_no_text = is_binary(raw, encoding)
    if is_no_text:
        raw = raw[:_BINARY_SHOWN]  # nobody reads it, and decoding what is no text takes seconds
    if note:
        notes.append(note)
    text = _decode_as(raw, encoding, notes, is_cut=is_cut).removeprefix("\ufeff")
    return Decoded(_cleaned(text, notes), tuple(notes), is_no_text)


def encoding_of(raw: bytes) -> tuple[str, str]:
    """Name of the encoding of some bytes, and a note when it was guessed (else an empty text).

    A byte order mark decides, then NULs in every second place (UTF-16). Bytes that hold no character of
    UTF-8 but those of ASCII are Windows-1252, if that makes a text of them; all others are UTF-8.
    """
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return encoding, ""
    guessed = _wide_encoding(raw)
    if guessed is not None:
        return guessed, f"read as {guessed.upper()}: it has no byte order mark, but every second byte is 0"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" and _is_western(raw):
            return "cp1252", f"read as Windows-1252: it is not valid UTF-8 (at byte {error.start:,})"
    return "utf-8", ""


def decode_data_url(address: str, *, max_bytes: int) -> bytes:
    """Decode a ``data:`` address.

    Args:
        address: ``data:[mime][;base64],content``.
        max_bytes: Longest content; checked before it is decoded.

    Raises:
        ObservationError: It has no content, is not what it says, or is longer than `max_bytes`.
    """
    head, comma, content = address.partition(",")
    if not comma:
        raise ObservationError("The data: address has no comma and so no content.")
    is_base64 = head.lower().rstrip().endswith(";base64")
    if len(content) > max_bytes * (2 if is_base64 else 3):
        raise ObservationError(f"The data: address is too large; at most {max_bytes:,} bytes are read.")
    if not is_base64:
        return urllib.parse.unquote_to_bytes(content)
    try:
        clean = "".join(urllib.parse.unquote(content).split()).replace("-", "+").replace("_", "/")
        return base64.b64decode(clean + "=" * (-len(clean) % 4))
    except ValueError as error:
        raise ObservationError(f"The data: address is not valid base64: {error}") from error


def encodable(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


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


def _is_western(raw: bytes) -> bool:
    sample = raw[:_SAMPLE]
    if len(sample.translate(None, _CONTROL)) < len(sample):
        return False
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return False
    valid = raw.decode("utf-8", "ignore")
    return valid.isascii() and len(valid) * 2 >= len(raw)  # more accents than letters: another alphabet


def is_binary(raw: bytes, encoding: str) -> bool:
    """Whether bytes are no text, as far as their beginning tells.

    Args:
        raw: The bytes.
        encoding: What `encoding_of` says of them.
    """
    sample = raw[:_SAMPLE]
    if not sample or encoding.startswith(WIDE):
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
