"""Notebooks: cells, outputs, errors and figures as parts.

Ids follow the notebook: ``report.ipynb/cell-3f2a/output-0``, with the cell's own id where the file has one
(nbformat 4.5) and its position otherwise. Nothing is checked against nbformat's schema: whatever can be
read is read, and the rest is told as a problem.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.notebook_output import Emit, OutputReader, joined
from sensorium.observations.notebook_source import load_notebook
from sensorium.observations.values import CellValue, ProblemValue

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAGIC = re.compile(r"\s*%%(\w+!?)")
_MAGIC_LANGUAGES = {
    "bash": "bash",
    "sh": "bash",
    "script": "bash",
    "html": "html",
    "svg": "xml",
    "javascript": "javascript",
    "js": "javascript",
    "latex": "latex",
    "markdown": "markdown",
    "perl": "perl",
    "ruby": "ruby",
    "R": "r",
    "sql": "sql",
    "bigquery": "sql",
    "cython": "cython",
}
_EMBEDDED = re.compile(r"data:(image/[a-z+.-]+);base64,([A-Za-z0-9+/=\s]{64,}?)(?=[)\"'>]|$)")
CellType = Literal["code", "markdown", "raw"]
_CELL_TYPES: dict[str, CellType] = {"code": "code", "markdown": "markdown", "raw": "raw"}


def read_notebook(
    raw: Any,
    *,
    part_id: str = "notebook",
    config: ReadConfig = ReadConfig(),
    is_cut: bool = False,
) -> list[Part]:
    """Read a notebook of nbformat 1 to 4.5.

    Args:
        raw: A mapping, nbformat's NotebookNode, or the JSON text or bytes of an ``.ipynb`` file.
        part_id: Id of the notebook; ids of cells begin with it.
        config: Limits.
        is_cut: `raw` is only the beginning of the file.

    Returns:
        A part per cell, per output (consecutive prints to one stream are one output), per figure. A
        damaged notebook also has a part ``{part_id}/problem-{i}`` for each thing that is wrong.
    """
    source = load_notebook(raw, config.max_bytes, is_cut=is_cut)
    parts: list[Part] = []

    def emit(id: str, modality: Modality, value: Any, notes: tuple[str, ...] = ()) -> None:
        parts.append(Part(id=id, modality=modality, value=value, notes=notes))

    for number, (what, mend) in enumerate(source.problems):
        problem = ProblemValue(what=encodable(what), where=part_id, mend=mend)
        emit(f"{part_id}/problem-{number}", Modality.NOTEBOOK, problem)
    outputs = OutputReader(emit, config)
    taken: set[str] = set()
    for index, cell in enumerate(source.cells):
        cell_id = f"{part_id}/cell-{_key(cell, index, taken, source.has_ids)}"
        if isinstance(cell, Mapping):
            _read_cell(cell, index, cell_id, source.language, emit, outputs)
        else:
            what = f"the cell is of type {type(cell).__name__} instead of a JSON object"
            emit(cell_id, Modality.NOTEBOOK, ProblemValue(what=what, where=cell_id))
    return parts


def _key(cell: Any, index: int, taken: set[str], has_ids: bool) -> str:
    """The cell's own id when it is a proper and new one, otherwise its position."""
    own = cell.get("id") if has_ids and isinstance(cell, Mapping) else None
    key = own if isinstance(own, str) and own not in taken and _ID.fullmatch(own) else str(index)
    while key in taken:
        key += "-again"
    taken.add(key)
    return key


def _read_cell(
    cell: Mapping[str, Any], index: int, cell_id: str, language: str, emit: Emit, outputs: OutputReader
) -> None:
    kind = cell.get("cell_type")
    cell_type = _CELL_TYPES.get(kind) if isinstance(kind, str) else None
    notes: tuple[str, ...] = ()
    if cell_type is None:
        cell_type = "code" if "outputs" in cell else "raw"
        notes = (f"the file gives its type as {encodable(repr(kind)[:60])}",)
    source = joined(cell.get("source", cell.get("input")))
    embedded: list[tuple[str, str]] = []
    if cell_type == "markdown" and ";base64," in source:
        source = _without_pictures(source, embedded)
    if cell_type == "code":
        magic = _MAGIC.match(source)
        language = _MAGIC_LANGUAGES.get(magic.group(1), language) if magic else language
    count = cell.get("execution_count")
    value = CellValue(
        index=index,
        cell_type=cell_type,
        source=source,
        language=language if cell_type == "code" else cell_type,
        execution_count=count if isinstance(count, int) and not isinstance(count, bool) else None,
    )
    emit(cell_id, Modality.NOTEBOOK, value, notes)
    for number, (mime, data) in enumerate(embedded):
        outputs.read_picture(mime, data, f"{cell_id}/picture-{number}")
    for name, mime, data in _attachments(cell):
        outputs.read_picture(mime, data, f"{cell_id}/{name}")
    if "outputs" in cell:
        outputs.read(cell["outputs"], cell_id)


def _without_pictures(source: str, embedded: list[tuple[str, str]]) -> str:
    def replaced(match: re.Match[str]) -> str:
        embedded.append((match.group(1), match.group(2)))
        return f"picture-{len(embedded) - 1}"

    return _EMBEDDED.sub(replaced, source)


def _attachments(cell: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    attachments = cell.get("attachments")
    if not isinstance(attachments, Mapping):
        return
    for number, bundle in enumerate(attachments.values()):
        if isinstance(bundle, Mapping):
            for mime, data in bundle.items():
                if isinstance(mime, str) and mime.startswith("image/"):
                    yield f"attachment-{number}", mime, data
                    break
