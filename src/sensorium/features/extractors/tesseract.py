"""The tesseract program: a picture in, words with boxes out."""

import io
import os
import subprocess
from typing import TYPE_CHECKING

from sensorium.core import FeatureError, MissingDependencyError
from sensorium.features.extractors.reading_order import Word

if TYPE_CHECKING:
    from PIL import Image

_COLUMNS = 12
_WORD_LEVEL = "5"


def read_tsv(picture: "Image.Image", *, language: str, page_mode: int, timeout_s: float) -> list[Word]:
    """Let tesseract read a picture.

    Args:
        picture: RGB.
        language: Tesseract's names of languages, joined by ``+``.
        page_mode: Tesseract's number for how the text is laid out.
        timeout_s: Longest time it may take; it is ended after that.

    Returns:
        Words in tesseract's order; a word's `line` is its block, paragraph and line.

    Raises:
        MissingDependencyError: The program is not installed.
        FeatureError: It took too long, or it failed.
    """
    buffer = io.BytesIO()
    _dark_on_bright(picture).save(buffer, "PNG", compress_level=1)
    command = ["tesseract", "stdin", "stdout", "-l", language, "--psm", str(page_mode), "--dpi", "200", "tsv"]
    # More threads make it slower: they wait for each other.
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}
    try:
        done = subprocess.run(
            command,
            input=buffer.getvalue(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise FeatureError(f"tesseract took longer than {timeout_s:g} s (setting timeout_s)") from error
    except OSError as error:
        raise MissingDependencyError(
            f"tesseract cannot be started ({error}); install tesseract-ocr"
        ) from error
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise FeatureError(f"tesseract failed with status {done.returncode}: {reason}")
    return parse_tsv(done.stdout.decode("utf-8", "replace"))


def _dark_on_bright(picture: "Image.Image") -> "Image.Image":
    """In grey, and inverted where most of it is dark: dark themes are read worse than their negatives."""
    grey = picture.convert("L")
    histogram = grey.histogram()
    is_dark = 2 * sum(histogram[:110]) > grey.width * grey.height
    return grey.point([255 - level for level in range(256)]) if is_dark else grey


def parse_tsv(text: str) -> list[Word]:
    """Words in tesseract's table; lines that are not words, or broken, are passed over."""
    words = []
    for row in text.splitlines():
        cells = row.split("\t", _COLUMNS - 1)
        if len(cells) != _COLUMNS or cells[0] != _WORD_LEVEL or not cells[11].strip():
            continue
        try:
            block, paragraph, line = (int(cell) for cell in cells[2:5])
            left, top, width, height = (int(cell) for cell in cells[6:10])
            confidence = min(1.0, max(0.0, float(cells[10]) / 100.0))
        except ValueError:
            continue
        box = (left, top, left + width, top + height)
        words.append(Word(cells[11].strip(), box, confidence, (block, paragraph, line)))
    return words
