import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.text import detect_format, read_text
from sensorium.observations.values import ProblemValue, TextValue

TRACE = """Traceback (most recent call last):
  File "run.py", line 3, in <module>
    main()
ValueError: bad
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A letter.\n\nWith two paragraphs.", "plain"),
        ("# Title\n\nText with **bold** and a [link](http://x).\n", "markdown"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "markdown"),
        ("2024-05-01 12:00:00 INFO start\n2024-05-01 12:00:01 ERROR boom\n", "log"),
        ("[12:00:00] one\n[12:00:01] two\n", "log"),
        (TRACE, "traceback"),
        ("<!DOCTYPE html>\n<html><body><p>x</p></body></html>", "html"),
        ("<div><p>a</p><p>b</p></div>", "html"),
        ("if a < b and c > d: nothing to see", "plain"),
        ("- milk\n- eggs\n", "plain"),
        ("", "plain"),
    ],
)
def test_format_is_found(text: str, expected: str) -> None:
    assert detect_format(text) == expected


def test_a_log_with_a_trace_in_it_stays_a_log() -> None:
    log = "2024-05-01 12:00:00 INFO start\n" * 20 + "2024-05-01 12:00:09 ERROR failed\n" + TRACE
    assert detect_format(log) == "log"


def test_the_suffix_decides_first() -> None:
    assert detect_format("nothing special", path="docs/a.MD") == "markdown"


def test_one_text_part() -> None:
    (part,) = read_text("x\r\ny", part_id="notes")
    assert part.id == "notes"
    assert part.value == TextValue(text="x\ny")


def test_colours_are_removed_and_said_so() -> None:
    (part,) = read_text("\x1b[31mred\x1b[0m", part_id="t")
    assert part.text == "red"
    assert part.notes == ("terminal colours are removed",)


def test_binary_is_a_problem_with_a_way_out() -> None:
    (part,) = read_text(b"\x89PNG\x00\x01\x02\x03" * 50, part_id="t")
    assert isinstance(part.value, ProblemValue)
    assert "binary" in part.value.what
    assert part.value.mend


def test_huge_text_is_cut_and_said_so() -> None:
    (part,) = read_text("x" * 1_000, part_id="t", config=ReadConfig(max_bytes=100))
    assert part.text == "x" * 100
    assert part.notes == ("first 100 of 1,000 characters",)


@given(st.binary(max_size=300) | st.text(st.characters(), max_size=300))
def test_anything_is_read_and_survives_json(raw: bytes | str) -> None:
    for part in read_text(raw, part_id="t"):
        assert Part.model_validate_json(part.model_dump_json()) == part
        assert len(part.digest) == 32
