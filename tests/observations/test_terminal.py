import pytest

from sensorium.observations.decoding import encodable
from sensorium.observations.terminal import screen_text, strip_ansi


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ntext", "plain\ntext"),
        ("\x1b[31mred\x1b[0m \x1b[1;38;5;12mblue\x1b[m", "red blue"),
        ("\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        (" 10%|#   |\r 50%|##  |\r100%|####|\ndone", "100%|####|\ndone"),
        ("long state\rshort", "shortstate"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("abc\b\bd", "ad"),
        ("\b\bx", "x"),
        ("bar\r\r\r", "bar"),
    ],
)
def test_text_is_what_a_terminal_shows_in_the_end(raw: str, shown: str) -> None:
    assert screen_text(raw) == shown


def test_terminal_colours_are_removed() -> None:
    assert strip_ansi("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07") == "red link"


def test_a_hundred_thousand_states_of_a_progress_bar_become_one() -> None:
    text = "".join(f"\r{i:6d}/100000 [{'#' * (i // 2000):50s}]" for i in range(100_000))
    assert screen_text(text).startswith(" 99999/100000 [####")
    assert len(screen_text(text)) < 80


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    assert encodable("a\ud800b") == "a\ufffdb"
    assert encodable("a\ud800b").encode()
    assert encodable("ä😀") == "ä😀"
