"""What a part can hold: one frozen type per kind of content, told apart by `kind`.

Every type survives ``model_dump_json`` and ``model_validate_json`` without loss; bytes travel as base64, and
`sensorium.core.exact_json` says how numbers that are not finite do where text may stand, too.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorium.core.exact_json import MAX_INT, SCALARS, PlainData

Cell = str | bool | Annotated[int, Field(gt=-MAX_INT, lt=MAX_INT)] | float | None
"""A table cell in plain form; dates are ISO 8601 text, None is a missing value."""
Bound = Annotated[Cell, *SCALARS]
"""One such value by itself."""


class Value(BaseModel):
    """Base of every content type."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_bytes="base64",
        val_json_bytes="base64",
        ser_json_inf_nan="strings",
    )


class TextValue(Value):
    """Running text."""

    kind: Literal["text"] = "text"
    text: str
    """The text, line ends as ``\\n``."""
    format: Literal["plain", "markdown", "log", "traceback", "html"] = "plain"
    """How it is written; decides where it is cut."""


class Turn(Value):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str
    """Text; pictures and sounds of a message are parts of their own."""
    name: str | None = None
    """Who speaks, or which tool answered."""


class MessagesValue(Value):
    """A conversation of several turns, oldest first."""

    kind: Literal["messages"] = "messages"
    turns: tuple[Turn, ...]


class FieldNote(Value):
    """What one field of structured data is."""

    path: str
    """Where, e.g. ``orders[].price``; ``[]`` stands for every element of a list."""
    type: str
    """``integer``, ``number``, ``string``, ``boolean``, ``null``, ``object``, ``array`` or ``date``;
    several are joined by `` | ``."""
    unit: str | None = None
    """e.g. ``EUR``, ``ms``, ``%``."""
    low: Annotated[float | str | None, *SCALARS] = None
    """Smallest value met."""
    high: Annotated[float | str | None, *SCALARS] = None
    """Greatest value met."""
    missing: float = 0.0
    """Share of records without it, in [0, 1]."""
    distinct: int | None = None
    """Number of different values, where it was counted."""
    examples: tuple[str, ...] = ()
    """A few values."""
    meaning: str | None = None
    """What it means: given by the user, or guessed from name and values (then it ends with ``?``)."""


class StructuredValue(Value):
    """JSON-like data (an API response, a query result) with notes on its fields."""

    kind: Literal["structured"] = "structured"
    data: PlainData
    """Plain JSON data; numbers may be infinite or NaN, dates are ISO 8601 text."""
    format: Literal["json", "yaml", "toml", "xml", "sql"] = "json"
    """What it was read from."""
    fields: tuple[FieldNote, ...] = ()


class CodeFault(Value):
    """A place where code does not parse."""

    line: int
    """From 1."""
    column: int
    """From 1."""
    message: str


class StackFrame(Value):
    """One frame of a stack trace, the outermost first."""

    file: str
    line: int | None = None
    function: str | None = None
    code: str | None = None


class StackTrace(Value):
    """An exception and where it came from."""

    type: str
    """e.g. ``KeyError``."""
    message: str = ""
    frames: tuple[StackFrame, ...] = ()


class CaseResult(Value):
    """The result of one test."""

    name: str
    status: Literal["passed", "failed", "error", "skipped"]
    message: str = ""
    duration_s: float | None = None


class CodeValue(Value):
    """Source code, where the cursor is, and the state of its execution."""

    kind: Literal["code"] = "code"
    text: str
    path: str | None = None
    language: str | None = None
    """Name as in tree-sitter's language pack, e.g. ``python``; None when unknown."""
    cursor_line: int | None = None
    """From 1."""
    cursor_column: int | None = None
    """From 1."""
    faults: tuple[CodeFault, ...] = ()
    variables: dict[str, str] = Field(default_factory=dict)
    """Name -> shortened repr of the value."""
    stack: StackTrace | None = None
    tests: tuple[CaseResult, ...] = ()
    tools: tuple[str, ...] = ()
    """Tools at hand: compiler, debugger, test runner."""


class CellValue(Value):
    """The source of a notebook cell."""

    kind: Literal["cell"] = "cell"
    index: int
    """Position in the notebook, from 0."""
    cell_type: Literal["code", "markdown", "raw"]
    source: str
    language: str = "python"
    execution_count: int | None = None
    """None: not executed."""


class OutputValue(Value):
    """One output of a notebook cell; a figure is a part with an `ImageValue` instead."""

    kind: Literal["output"] = "output"
    output_type: Literal["stream", "execute_result", "display_data", "error"]
    text: str = ""
    """Plain text, terminal colours removed; of an error its traceback."""
    stream: Literal["stdout", "stderr"] | None = None
    error: StackTrace | None = None


class Column(Value):
    """What one column of a table holds, over all rows that were read."""

    name: str
    dtype: str
    """As the source names it, e.g. ``float64``, ``string``, ``datetime64[ns]``."""
    unit: str | None = None
    missing: int = 0
    """Number of rows without a value."""
    distinct: int | None = None
    low: Bound = None
    high: Bound = None
    mean: float | None = None
    std: float | None = None
    quantiles: tuple[float, ...] | None = None
    """Values at 5, 25, 50, 75 and 95 %, of numeric columns."""
    top: Annotated[tuple[tuple[Cell, int], ...], *SCALARS] = ()
    """Most frequent values and how often, of columns with few distinct ones."""
    meaning: str | None = None


class NotableRow(Value):
    """A row that stands out."""

    row: int
    """Number in the source, from 0."""
    reason: str
    """e.g. ``price is the highest (1999.0)``."""


class TableValue(Value):
    """A table: its profile over all rows, and rows themselves as far as they were kept."""

    kind: Literal["table"] = "table"
    columns: tuple[Column, ...]
    num_rows: int
    """Rows in the source where that is known, otherwise rows read of it (then `is_sample` is set)."""
    rows: Annotated[tuple[tuple[Cell, ...], ...], *SCALARS] = ()
    """Kept rows, each with a cell per column."""
    row_numbers: tuple[int, ...] = ()
    """For each kept row its number in the source, ascending."""
    index: tuple[str, ...] | None = None
    """For each kept row its label, when the source has labels other than numbers."""
    notable: tuple[NotableRow, ...] = ()
    """Their rows are among the kept ones."""
    is_sample: bool = False
    """The source was not read to its end; the profile is that of a sample."""


class ArrayValue(Value):
    """A numeric array of any shape, e.g. a depth picture in metres."""

    kind: Literal["array"] = "array"
    dtype: str
    """NumPy's name, e.g. ``float32``."""
    shape: tuple[int, ...]
    data: bytes | None = None
    """C-order little-endian bytes; None when the array was too large to keep."""
    unit: str | None = None
    low: float | None = None
    """Statistics leave out values that are not finite."""
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    num_non_finite: int = 0


class ImageValue(Value):
    """A picture: its encoded bytes, a reference to it, or both."""

    kind: Literal["image"] = "image"
    data: bytes | None = None
    """An encoded picture (`mime`), upright, sRGB; None when only a URL is known."""
    mime: Literal["image/png", "image/jpeg", "image/webp"] = "image/png"
    width: int | None = None
    """Pixels."""
    height: int | None = None
    """Pixels."""
    url: str | None = None
    """Where a client can load it."""
    sha256: str | None = None
    """Of the upright pixels and their size, so that the same picture in two encodings has one hash."""
    alt: str = ""
    """What is known of it in words, e.g. a caption."""


class AudioValue(Value):
    """A sound: its encoded bytes and measures."""

    kind: Literal["audio"] = "audio"
    data: bytes
    """An encoded file (`mime`)."""
    mime: Literal["audio/wav", "audio/flac", "audio/ogg", "audio/mpeg"] = "audio/wav"
    rate_hz: int
    channels: int
    duration_s: float
    peak_dbfs: float | None = None
    """Of the loudest sample, dB relative to full scale; None for silence."""
    loudness_dbfs: float | None = None
    """Root mean square, dB relative to full scale; None for silence."""
    silence_share: float | None = None
    """Share of its 20 ms frames below -50 dBFS, in [0, 1]; None when it was not measured."""


class ProprioValue(Value):
    """The state of an agent's own body: named numbers."""

    kind: Literal["proprio"] = "proprio"
    names: tuple[str, ...]
    values: tuple[float, ...]
    units: tuple[str, ...] = ()
    """One per value, or none at all."""


class ProblemValue(Value):
    """Something that could not be read: said, instead of a crash."""

    kind: Literal["problem"] = "problem"
    what: str
    """What is wrong."""
    where: str = ""
    """In which file, at which place."""
    mend: str = ""
    """What the user can do."""


AnyValue = Annotated[
    TextValue
    | MessagesValue
    | StructuredValue
    | CodeValue
    | CellValue
    | OutputValue
    | TableValue
    | ArrayValue
    | ImageValue
    | AudioValue
    | ProprioValue
    | ProblemValue,
    Field(discriminator="kind"),
]
"""Any content, told apart by `kind`."""
