"""What `sensorium observe` prints, from a hand-made observation: widths, odd names, hostile text."""

import io

import pytest
from observed import make_trace, part
from rich.console import Console

from sensorium.cli.observe_print import clean, make_console, print_account, print_messages
from sensorium.core.types import Modality
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, OtherBlock, TextBlock, text_message
from sensorium.observations.values import TextValue
from sensorium.representations.base import Level


class Words:
    """Counts a token per word, a hundred per picture, ten per second."""

    identity = "words"
    message_overhead = 4

    def text(self, text: str) -> int:
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        return 100

    def audio(self, duration_s: float) -> int:
        return int(10 * duration_s)


def printed(width: int, *, encoding: str = "utf-8", extra: tuple[object, ...] = ()) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    print_account(console, make_trace(extra).representation.account)  # type: ignore[arg-type]
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [40, 60, 80, 88, 95, 110, 200])
def test_the_table_fits_every_width(width: int) -> None:
    text = printed(width)
    lines = text.split("\n")
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("└"))]
    assert max(map(len, table)) <= width
    assert "9,000 → 130" in text
    assert "dropped" in text
    assert "note: Extractor sentence is unavailable" in text


def test_the_budget_is_told() -> None:
    text = printed(110)
    account = make_trace().representation.account
    assert f"{account.num_tokens:,} of {account.max_tokens:,} tokens" in text
    bar = next(line for line in text.split("\n") if "█" in line)
    filled, free = bar.count("█"), bar.count("░")
    assert filled + free == 48
    assert filled == round(48 * account.num_tokens / account.max_tokens)


def test_brackets_newlines_and_wide_characters_in_names_stay_in_their_cell() -> None:
    odd = part("notes [bold]x[/bold]\n数据表.txt", Modality.TEXT, TextValue(text="x"))
    text = printed(110, extra=((odd, Level.FULL, 1, 1, "why [red]not[/red]"),))
    row = next(line for line in text.split("\n") if "数据表" in line)
    assert "[bold]x[/bold]␤" in row
    assert "why [red]not[/red]" in row


def test_an_ascii_terminal_gets_ascii() -> None:
    text = printed(100, encoding="ascii")
    assert "####" in text
    assert "█" not in text


def test_of_many_parts_the_costliest_are_listed() -> None:
    extra = tuple(
        (part(f"log{i}", Modality.TEXT, TextValue(text="x")), Level.DROPPED, 9, 0, "no room")
        for i in range(900)
    )
    text = printed(110, extra=extra)
    assert "and 612 more parts" in text
    assert text.count("\n") < 400
    assert "run.ipynb/cell-3/output-0" in text


def test_messages_are_printed_in_full_and_pictures_as_a_line() -> None:
    long = "one line that is longer than the terminal " * 20
    block = ImageBlock(url="data:image/png;base64,AAAA", width=512, height=384)
    away = ImageBlock(url="https://example.org/[a].png", width=8, height=8)
    sound = AudioBlock(data="", duration_s=2.5)
    messages = [
        text_message("system", "Be brief."),
        Message(
            role="user", content=(TextBlock(text=f"{long}\n[not markup]"), block, away, sound), name="[x]"
        ),
    ]
    file = io.StringIO()
    print_messages(Console(file=file, width=60, markup=False, highlight=False), messages, Words())
    text = file.getvalue()
    assert long in text
    assert "[not markup]" in text
    assert "[image 512x384, 100 tokens]" in text
    assert "[image 8x8, 100 tokens, https://example.org/[a].png]" in text
    assert "[audio 2.50 s, 25 tokens]" in text
    assert "user ([x])" in text


def test_tool_calls_and_unknown_content_are_printed() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "fetch_part", "arguments": "{}"}}
    other = OtherBlock(data={"type": "refusal", "refusal": "no [red]"})
    file = io.StringIO()
    message = Message(role="assistant", content=(other,), tool_calls=(call,))
    print_messages(Console(file=file, width=60, markup=False, highlight=False), [message], Words())
    assert '"name": "fetch_part"' in file.getvalue()
    assert '"refusal": "no [red]"' in file.getvalue()


def test_text_cannot_command_the_terminal() -> None:
    assert clean("\x1b[31mred\x1b]0;title\x07\x9b1m\u202eabc\ud800\r") == "␛[31mred␛]0;title␇�1m�abc�␍"
    assert clean("tab\tand\nline") == "tab\tand\nline"
    assert clean("naïve 数据 😀") == "naïve 数据 😀"


def test_a_pipe_gets_wider_lines_than_an_unknown_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert make_console().width == 110
    monkeypatch.setenv("COLUMNS", "60")
    assert make_console().width == 60
