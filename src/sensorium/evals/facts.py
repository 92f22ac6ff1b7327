"""Probe facts: small, random, realistic pieces of information that a representation should still hold."""

import random
import re
import string
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

FactKind = Literal["statement", "setting", "measurement", "error", "assignment", "cell", "entry"]

_NAMES = (
    "Kestrel",
    "Orion",
    "Juniper",
    "Halcyon",
    "Meridian",
    "Tamarack",
    "Calypso",
    "Borealis",
    "Sable",
    "Vesper",
)
_THINGS = (
    "backup server",
    "billing service",
    "scheduler",
    "feature store",
    "gateway",
    "crawler",
    "index",
    "sampler",
)
_QUANTITIES = ("validation loss", "recall", "p99 latency", "throughput", "drift", "perplexity", "memory peak")
_KEYS = ("retry_limit", "batch_size", "window_ms", "learning_rate", "max_depth", "cutoff", "quota", "seed")
_COLUMNS = ("amount", "visits", "duration", "rate", "weight", "age", "score", "balance")
_ERRORS = ("ValueError", "KeyError", "TimeoutError", "RuntimeError", "IndexError", "FileNotFoundError")


class Fact(BaseModel):
    """One planted fact."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: FactKind
    text: str
    """As it was planted."""
    tokens: tuple[str, ...]
    """What must be there, each verbatim and close to the others, for the fact to be known."""
    question: str
    """A task for which it matters."""
    where: str = ""
    """Where it was planted, e.g. ``line 120`` or ``cell 4, output 0``."""


def draw_fact(kind: FactKind, rng: random.Random, *, form: str = "{name} = {value}") -> Fact:
    """Draw one fact; the same state of `rng` gives the same fact.

    Args:
        kind: ``statement`` is a sentence, ``setting`` a key with its value, ``measurement`` a number in a log
            line, ``error`` an exception with its message, ``assignment`` a statement of code.
        rng: Source of randomness.
        form: How an ``assignment`` is written, with ``{name}`` and ``{value}``.

    Raises:
        KeyError: Facts of this kind belong to a table or to structured data and are not drawn by themselves.
    """
    if kind == "assignment":
        return _assignment(rng, form)
    return _DRAW[kind](rng)


def code_word(rng: random.Random) -> str:
    """Text that occurs nowhere else, e.g. ``QX7-4821``."""
    return (
        "".join(rng.choices(string.ascii_uppercase, k=2))
        + f"{rng.randrange(10)}-{rng.randrange(1000, 10000)}"
    )


def _statement(rng: random.Random) -> Fact:
    name, thing = rng.choice(_NAMES), rng.choice(_THINGS)
    host = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    port = str(rng.randrange(1024, 65536))
    return Fact(
        kind="statement",
        text=f"The {name} {thing} listens at {host}, port {port}.",
        tokens=(name, host, port),
        question=f"At which address and port does the {name} {thing} listen?",
    )


def _setting(rng: random.Random) -> Fact:
    key = f"{rng.choice(_NAMES).lower()}.{rng.choice(_KEYS)}"
    value = _number(rng)
    return Fact(
        kind="setting",
        text=f"{key}={value}",
        tokens=(key, value),
        question=f"What is the value of {key}?",
    )


def _measurement(rng: random.Random) -> Fact:
    quantity, run, value = rng.choice(_QUANTITIES), code_word(rng), _decimal(rng)
    return Fact(
        kind="measurement",
        text=f"run {run} finished: {quantity} = {value}",
        tokens=(run, quantity, value),
        question=f"What {quantity} did run {run} reach?",
    )


def _error(rng: random.Random) -> Fact:
    error, column = rng.choice(_ERRORS), f"{rng.choice(_COLUMNS)}_{rng.randrange(100, 1000)}"
    count = str(rng.randrange(1000, 10000))
    return Fact(
        kind="error",
        text=f"{error}: column '{column}' has {count} missing values",
        tokens=(error, column, count),
        question=f"Why does column {column} fail?",
    )


def _assignment(rng: random.Random, form: str) -> Fact:
    name = f"{rng.choice(_NAMES)}_{rng.choice(_KEYS)}".upper()
    value = _number(rng)
    return Fact(
        kind="assignment",
        text=form.format(name=name, value=value),
        tokens=(name, value),
        question=f"Which value does {name} have?",
    )


_DRAW: dict[str, Callable[[random.Random], Fact]] = {
    "statement": _statement,
    "setting": _setting,
    "measurement": _measurement,
    "error": _error,
}


def _number(rng: random.Random) -> str:
    return str(rng.randrange(1000, 100_000)) if rng.random() < 0.5 else _decimal(rng)


def _decimal(rng: random.Random) -> str:
    """Without a zero at the end, which printing may lose."""
    return f"{rng.randrange(1, 100)}.{rng.randrange(100, 1000)}{rng.randrange(1, 10)}"


def is_retained(fact: Fact, text: str, *, window: int | None = None) -> bool:
    """Whether every token of the fact is in the text verbatim, as a whole word, and all close to each other.

    Args:
        fact: The fact.
        text: What the reader sees.
        window: Characters from the beginning of the first token to the end of the last; twice the length of
            the planted text, and at least 160, when not given.
    """
    limit = window if window is not None else max(160, 2 * len(fact.text))
    places: list[tuple[int, int, int]] = []
    for index, token in enumerate(fact.tokens):
        pattern = re.compile(rf"(?<![\w.]){re.escape(token)}(?!\w|\.\d)")
        found = [(match.start(), match.end(), index) for match in pattern.finditer(text)]
        if not found:
            return False
        places += found
    return _shortest_stretch(sorted(places), len(fact.tokens)) <= limit


def _shortest_stretch(places: Sequence[tuple[int, int, int]], kinds: int) -> float:
    """Length of the shortest stretch of text in which each of the tokens occurs."""
    counts = [0] * kinds
    present, first, shortest = 0, 0, float("inf")
    for _, end, index in places:
        counts[index] += 1
        present += counts[index] == 1
        while present == kinds:
            start, _, oldest = places[first]
            shortest = min(shortest, end - start)
            counts[oldest] -= 1
            present -= counts[oldest] == 0
            first += 1
    return shortest
