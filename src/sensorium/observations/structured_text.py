"""Texts of JSON, JSON lines, YAML, TOML and XML become data; what is broken or too large is read in part."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element

import yaml

from sensorium.core.counted import counted
from sensorium.core.errors import ObservationError
from sensorium.observations.broken_json import MAX_DIGITS, save_json
from sensorium.observations.config import ReadConfig
from sensorium.observations.plain import HARD_DEPTH
from sensorium.observations.xml import parse_xml

StructuredFormat = Literal["json", "yaml", "toml", "xml", "sql"]

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


class Loaded(NamedTuple):
    """What a text holds."""

    data: Any
    problem: str | None = None
    """What is wrong; what could be saved is in `data`."""
    where: str = ""
    is_empty: bool = False
    """Nothing could be saved."""
    notes: tuple[str, ...] = ()


def load_text(text: str, format: StructuredFormat, config: ReadConfig) -> Loaded:
    """Read a text; never raises.

    Args:
        text: JSON, JSON lines, YAML, TOML or XML.
        format: Which of them.
        config: `max_items` values of a large JSON text are read, and `max_depth` levels of a deep one.
    """
    return _LOADERS.get(format, _load_json)(text, config)


def _load_json(text: str, config: ReadConfig) -> Loaded:
    if not text.strip():
        return Loaded(None, "the text is empty", is_empty=True)
    is_large = len(text) > _LARGE_CHARS
    if not is_large:
        try:
            return Loaded(json.loads(text, parse_int=_integer))
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
        return Loaded(saved.data, notes=() if is_large else (deep,))
    where = f": line {saved.line}, column {saved.column}"
    if saved.is_empty or saved.data in ({}, []) or not isinstance(saved.data, dict | list):
        return Loaded(None, f"broken JSON: {saved.what}", where, is_empty=True)
    note = "broken: what could be read before the first mistake"
    return Loaded(saved.data, f"broken JSON: {saved.what}", where, notes=(note,))


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else f"<integer of {len(digits):,} digits>"


def _begins_with_lines(text: str) -> bool:
    """Whether the first line of a large text is a JSON value by itself."""
    first = text[: text.find("\n") + 1]
    try:
        return isinstance(json.loads(first, parse_int=_integer), dict | list)
    except (ValueError, RecursionError):
        return False


def _load_lines(text: str, config: ReadConfig) -> Loaded | None:
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
    notes = (f"JSON lines: {counted(len(records), 'record')}",)
    if end < len(text):
        notes = (f"JSON lines: the first {len(records):,} of about {total:,} records",)
    if not broken:
        return Loaded(records, notes=notes)
    what = f"{len(broken):,} of {len(records) + len(broken):,} lines are not JSON"
    return Loaded(records, what, f": lines {', '.join(map(str, broken[:10]))}", notes=notes)


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


def _load_yaml(text: str, config: ReadConfig) -> Loaded:
    text, notes = _beginning(text, _YAML_TOP)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if _yaml_nesting(text) > _MAX_YAML_NESTING:
        # The C parser recurses without a limit; the other one raises, but takes its time.
        if len(text) > _MAX_DEEP_YAML_CHARS:
            return Loaded(None, "broken YAML: it is nested too deeply", is_empty=True)
        loader = yaml.SafeLoader
    documents: list[Any] = []
    try:
        for document in yaml.load_all(text, Loader=loader):  # both are safe loaders
            documents.append(document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        return Loaded(None, f"broken YAML: {error.problem or error.context}", where, is_empty=True)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError, KeyError) as error:
        return Loaded(None, f"broken YAML: {error}", is_empty=True)
    except RecursionError:
        return Loaded(None, "broken YAML: it is nested too deeply", is_empty=True)
    if len(documents) == 1:
        return Loaded(documents[0], is_empty=isinstance(documents[0], str), notes=notes)
    return Loaded(documents, notes=(f"{len(documents):,} documents", *notes), is_empty=not documents)


def _load_toml(text: str, config: ReadConfig) -> Loaded:
    text, notes = _beginning(text, _TOML_TOP)
    try:
        return Loaded(tomllib.loads(text), notes=notes)
    except tomllib.TOMLDecodeError as error:
        return Loaded(None, f"broken TOML: {error}", is_empty=True)
    except (ValueError, RecursionError) as error:
        return Loaded(None, f"broken TOML: {type(error).__name__}: {error}", is_empty=True)


def _load_xml(text: str, config: ReadConfig) -> Loaded:
    try:
        root = parse_xml(
            re.sub(r"^(\s*<\?xml[^>]*?)\s+encoding=(?:\"[^\"]*\"|'[^']*')", r"\1", text[:200]) + text[200:]
        )
    except ObservationError as error:
        return Loaded(None, str(error), is_empty=True)
    return Loaded({root.tag: _element(root, config.max_depth)})


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


_LOADERS: dict[str, Callable[[str, ReadConfig], Loaded]] = {
    "json": _load_json,
    "yaml": _load_yaml,
    "toml": _load_toml,
    "xml": _load_xml,
}
