"""Structured data: API responses, configuration files, results of queries, Python objects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.field_notes import describe_columns, describe_fields
from sensorium.observations.files import suffix_of
from sensorium.observations.plain import to_plain
from sensorium.observations.structured_text import Loaded, StructuredFormat, load_text
from sensorium.observations.values import FieldNote, ProblemValue, StructuredValue, TextValue

_SUFFIXES: dict[str, StructuredFormat] = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "geojson": "json",
    "webmanifest": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "xml": "xml",
    "svg": "xml",
}


def read_structured(
    raw: Any,
    *,
    part_id: str,
    config: ReadConfig | None = None,
    format: StructuredFormat | None = None,
    path: str | None = None,
    meanings: Mapping[str, str] | None = None,
    is_cut: bool = False,
) -> list[Part]:
    """Read structured data and describe its fields.

    Args:
        raw: Text or bytes of JSON, JSON lines, YAML, TOML or XML; an open database cursor with a result
            (anything with ``description`` and ``fetchmany``); or any Python object: dicts, lists,
            dataclasses, pydantic models, NumPy scalars and whatever lies in them.
        part_id: Id of the part.
        config: Limits: `max_bytes` of text, `max_depth`, `max_items`, and `max_rows` and `keep_rows` of
            results.
        format: How a text is written; found from path and text when not given.
        path: Name of the file.
        meanings: Path (``orders[].price``) or name of a field -> what it means; the rest is guessed.
        is_cut: `raw` is the beginning of a larger file: that it breaks off is no problem.

    Returns:
        A structured part. Of a broken text what could be saved (or the text itself), and after it a part
        ``.../problem`` that says what is wrong, where, and how to mend it.
    """
    config = config or ReadConfig()
    if isinstance(raw, str | bytes | bytearray):
        text = bytes(raw) if isinstance(raw, bytearray) else raw
        found = format or detect_structure(text, path=path) or "json"
        is_cut = is_cut or len(raw) > config.max_bytes
        return _read_text(text, part_id, config, found, meanings, is_cut=is_cut)
    if hasattr(raw, "description") and hasattr(raw, "fetchmany"):
        return _read_cursor(raw, part_id, config, meanings)
    return [_part(Loaded(raw), part_id, config, "json", meanings)]


def read_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    part_id: str,
    config: ReadConfig | None = None,
    meanings: Mapping[str, str] | None = None,
) -> list[Part]:
    """Read the result of a database query.

    Args:
        columns: Their names; two may be equal.
        rows: Rows of values, one per column. `config.max_rows` of them are looked at, `config.keep_rows`
            kept.
        part_id: Id of the part.
        config: Limits.
        meanings: Name of a column -> what it means.

    Returns:
        A structured part of format ``sql`` whose data is ``{"columns": [...], "rows": [[...], ...]}``.
    """
    config = config or ReadConfig()
    problem: str | None = None
    taken: list[list[Any]] = []
    most = max(1, min(config.max_rows, config.max_items // max(1, len(columns))))
    try:
        for row in islice(rows, most + 1):
            taken.append(list(row))
    except Exception as error:  # the database went away, a row is no sequence
        problem = f"reading row {len(taken):,} fails: {type(error).__name__}: {error}"
    notes = []
    if len(taken) > most:
        taken.pop()
        notes.append(f"only the first {most:,} rows were read")
    plain = to_plain(taken, max_depth=config.max_depth, max_items=config.max_items * 2 + len(taken))
    names = [decode(str(name)).text for name in columns]
    kept = plain.data[: config.keep_rows]
    if len(kept) < len(taken):
        notes.append(
            f"{len(kept):,} of {len(taken):,} rows are kept; the notes on fields are about all of them"
        )
    value = StructuredValue(
        data={"columns": names, "rows": kept},
        format="sql",
        fields=describe_columns(names, plain.data, meanings=meanings),
    )
    part = Part(id=part_id, modality=Modality.TEXT, value=value, notes=(*notes, *plain.notes))
    return [part] if problem is None else [part, _problem(part_id, problem, part_id, "run the query again")]


def detect_structure(raw: str | bytes, *, path: str | None = None) -> StructuredFormat | None:
    """How a text is structured: by the suffix of its path, else (JSON and XML) by how it begins.

    Returns:
        None for a text that looks like prose. YAML and TOML are recognised by their suffix only.
    """
    if path and (found := _SUFFIXES.get(suffix_of(path))) is not None:
        return found
    head = decode(raw[:2_000]).text.lstrip()
    if head[:1] == "{" or head[:1] == "[":
        rest = head[1:].lstrip()
        # `[1] footnote` and `[INFO] log` are prose, `{x}` is a template.
        starts = (
            ('"', "}")
            if head[0] == "{"
            else ('"', "[", "{", "]", "-", *"0123456789", "true", "false", "null")
        )
        is_footnote = bool(re.match(r"\[[-\d ]+\](?: *[^\s\]]|\[|\()", head))
        return "json" if not rest or (rest.startswith(starts) and not is_footnote) else None
    if head.startswith("<?xml") or re.match(r"<testsuites?[\s>]", head):
        return "xml"
    return None


def _read_text(
    raw: str | bytes,
    part_id: str,
    config: ReadConfig,
    format: StructuredFormat,
    meanings: Mapping[str, str] | None,
    *,
    is_cut: bool,
) -> list[Part]:
    decoded = decode(raw, max_bytes=config.max_bytes)
    if decoded.is_binary:
        what = f"not structured text: {len(raw):,} bytes of binary data"
        return [_problem(part_id, what, part_id, "give text", is_only=True)]
    loaded = load_text(decoded.text, format, config)
    if is_cut and loaded.problem is not None:
        loaded = loaded._replace(problem=None, notes=("it is larger than what was read of it",))
    if loaded.is_empty:
        notes = (*decoded.notes, *loaded.notes)
        text = Part(id=part_id, modality=Modality.TEXT, value=TextValue(text=decoded.text), notes=notes)
        if loaded.problem is None:
            return [text]
        mend = _MEND[format] if decoded.text.strip() else "write it again, or leave it out"
        return [text, _problem(part_id, loaded.problem, f"{part_id}{loaded.where}", mend)]
    loaded = loaded._replace(notes=(*decoded.notes, *loaded.notes))
    part = _part(loaded, part_id, config, format, meanings)
    if loaded.problem is None:
        return [part]
    return [part, _problem(part_id, loaded.problem, f"{part_id}{loaded.where}", _MEND[format])]


def _part(
    loaded: Loaded,
    part_id: str,
    config: ReadConfig,
    format: StructuredFormat,
    meanings: Mapping[str, str] | None,
) -> Part:
    plain = to_plain(loaded.data, max_depth=config.max_depth, max_items=config.max_items)
    fields: tuple[FieldNote, ...] = describe_fields(plain.data, meanings=meanings, max_items=config.max_items)
    value = StructuredValue(data=plain.data, format=format, fields=fields)
    return Part(id=part_id, modality=Modality.TEXT, value=value, notes=(*loaded.notes, *plain.notes))


def _problem(part_id: str, what: str, where: str, mend: str, *, is_only: bool = False) -> Part:
    value = ProblemValue(what=decode(what).text[:500], where=where, mend=mend)
    return Part(id=part_id if is_only else f"{part_id}/problem", modality=Modality.TEXT, value=value)


def _read_cursor(
    cursor: Any, part_id: str, config: ReadConfig, meanings: Mapping[str, str] | None
) -> list[Part]:
    description = cursor.description
    if not description:
        what = "the cursor holds no result"
        return [_problem(part_id, what, part_id, "execute a query that returns rows first", is_only=True)]
    columns = [str(column[0]) for column in description]
    return read_rows(columns, _fetched(cursor), part_id=part_id, config=config, meanings=meanings)


def _fetched(cursor: Any) -> Iterable[Sequence[Any]]:
    while rows := cursor.fetchmany(1_000):
        yield from rows


_MEND = {
    "json": "check the place with a JSON validator; a file that was cut off must be written again",
    "yaml": "check indentation, quotes and tags at this place",
    "toml": "check quotes and brackets at this place",
    "xml": "check that every tag is closed; XML with a DTD must be given without it",
    "sql": "run the query again",
}
