"""What is known of a picture in words: its caption, what extractors saw in it, text that was read in it."""

from collections.abc import Mapping

from sensorium.features.extractors.base import Features
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue

LINE_CHARS = 300
"""Longest line that stands beside a picture: what it says can be seen in the picture, too."""

TEXT_CHARS = 4_000
"""Longest text that stands in place of a picture."""

_READ_TEXT = "ocr"


def words_of_picture(part: Part, features: Mapping[str, Features]) -> tuple[str, str]:
    """Words for a picture.

    Args:
        part: One with an `ImageValue`.
        features: Extractor -> what it found in this part; those without a summary say nothing here.

    Returns:
        A description (caption and summaries of extractors), and the text that was read in the picture; each
        may be empty.
    """
    value = part.value
    said = [value.alt] if isinstance(value, ImageValue) and value.alt else []
    read = ""
    for name, found in features.items():
        if found.unavailable is not None:
            continue
        if name == _READ_TEXT:
            text = found.data.get("text")
            read = text if isinstance(text, str) else found.summary
        elif found.summary:
            said.append(found.summary)
    description = "; ".join(dict.fromkeys(" ".join(one.split()) for one in said))
    return description, read.strip()


def line_beside(description: str, read: str) -> str:
    """One line for beside the picture, at most `LINE_CHARS` long; empty when nothing is known."""
    pieces = []
    if description:
        pieces.append(f"Shows: {description}")
    if read:
        pieces.append(f"Text in it: {' '.join(read.split())}")
    return shortened(". ".join(pieces), LINE_CHARS)


def text_instead(part: Part, description: str, read: str) -> str:
    """Lines that stand in place of the picture."""
    value = part.value
    assert isinstance(value, ImageValue)
    size = f", {value.width}x{value.height}" if value.width and value.height else ""
    lines = [f"[picture{size}, told in words]"]
    if description:
        lines.append(f"Shows: {shortened(description, TEXT_CHARS)}")
    if read:
        lines.append(f"Text in it:\n{shortened(read, TEXT_CHARS)}")
    return "\n".join(lines)


def shortened(text: str, limit: int) -> str:
    """`text`, or its beginning with a mark when it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 4].rstrip()} ..."
