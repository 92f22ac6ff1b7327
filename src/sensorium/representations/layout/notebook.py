"""Notebook cells and their outputs as segments."""

from collections.abc import Sequence

from sensorium.core.counted import counted
from sensorium.observations.base import Part
from sensorium.observations.text import TextFormat
from sensorium.observations.values import CellValue, CodeValue, OutputValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import MultimodalConfig, NotebookConfig
from sensorium.representations.layout.code import code_document
from sensorium.representations.layout.line_count import said_lines
from sensorium.representations.layout.output_lines import Line, weigh_printed, weigh_traceback
from sensorium.representations.layout.text import text_document
from sensorium.representations.layout.typed import value_of
from sensorium.representations.scoring import worth

_PINNED_CHARS = 300
_LONG_LINE = 2_000
_ALL = MultimodalConfig()
_NAMES = {"execute_result": "result", "display_data": "shown", "error": "error", "stream": "stdout"}


def lay_out_cell(part: Part, config: MultimodalConfig = _ALL) -> Document:
    """Lay the source of a cell out: code as code (without line numbers), markdown as markdown.

    Args:
        part: A part with a `CellValue`.
        config: `code.max_lines` and `code.include_comments` hold for code cells, `text.max_chars` for others.
    """
    value = value_of(part, CellValue, "notebook cells")
    if value.cell_type != "code":
        kind: TextFormat = "markdown" if value.cell_type == "markdown" else "plain"
        return text_document(value.source, kind, config.text, f"cell {value.index} ({value.cell_type})")
    code = CodeValue(text=value.source, language=value.language)
    run = "not run" if value.execution_count is None else f"run {value.execution_count}"
    return code_document(code, config.code, f"cell {value.index} (code, {run})", is_numbered=False)


def lay_out_output(part: Part, config: NotebookConfig = NotebookConfig()) -> Document:
    """Lay an output out, a segment per line.

    Args:
        part: A part with an `OutputValue`.
        config: `max_output_lines`: of a longer output the beginning, the end and the telling lines between.

    Returns:
        The document. The line with the exception and the line of the last own frame are pinned; errors,
        warnings and results weigh most.
    """
    value = value_of(part, OutputValue, "outputs of cells")
    texts = _divided(value.text.split("\n")) if value.text else []
    name, error = value.stream or _NAMES[value.output_type], value.error
    if error is None:
        title, limit = f"{name}, {said_lines(value.text)}", config.max_output_lines
        if len(texts) > limit:
            return Document(title, _segments(weigh_printed(texts), limit), fence="")
        return Document(title, lambda: _segments(weigh_printed(texts), limit), fence="", texts=texts)
    lines = weigh_traceback(texts, error)
    segments: list[Segment] = []
    if not any(line.is_pinned for line in lines):
        said = f"{error.type}: {error.message}" if error.message else error.type
        segments.append(Segment(said[:_PINNED_CHARS], 6.0, "exception", None, True))
    segments += _segments(lines, config.max_output_lines)
    name = f"{name} {error.type}" if value.output_type == "error" else f"{name} with {error.type}"
    return Document(f"{name}, {said_lines(value.text)}", segments, fence="")


def _segments(lines: Sequence[Line], max_lines: int) -> list[Segment]:
    kept = _kept(lines, max_lines)
    segments: list[Segment] = []
    previous = -1
    for number in kept:
        if number > previous + 1:
            segments.append(_gap(previous + 1, number, max_lines))
        line = lines[number]
        pinned = line.is_pinned and len(line.text) <= _PINNED_CHARS
        segments.append(Segment(line.text, line.weight, f"line {number + 1}", None, pinned))
        previous = number
    if previous + 1 < len(lines):
        segments.append(_gap(previous + 1, len(lines), max_lines))
    return segments


def _gap(first: int, end: int, max_lines: int) -> Segment:
    count = end - first
    return Segment(
        f"... {counted(count, 'line')} not shown (max_output_lines: {max_lines}) ...",
        0.3,
        f"line {first + 1}",
    )


def _kept(lines: Sequence[Line], max_lines: int) -> Sequence[int]:
    """Lines within the limit: a quarter from the beginning, half from the end, the worthiest between."""
    count = len(lines)
    if count <= max_lines:
        return range(count)
    tail = max(1, max_lines // 2)
    head = min(max_lines - tail, max_lines // 4)
    chosen = {*range(head), *range(count - tail, count)}
    worths = worth(Document("", tuple(Segment(line.text, line.weight) for line in lines)))
    between = sorted(range(head, count - tail), key=lambda i: (not lines[i].is_pinned, -worths[i], i))
    chosen.update(between[: max_lines - len(chosen)])
    return sorted(chosen)


def _divided(lines: list[str]) -> list[str]:
    """Lines, overlong ones in pieces."""
    if all(len(line) <= _LONG_LINE for line in lines):
        return lines
    return [
        line[start : start + _LONG_LINE]
        for line in lines
        for start in range(0, max(1, len(line)), _LONG_LINE)
    ]
