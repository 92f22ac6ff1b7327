"""Structured data: API responses, configuration files, results of queries, Python objects."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element

import yaml

from sensorium.core.errors import ObservationError
from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.broken_json import MAX_DIGITS, save_json
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.field_notes import describe_columns, describe_fields
from sensorium.observations.plain import HARD_DEPTH, to_plain
from sensorium.observations.values import FieldNote, ProblemValue, StructuredValue, TextValue
from sensorium.observations.xml import parse_xml

StructuredFormat = Literal["json", "yaml", "toml", "xml", "sql"]

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
_MAX_YAML_NESTING = 400
_FLOW = re.compile(r"[\[{]+|[\]}]+")
_INDENT = re.compile(r"^ *(?:[-?] +)*", re.M)
_LARGE_CHARS = 8 * 1024 * 1024
"""Of longer JSON only as many values are read as are looked at: all of them could take gigabytes."""
_MAX_SLOW_CHARS = 1_500_000
"""Of YAML and TOML only so much is read: their parsers take seconds for a megabyte."""
_MAX_DEEP_YAML_CHARS = 200_000
_YAML_TOP = re.compile(r"\n(?=[^\s#\]}])")
_TOML_TOP = re.compile(r"\n(?=\[)")


class _Loaded(NamedTuple):
    data: Any
    problem: str | None = None
    """What is wrong; what could be saved is in `data`."""
    where: str = ""
    is_empty: bool = False
    """Nothing could be saved."""
    notes: tuple[str, ...] = ()


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
    return [_part(_Loaded(raw), part_id, config, "json", meanings)]


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
    if path and "." in path:
        found = _SUFFIXES.get(path.rsplit(".", 1)[1].lower())
        if found is not None:
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
    loaded = _LOADERS.get(format, _load_json)(decoded.text, config)
    if is_cut and loaded.problem is not None:
        loaded = loaded._replace(problem=None, notes=("it is larger than what was read of it",))
    if loaded.is_empty:
        notes = (*decoded.notes, *loaded.notes)
        text = Part(id=part_id, modality=Modality.TEXT, value=TextValue(text=decoded.text), notes=notes)
        if loaded.problem is None:
            return [text]
        return [text, _problem(part_id, loaded.problem, f"{part_id}{loaded.where}", _MEND[format])]
    loaded = loaded._replace(notes=(*decoded.notes, *loaded.notes))
    part = _part(loaded, part_id, config, format, meanings)
    if loaded.problem is None:
        return [part]
    return [part, _problem(part_id, loaded.problem, f"{part_id}{loaded.where}", _MEND[format])]


def _part(
    loaded: _Loaded,
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


def _load_json(text: str, config: ReadConfig) -> _Loaded:
    if not text.strip():
        return _Loaded(None, "the text is empty", is_empty=True)
    is_large = len(text) > _LARGE_CHARS
    if not is_large:
        try:
            return _Loaded(json.loads(text, parse_int=_integer))
        except (ValueError, RecursionError) as error:
            if "Extra data" in str(error) and (lines := _load_lines(text, config)) is not None:
                return lines
    elif _begins_with_lines(text) and (lines := _load_lines(text, config)) is not None:
        return lines
    most = config.max_items + 2 if is_large else None  # two more, so that it is noticed that there are more
    saved = save_json(text, max_depth=min(config.max_depth, HARD_DEPTH), max_items=most)
    if saved.what is None:
        # A text that is not large was only too deep: values that are too many are noted where they are cut.
        deep = f"values nested more than {config.max_depth} deep are left out"
        return _Loaded(saved.data, notes=() if is_large else (deep,))
    where = f": line {saved.line}, column {saved.column}"
    if saved.is_empty or saved.data in ({}, []) or not isinstance(saved.data, dict | list):
        return _Loaded(None, f"broken JSON: {saved.what}", where, is_empty=True)
    note = "broken: what could be read before the first mistake"
    return _Loaded(saved.data, f"broken JSON: {saved.what}", where, notes=(note,))


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else f"<integer of {len(digits):,} digits>"


def _begins_with_lines(text: str) -> bool:
    """Whether the first line of a large text is a JSON value by itself."""
    first = text[: text.find("\n") + 1]
    try:
        return isinstance(json.loads(first, parse_int=_integer), dict | list)
    except (ValueError, RecursionError):
        return False


def _load_lines(text: str, config: ReadConfig) -> _Loaded | None:
    """JSON lines, as many as hold `max_items` values; None when the text is none."""
    records: list[Any] = []
    broken: list[int] = []
    left, number, end = config.max_items + 2, 0, 0
    while end < len(text) and left > 0:
        number += 1
        start, end = end, (text.find("\n", end) + 1) or len(text)
        line = text[start:end]
        if not line.strip():
            continue
        try:
            records.append(json.loads(line, parse_int=_integer))
        except (ValueError, RecursionError):
            broken.append(number)
            if len(broken) > max(3, len(records)):
                return None
        left -= 1 + line.count(",") + line.count(":")
    if len(records) < 2:
        return None
    total = number + text.count("\n", end)
    notes = (f"JSON lines: {len(records):,} records",)
    if end < len(text):
        notes = (f"JSON lines: the first {len(records):,} of about {total:,} records",)
    if not broken:
        return _Loaded(records, notes=notes)
    what = f"{len(broken):,} of {len(records) + len(broken):,} lines are not JSON"
    return _Loaded(records, what, f": lines {', '.join(map(str, broken[:10]))}", notes=notes)


def _beginning(text: str, top: re.Pattern[str]) -> tuple[str, tuple[str, ...]]:
    """As much of a text as is read, up to a line that begins something new, and a note if it was cut."""
    if len(text) <= _MAX_SLOW_CHARS:
        return text, ()
    found = top.search(text, _MAX_SLOW_CHARS)
    if found is None or found.start() > 2 * _MAX_SLOW_CHARS:
        cut = text.rfind("\n", 0, _MAX_SLOW_CHARS) + 1 or _MAX_SLOW_CHARS
    else:
        cut = found.end()
    return text[:cut], (f"the first {cut:,} of {len(text):,} characters were read",)


def _yaml_nesting(text: str) -> int:
    """How deep a YAML text is nested at most; brackets in its texts count, too."""
    depth = flow = 0
    for found in _FLOW.finditer(text):
        length = found.end() - found.start()
        depth = max(0, depth + (length if found.group()[0] in "[{" else -length))
        flow = max(flow, depth)
    return flow + max(len(found.group()) for found in _INDENT.finditer(text))


def _load_yaml(text: str, config: ReadConfig) -> _Loaded:
    text, notes = _beginning(text, _YAML_TOP)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if _yaml_nesting(text) > _MAX_YAML_NESTING:
        # The C parser recurses without a limit; the other one raises, but takes its time.
        if len(text) > _MAX_DEEP_YAML_CHARS:
            return _Loaded(None, "broken YAML: it is nested too deeply", is_empty=True)
        loader = yaml.SafeLoader
    documents: list[Any] = []
    try:
        for document in yaml.load_all(text, Loader=loader):  # both are safe loaders
            documents.append(document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        return _Loaded(None, f"broken YAML: {error.problem or error.context}", where, is_empty=True)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError, KeyError) as error:
        return _Loaded(None, f"broken YAML: {error}", is_empty=True)
    except RecursionError:
        return _Loaded(None, "broken YAML: it is nested too deeply", is_empty=True)
    if len(documents) == 1:
        return _Loaded(documents[0], is_empty=isinstance(documents[0], str), notes=notes)
    return _Loaded(documents, notes=(f"{len(documents):,} documents", *notes), is_empty=not documents)


def _load_toml(text: str, config: ReadConfig) -> _Loaded:
    text, notes = _beginning(text, _TOML_TOP)
    try:
        return _Loaded(tomllib.loads(text), notes=notes)
    except tomllib.TOMLDecodeError as error:
        return _Loaded(None, f"broken TOML: {error}", is_empty=True)
    except (ValueError, RecursionError) as error:
        return _Loaded(None, f"broken TOML: {type(error).__name__}: {error}", is_empty=True)


def _load_xml(text: str, config: ReadConfig) -> _Loaded:
    try:
        root = parse_xml(
            re.sub(r"^(\s*<\?xml[^>]*?)\s+encoding=(?:\"[^\"]*\"|'[^']*')", r"\1", text[:200]) + text[200:]
        )
    except ObservationError as error:
        return _Loaded(None, str(error), is_empty=True)
    return _Loaded({root.tag: _element(root, config.max_depth)})


def _element(root: Element, max_depth: int) -> Any:
    """An element as data: attributes as ``@name``, text as ``#text``, equal tags as a list."""
    plain: list[Any] = []
    stack: list[tuple[Element, Callable[[Any], None], int]] = [(root, plain.append, 0)]
    while stack:
        element, put, depth = stack.pop()
        text = (element.text or "").strip()
        if not len(element) and not element.attrib:
            put(text or None)
            continue
        target: dict[str, Any] = {f"@{key}": value for key, value in element.attrib.items()}
        if text:
            target["#text"] = text
        put(target)
        if depth >= max_depth:
            target["#text"] = f"<{len(element):,} elements, nested deeper>"
            continue
        repeated: dict[str, int] = {}
        for child in element:
            repeated[child.tag] = repeated.get(child.tag, 0) + 1
        for tag, count in repeated.items():
            target[tag] = [None] * count if count > 1 else None
        position: dict[str, int] = {}
        for child in element:
            at = position.get(child.tag, 0)
            position[child.tag] = at + 1
            is_list = repeated[child.tag] > 1
            stack.append(
                (
                    child,
                    _setter(target[child.tag] if is_list else target, at if is_list else child.tag),
                    depth + 1,
                )
            )
    return plain[0]


def _setter(target: Any, key: int | str) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        target[key] = value

    return put


_LOADERS: dict[str, Callable[[str, ReadConfig], _Loaded]] = {
    "json": _load_json,
    "yaml": _load_yaml,
    "toml": _load_toml,
    "xml": _load_xml,
}
_MEND = {
    "json": "check the place with a JSON validator; a file that was cut off must be written again",
    "yaml": "check indentation and quotes at this place",
    "toml": "check quotes and brackets at this place",
    "xml": "check that every tag is closed; XML with a DTD must be given without it",
    "sql": "run the query again",
}
