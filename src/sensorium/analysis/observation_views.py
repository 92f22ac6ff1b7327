"""The raw content of a part, of whatever kind, as views that a page can draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensorium.analysis.observation_drawing import (
    Mark,
    View,
    ViewLimits,
    grid,
    heading,
    media_view,
    note,
    pairs,
    plain_json,
    shorten,
    text_views,
)
from sensorium.analysis.observation_media import PageMedia
from sensorium.analysis.pictures import depth_picture, value_range
from sensorium.core.counted import counted
from sensorium.core.errors import MissingDependencyError
from sensorium.core.types import Modality
from sensorium.observations.array import array_of
from sensorium.observations.base import Part
from sensorium.observations.values import (
    ArrayValue,
    AudioValue,
    CellValue,
    CodeValue,
    Column,
    FieldNote,
    ImageValue,
    MessagesValue,
    OutputValue,
    ProblemValue,
    ProprioValue,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
)

_ARRAY_SIDE = 256


def raw_views(part: Part, media: PageMedia, limits: ViewLimits | None = None) -> list[View]:
    """What a part holds, in the order to be drawn.

    Args:
        part: Any part.
        media: Takes the part's picture or sound.
        limits: How much is shown.
    """
    limits = limits or ViewLimits()
    value = part.value
    match value:
        case TextValue():
            return text_views(value.text, limits)
        case MessagesValue():
            return _messages(value, limits)
        case StructuredValue():
            return _structured(value, limits)
        case CodeValue():
            return _code(value, limits)
        case CellValue():
            head = [note(f"{value.cell_type} cell, " + _run_of(value))]
            return head + text_views(value.source, limits)
        case OutputValue():
            kind = value.stream or value.output_type.replace("_", " ")
            views = [note(kind), *text_views(value.text, limits)]
            return views + (_stack(value.error) if value.error is not None and not value.text else [])
        case TableValue():
            return _table(value, limits)
        case ArrayValue():
            return _array(value, part.modality)
        case ImageValue():
            return _image(value, media)
        case AudioValue():
            return _audio(value, media)
        case ProprioValue():
            return _proprio(value, limits)
        case ProblemValue():
            rows = [("what", value.what), ("where", value.where), ("what to do", value.mend)]
            return [pairs([row for row in rows if row[1]], tone="bad")]


def _messages(value: MessagesValue, limits: ViewLimits) -> list[View]:
    views: list[View] = []
    shown = value.turns[: limits.rows]
    for turn in shown:
        views.append(heading(turn.role if turn.name is None else f"{turn.role} ({turn.name})"))
        views += text_views(turn.content, limits._replace(chars=limits.chars // max(len(shown), 1)))
    return [*views, *_missing(len(value.turns), len(shown), "turns")]


def _structured(value: StructuredValue, limits: ViewLimits) -> list[View]:
    text, is_cut = plain_json(value.data, limits)
    views = text_views(text, limits)
    if is_cut:
        views.append(note("The rest of the data is not in this page"))
    if not value.fields:
        return views
    fields = value.fields[: limits.rows]
    table = grid(("field", "type", "range", "missing", "meaning"), [_field(one) for one in fields], labels=1)
    return [
        heading("Fields"),
        table,
        *_missing(len(value.fields), len(fields), "fields"),
        heading("Data"),
        *views,
    ]


def _field(field: FieldNote) -> tuple[str, ...]:
    bounds = _bounds(field)
    unit = "" if field.unit is None else f" {field.unit}"
    examples = "" if bounds or not field.examples else f"e.g. {', '.join(field.examples)}"
    return (
        field.path,
        field.type,
        shorten(bounds + unit if bounds else (unit.strip() or examples), 120),
        f"{100 * field.missing:.3g} %" if field.missing else "",
        field.meaning or "",
    )


def _code(value: CodeValue, limits: ViewLimits) -> list[View]:
    marks: dict[int, Mark] = {}
    if value.cursor_line is not None:
        column = f", column {value.cursor_column}" if value.cursor_column is not None else ""
        marks[value.cursor_line] = Mark("cursor", f"cursor{column}")
    for fault in value.faults:
        marks[fault.line] = Mark("bad", f"column {fault.column}: {fault.message}")
    is_state_alone = not value.text and bool(value.stack or value.variables or value.tests)
    about = [] if is_state_alone else [("language", value.language or "unknown")]
    if value.path:
        about.append(("path", value.path))
    if value.tools:
        about.append(("tools", ", ".join(value.tools)))
    views = [pairs(about)] if about else []
    views += [] if is_state_alone else text_views(value.text, limits, marks=marks)
    if value.stack is not None:
        views += _stack(value.stack)
    if value.variables:
        names = list(value.variables.items())[: limits.rows]
        views += [heading("Variables"), pairs([(name, shorten(said, 500)) for name, said in names])]
        views += _missing(len(value.variables), len(names), "variables")
    if value.tests:
        rows = [(one.name, one.status, shorten(one.message, 500)) for one in value.tests[: limits.rows]]
        views += [heading("Tests"), grid(("test", "result", "message"), rows, labels=1)]
        views += _missing(len(value.tests), len(rows), "tests")
    return views


def _stack(stack: StackTrace) -> list[View]:
    rows = [
        (frame.file, "" if frame.line is None else str(frame.line), frame.function or "", frame.code or "")
        for frame in stack.frames[-50:]
    ]
    said = f"{stack.type}: {stack.message}" if stack.message else stack.type
    views = [heading("Stack trace"), note(shorten(said, 2_000), tone="bad")]
    return [*views, grid(("file", "line", "function", "code"), rows)] if rows else views


def _run_of(cell: CellValue) -> str:
    if cell.cell_type != "code":
        return f"number {cell.index}"
    run = "not executed" if cell.execution_count is None else f"run {cell.execution_count}"
    return f"number {cell.index}, {cell.language}, {run}"


def _table(value: TableValue, limits: ViewLimits) -> list[View]:
    sample = ", a sample of the source" if value.is_sample else ""
    views = [note(f"{counted(value.num_rows, 'row')}, {counted(len(value.columns), 'column')}{sample}")]
    columns = value.columns[: limits.columns]
    profile = [_column(column) for column in columns]
    head = ("column", "type", "missing", "distinct", "range", "mean")
    views += [heading("Columns"), grid(head, profile, labels=1)]
    views += _missing(len(value.columns), len(columns), "columns")
    if value.notable:
        said = [(f"row {one.row}", one.reason) for one in value.notable[: limits.rows]]
        views += [heading("Rows that stand out"), pairs(said)]
    numbers = value.row_numbers if len(value.row_numbers) == len(value.rows) else range(len(value.rows))
    labels: Sequence[Any] = value.index if value.index and len(value.index) == len(numbers) else numbers
    rows = [
        (str(label), *(shorten(_cell(cell), limits.cell_chars) for cell in row[: len(columns)]))
        for label, row in zip(labels, value.rows[: limits.rows], strict=False)
    ]
    if rows:
        table = grid(("", *(column.name for column in columns)), rows, labels=1)
        table["numbers"] = list(numbers[: len(rows)])
        views += [heading("Rows"), table]
    return [*views, *_missing(value.num_rows, len(rows), "rows")]


def _bounds(one: FieldNote | Column) -> str:
    return "" if one.low is None and one.high is None else f"{_cell(one.low)} .. {_cell(one.high)}"


def _column(column: Column) -> tuple[str, ...]:
    top = ", ".join(f"{_cell(value)} ({count:,})" for value, count in column.top[:4])
    return (
        column.name,
        column.dtype,
        f"{column.missing:,}" if column.missing else "",
        "" if column.distinct is None else f"{column.distinct:,}",
        shorten(f"{_bounds(column)} {column.unit or ''}".strip() or top, 160),
        "" if column.mean is None else f"{column.mean:.4g}",
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _array(value: ArrayValue, modality: Modality) -> list[View]:
    unit = f" {value.unit}" if value.unit else ""
    rows = [("shape", " x ".join(map(str, value.shape)) or "one number"), ("type", value.dtype)]
    for name in ("low", "high", "mean", "std"):
        number = getattr(value, name)
        if number is not None:
            rows.append((name, f"{number:.6g}{unit}"))
    if value.num_non_finite:
        rows.append(("not finite", f"{value.num_non_finite:,}"))
    views = [pairs(rows)]
    picture = _array_picture(value, near_is_bright=modality is Modality.DEPTH)
    if picture is not None:
        views.append(
            {
                "t": "picture",
                "url": picture,
                "caption": "bright is near" if modality is Modality.DEPTH else "bright is high",
            }
        )
    elif value.data is None:
        views.append(note("Its values are not kept in the part"))
    return views


def _array_picture(value: ArrayValue, *, near_is_bright: bool) -> str | None:
    """A picture of a matrix, as a ``data:`` URL; None for other shapes and types."""
    shape = tuple(side for side in value.shape if side != 1)
    if len(shape) != 2 or not shape[0] * shape[1]:
        return None
    try:
        array = array_of(value)
        if array is None:
            return None
        matrix = array.reshape(shape)
        strides = [max(1, side // _ARRAY_SIDE) for side in shape]
        small = matrix[:: strides[0], :: strides[1]].astype(np.float32)
        low, high = value_range(small)
        if near_is_bright:
            return depth_picture(small[..., None], (low, high))
        return depth_picture(-small[..., None], (-high, -low))
    except (TypeError, ValueError, MissingDependencyError):
        return None


def _image(value: ImageValue, media: PageMedia) -> list[View]:
    size = (value.width, value.height) if value.width and value.height else None
    said = [f"{size[0]}x{size[1]}"] if size else []
    if value.data is not None:
        said += [value.mime.removeprefix("image/").upper(), f"{len(value.data) / 1024:,.1f} KB"]
        embedded = media.image(value.data, value.mime)
    else:
        embedded = media.image_url(value.url or "an unknown place")
    views = [media_view("image", embedded, ", ".join(said), size)]
    if value.alt:
        views.append(note(value.alt))
    if value.url and value.data is not None:
        views.append(note(f"from {shorten(value.url, 300)}"))
    return views


def _audio(value: AudioValue, media: PageMedia) -> list[View]:
    channels = {1: "mono", 2: "stereo"}.get(value.channels, f"{value.channels} channels")
    rows = [("length", f"{value.duration_s:.2f} s"), ("rate", f"{value.rate_hz:,} Hz, {channels}")]
    for name, level in (("peak", value.peak_dbfs), ("loudness", value.loudness_dbfs)):
        rows.append((name, "silence" if level is None else f"{level:.1f} dBFS"))
    return [media_view("audio", media.audio(value.data, value.mime), value.mime), pairs(rows)]


def _proprio(value: ProprioValue, limits: ViewLimits) -> list[View]:
    units = value.units or ("",) * len(value.names)
    rows = [
        (name, f"{number:.6g} {unit}".strip())
        for name, number, unit in zip(value.names, value.values, units, strict=False)
    ][: limits.rows]
    return [pairs(rows), *_missing(len(value.names), len(rows), "values")]


def _missing(total: int, shown: int, what: str) -> list[View]:
    return [note(f"{total - shown:,} of {total:,} {what} are not in this page")] if total > shown else []
