"""Outputs of notebook cells: printed text, results, errors, tables and figures."""

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from sensorium.core.types import Modality
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.terminal import screen_text
from sensorium.observations.values import OutputValue, ProblemValue, StackTrace

MAX_OUTPUT_CHARS = 4_000_000
"""Characters of one output that are kept, from its beginning and its end."""
_MAX_TABLE_CHARS = 1_000_000
_PICTURES = ("image/png", "image/jpeg", "image/svg+xml", "image/webp", "image/gif")
_REPR = re.compile(r"<[^<>]{1,200}>|Figure\(\d+x\d+\)|<Figure size .*>")
_CUT_TABLE = re.compile(r"^\s*\.\.\.?\s|\s\.\.\.\s|\\$|\[\d+ rows x \d+ columns\]", re.MULTILINE)
OutputType = Literal["stream", "execute_result", "display_data", "error"]
_TYPES: dict[str, OutputType] = {
    "stream": "stream",
    "execute_result": "execute_result",
    "display_data": "display_data",
    "update_display_data": "display_data",
    "error": "error",
}


@runtime_checkable
class Emit(Protocol):
    """Adds a part."""

    def __call__(self, id: str, modality: Modality, value: Any, notes: tuple[str, ...] = ()) -> None:
        """Add a part with this id, content and notes."""
        ...


class OutputReader:
    """Turns the outputs of cells into parts."""

    def __init__(self, emit: Emit, config: ReadConfig) -> None:
        self._emit = emit
        self._config = config

    def read(self, outputs: Any, cell_id: str) -> None:
        """Add the parts of one cell's outputs.

        Args:
            outputs: The list of outputs of nbformat 4; anything else becomes a problem.
            cell_id: Id of the cell; outputs are numbered from 0 below it.
        """
        if outputs is None:
            return
        if not isinstance(outputs, list | tuple):
            what = f"the cell's outputs are of type {type(outputs).__name__} instead of a list"
            self._emit(f"{cell_id}/problem", Modality.NOTEBOOK, ProblemValue(what=what, where=cell_id))
            return
        number = 0
        pending: list[str] = []
        stream_name: Literal["stdout", "stderr"] | None = None
        for output in outputs:
            name = _stream_name(output)
            if pending and name != stream_name:
                self._stream(pending, stream_name, f"{cell_id}/output-{number}")
                number, pending = number + 1, []
            if name is not None:
                pending.append(joined(output.get("text")))
                stream_name = name
                continue
            self._one(output, f"{cell_id}/output-{number}")
            number += 1
        if pending:
            self._stream(pending, stream_name, f"{cell_id}/output-{number}")

    def read_picture(self, mime: str, data: Any, part_id: str, alt: str = "") -> bool:
        """Add a picture of a mime bundle (base64, or the text of an SVG).

        Returns:
            Whether it could be read; otherwise a problem was added instead.
        """
        from sensorium.observations.image import read_image

        text = joined(data)
        if mime == "image/svg+xml":
            encoded = text.encode("utf-8", "replace")
        else:
            try:
                encoded = binascii.a2b_base64(text)
            except (ValueError, binascii.Error) as error:
                what = f"the picture ({mime}) is not valid base64: {error}"
                mend = "Run the cell again."
                self._emit(part_id, Modality.IMAGE, ProblemValue(what=what, where=part_id, mend=mend))
                return False
        parts = read_image(encoded, part_id=part_id, config=self._config, alt=alt)
        for part in parts:
            self._emit(part.id, part.modality, part.value, part.notes)
        return not any(isinstance(part.value, ProblemValue) for part in parts)

    def _stream(self, pieces: list[str], name: Literal["stdout", "stderr"] | None, part_id: str) -> None:
        text, notes = _shown("".join(pieces))
        error = None
        if "Traceback (most recent call last)" in text:
            error = _parsed_traceback(text)
        value = OutputValue(output_type="stream", text=text, stream=name, error=error)
        self._emit(part_id, Modality.NOTEBOOK, value, notes)

    def _one(self, output: Any, part_id: str) -> None:
        if not isinstance(output, Mapping):
            what = f"the output is of type {type(output).__name__} instead of a JSON object"
            self._emit(part_id, Modality.NOTEBOOK, ProblemValue(what=what, where=part_id))
            return
        kind = output.get("output_type")
        output_type = _TYPES.get(kind) if isinstance(kind, str) else None
        if output_type == "error" or (output_type is None and "ename" in output):
            self._error(output, part_id)
            return
        data = output.get("data")
        if not isinstance(data, Mapping):
            text, notes = _shown(joined(output.get("text", data)))
            notes += (
                (f"an output of unknown type {encodable(repr(kind)[:60])}",) if output_type is None else ()
            )
            value = OutputValue(output_type=output_type or "display_data", text=text)
            self._emit(part_id, Modality.NOTEBOOK, value, notes)
            return
        self._bundle(data, output_type or "display_data", part_id)

    def _error(self, output: Mapping[str, Any], part_id: str) -> None:
        name, message = joined(output.get("ename")), _shown(joined(output.get("evalue")))[0]
        lines = output.get("traceback")
        text, notes = _shown(
            "\n".join(map(joined, lines)) if isinstance(lines, list | tuple) else joined(lines)
        )
        text = text or ": ".join(filter(None, (name, message)))
        stack = _parsed_traceback(text)
        if stack is None:
            stack = StackTrace(type=name or "error", message=message)
        elif name:
            stack = stack.model_copy(update={"type": name, "message": message})
        value = OutputValue(output_type="error", text=text, error=stack)
        self._emit(part_id, Modality.NOTEBOOK, value, notes)

    def _bundle(self, data: Mapping[str, Any], output_type: OutputType, part_id: str) -> None:
        plain = joined(data.get("text/plain"))
        for mime in _PICTURES:
            if mime in data:
                is_label = bool(_REPR.fullmatch(plain.strip()))
                is_read = self.read_picture(mime, data[mime], part_id, alt="" if is_label else plain[:500])
                if plain and not (is_label and is_read):
                    text, notes = _shown(plain)
                    value = OutputValue(output_type=output_type, text=text)
                    self._emit(f"{part_id}/text", Modality.NOTEBOOK, value, notes)
                return
        html = data.get("text/html")
        if html is not None and (not plain or _CUT_TABLE.search(plain[:20_000])):
            markup = joined(html)
            if "<table" in markup and self._table(markup, part_id):
                return
        text, notes = _shown(_best_text(data, plain))
        self._emit(part_id, Modality.NOTEBOOK, OutputValue(output_type=output_type, text=text), notes)

    def _table(self, markup: str, part_id: str) -> bool:
        from sensorium.observations.html_text import html_table
        from sensorium.observations.table import shown_table

        if len(markup) > _MAX_TABLE_CHARS:
            return False
        table = html_table(markup)
        if table is None or len(table.rows[0]) - table.num_labels < 1:
            return False
        value, notes = shown_table(table, self._config)
        self._emit(part_id, Modality.TABLE, value, notes)
        return True


def _stream_name(output: Any) -> Literal["stdout", "stderr"] | None:
    if isinstance(output, Mapping) and output.get("output_type") == "stream":
        return "stderr" if output.get("name") == "stderr" else "stdout"
    return None


def joined(text: Any) -> str:
    """Text of a notebook field: a string, or a list of lines; anything else as `str` writes it."""
    if isinstance(text, str):
        return encodable(text)
    if isinstance(text, list | tuple):
        return encodable("".join([line if isinstance(line, str) else str(line) for line in text]))
    return "" if text is None else encodable(str(text))


def _shown(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as a terminal shows it, cut to a bound."""
    notes: tuple[str, ...] = ()
    if len(text) > MAX_OUTPUT_CHARS:
        half = MAX_OUTPUT_CHARS // 2
        left_out = len(text) - 2 * half
        notes = (f"{left_out:,} of {len(text):,} characters in its middle were not read",)
        text = f"{text[:half]}\n... {left_out:,} characters left out ...\n{text[-half:]}"
    return screen_text(text).rstrip("\n"), notes


def _parsed_traceback(text: str) -> StackTrace | None:
    from sensorium.observations.traces import parse_traceback

    return parse_traceback(text)


def _best_text(data: Mapping[str, Any], plain: str) -> str:
    """The most telling text of a bundle: markdown, LaTeX, plain text, the words of HTML, JSON, its kind."""
    for mime in ("text/markdown", "text/latex"):
        if data.get(mime):
            return joined(data[mime])
    is_label = bool(_REPR.fullmatch(plain.strip()))
    if plain and not is_label:
        return plain
    if data.get("text/html"):
        from sensorium.observations.html_text import html_text

        text = html_text(joined(data["text/html"])[:MAX_OUTPUT_CHARS])
        if text:
            return text
    for mime, content in data.items():
        if isinstance(mime, str) and "plotly" in mime and isinstance(content, Mapping):
            return _plotly(content)
    if "application/json" in data:
        return _as_json(data["application/json"])
    if plain:
        return plain
    kinds = ", ".join(f"{mime} ({len(joined(content)):,} characters)" for mime, content in data.items())
    return encodable(f"[{kinds or 'empty output'}]")


def _as_json(content: Any) -> str:
    try:
        return encodable(json.dumps(content, indent=1, ensure_ascii=False, default=str))
    except (ValueError, RecursionError, TypeError):
        return "[application/json that cannot be shown]"


def _plotly(content: Mapping[str, Any]) -> str:
    """Title, axes and traces of a plotly figure."""
    layout, traces = content.get("layout"), content.get("data")
    layout = layout if isinstance(layout, Mapping) else {}
    lines = ["plotly figure"]
    for name in ("title", "xaxis", "yaxis"):
        title = layout.get(name)
        for _ in range(2):
            if isinstance(title, Mapping):
                title = title.get("text", title.get("title"))
        if isinstance(title, str):
            lines.append(f"{name}: {title}")
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, Mapping):
            points = next(
                (len(trace[k]) for k in ("x", "y", "z", "values") if isinstance(trace.get(k), list)), 0
            )
            lines.append(f"trace {trace.get('type', 'scatter')} {trace.get('name', '')!s}: {points:,} points")
    return encodable("\n".join(lines))
