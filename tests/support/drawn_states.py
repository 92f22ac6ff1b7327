"""Small observations of every kind, budgets and histories, drawn by number: thousands a second."""

import random
import struct
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from plain_files import png, wav

from sensorium.core.types import Modality
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, TextBlock
from sensorium.llm.tokens import build_counter
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import (
    AnyValue,
    ArrayValue,
    AudioValue,
    CaseResult,
    CellValue,
    CodeValue,
    Column,
    ImageValue,
    MessagesValue,
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
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.pipeline import ObservationPipeline

KINDS = "text messages structured code cell output table array image audio proprio problem".split()  # noqa: SIM905
_WORDS = [
    "price",
    "rows",
    "the",
    "fit",
    "of",
    "residual",
    "=",
    "0.25",
    "load(x)",
    "städte",
    "数据",
    "\u2028",
    "\t",
    "KeyError:",
    "\x00",
    "{}",
    "```",
    "###",
    "[ref:",
    "assert",
    "def",
    "import",
    "return",
    "NaN",
    "1e9",
    "--",
    "😀",
    "naïve",
    "max_tokens",
    "WARNING",
    "",
]
COUNTER = build_counter(PipelineConfig().tokens)


class Case(NamedTuple):
    """What a pipeline is called with."""

    observation: Observation
    config: PipelineConfig
    task: str
    system: str
    history: History


def count(messages: tuple[Message, ...]) -> int:
    """Tokens of messages, written anew from the rules of the protocol instead of with `count_messages`."""
    total = 0
    for message in messages:
        total += COUNTER.message_overhead
        texts = [block.text for block in message.content if isinstance(block, TextBlock)]
        if len(texts) == len(message.content):
            total += COUNTER.text("\n".join(texts))  # it travels as one string
            continue
        total += sum(COUNTER.text(text) for text in texts)
        for block in message.content:
            if isinstance(block, ImageBlock):
                total += COUNTER.image(block.width, block.height)
            elif isinstance(block, AudioBlock):
                total += COUNTER.audio(block.duration_s)
    return total


def draw_case(number: int, *, max_parts: int = 6, max_lines: int = 14) -> Case:
    """The case of a number: always the same one. Four in a row share state and history."""
    observation, history = _draw_state(number // 4, max_parts, max_lines)
    rng = random.Random(f"case {number}")
    task = _text(rng, rng.choice([0, 1, 1, 3]))
    system = _text(rng, rng.choice([0, 0, 1]))
    return Case(observation, _config(rng), task, system, history)


@lru_cache(maxsize=2)
def _draw_state(number: int, max_parts: int, max_lines: int) -> tuple[Observation, History]:
    rng = random.Random(number)
    observation = draw_observation(rng, max_parts, max_lines)
    return observation, _history(rng, observation)


def draw_observation(rng: random.Random, max_parts: int = 6, max_lines: int = 14) -> Observation:
    """Up to `max_parts` parts of any kinds."""
    parts, cell = [], ""
    for at in range(rng.randint(0, max_parts)):
        kind = rng.choice(KINDS)
        part_id = f"a.ipynb/cell-{at}" if rng.random() < 0.5 else rng.choice(["x", "städte", "b/c"]) + str(at)
        if kind == "cell":
            cell = part_id
        elif kind == "output" and cell:
            part_id = f"{cell}/output-{at}"
        parts.append(
            Part(
                id=part_id,
                modality=Modality.IMAGE if kind == "image" else Modality.TEXT,
                value=draw_value(rng, kind, max_lines),
                timestamp_s=rng.choice([None, None, rng.uniform(0, 9), float("nan")]),
                importance=rng.choice([1.0, 1.0, 1.0, 0.0, 1e-300, 3.0, 1e300, float("inf")]),
                notes=("a note",) if rng.random() < 0.1 else (),
            )
        )
    return Observation(parts=tuple(parts))


def draw_value(rng: random.Random, kind: str, max_lines: int = 14) -> AnyValue:
    """Content of one kind."""
    lines = rng.choice([0, 1, 2, max_lines])
    text = _text(rng, lines)
    match kind:
        case "text":
            return TextValue(text=text, format=rng.choice(["plain", "markdown", "log", "traceback"]))
        case "messages":
            turns = tuple(Turn(role=rng.choice(["user", "assistant"]), content=text) for _ in range(2))
            return MessagesValue(turns=turns)
        case "structured":
            return StructuredValue(data={f"key{i}": [i, text[: 9 * i]] for i in range(lines)})
        case "code":
            tests = (CaseResult(name="test_a", status="failed", message=text),) if rng.random() < 0.3 else ()
            cursor = rng.choice([None, 1, 3])
            return CodeValue(text=text, language=None, cursor_line=cursor, tests=tests)
        case "cell":
            kind = rng.choice(["markdown", "raw"])
            return CellValue(index=1, cell_type=kind, source=text)
        case "output":
            error = _stack() if rng.random() < 0.3 else None
            return OutputValue(output_type="stream", text=text, stream="stdout", error=error)
        case "table":
            columns = tuple(Column(name=f"c{i}", dtype="float64") for i in range(3))
            rows = tuple((i, text[:8], rng.random()) for i in range(lines))
            return TableValue(columns=columns, num_rows=lines, rows=rows, row_numbers=tuple(range(lines)))
        case "array":
            return ArrayValue(dtype="float32", shape=(3, 4), data=struct.pack("<12f", *range(12)))
        case "image":
            width, height = rng.choice([(8, 8), (40, 30), (600, 40)])
            broken = rng.random() < 0.1
            data = b"no picture" if broken else _picture(width, height, rng.randrange(2))
            return ImageValue(data=data, width=width, height=height, alt=text[:40], sha256=None)
        case "audio":
            return AudioValue(data=_sound(), rate_hz=8000, channels=1, duration_s=0.5)
        case "proprio":
            return ProprioValue(names=("a", "b"), values=(0.5, float("nan")))
        case _:
            return ProblemValue(what=text or "broken", where="here", mend="mend it")


def _stack() -> StackTrace:
    return StackTrace(type="KeyError", message="'x'", frames=(StackFrame(file="b/c1", line=3),))


def _text(rng: random.Random, lines: int) -> str:
    return "\n".join(" ".join(rng.choices(_WORDS, k=rng.choice([0, 1, 6, 12]))) for _ in range(lines))


def _config(rng: random.Random) -> PipelineConfig:
    max_tokens = rng.randint(1, 9) if rng.random() < 0.05 else int(10 ** rng.uniform(1.3, 3.3))
    window = rng.choice([None, None, max_tokens, max_tokens * 2])
    return PipelineConfig.model_validate(
        {
            "observation": {
                "max_tokens": max_tokens,
                "compression_ratio": rng.choice([0.01, 0.1, 0.5, 1.0]),
                "context_window": window,
                "reserve": rng.choice([0.0, 0.2, 0.2, 0.9]),
            },
            "multimodal": {"audio": {"encoding": rng.choice(["native", "transcript"])}},
            "context_management": {
                "keep_original_instruction": rng.random() < 0.9,
                "keep_previous_actions": rng.choice([0, 1, 5, 50]),
                "keep_current_state": rng.random() < 0.95,
                "drop_full_history": rng.random() < 0.5,
            },
        }
    )


def _history(rng: random.Random, observation: Observation) -> History:
    """Steps in which the same state, or a slightly different one, was shown."""
    past = History()
    if rng.random() < 0.5:
        return past
    generous = ObservationPipeline(PipelineConfig(), counter=COUNTER)
    for _ in range(rng.randint(1, 3)):
        parts = tuple(
            part.model_copy(update={"value": draw_value(rng, part.value.kind)})
            if rng.random() < 0.3
            else part
            for part in observation.parts
        )
        before = Observation(parts=parts)
        shown = generous(before, task="t", history=past)
        past = past.after(
            _text(rng, 1),
            shown,
            observation=before if rng.random() < 0.8 else None,
            outcome=_text(rng, 2),
            reward=rng.choice([None, 1.0]),
        )
    return past


@cache
def _picture(width: int, height: int, seed: int) -> bytes:
    return png(np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8))


@cache
def _sound() -> bytes:
    return wav(np.full(4000, 0x1000))
