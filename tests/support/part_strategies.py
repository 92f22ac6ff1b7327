"""Hypothesis strategies for arbitrary parts and observations: every kind of value, odd text, odd numbers.

`values(kind)` draws one kind (or any), `parts()` a part, `observations()` several with unique ids,
`edited(part)` a similar part: the same id, something changed. Text may hold every line separator of Unicode,
``\\r\\n``, NUL and no last line end, but no lone surrogates: JSON cannot carry those. Numbers may be NaN,
infinite, or -0.0, and integers may have thousands of digits.
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from plain_files import png

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import (
    ArrayValue,
    AudioValue,
    CaseResult,
    CellValue,
    CodeFault,
    CodeValue,
    Column,
    FieldNote,
    ImageValue,
    MessagesValue,
    NotableRow,
    OutputValue,
    ProblemValue,
    ProprioValue,
    StackFrame,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
    Turn,
    Value,
)

KINDS = (
    "text messages structured code cell output table array image audio proprio problem".split()  # noqa: SIM905
)
MODALITY_OF = {
    "code": Modality.CODE,
    "cell": Modality.NOTEBOOK,
    "output": Modality.NOTEBOOK,
    "table": Modality.TABLE,
    "array": Modality.DEPTH,
    "image": Modality.IMAGE,
    "audio": Modality.AUDIO,
    "proprio": Modality.PROPRIO,
}
"""Kind -> usual modality; text for the others."""

_PIECES = st.sampled_from(
    [
        "x = 1",
        "print(x)",
        "",
        "\u2028",
        "\u2029",
        "\x85",
        "\r\n",
        "\r",
        "\n",
        "\n\n",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x00",
        "\t",
        " ",
        "é",
        "e\u0301",
        "\U0001f600",
        "def f():\n    return 0\n",
        "}",
        "word " * 60,
        "`",
    ]
)
names = st.sampled_from(["a", "b", "price", "städte", "x.y", "", "a/b", "~"]) | st.text(max_size=4)
texts = st.lists(_PIECES | st.text(max_size=6), max_size=12).map("".join)
"""Text of a few lines, separators of every sort."""
reals = st.floats() | st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf"), -float("inf")])
huge = st.sampled_from([2**53 + 1, -(2**63) - 1, 10**400, -(10**3000)])
_texts_or_none = st.none() | texts


def cells() -> st.SearchStrategy[Any]:
    """Cells of tables."""
    return st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.integers(), huge, reals, st.text(max_size=5)
    )


def json_data() -> st.SearchStrategy[Any]:
    """Plain JSON data, with numbers that JSON has no form for."""
    return st.recursive(
        cells() | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    )


stacks = st.builds(
    StackTrace,
    type=names,
    message=texts,
    frames=st.lists(
        st.builds(StackFrame, file=names, line=st.none() | st.integers(0, 99), code=_texts_or_none),
        max_size=3,
    ).map(tuple),
)
_cases = st.builds(
    CaseResult,
    name=names,
    status=st.sampled_from(["passed", "failed", "error", "skipped"]),
    message=texts,
    duration_s=st.none() | reals,
)


@st.composite
def tables(draw: st.DrawFn, min_rows: int = 0) -> TableValue:
    """A table whose rows, numbers and labels fit together (rarely not: nothing forbids it)."""
    width = draw(st.integers(0, 4))
    height = draw(st.integers(min_rows, 8))
    cell = cells()
    columns = [
        Column(
            name=draw(names),
            dtype=draw(st.sampled_from(["int64", "float64", "string"])),
            missing=draw(st.integers(0, 3)),
            low=draw(cell),
            mean=draw(st.none() | reals),
            quantiles=draw(st.none() | st.tuples(reals, reals)),
            top=tuple(draw(st.lists(st.tuples(cell, st.integers(0, 9)), max_size=2))),
        )
        for _ in range(width)
    ]
    rows = tuple(tuple(draw(cell) for _ in range(width)) for _ in range(height))
    numbers = tuple(sorted(draw(st.sets(st.integers(0, 50), min_size=height, max_size=height))))
    fits = draw(st.integers(0, 9)) > 0
    return TableValue(
        columns=tuple(columns),
        num_rows=draw(st.integers(height, 100)),
        rows=rows,
        row_numbers=numbers if fits else numbers[1:],
        index=draw(st.none() | st.lists(names, min_size=height, max_size=height).map(tuple)),
        notable=tuple(NotableRow(row=row, reason="high") for row in numbers[:1]),
        is_sample=draw(st.booleans()),
    )


@st.composite
def arrays(draw: st.DrawFn) -> ArrayValue:
    """An array with its bytes, or without."""
    dtype = draw(st.sampled_from(["float32", "float64", "uint8", "int16", "bool"]))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    data = draw(st.none() | st.binary(min_size=size, max_size=size))
    return ArrayValue(
        dtype=dtype, shape=shape, data=data, mean=draw(st.none() | reals), unit=draw(st.none() | names)
    )


@st.composite
def images(draw: st.DrawFn) -> ImageValue:
    """A small PNG, bytes that are no picture, or a mere URL."""
    width, height = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    raw = draw(st.binary(min_size=width * height * 3, max_size=width * height * 3))
    real = png(np.frombuffer(raw, np.uint8).reshape(height, width, 3))
    data = draw(st.sampled_from([real, real, None]) | st.binary(max_size=20))
    return ImageValue(
        data=data,
        mime=draw(st.sampled_from(["image/png", "image/png", "image/jpeg", "image/webp"])),
        width=draw(st.sampled_from([width, None])),
        height=height,
        url=draw(st.none() | names),
        sha256=draw(st.none() | names),
        alt=draw(texts),
    )


def _turns() -> st.SearchStrategy[Any]:
    turn = st.builds(
        Turn, role=st.sampled_from(["user", "assistant", "tool"]), content=texts, name=st.none() | names
    )
    return st.lists(turn, max_size=4).map(tuple)


def _fields() -> st.SearchStrategy[Any]:
    bound = st.none() | texts | reals
    note = st.builds(FieldNote, path=names, type=st.just("number"), low=bound, missing=st.just(0.5))
    return st.lists(note, max_size=2).map(tuple)


def _code() -> st.SearchStrategy[CodeValue]:
    return st.builds(
        CodeValue,
        text=texts,
        path=st.none() | names,
        language=st.sampled_from(["python", None]),
        cursor_line=st.none() | st.integers(1, 9),
        faults=st.lists(
            st.builds(CodeFault, line=st.integers(1, 9), column=st.just(1), message=texts), max_size=2
        ).map(tuple),
        variables=st.dictionaries(names, texts, max_size=4),
        stack=st.none() | stacks,
        tests=st.lists(_cases, max_size=3).map(tuple),
        tools=st.lists(names, max_size=2).map(tuple),
    )


def notebook_cells() -> st.SearchStrategy[CellValue]:
    """Sources of notebook cells."""
    return st.builds(
        CellValue,
        index=st.integers(0, 99),
        cell_type=st.sampled_from(["code", "markdown", "raw"]),
        source=texts,
        execution_count=st.none() | st.integers(1, 99),
    )


def outputs() -> st.SearchStrategy[OutputValue]:
    """Outputs of notebook cells."""
    return st.builds(
        OutputValue,
        output_type=st.sampled_from(["stream", "execute_result", "display_data", "error"]),
        text=texts,
        stream=st.sampled_from(["stdout", "stderr", None]),
        error=st.none() | stacks,
    )


def values(kind: str | None = None) -> st.SearchStrategy[Any]:
    """Values of one kind, or of any."""
    if kind is None:
        return st.sampled_from(KINDS).flatmap(values)
    numbers = st.lists(reals, max_size=5).map(tuple)
    strategies: dict[str, st.SearchStrategy[Any]] = {
        "text": st.builds(
            TextValue, text=texts, format=st.sampled_from(["plain", "markdown", "log", "traceback"])
        ),
        "messages": st.builds(MessagesValue, turns=_turns()),
        "structured": st.builds(StructuredValue, data=json_data(), fields=_fields()),
        "code": _code(),
        "cell": notebook_cells(),
        "output": outputs(),
        "table": tables(),
        "array": arrays(),
        "image": images(),
        "audio": st.builds(
            AudioValue,
            data=st.binary(max_size=30),
            rate_hz=st.just(16_000),
            channels=st.just(1),
            duration_s=reals,
            peak_dbfs=st.none() | reals,
        ),
        "proprio": numbers.map(
            lambda them: ProprioValue(names=tuple(f"j{i}" for i in range(len(them))), values=them)
        ),
        "problem": st.builds(ProblemValue, what=texts, where=texts, mend=texts),
    }
    return strategies[kind]


part_ids = st.sampled_from(
    [
        "report.ipynb",
        "report.ipynb/cell-0",
        "report.ipynb/cell-1",
        "report.ipynb/cell-1/output-0",
        "a.py",
        "x",
        "report.ipynb/cell-2",
        "report.ipynb/cell-07",
        "screen",
        "städte/\u2028",
    ]
) | st.text(min_size=1, max_size=6)


@st.composite
def parts(draw: st.DrawFn, part_id: str | None = None, kind: str | None = None) -> Part:
    """A part of one kind, or of any."""
    value: Value = draw(values(kind))
    return Part(
        id=draw(part_ids) if part_id is None else part_id,
        modality=MODALITY_OF.get(getattr(value, "kind", ""), Modality.TEXT),
        value=value,  # type: ignore[arg-type]
        timestamp_s=draw(st.none() | reals),
        importance=draw(st.sampled_from([1.0, 0.0, -0.0, 2.5, float("inf")])),
        notes=tuple(draw(st.lists(texts, max_size=2))),
    )


@st.composite
def observations(draw: st.DrawFn, max_parts: int = 6) -> Observation:
    """Several parts with unique ids."""
    ids = draw(st.lists(part_ids, unique=True, max_size=max_parts))
    found = tuple(draw(parts(part_id)) for part_id in ids)
    return Observation(parts=found, timestamp_s=draw(st.none() | reals))


@st.composite
def edited(draw: st.DrawFn, part: Part) -> Part:
    """The same part a moment later: some fields of its value, or its envelope, are others."""
    other = draw(parts(part.id, part.value.kind))
    fields = type(part.value).model_fields
    taken = draw(st.sets(st.sampled_from(sorted(set(fields) - {"kind"}))))
    if part.value.kind == "array":  # shape, dtype and bytes belong together
        taken = set(fields) if {"dtype", "shape", "data"} & taken else taken
    value = type(part.value)(
        **{name: getattr(other.value if name in taken else part.value, name) for name in fields}
    )
    envelope = draw(st.sets(st.sampled_from(["timestamp_s", "importance", "notes"])))
    own = {
        name: getattr(other if name in envelope else part, name)
        for name in ("timestamp_s", "importance", "notes")
    }
    return Part(id=part.id, modality=part.modality, value=value, **own)  # type: ignore[arg-type]
