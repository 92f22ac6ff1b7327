"""Text in pictures, in reading order, by tesseract or rapidocr."""

import functools
import shutil
import subprocess
import threading
from collections.abc import Sequence
from importlib import metadata, util
from typing import TYPE_CHECKING, Any, Literal

from sensorium.core import FeatureError, MissingDependencyError, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.features.extractors.pixels import decode_picture, has_picture, pixels
from sensorium.features.extractors.reading_order import Line, Word, group_lines, order_pieces
from sensorium.features.extractors.tesseract import read_tsv
from sensorium.features.extractors.vision_config import OcrConfig
from sensorium.observations.base import Part

if TYPE_CHECKING:
    from PIL import Image

Engine = Literal["tesseract", "rapidocr"]

_INSTALL = (
    "Reading text in pictures needs tesseract (Debian, Ubuntu: apt-get install tesseract-ocr; macOS: brew "
    "install tesseract) or pip install rapidocr"
)
_PAGE_MODES = {"page": 3, "block": 6, "sparse": 11}
_MAX_SIDE = 8000  # tesseract refuses sides over 32767 and slows down long before


class Ocr:
    """The text in a picture.

    ``data``: ``text``, ``lines`` (text, box in pixels as left, top, right, bottom, confidence in [0, 1]),
    ``words`` (the same per word; rapidocr finds lines only), ``confidence`` (mean over letters), ``engine``
    and ``scale`` (how many times the picture was enlarged). `summary` is the text.

    Args:
        config: Engine, language and thresholds.
    """

    name = "ocr"

    def __init__(self, config: OcrConfig | None = None) -> None:
        self.config = config or OcrConfig()
        self._lock = threading.Lock()
        self._rapidocr: Any = None

    @functools.cached_property
    def version(self) -> str:
        """Changes with code, settings and the version of the engine."""
        engine = self._engine()
        return f"1-{self.config.digest()}-{'none' if engine is None else _engine_version(engine)}"

    def accepts(self, part: Part) -> bool:
        """Pictures whose bytes are there."""
        return has_picture(part)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """See `Extractor`; pictures are read one after the other.

        Raises:
            MissingDependencyError: The engine is not installed, or tesseract lacks the language.
        """
        engine = self._engine()
        if engine is None:
            raise MissingDependencyError(_INSTALL)
        if engine == "tesseract":
            _check_languages(self.config.language)
        return extract_each(self, parts, functools.partial(self._find, engine))

    def _engine(self) -> Engine | None:
        wanted = self.config.engine
        if wanted != "rapidocr" and shutil.which("tesseract"):
            return "tesseract"
        if wanted != "tesseract" and util.find_spec("rapidocr"):
            return "rapidocr"
        return None

    def _find(self, engine: Engine, part: Part) -> Found:
        picture = decode_picture(part, max_pixels=self.config.max_pixels)
        scale = self._scale(engine, *picture.size)
        if scale != 1.0:
            width, height = (max(1, round(side * scale)) for side in picture.size)
            picture = picture.resize((width, height), resample=3)  # bicubic
        words = self._tesseract(picture) if engine == "tesseract" else self._rapid(picture)
        lines = group_lines([word.scaled(1.0 / scale) for word in words])
        lines = tuple(line for line in lines if line.confidence >= self.config.min_confidence)
        if engine == "rapidocr":
            lines = order_pieces(lines)
        text = "\n".join(line.text for line in lines)
        whole = Line(tuple(word for line in lines for word in line.words))
        data = {
            "text": text,
            "lines": [line.as_data() for line in lines],
            "words": [word.as_data() for word in whole.words],
            "confidence": round(whole.confidence, 3) if lines else None,
            "engine": engine,
            "scale": scale,
        }
        return Found(data, text)

    def _scale(self, engine: Engine, width: int, height: int) -> float:
        if max(width, height) > _MAX_SIDE:
            return _MAX_SIDE / max(width, height)
        if engine == "rapidocr":  # it scales by itself
            return 1.0
        size = width * height
        limit = self.config.small_pixels
        return 1.0 if size >= limit else 3.0 if 9 * size <= limit else 2.0

    def _tesseract(self, picture: "Image.Image") -> list[Word]:
        config = self.config
        mode = _PAGE_MODES[config.layout]
        return read_tsv(picture, language=config.language, page_mode=mode, timeout_s=config.timeout_s)

    def _rapid(self, picture: "Image.Image") -> list[Word]:
        with self._lock:
            if self._rapidocr is None:
                module = require("rapidocr", extra="vision", purpose="reading text with engine rapidocr")
                self._rapidocr = module.RapidOCR(params={"Global.log_level": "error"})
            # It is a network for OpenCV's order of colours: blue first.
            found = self._rapidocr(pixels(picture)[:, :, ::-1].copy())
        if found.boxes is None:
            return []
        words = []
        for number, (corners, text, score) in enumerate(
            zip(found.boxes, found.txts, found.scores, strict=True)
        ):
            left, top = corners.min(axis=0).tolist()
            right, bottom = corners.max(axis=0).tolist()
            words.append(Word(str(text), (left, top, right, bottom), float(score), (number,)))
        return words


def _engine_version(engine: Engine) -> str:
    return (
        f"tesseract-{_tesseract_version()}"
        if engine == "tesseract"
        else f"rapidocr-{metadata.version(engine)}"
    )


@functools.cache
def _tesseract_version() -> str:
    words = _ask_tesseract("--version").split()
    return words[1] if len(words) > 1 else "unknown"


@functools.cache
def _check_languages(language: str) -> None:
    installed = set(_ask_tesseract("--list-langs").split())
    missing = [one for one in language.split("+") if one not in installed]
    if missing:
        packages = " ".join(f"tesseract-ocr-{one.replace('_', '-')}" for one in missing)
        raise MissingDependencyError(
            f"tesseract has no data for language {', '.join(missing)}; install it (Debian, Ubuntu: apt-get "
            f"install {packages}) or change the setting language."
        )


def _ask_tesseract(question: str) -> str:
    try:
        done = subprocess.run(
            ["tesseract", question], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FeatureError(f"tesseract {question} failed: {error}") from error
    return f"{done.stdout}\n{done.stderr}"
