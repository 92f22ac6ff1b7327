"""Running text: what it is written in, and what is wrong with it."""

import re
from typing import Literal

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.files import suffix_of
from sensorium.observations.terminal import strip_ansi
from sensorium.observations.traces import parse_traceback
from sensorium.observations.values import ProblemValue, TextValue

TextFormat = Literal["plain", "markdown", "log", "traceback", "html"]

_SAMPLE = 20_000
"""Characters from the beginning that decide the format."""
_SUFFIXES: dict[str, TextFormat] = {
    "md": "markdown",
    "markdown": "markdown",
    "mdx": "markdown",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "log": "log",
}
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.I | re.S
)
_HTML_TAG = re.compile(r"</(?:p|div|table|span|a|ul|ol|li|h[1-6]|tr|td)>", re.I)
_LOG_LINE = re.compile(
    r"^(?:"
    r"[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ,]+\d\d:\d\d(?::\d\d)?"  # 2024-05-01 12:00:00
    r"|[\[(]?\d\d:\d\d:\d\d[.,\]) ]"  # 12:00:00,123
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d "  # syslog
    r"|\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"  # web server
    r"|[\[<(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)[\]>):| ]"
    r")"
)
_LEVEL_BEGINS = frozenset("[<(TDINWECF")
_LINE_MARK = re.compile(r"#{1,6} \S|```|~~~|[*+-] \S|\d{1,3}\. \S|> \S|\|.*\|[ \t]*$")
_MARK_BEGINS = frozenset("#`~*+->|")
_INLINE_MARK = re.compile(r"\*\*\S[^*]*\*\*|\[[^\]]+\]\([^)]+\)")
_STRONG_MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|~~~|\|[ :|-]*-[ :|-]*\|[ \t]*$)", re.M)


def read_text(
    raw: str | bytes,
    *,
    part_id: str,
    config: ReadConfig | None = None,
    format: TextFormat | None = None,
    path: str | None = None,
) -> list[Part]:
    """Read running text.

    Args:
        raw: A string, or bytes in UTF-8, UTF-16 or UTF-32; other bytes are shown as well as possible.
        part_id: Id of the part.
        config: `max_bytes` limits what is read.
        format: How it is written; found from the path and the text when not given.
        path: Name of the file, whose suffix says how it is written.

    Returns:
        One text part; for bytes that are not text a part with a problem.
    """
    decoded = decode(raw, max_bytes=(config or ReadConfig()).max_bytes)
    if decoded.is_binary:
        problem = ProblemValue(
            what=f"not text: {len(raw):,} bytes of binary data",
            where=part_id,
            mend="convert it to text, or give it a file name whose suffix says what it is",
        )
        return [Part(id=part_id, modality=Modality.TEXT, value=problem)]
    text, notes = decoded.text, decoded.notes
    if "\x1b" in text:
        text, notes = strip_ansi(text), (*notes, "terminal colours are removed")
    value = TextValue(text=text, format=format or detect_format(text, path=path))
    return [Part(id=part_id, modality=Modality.TEXT, value=value, notes=notes)]


def detect_format(text: str, *, path: str | None = None) -> TextFormat:
    """How a text is written, from the suffix of its path or from its beginning.

    A traceback is only called so when it makes up most of the text; a log that contains one stays a log.
    """
    if path and (found := _SUFFIXES.get(suffix_of(path))) is not None:
        return found
    sample = text[:_SAMPLE]
    if _is_traceback(text, sample):
        return "traceback"
    if "<" in sample and (_HTML.match(sample) or _is_mostly_tags(sample)):
        return "html"
    lines = [line for line in sample.split("\n") if line.strip()]
    count = len(lines) or 1
    logged = sum(map(_is_logged, lines))
    if logged >= 2 and logged >= 0.4 * count:
        return "log"
    marks = sum(map(_count_marks, lines))
    strong = bool(_STRONG_MARKDOWN.search(sample))
    if marks and ((strong and marks >= 0.03 * count) or (marks >= 3 and marks >= 0.2 * count)):
        return "markdown"
    return "plain"


def _is_logged(line: str) -> bool:
    """Whether a line begins as those of a log; a quick look leaves few lines for the pattern."""
    return (":" in line or line[0] in _LEVEL_BEGINS) and _LOG_LINE.match(line) is not None


def _count_marks(line: str) -> int:
    """Marks of markdown in a line."""
    match = _LINE_MARK.match(line) if line[0] in _MARK_BEGINS or line[0].isdecimal() else None
    found = 0 if match is None else 1
    if "**" in line or "](" in line:
        found += len(_INLINE_MARK.findall(line, match.end() if match else 0))
    return found


def _is_mostly_tags(sample: str) -> bool:
    tags = len(_HTML_TAG.findall(sample))
    return sample.lstrip().startswith("<") and tags >= 2 and tags * 200 >= len(sample)


def _is_traceback(text: str, sample: str) -> bool:
    hints = (
        "Traceback (most recent call last)",
        "SyntaxError: ",
        "panicked at ",
        "goroutine ",
        "\n    at ",
        "#0 ",
    )
    position = min((at for hint in hints if (at := sample.find(hint)) >= 0), default=-1)
    if position < 0 or text.count("\n", 0, position) > 8:
        return False
    trace = parse_traceback(text)
    return trace is not None and bool(trace.frames) and _LOG_LINE.match(sample) is None
