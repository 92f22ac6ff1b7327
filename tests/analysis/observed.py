"""A hand-made observation of every kind of content, with what was sent of it."""

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plain_files

from sensorium.core.types import Modality
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import AnyBlock, ImageBlock, Message, TextBlock, text_message
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import (
    AnyValue,
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
)
from sensorium.representations.base import Account, Entry, Level, Representation


class HandMadeTrace(NamedTuple):
    """Keeps the page's `Traced` protocol without a pipeline."""

    observation: Observation
    features: Mapping[str, Mapping[str, Features]]
    representation: Representation
    blocks: Mapping[str, tuple[AnyBlock, ...]]

    def shown(self, part_id: str) -> Sequence[AnyBlock]:
        return self.blocks.get(part_id, ())


def png(width: int = 64, height: int = 48, blue: int = 90) -> bytes:
    """A picture of a colour ramp."""
    ramp = np.zeros((height, width, 3), dtype=np.uint8)
    ramp[..., 0] = np.linspace(0, 255, width, dtype=np.uint8)
    ramp[..., 1] = np.linspace(0, 255, height, dtype=np.uint8)[:, None]
    ramp[..., 2] = blue
    return plain_files.png(ramp)


def wav(seconds: float = 0.25, rate_hz: int = 8000) -> bytes:
    """A tone of 440 Hz."""
    times = np.arange(int(seconds * rate_hz)) / rate_hz
    return plain_files.wav(0.4 * 32767 * np.sin(2 * np.pi * 440 * times), rate_hz)


def image_block(data: bytes, width: int, height: int) -> ImageBlock:
    """The block that embeds a PNG."""
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return ImageBlock(url=url, width=width, height=height)


def part(part_id: str, modality: Modality, value: AnyValue, **more: object) -> Part:
    """A part; `more` are its other fields."""
    return Part.model_validate({"id": part_id, "modality": modality, "value": value, **more})


def entry(one: Part, level: Level, before: int, after: int, why: str) -> Entry:
    """The account of a part."""
    retained = {Level.FULL: 1.0, Level.DELTA: 1.0, Level.DROPPED: 0.0}.get(level, after / max(before, 1))
    ref = None if level is Level.FULL else f"ref:{one.id}"
    return Entry(
        part_id=one.id,
        modality=one.modality,
        level=level,
        tokens_before=before,
        tokens_after=after,
        retained=retained,
        weight=1.5 if one.is_error else 0.8,
        why=why,
        ref=ref,
    )


SOURCE = "\n".join(
    ['"""Fit a line."""', "", "import numpy as np", "", "", "def fit(x, y):", "    design = np.stack([x], 1)"]
    + [f"    step_{i} = design * {i}" for i in range(30)]
    + ["    return np.linalg.solve(design, y)", ""]
)
SENT_SOURCE = "\n".join(
    [*SOURCE.split("\n")[:7], "[... lines 8-37]", "    return np.linalg.solve(design, y)"]
)


def _table() -> TableValue:
    return TableValue(
        columns=(
            Column(name="city", dtype="string", distinct=3, top=(("Bergen", 14), ("Oslo", 9))),
            Column(
                name="rain", dtype="float64", unit="mm", missing=2, low=0.0, high=81.5, mean=7.25, std=9.0
            ),
        ),
        num_rows=4000,
        rows=(("Bergen", 3.5), ("Oslo", None), ("Bergen", 81.5)),
        row_numbers=(0, 1, 3999),
        notable=(NotableRow(row=3999, reason="rain is the highest (81.5)"),),
    )


def _parts() -> list[tuple[Part, Level, int, int, str]]:
    stack = StackTrace(
        type="LinAlgError",
        message="Last 2 dimensions of the array must be square",
        frames=(
            StackFrame(file="fit.py", line=38, function="fit", code="return np.linalg.solve(design, y)"),
        ),
    )
    depth = np.linspace(0.5, 9.0, 40 * 30, dtype="<f4").reshape(30, 40)
    picture = png()
    text, code, book, image = Modality.TEXT, Modality.CODE, Modality.NOTEBOOK, Modality.IMAGE
    turns = (Turn(role="user", content="Why does it fail?"), Turn(role="assistant", content="Let me look."))
    fields = (
        FieldNote(path="orders[].price", type="number", unit="EUR", low=1.5, high=1999.0, meaning="price?"),
    )
    cell = CellValue(index=3, cell_type="code", source="fit(x, y)", execution_count=7)
    failed = OutputValue(output_type="error", text="LinAlgError: Last 2 dimensions ...", error=stack)
    code_value = CodeValue(
        text=SOURCE,
        path="fit.py",
        language="python",
        cursor_line=38,
        faults=(CodeFault(line=7, column=5, message="a fault"),),
        variables={"x": "array([1., 2.])"},
        stack=stack,
        tests=(CaseResult(name="test_fit", status="failed", message="not square"),),
        tools=("pytest",),
    )
    sound = AudioValue(
        data=wav(), rate_hz=8000, channels=1, duration_s=0.25, peak_dbfs=-8.0, loudness_dbfs=-11.0
    )
    body = ProprioValue(names=("x", "speed"), values=(1.25, 0.5), units=("m", "m/s"))
    return [
        (part("run.ipynb/cell-3", book, cell), Level.FULL, 12, 12, "It fits whole"),
        (part("run.ipynb/cell-3/output-0", book, failed), Level.FULL, 40, 40, "An error comes first"),
        (
            part(
                "run.ipynb/cell-3/figure-1",
                image,
                ImageValue(data=picture, width=64, height=48, alt="a ramp"),
            ),
            Level.THUMBNAIL,
            85,
            42,
            "64x48 is as large as the budget allows",
        ),
        (part("src/fit.py", code, code_value), Level.SUMMARY, 420, 96, "9 of 39 lines: around the error"),
        (
            part("rain.csv", Modality.TABLE, _table(), notes=("first 4,000 of 2,000,000 rows",)),
            Level.SUMMARY,
            9000,
            130,
            "3 of 4,000 rows",
        ),
        (
            part("orders.json", text, StructuredValue(data={"orders": [{"price": 1.5}]}, fields=fields)),
            Level.FULL,
            30,
            30,
            "It fits whole",
        ),
        (part("chat", text, MessagesValue(turns=turns)), Level.DELTA, 60, 8, "Only the last turn is new"),
        (part("notes.txt", text, TextValue(text="line\n" * 500)), Level.DROPPED, 1000, 0, "Of little weight"),
        (
            part(
                "depth",
                Modality.DEPTH,
                ArrayValue(
                    dtype="float32",
                    shape=(30, 40),
                    data=depth.tobytes(),
                    unit="m",
                    low=0.5,
                    high=9.0,
                    mean=4.7,
                    std=2.4,
                ),
            ),
            Level.REFERENCE,
            300,
            14,
            "Fetch it when needed",
        ),
        (part("hum.wav", Modality.AUDIO, sound, timestamp_s=1.5), Level.FULL, 18, 18, "What was heard"),
        (part("body", Modality.PROPRIO, body), Level.FULL, 16, 16, "It fits whole"),
        (
            part(
                "broken.ipynb", text, ProblemValue(what="It is no JSON", where="line 3", mend="Save it again")
            ),
            Level.FULL,
            20,
            20,
            "A problem is told",
        ),
    ]


def make_trace(extra: Sequence[tuple[Part, Level, int, int, str]] = ()) -> HandMadeTrace:
    """The three layers of a failing notebook and what lies around it.

    Args:
        extra: More parts, each with level, tokens before and after, and why.
    """
    rows = [*_parts(), *extra]
    observation = Observation(parts=tuple(row[0] for row in rows))
    blocks: dict[str, tuple[AnyBlock, ...]] = {}
    for one, level, _, after, why in rows:
        if level is Level.DROPPED:
            continue
        said = {"src/fit.py": SENT_SOURCE}.get(one.id) or one.text or f"{one.id}: {why} ({after} tokens)"
        blocks[one.id] = (TextBlock(text=said),)
        if one.modality is Modality.IMAGE and isinstance(one.value, ImageValue) and one.value.data:
            blocks[one.id] += (image_block(one.value.data, 64, 48),)
    entries = tuple(entry(*row) for row in rows)
    state = sum(one.tokens_after for one in entries)
    content = tuple(block for row in rows for block in blocks.get(row[0].id, ()))
    account = Account(
        entries=entries,
        max_tokens=max(1024, 2 * state),
        state_limit=max(819, state),
        instruction_tokens=24,
        history_tokens=40,
        state_tokens=state,
        num_tokens=state + 24 + 40 + 12,
        tokenizer="estimate",
        notes=("Extractor sentence is unavailable: it needs tokenizers",),
        extraction_ms={"code_structure": 1.25},
        cache_hits=3,
        cache_misses=1,
    )
    messages = (
        text_message("system", "You repair notebooks."),
        text_message("user", "Why does the regression fail?"),
        Message(role="user", content=content),
    )
    vector = np.sin(np.arange(384, dtype=np.float32) / 9)
    features = {
        "src/fit.py": {
            "code_structure": Features(
                part_id="src/fit.py",
                extractor="code_structure",
                version="1",
                summary="1 function, complexity 1",
                data={"functions": [{"name": "fit", "line": 6}]},
                seconds=0.00125,
            ),
            "sentence": Features(
                part_id="src/fit.py", extractor="sentence", version="2", vector=vector, is_cached=True
            ),
            "sentiment": Features(
                part_id="src/fit.py",
                extractor="sentiment",
                version="1",
                unavailable="vaderSentiment is not installed",
            ),
        }
    }
    return HandMadeTrace(observation, features, Representation(messages=messages, account=account), blocks)
