import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.decoding import decode


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides(encoding: str) -> None:
    assert decode("Grüße, 世界".encode(encoding)) == ("Grüße, 世界", (), False)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_mark_is_recognised(encoding: str) -> None:
    decoded = decode("plain latin text".encode(encoding))
    assert decoded.text == "plain latin text"
    assert encoding.upper() in decoded.notes[0]


def test_wrong_bytes_are_shown_and_counted() -> None:
    decoded = decode("Café, ".encode() + b"caf\xe9 and \xff end")
    assert decoded.text == "Café, caf\ufffd and \ufffd end"
    assert "at byte 10: 2 places" in decoded.notes[0]
    assert not decoded.is_binary


def test_western_text_is_read_as_such_and_other_alphabets_are_not_guessed() -> None:
    decoded = decode("«Café» kostet 3 €, „gut“".encode("cp1252"))
    assert decoded.text == "«Café» kostet 3 €, „gut“"
    assert decoded.notes == ("read as Windows-1252: it is not valid UTF-8 (at byte 0)",)
    assert "\ufffd" in decode("привет, мир".encode("cp1251")).text
    assert decode("ab\u20ac".encode()[:-1]).text == "ab\ufffd"  # cut inside a character of UTF-8


def test_replacement_characters_of_the_source_are_not_counted() -> None:
    assert "1 places" in decode("\ufffd".encode() + b" \xff").notes[0]


def test_nul_and_lone_surrogates_are_replaced() -> None:
    decoded = decode("a\0b \ud800 c")
    assert decoded.text == "a\u2400b \ufffd c"
    assert len(decoded.notes) == 2


def test_line_ends_become_one() -> None:
    assert decode(b"a\r\nb\rc\n").text == "a\nb\nc\n"


def test_binary_is_told_from_text() -> None:
    assert decode(bytes(range(256)) * 4).is_binary
    assert not decode(b"\x1b[31mred\x1b[0m\ttab\n").is_binary
    assert not decode(b"").is_binary


def test_the_limit_may_fall_into_a_character() -> None:
    decoded = decode("ab\u20acd".encode(), max_bytes=4)
    assert decoded.text == "ab"
    assert decoded.notes == ("first 4 of 6 bytes",)


@given(st.binary(max_size=200) | st.text(st.characters(), max_size=200))
def test_anything_becomes_text_that_can_be_written(raw: bytes | str) -> None:
    text = decode(raw).text
    assert text.encode().decode() == text
    assert "\0" not in text
    assert "\r" not in text
