"""Prints an observation to a terminal or a file: a table of parts, the budget, and the messages in full."""

import json
import os
import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sensorium.analysis.observation_lines import LEFT_OUT
from sensorium.core.types import Modality
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, OtherBlock, TextBlock
from sensorium.representations.base import Account, Entry, Level

MAX_ROWS = 300
"""Parts in the table; of more parts the costliest and heaviest are shown."""
_PIPE_WIDTH = 110
_NARROW = 88
_FRAME = 33
"""Width of a table's lines and of the columns modality and what."""
_MIN_WHY = 22
_BAR_WIDTH = 48
_LEVEL_STYLES = {
    Level.FULL: "green",
    Level.DELTA: "blue",
    Level.SUMMARY: "yellow",
    Level.THUMBNAIL: "magenta",
    Level.REFERENCE: "cyan",
    Level.DROPPED: "red",
}
_MODALITY_STYLES = dict(
    zip(Modality, ("blue", "green", "yellow", "cyan", "magenta", "bright_cyan", "red", "white"), strict=True)
)
_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)}
_CONTROLS |= dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)


class _PipeConsole(Console):
    """Leaves a reader that has gone, e.g. head, to the command."""

    def on_broken_pipe(self) -> None:
        """Called while BrokenPipeError is handled."""
        raise BrokenPipeError


def make_console() -> Console:
    """A console on standard output; a file or pipe gets wider lines than a terminal that is not known."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else _PIPE_WIDTH
    return _PipeConsole(width=width, highlight=False, markup=False, emoji=False)


def clean(text: str) -> str:
    """Text without characters that command a terminal or change the direction of writing."""
    return text.translate(_CONTROLS)


def print_account(console: Console, account: Account) -> None:
    """Print what became of every part, the budget and the notes."""
    console.print(_table(account.entries, console.width))
    console.print(_bar(console, account))
    before = sum(entry.tokens_before for entry in account.entries)
    found = account.counts()
    counts = ", ".join(f"{found[level]:,} {level}" for level in Level if level in found)
    console.print(Text(f"parts {len(account.entries):,} ({counts}), {before:,} tokens whole"))
    for note in account.notes:
        console.print(Text(f"note: {clean(note)}", style="yellow"), soft_wrap=True)


def print_messages(console: Console, messages: Sequence[Message], counter: TokenCounter) -> None:
    """Print messages in full; pictures and sounds as a line each."""
    for message in messages:
        name = f" ({clean(message.name)})" if message.name else ""
        console.print()
        console.rule(Text(f"{message.role}{name}", style="bold"), align="left", style="dim")
        for block in message.content:
            console.print(_block(block, counter), soft_wrap=True)
        for call in message.tool_calls:
            said = clean(json.dumps(call, ensure_ascii=False, default=str))
            console.print(Text(said, style="magenta"), soft_wrap=True)


def styled(text: str) -> Text:
    """Text as it is sent; headings and the marks of what is left out stand out."""
    shown = Text()
    for i, line in enumerate(clean(text).split("\n")):
        style = "bold" if line.startswith("#") else "yellow italic" if LEFT_OUT.match(line) else ""
        shown.append("\n" * (i > 0))
        shown.append(line, style=style)
    return shown


def _block(block: TextBlock | ImageBlock | AudioBlock | OtherBlock, counter: TokenCounter) -> Text:
    match block:
        case TextBlock(text=text):
            return styled(text)
        case ImageBlock(url=url, width=width, height=height):
            size = f"{width}x{height}" if width and height else "of unknown size"
            where = "" if url.startswith("data:") else f", {clean(url)}"
            tokens = counter.image(width, height)
            return Text(f"[image {size}, {tokens:,} tokens{where}]", style="magenta")
        case AudioBlock(duration_s=seconds):
            return Text(f"[audio {seconds:.2f} s, {counter.audio(seconds):,} tokens]", style="magenta")
        case OtherBlock(data=data):
            return Text(clean(json.dumps(data, ensure_ascii=False, default=str)), style="magenta")


def _table(entries: Sequence[Entry], width: int) -> Table:
    """A row per part; where it is narrow, modality and reason stand below the part."""
    is_narrow = width < _NARROW
    shown = _shown(entries)
    names = [Text(clean(entry.part_id).replace("\n", "\u2424").replace("\t", "\u2409")) for entry in shown]
    costs = [f"{entry.tokens_before:,} \u2192 {entry.tokens_after:,}" for entry in shown]
    table = Table(header_style="bold")
    if is_narrow:
        table.add_column("part", overflow="fold")
    else:
        # Names are worth more than reasons in one line: reasons can be broken between words.
        left = width - _FRAME - max((len(cost) for cost in costs), default=0)
        longest = max((cell_len(name.plain) for name in names), default=0)
        table.add_column("part", overflow="fold", max_width=max(4, min(longest, left - _MIN_WHY)))
        table.add_column("modality", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("what", no_wrap=True)
    if not is_narrow:
        table.add_column("why", overflow="fold", max_width=max(_MIN_WHY, left - longest))
    for entry, name, cost in zip(shown, names, costs, strict=True):
        modality = Text(entry.modality, style=_MODALITY_STYLES[entry.modality])
        level = Text(entry.level, style=_LEVEL_STYLES[entry.level])
        why = Text(clean(entry.why).replace("\n", " "), style="dim")
        if is_narrow:
            table.add_row(Text.assemble(name, "\n", modality, " \u00b7 ", why), cost, level)
        else:
            table.add_row(name, modality, cost, level, why)
    if len(shown) < len(entries):
        rest = f"and {len(entries) - len(shown):,} more parts; --html and --json show all"
        table.add_row(Text(rest, style="dim"), *([""] * (len(table.columns) - 1)))
    return table


def _shown(entries: Sequence[Entry]) -> list[Entry]:
    if len(entries) <= MAX_ROWS:
        return list(entries)
    ranked = sorted(range(len(entries)), key=lambda i: (-entries[i].tokens_after, -entries[i].weight))
    return [entries[i] for i in sorted(ranked[:MAX_ROWS])]


def _bar(console: Console, account: Account) -> Text:
    """The budget: a bar with a stretch per modality, and the figures."""
    limit = max(account.max_tokens, account.num_tokens, 1)
    width = min(_BAR_WIDTH, max(8, console.width - 4))
    full, free = ("\u2588", "\u2591") if console.encoding.startswith("utf") else ("#", ".")
    fixed = account.instruction_tokens + account.history_tokens
    stretches = [("white", fixed)]
    for modality in Modality:
        tokens = sum(one.tokens_after for one in account.entries if one.modality is modality)
        stretches.append((_MODALITY_STYLES[modality], tokens))
    rest = account.num_tokens - sum(tokens for _, tokens in stretches)
    stretches.append(("white", max(rest, 0)))
    bar, done, drawn = Text(), 0, 0
    for style, tokens in stretches:
        done += tokens
        end = min(width, round(width * done / limit))
        bar.append(full * (end - drawn), style=style)
        drawn = max(drawn, end)
    bar.append(free * (width - drawn), style="dim")
    bar.append(f" {account.num_tokens:,} of {account.max_tokens:,} tokens", style="bold")
    parts = [f"instruction {account.instruction_tokens:,}", f"history {account.history_tokens:,}"]
    parts.append(f"state {account.state_tokens:,} of at most {account.state_limit:,}")
    bar.append("\n" + ", ".join(parts))
    return bar
