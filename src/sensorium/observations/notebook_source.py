"""Notebook files: from JSON of any version, whole or damaged, to cells in the form of version 4."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sensorium.core.counted import counted
from sensorium.observations.salvage import closed, salvaged_objects

_CELL_START = re.compile(r'\{\s*"(?:cell_type|id|execution_count|metadata|attachments|source)"\s*:')
_CELL_KEYS = frozenset({"cell_type", "source", "input", "outputs"})
_OLD_OUTPUTS = {"pyout": "execute_result", "pyerr": "error"}


class NotebookSource(NamedTuple):
    """A notebook's cells, its language, and what went wrong while reading it."""

    cells: list[Any]
    language: str
    problems: list[tuple[str, str]]
    """What is wrong and how to mend it."""
    has_ids: bool
    """Whether the ids of cells come from the file (those of converted notebooks are random)."""


def load_notebook(raw: Any, max_bytes: int, *, is_cut: bool = False) -> NotebookSource:
    """Read a notebook as far as it can be read; never raises.

    Args:
        raw: A mapping (such as nbformat's NotebookNode), or JSON text or bytes.
        max_bytes: Bytes or characters of JSON that are looked at.
        is_cut: `raw` is only the beginning of the file.
    """
    problems: list[tuple[str, str]] = []
    notebook = raw if isinstance(raw, Mapping) else _parsed(raw, max_bytes, problems, is_cut)
    if not isinstance(notebook, Mapping):
        if not problems:
            problems.append((f"a notebook must be a JSON object, found {type(notebook).__name__}", ""))
        return NotebookSource([], "python", problems, has_ids=False)
    has_ids = True
    major = notebook.get("nbformat")
    worksheets = notebook.get("worksheets")
    if isinstance(worksheets, list) or (isinstance(major, int) and major < 4):
        notebook, has_ids = _upgraded(notebook, problems), False
    cells = notebook.get("cells")
    if isinstance(cells, tuple):
        cells = list(cells)
    if not isinstance(cells, list):
        found = "no list of cells" if cells is None else f"cells of type {type(cells).__name__}"
        problems.append((f"the notebook has {found}", "Check that the file is a Jupyter notebook."))
        cells = []
    return NotebookSource(cells, _language(notebook), problems, has_ids)


def _parsed(raw: Any, max_bytes: int, problems: list[tuple[str, str]], is_cut: bool) -> Any:
    if is_cut or len(raw) > max_bytes:
        is_cut = True
        what = f"the notebook has more than {max_bytes:,} bytes; cells behind them are not read"
        problems.append((what, "Raise reading.max_bytes, or clear large outputs."))
        raw = raw[:max_bytes]
    text = raw if isinstance(raw, str) else _decoded(bytes(raw), is_cut, problems)
    text = text.removeprefix("\ufeff")
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        problems.append(("the notebook's JSON is nested too deeply to be read", ""))
        return None
    except ValueError as error:
        cells = _salvaged(text)
        if not is_cut:
            what = f"the notebook is not valid JSON ({error})" if text.strip() else "the notebook is empty"
            saved = f"; {counted(len(cells), 'cell')} could be saved" if text.strip() else ""
            problems.append((what + saved, "Restore the file from a checkpoint or from version control."))
        header = closed(text) if not cells else _header(text)
        if not isinstance(header, Mapping):
            return {"cells": cells} if cells else None
        return {**header, "cells": cells or header.get("cells", [])}


def _decoded(data: bytes, is_cut: bool, problems: list[tuple[str, str]]) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not (is_cut and error.start >= len(data) - 4):
            problems.append(
                (f"the notebook is not valid UTF-8 (at byte {error.start:,})", "Save it again as UTF-8.")
            )
        return data.decode("utf-8", "replace")


def _salvaged(text: str) -> list[Any]:
    start = text.find('"cells"')
    if start < 0:
        return []
    return list(salvaged_objects(text, start, _CELL_START, _CELL_KEYS))


def _header(text: str) -> Any:
    """Metadata of a damaged notebook, which stands before or behind its cells."""
    for key in ("kernelspec", "language_info"):
        match = re.search(rf'"{key}"\s*:\s*(?=\{{)', text)
        found = closed(text[match.end() : match.end() + 4_000]) if match else None
        if isinstance(found, Mapping):
            return {"metadata": {key: found}}
    return {}


def _upgraded(notebook: Mapping[str, Any], problems: list[tuple[str, str]]) -> Mapping[str, Any]:
    """The notebook in version 4: by nbformat, and by hand where that fails."""
    try:
        import copy
        import logging

        import nbformat
        from traitlets.log import get_logger

        logger: Any = get_logger()
        logger = getattr(logger, "logger", logger)  # an adapter holds one
        level = logger.level
        logger.setLevel(logging.CRITICAL)  # it reports schema violations that do not matter here
        try:
            plain = copy.deepcopy(dict(notebook))
            _join_headings(plain)
            node = nbformat.from_dict(plain)  # type: ignore[no-untyped-call]
            return dict(nbformat.convert(node, 4))  # type: ignore[no-untyped-call]
        finally:
            logger.setLevel(level)
    except Exception as error:  # damaged notebooks raise anything
        worksheets = notebook.get("worksheets")
        sheets = worksheets if isinstance(worksheets, list) else [notebook]
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, Mapping)]
        cells = [_upgraded_cell(cell) for cells in lists if isinstance(cells, list) for cell in cells]
        problems.append(
            (
                f"nbformat could not convert the notebook of version {notebook.get('nbformat')!r} "
                f"({type(error).__name__}: {str(error)[:200]}); it was read as it is",
                "Install nbformat, or save the notebook with a present version of Jupyter.",
            )
        )
        return {**notebook, "cells": cells}


def _join_headings(notebook: dict[str, Any]) -> None:
    """Lists of lines in headings become text, which nbformat's conversion expects."""
    for sheet in notebook.get("worksheets", ()):
        for cell in sheet.get("cells", ()):
            if cell.get("cell_type") == "heading" and isinstance(cell.get("source"), list):
                cell["source"] = "".join(map(str, cell["source"]))


def _upgraded_cell(cell: Any) -> Any:
    if not isinstance(cell, Mapping):
        return cell
    new = dict(cell)
    if cell.get("cell_type") == "heading":
        level = cell.get("level")
        new["cell_type"] = "markdown"
        source = cell.get("source", "")
        title = "".join(map(str, source)) if isinstance(source, list) else str(source)
        new["source"] = "#" * (level if isinstance(level, int) and 0 < level < 7 else 1) + f" {title}"
    new.setdefault("source", cell.get("input", ""))
    new.setdefault("execution_count", cell.get("prompt_number"))
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        new["outputs"] = [_upgraded_output(output) for output in outputs]
    return new


def _upgraded_output(output: Any) -> Any:
    if not isinstance(output, Mapping):
        return output
    kind = output.get("output_type")
    new = {**output, "output_type": _OLD_OUTPUTS.get(kind, kind) if isinstance(kind, str) else kind}
    if "stream" in output:
        new.setdefault("name", output["stream"])
    mimes = {"png": "image/png", "jpeg": "image/jpeg", "svg": "image/svg+xml", "html": "text/html"}
    mimes |= {"text": "text/plain", "latex": "text/latex"}
    data = {mime: output[key] for key, mime in mimes.items() if key in output}
    if data and kind != "stream":
        new.setdefault("data", data)
    return new


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    if isinstance(metadata, Mapping):
        for key, name in (("language_info", "name"), ("kernelspec", "language")):
            section = metadata.get(key)
            language = section.get(name) if isinstance(section, Mapping) else None
            if isinstance(language, str) and language:
                return language.lower()
    return "python"
