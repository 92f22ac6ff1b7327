"""How a part differs from what it was: frozen types that survive JSON, told apart by `kind`.

Positions count from 0. In `FieldDelta` and what it holds, values are plain data (dicts, lists, numbers,
texts); what JSON cannot write has the form of `sensorium.core.exact_json`.
"""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from sensorium.core.types import Modality
from sensorium.observations.values import AnyValue, Column, Value


class TextEdit(NamedTuple):
    """One replaced stretch of a text."""

    at: int
    """Character of the old text."""
    removed: int
    """Characters that go."""
    inserted: str


class TextDelta(Value):
    """A text with some stretches replaced."""

    kind: Literal["text"] = "text"
    edits: tuple[TextEdit, ...]
    """In order, apart from each other."""


class BytesDelta(Value):
    """Bytes with one stretch replaced."""

    kind: Literal["bytes"] = "bytes"
    at: int
    removed: int
    inserted: bytes


class SetDelta(Value):
    """Another value in its place."""

    kind: Literal["set"] = "set"
    value: Any = None
    """Plain data in the form of `exact_json`."""


class ListEdit(NamedTuple):
    """One replaced stretch of a list."""

    at: int
    """Element of the old list."""
    removed: int
    inserted: tuple[Any, ...]
    """Plain data in the form of `exact_json`."""


class ListDelta(Value):
    """A list with elements added, removed or changed."""

    kind: Literal["list"] = "list"
    edits: tuple[ListEdit, ...] = ()
    """In order, apart from each other."""
    changed: tuple[tuple[int, "Change"], ...] = ()
    """Place in the old list, and how that element changed."""


class MapDelta(Value):
    """A mapping with entries added, removed, moved (removed and added) or changed."""

    kind: Literal["map"] = "map"
    removed: tuple[str, ...] = ()
    changed: dict[str, "Change"] = Field(default_factory=dict)
    added: tuple[tuple[int, str, Any], ...] = ()
    """Place among the new entries, name, and plain data in the form of `exact_json`."""


Change = Annotated[
    SetDelta | TextDelta | BytesDelta | ListDelta | MapDelta,
    Field(discriminator="kind"),
]
"""How one field of a value changed."""


class FieldDelta(Value):
    """A value of the same kind with some fields changed."""

    kind: Literal["fields"] = "fields"
    changed: dict[str, Change]


class RowRun(NamedTuple):
    """Rows that stay."""

    start: int
    """Place among the old kept rows."""
    length: int
    shift: int = 0
    """What is added to their numbers in the source."""


class RowAdded(NamedTuple):
    """A new row."""

    at: int
    """Place among the new kept rows."""
    number: int
    """Number in the source."""
    cells: tuple[Any, ...]
    """Plain data in the form of `exact_json`."""


class CellChange(NamedTuple):
    """A changed cell of a row that stays."""

    row: int
    """Place among the new kept rows."""
    column: int
    """Place among the new columns."""
    value: Any
    """Plain data in the form of `exact_json`."""


class TableDelta(Value):
    """A table with rows, columns, cells or profiles changed."""

    kind: Literal["table"] = "table"
    columns: tuple[int | Column, ...] | None = None
    """For each new column its place among the old ones, or a new column's profile; None: the columns stay.
    A new column's cells are empty in rows that stay, but for `cells`."""
    profiles: tuple[tuple[int, Change], ...] = ()
    """Place among the new columns, and how the profile of one that stays changed."""
    runs: tuple[RowRun, ...] | None = None
    """Rows that stay, in order; None: all of them."""
    added: tuple[RowAdded, ...] = ()
    cells: tuple[CellChange, ...] = ()
    fields: dict[str, Change] = Field(default_factory=dict)
    """The other fields: number of rows, labels, notable rows."""


class ArrayDelta(Value):
    """An array of the same shape and type with some numbers changed."""

    kind: Literal["array"] = "array"
    start: tuple[int, ...] = ()
    """First corner of the changed region."""
    shape: tuple[int, ...] = ()
    """Its size; `data` holds its new numbers in C order. Not used where there are `places`."""
    places: bytes | None = None
    """Sparse change: places in the flattened array, ascending, little-endian uint32."""
    data: bytes = b""
    """New numbers, as in `ArrayValue.data`."""
    fields: dict[str, Change] = Field(default_factory=dict)
    """The other fields: statistics, unit."""


class Patch(NamedTuple):
    """A changed rectangle of a picture."""

    left: int
    """Pixels."""
    top: int
    """Pixels."""
    png: bytes
    """The new pixels, PNG."""


class ImageDelta(Value):
    """A PNG of the same size with some rectangles changed."""

    kind: Literal["image"] = "image"
    patches: tuple[Patch, ...]
    encoder: str
    """Setting with which the patched pixels are encoded into exactly the new bytes."""
    fields: dict[str, Change] = Field(default_factory=dict)
    """The other fields: hash, caption."""


class ReplaceDelta(Value):
    """Another value: of another kind, or so different that changes would cost more."""

    kind: Literal["replace"] = "replace"
    value: AnyValue


AnyDelta = Annotated[
    FieldDelta | TableDelta | ArrayDelta | ImageDelta | ReplaceDelta,
    Field(discriminator="kind"),
]
"""How the value of a part changed."""


class Envelope(Value):
    """Everything of a part but its value."""

    id: str
    modality: Modality
    timestamp_s: float | None = None
    importance: float = 1.0
    notes: tuple[str, ...] = ()


class PartDelta(Value):
    """How a part changed."""

    part_id: str
    """Of the old part."""
    base_digest: str
    """`Part.digest` of the part it applies to."""
    new_digest: str
    """`Part.digest` of the result."""
    change: AnyDelta | None = None
    """None: the value is the same."""
    envelope: Envelope | None = None
    """Everything else, when any of it changed."""

    @property
    def num_bytes(self) -> int:
        """Size as JSON."""
        return len(self.model_dump_json().encode())


ListDelta.model_rebuild()
MapDelta.model_rebuild()
