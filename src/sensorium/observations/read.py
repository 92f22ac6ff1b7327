"""Any raw state becomes an observation: the reader is chosen by the type of the object.

str                     text; JSON, a notebook's JSON or XML are recognised; never taken for a path
bytes                   what their first bytes say
pathlib.Path            a file by its content and ending; a directory with all its files
dict                    a notebook; a conversation; plain data; or named raw states, a part for each
list, tuple             a conversation; records; plain data; or raw states
DataFrame, Series       a table (pandas, polars)
array, tensor           a picture (8-bit, 3 or 4 channels), depth (by its name) or an array
Pillow picture, exception, database cursor, dataclass, pydantic model, Part, Observation
Source                  any of these with what its owner knows of it
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.kinds import holds_columns, kind_of_bytes, kind_of_name, kind_of_text
from sensorium.observations.profile import safe_repr, safe_str
from sensorium.observations.shapes import (
    has_file_names,
    is_conversation,
    is_notebook,
    is_perceivable,
    is_records,
    modality_of_array,
)
from sensorium.observations.source import Source
from sensorium.observations.terminal import one_line
from sensorium.observations.values import ProblemValue

_MAX_NESTING = 16
_MAX_REPR_CHARS = 20_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # another one in every run


def read(
    raw: Any,
    *,
    name: str = "",
    config: ReadConfig = ReadConfig(),
    timestamp_s: float | None = None,
) -> Observation:
    r"""Read a raw state; never raises for what is in it.

    Args:
        raw: Any object that the module's table lists; of others the ``repr`` is shown.
        name: Begins the ids of all parts, e.g. ``report.ipynb``; found from the kind when empty.
        config: Limits.
        timestamp_s: When it was taken, seconds; parts that have a time of their own keep it.

    Returns:
        The parts. What cannot be read is a part with a `ProblemValue`.

    Example:
        >>> [part.id for part in read({"goal": "Tidy up.", "log.csv": b"t_s,x\n0,1\n1,3\n"})]
        ['goal', 'log.csv']
    """
    reader = Reader(config)
    reader.read(Source(raw, timestamp_s=timestamp_s), encodable(name), nesting=0)
    return Observation(parts=tuple(reader.parts), timestamp_s=timestamp_s)


class Reader:
    """Collects parts with unique ids."""

    def __init__(self, config: ReadConfig) -> None:
        self.config = config
        self.parts: list[Part] = []
        self._taken: set[str] = set()
        self._above: set[str] = set()
        """Ids in which a part lies, e.g. ``report.ipynb``."""

    def read(self, source: Source, part_id: str, *, nesting: int) -> None:
        """Add the parts of a raw state.

        Args:
            source: The state and what is known of it.
            part_id: Its id; an empty one is chosen by its kind.
            nesting: How many containers it lies in.
        """
        before = len(self.parts)
        try:
            self._dispatch(source, part_id, nesting)
        except Exception as error:  # foreign objects may raise anything
            del self.parts[before:]
            what = (
                f"{type(source.raw).__name__} cannot be read: {type(error).__name__}: {safe_str(error)[:500]}"
            )
            problem = ProblemValue(what=encodable(what), where=part_id)
            modality = source.modality or Modality.TEXT
            self.add([Part(id=part_id or "state", modality=modality, value=problem)], source)

    def add(self, parts: Iterable[Part], source: Source, notes: tuple[str, ...] = ()) -> None:
        """Take parts over with the time and weight of their source, under ids that are still free."""
        for part in parts:
            update: dict[str, Any] = {}
            name = one_line(part.id)
            if name in self._taken:
                name = self._free(name)
            if name != part.id:
                update["id"] = name
            if part.timestamp_s is None and source.timestamp_s is not None:
                update["timestamp_s"] = source.timestamp_s
            if source.importance != 1.0:
                update["importance"] = part.importance * source.importance
            if notes:
                update["notes"] = (*notes, *part.notes)
            part = part.model_copy(update=update) if update else part
            self._take(part.id)
            self.parts.append(part)

    def reserve(self, part_id: str) -> str:
        """A name that no part has or lies in yet."""
        part_id = one_line(part_id)
        if part_id in self._taken or part_id in self._above:
            return self._free(part_id)
        return part_id

    def _take(self, part_id: str) -> None:
        self._taken.add(part_id)
        above = part_id.rpartition("/")[0]
        while above and above not in self._above:
            self._above.add(above)
            above = above.rpartition("/")[0]

    def _free(self, part_id: str) -> str:
        number = 2
        while f"{part_id}~{number}" in self._taken or f"{part_id}~{number}" in self._above:
            number += 1
        return f"{part_id}~{number}"

    def _dispatch(self, source: Source, part_id: str, nesting: int) -> None:
        raw = source.raw
        if isinstance(raw, Source):
            self.read(_within(source, raw), part_id, nesting=nesting)
        elif isinstance(raw, Part):
            self.add([raw], source)
        elif isinstance(raw, Observation):
            inner = dataclasses.replace(source, timestamp_s=raw.timestamp_s or source.timestamp_s)
            self.add(raw.parts, inner)
        elif isinstance(raw, Path):
            from sensorium.observations.paths import read_path

            read_path(self, source, raw, part_id)
        elif source.modality is not None:
            self._forced(source, part_id)
        elif isinstance(raw, str):
            self._text(source, part_id)
        elif isinstance(raw, bytes | bytearray | memoryview):
            self.read_bytes(bytes(raw), source, part_id)
        elif isinstance(raw, Mapping):
            self._mapping(source, part_id, nesting)
        elif isinstance(raw, list | tuple):
            self._sequence(source, part_id, nesting)
        else:
            self._object(source, part_id)

    def read_bytes(self, data: bytes, source: Source, part_id: str, notes: tuple[str, ...] = ()) -> None:
        """Add the parts of a file's content.

        Args:
            data: The content.
            source: What is known; its `path` is the name that may tell the kind.
            part_id: Id; chosen by the kind when empty.
            notes: What the parts must also say.
        """
        from sensorium.observations.contents import parts_of_kind

        if data[:3] == b"\x1f\x8b\x08":
            from sensorium.observations.files import unpacked

            content = unpacked(data, len(data), self.config, part_id or "the state")
            if content.problem is None:
                data, notes = content.data, (*notes, *content.notes)
                source = dataclasses.replace(source, is_cut=content.is_cut)
        kind, words = kind_of_bytes(data, source.path or part_id)
        if kind in ("text", "structured") and kind_of_text(data) == "notebook":
            kind = "notebook"
        name = part_id or kind
        self.add(parts_of_kind(kind, data, source, name, self.config, words), source, notes)

    def _forced(self, source: Source, part_id: str) -> None:
        from sensorium.observations.contents import parts_of_modality

        modality = source.modality
        assert modality is not None
        self.add(parts_of_modality(modality, source, part_id or modality.value, self.config), source)

    def _text(self, source: Source, part_id: str) -> None:
        from sensorium.observations.contents import parts_of_kind

        text: str = source.raw
        if text.startswith("data:image/"):
            self.add(parts_of_kind("image", text, source, part_id or "image", self.config), source)
            return
        kind = kind_of_name(source.path or part_id) if source.path or "." in part_id else None
        if kind in (None, "image", "audio", "array", "arrays", "workbook"):
            kind = "code" if source.language or source.state else kind_of_text(text)
        elif kind == "text" and holds_columns(text, source.path or part_id):
            kind = "table"
        self.add(parts_of_kind(kind, text, source, part_id or kind, self.config), source)

    def _mapping(self, source: Source, part_id: str, nesting: int) -> None:
        raw: Mapping[Any, Any] = source.raw
        if is_notebook(raw):
            from sensorium.observations.notebook import read_notebook

            name = part_id or "notebook"
            self.add(read_notebook(raw, part_id=self.reserve(name), config=self.config), source)
        elif is_conversation(raw):
            self._conversation(source, part_id)
        elif nesting < _MAX_NESTING and (has_file_names(raw) or any(map(is_perceivable, raw.values()))):
            self._named(source, part_id, nesting)
        else:
            self._structured(source, part_id)

    def _named(self, source: Source, part_id: str, nesting: int) -> None:
        """A part, or several, for each name; plain numbers and the like are one part together."""
        plain: dict[str, Any] = {}
        for key, value in source.raw.items():
            if value is None or isinstance(value, bool | int | float):
                plain[safe_str(key)] = value
                continue
            name = encodable(safe_str(key)).strip("/") or "item"
            inner = (
                _within(source, value)
                if isinstance(value, Source)
                else dataclasses.replace(source, raw=value)
            )
            child = self.reserve(f"{part_id}/{name}" if part_id else name)
            self.read(inner, child, nesting=nesting + 1)
        if plain:
            inner = dataclasses.replace(source, raw=plain)
            self._structured(inner, self.reserve(f"{part_id}/values" if part_id else "values"))

    def _sequence(self, source: Source, part_id: str, nesting: int) -> None:
        raw: Sequence[Any] = source.raw
        if is_conversation(raw):
            self._conversation(source, part_id)
        elif _is_sound(raw):
            from sensorium.observations.audio import read_audio

            self.add(read_audio(raw, part_id=part_id or "audio", config=self.config), source)
        elif is_records(raw):
            from sensorium.observations.table import read_table

            name = part_id or "table"
            table = read_table(
                raw, part_id=name, config=self.config, units=source.units, meanings=source.meanings
            )
            self.add(table, source)
        elif nesting < _MAX_NESTING and any(map(is_perceivable, raw)):
            for index, item in enumerate(raw):
                # Files have names of their own, and parts ids.
                own = isinstance(item, Path | Part | Observation) and not part_id
                child = "" if own else f"{part_id}/{index}" if part_id else f"item-{index}"
                self.read(dataclasses.replace(source, raw=item), child, nesting=nesting + 1)
        else:
            self._structured(source, part_id)

    def _conversation(self, source: Source, part_id: str) -> None:
        from sensorium.observations.contents import media_parts
        from sensorium.observations.messages import read_messages

        conversation = read_messages(source.raw, part_id=part_id or "messages", config=self.config)
        self.add(conversation.parts, source)
        for item in conversation.media:
            self.add(media_parts(item, self.config), source)

    def _structured(self, source: Source, part_id: str) -> None:
        from sensorium.observations.structured import read_structured

        name, meanings = part_id or "data", dict(source.meanings)
        self.add(read_structured(source.raw, part_id=name, config=self.config, meanings=meanings), source)

    def _object(self, source: Source, part_id: str) -> None:
        """An object of another library, found by its module so that no library is imported for it."""
        from sensorium.observations.contents import parts_of_modality

        raw = source.raw
        library = type(raw).__module__.partition(".")[0]
        modality: Modality | None = None
        if library in ("pandas", "polars", "pyarrow") and (
            hasattr(type(raw), "to_frame") or hasattr(type(raw), "columns")
        ):
            modality = Modality.TABLE
        elif library == "PIL" and hasattr(raw, "getbands"):
            modality = Modality.IMAGE
        elif hasattr(raw, "__array__") and getattr(raw, "ndim", None):
            modality = modality_of_array(raw, part_id)
        if modality is not None:
            default = "array" if modality is Modality.TABLE and hasattr(raw, "ndim") else modality.value
            self.add(parts_of_modality(modality, source, part_id or default, self.config), source)
        elif isinstance(raw, BaseException):
            self._exception(source, part_id)
        elif raw is None or isinstance(raw, bool | int | float | BaseModel) or _is_plain_object(raw):
            self._structured(source, part_id)
        else:
            self._repr(source, part_id)

    def _exception(self, source: Source, part_id: str) -> None:
        import traceback

        from sensorium.observations.text import read_text

        text = "".join(traceback.format_exception(source.raw))
        self.add(read_text(text, part_id=part_id or "error", config=self.config, format="traceback"), source)

    def _repr(self, source: Source, part_id: str) -> None:
        from sensorium.observations.text import read_text

        text = _ADDRESS.sub("", safe_repr(source.raw)[:_MAX_REPR_CHARS])
        parts = read_text(text, part_id=part_id or "object", config=self.config, format="plain")
        kind = f"{type(source.raw).__module__}.{type(source.raw).__qualname__}"
        self.add(parts, source, (f"an object of type {encodable(kind)}, shown by its repr",))


def _within(outer: Source, inner: Source) -> Source:
    """A source that lies in another one: what it does not know itself it has from that."""
    if outer.importance == 1.0 and (outer.timestamp_s is None or inner.timestamp_s is not None):
        return inner
    return dataclasses.replace(
        inner,
        importance=inner.importance * outer.importance,
        timestamp_s=outer.timestamp_s if inner.timestamp_s is None else inner.timestamp_s,
    )


def _is_sound(raw: Sequence[Any]) -> bool:
    """Samples and their rate."""
    return (
        isinstance(raw, tuple)
        and len(raw) == 2
        and hasattr(raw[0], "__array__")
        and getattr(raw[0], "ndim", 0) in (1, 2)
        and isinstance(raw[1], int)
        and 4_000 <= raw[1] <= 768_000
    )


def _is_plain_object(raw: Any) -> bool:
    """Whether structured reading says more of it than its repr."""
    if dataclasses.is_dataclass(raw) and not isinstance(raw, type):
        return True
    if hasattr(raw, "description") and hasattr(raw, "fetchmany"):
        return True
    return type(raw).__module__ in ("datetime", "decimal", "fractions", "collections", "numpy", "uuid")
