import difflib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from media_parts import photo, picture_part, sound_part
from PIL import Image, ImageDraw, ImageFont

from sensorium.core import FeatureError, MissingDependencyError
from sensorium.features.extractors import ocr, tesseract
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.ocr import Ocr
from sensorium.features.extractors.reading_order import Line, Word, group_lines, order_pieces
from sensorium.features.extractors.tesseract import parse_tsv
from sensorium.features.extractors.vision_config import OcrConfig

needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="the program tesseract is not installed"
)
LINES = (
    "The quick brown fox jumps over 13 lazy dogs.",
    "KeyError: 'price' in line 42 of train.py",
    "accuracy 0.913, loss = 0.0271 after 20 epochs",
)


def written(lines: tuple[str, ...], size: int, *, ink: str = "black", paper: str = "white") -> Image.Image:
    font = ImageFont.load_default(size)
    image = Image.new("RGB", (26 * size, int(1.6 * size) * (len(lines) + 1)), paper)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((size, size // 2 + int(1.6 * size) * number), line, fill=ink, font=font)
    return image


def read(picture: Any, **settings: Any) -> Features:
    (features,) = Ocr(OcrConfig(**settings))([picture_part(picture)])
    return features


@needs_tesseract
@pytest.mark.parametrize(("size", "ink", "paper"), [(22, "black", "white"), (14, "#dddddd", "#1e1e1e")])
def test_lines_are_read(size: int, ink: str, paper: str) -> None:
    features = read(written(LINES, size, ink=ink, paper=paper))
    assert features.unavailable is None
    assert difflib.SequenceMatcher(None, "\n".join(LINES), features.summary).ratio() > 0.95
    assert len(features.data["lines"]) == 3
    assert features.data["engine"] == "tesseract"
    assert features.data["confidence"] > 0.8
    assert features.data["text"] == features.summary


@needs_tesseract
def test_small_text_needs_enlarging() -> None:
    picture = written(LINES, 9)
    small, enlarged = read(picture, small_pixels=0), read(picture)
    likeness = [
        difflib.SequenceMatcher(None, "\n".join(LINES), one.summary).ratio() for one in (small, enlarged)
    ]
    assert (small.data["scale"], enlarged.data["scale"]) == (1.0, 3.0)
    assert likeness[1] > 0.93
    assert likeness[1] > likeness[0]


@needs_tesseract
def test_boxes_are_in_pixels_of_the_picture() -> None:
    image = Image.new("RGB", (600, 400), "white")
    ImageDraw.Draw(image).text((300, 250), "Hello", fill="black", font=ImageFont.load_default(40))
    (word,) = read(image).data["words"]
    left, top, right, bottom = word["box"]
    assert word["text"] == "Hello"
    assert 295 <= left <= 310
    assert 370 <= right <= 420
    assert 250 <= top < bottom <= 300


@needs_tesseract
def test_pictures_without_text_have_none() -> None:
    assert read(np.full((100, 100, 3), 200, np.uint8)).summary == ""
    features = read(photo("coffee.png"))
    assert features.summary == ""
    assert features.data["confidence"] is None
    assert features.unavailable is None


@needs_tesseract
def test_what_fails_is_told_per_picture() -> None:
    slow, broken = Ocr(OcrConfig(timeout_s=0.01)), Ocr()
    assert "timeout_s" in str(slow([picture_part(written(LINES, 22))])[0].unavailable)
    results = broken([picture_part(b"nonsense"), picture_part(written(LINES, 22))])
    assert "cannot be decoded" in str(results[0].unavailable)
    assert results[1].summary


@needs_tesseract
def test_a_language_without_data() -> None:
    with pytest.raises(MissingDependencyError, match="tesseract-ocr-xyz"):
        read(written(LINES, 22), language="eng+xyz")


def test_without_an_engine_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr.shutil, "which", lambda _: None)
    monkeypatch.setattr(ocr.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="apt-get install tesseract-ocr"):
        read(written(LINES, 22))
    assert "none" in Ocr().version


def test_a_failing_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\necho 'no such thing' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(FeatureError, match="status 3: no such thing"):
        tesseract.read_tsv(written(LINES, 22), language="eng", page_mode=3, timeout_s=5.0)


def test_rapidocr_is_read_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is turned into lines: pieces of a row are joined, whatever their order."""

    class Answer:
        boxes = np.array(
            [
                [[100, 10], [180, 10], [180, 30], [100, 30]],
                [[10, 50], [90, 50], [90, 70], [10, 70]],
                [[10, 11], [90, 11], [90, 31], [10, 31]],
            ],
            np.float32,
        )
        txts = ("world", "below", "hello")
        scores = (0.9, 0.8, 0.7)

    class Module:
        @staticmethod
        def RapidOCR(params: dict[str, str]) -> Any:
            return lambda picture: Answer()

    monkeypatch.setattr(ocr.util, "find_spec", lambda _: object())
    monkeypatch.setattr(ocr.metadata, "version", lambda _: "3.0")
    monkeypatch.setattr(ocr, "require", lambda *_, **__: Module)
    features = read(np.zeros((100, 200, 3), np.uint8), engine="rapidocr")
    assert features.summary == "hello world\nbelow"
    assert features.data["lines"][0]["box"] == [10, 10, 180, 31]
    assert features.data["lines"][0]["confidence"] == pytest.approx(0.8)
    assert "rapidocr-3.0" in features.version


def test_the_protocol() -> None:
    assert isinstance(Ocr(), Extractor)
    assert Ocr().accepts(picture_part(np.zeros((4, 4, 3), np.uint8)))
    assert not Ocr().accepts(sound_part(np.zeros(10)))
    assert Ocr(OcrConfig(min_confidence=0.9)).version != Ocr().version


def test_a_language_that_is_an_option_is_refused() -> None:
    with pytest.raises(ValueError, match="language"):
        OcrConfig(language="--psm")


def test_the_table_of_tesseract() -> None:
    table = (
        "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
        "4\t1\t1\t1\t1\t0\t5\t5\t90\t20\t-1\t\n"
        "5\t1\t1\t1\t1\t1\t5\t6\t40\t18\t96.5\ta\tb\n"
        "5\t1\t1\t1\t2\t1\t5\t6\tforty\t18\t96.5\tbroken\n"
        "5\t1\t1\n"
        "5\t1\t2\t1\t1\t1\t50\t6\t40\t18\t-1\tunsure\n"
        "5\t1\t2\t1\t1\t2\t50\t6\t40\t18\t90\t  \n"
    )
    first, second = parse_tsv(table)
    assert first == Word("a\tb", (5, 6, 45, 24), 0.965, (1, 1, 1))
    assert (second.text, second.confidence, second.line) == ("unsure", 0.0, (2, 1, 1))


def word(text: str, left: float, top: float, *line: int) -> Word:
    return Word(text, (left, top, left + 10.0 * len(text), top + 20.0), 0.9, line)


def test_words_become_lines_in_the_engines_order() -> None:
    words = [word("left", 0, 0, 1), word("b", 60, 100, 2), word("a", 40, 101, 2), word("right", 300, 0, 3)]
    lines = group_lines([*words, word("|--", 0, 200, 4)])
    assert [line.text for line in lines] == ["left", "a b", "right"]
    assert lines[1].box == (40, 100, 70, 121)


def test_pieces_become_rows() -> None:
    def pieces(*words: Word) -> list[Line]:
        return [Line((one,)) for one in words]

    near = pieces(word("two", 45, 3), word("one", 0, 0), word("three", 0, 40))
    assert [line.text for line in order_pieces(near)] == ["one two", "three"]
    far = pieces(word("two", 200, 3), word("one", 0, 0))
    assert [line.text for line in order_pieces(far)] == ["one", "two"]
    stacked = pieces(word("lower", 5, 12), word("upper", 0, 0))
    assert [line.text for line in order_pieces(stacked)] == ["upper", "lower"]
    assert order_pieces([]) == ()
