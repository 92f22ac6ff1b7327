from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sensorium.core import MissingDependencyError, Modality
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.registry import build_extractor
from sensorium.observations.base import Part
from sensorium.observations.values import (
    CellValue,
    CodeValue,
    MessagesValue,
    OutputValue,
    ProblemValue,
    ProprioValue,
    StackTrace,
    StructuredValue,
    TextValue,
    Turn,
)
from sensorium.testing.extractor import check_extractor

CODE = """import os
from json import dumps


def mean(xs):
    if not xs:
        return 0
    return sum(xs) / len(xs)
"""


def parts() -> list[Part]:
    values: dict[str, tuple[Modality, Any]] = {
        "plain": (
            Modality.TEXT,
            TextValue(text="Anna Schmidt from Acme did not sign the contract in Berlin."),
        ),
        "markdown": (
            Modality.TEXT,
            TextValue(text="# Why\n\nPlease run `make`. It fails.", format="markdown"),
        ),
        "html": (Modality.TEXT, TextValue(text="<p>Thanks, this works <b>great</b>!</p>", format="html")),
        "log": (Modality.TEXT, TextValue(text="12:00 ERROR disk full\n12:01 INFO retry", format="log")),
        "empty": (Modality.TEXT, TextValue(text="")),
        "odd": (Modality.TEXT, TextValue(text="\x00 \u2028 naïve 中文 🙂 \r\n")),
        "long": (Modality.TEXT, TextValue(text="The model was trained by the team on old data. " * 60)),
        "messages": (
            Modality.TEXT,
            MessagesValue(
                turns=(Turn(role="user", content="Why?"), Turn(role="assistant", content="No idea."))
            ),
        ),
        "structured": (Modality.TEXT, StructuredValue(data={"a": [1, None, "x"]})),
        "code": (Modality.CODE, CodeValue(text=CODE, path="mean.py", language="python")),
        "broken": (Modality.CODE, CodeValue(text="def f(:\n  x = = 1\n", language="python")),
        "cell": (Modality.NOTEBOOK, CellValue(index=0, cell_type="code", source=CODE)),
        "prose": (Modality.NOTEBOOK, CellValue(index=1, cell_type="markdown", source="We *measure* speed.")),
        "output": (
            Modality.NOTEBOOK,
            OutputValue(output_type="error", text="boom", error=StackTrace(type="KeyError", message="x")),
        ),
        "problem": (Modality.TEXT, ProblemValue(what="cut off", where="a.json")),
        "body": (Modality.PROPRIO, ProprioValue(names=("x",), values=(1.0,))),
    }
    return [Part(id=name, modality=modality, value=value) for name, (modality, value) in values.items()]


@pytest.mark.parametrize("name", ["sentence", "entities", "sentiment", "code_structure", "dependencies"])
def test_text_extractors_keep_the_contract(name: str) -> None:
    extractor = build_extractor(name)
    try:
        found = check_extractor(extractor, parts())
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert {features.unavailable for features in found} == {None}
    assert any(features.data for features in found)


class Lengths:
    """An extractor that keeps the contract, to be broken in one way at a time."""

    name, version = "lengths", "1"
    break_it = ""

    def __init__(self, break_it: str = "") -> None:
        self.break_it = break_it
        self.calls = 0

    def accepts(self, part: Part) -> bool:
        return part.text is not None

    def __call__(self, given: Sequence[Part]) -> list[Features]:
        self.calls += 1
        found = [
            Features(
                part_id="x" if self.break_it == "id" else part.id,
                extractor=self.name,
                version=self.version,
                vector=self._vector(part, given),
                data=self._data(part),
            )
            for part in given
        ]
        if self.break_it == "order":
            return found[::-1]
        return found[1:] if self.break_it == "count" else found

    def _vector(self, part: Part, given: Sequence[Part]) -> np.ndarray:
        length = len(part.text or "")
        match self.break_it:
            case "batch":
                return np.full(2, length + len(given), np.float32)
            case "width":
                return np.zeros(length, np.float32)
            case "nan":
                return np.full(2, np.nan, np.float32)
            case "shape":
                return np.zeros((2, 2), np.float32)
            case "weight":
                return np.full(2, part.importance, np.float32)
        return np.full(2, length, np.float32)

    def _data(self, part: Part) -> dict[str, Any]:
        match self.break_it:
            case "plain":
                return {"x": {1, 2}}
            case "tuple":
                return {"x": (1, 2)}
            case "infinite":
                return {"x": float("inf")}
            case "memory":
                return {"calls": self.calls}
        return {"length": len(part.text or "")}


def test_a_sound_extractor_passes() -> None:
    assert check_extractor(Lengths(), parts())[0].data == {"length": 59}


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        ("id", "not in order"),
        ("order", "not in order"),
        ("count", "results for"),
        ("batch", "vectors differ"),
        ("width", "different widths"),
        ("nan", "NaN"),
        ("shape", "expected \\(D,\\)"),
        ("weight", "another id, weight"),
        ("plain", "not plain JSON"),
        ("tuple", "changes in JSON"),
        ("infinite", "not plain JSON"),
        ("memory", "data differ"),
    ],
)
def test_a_broken_extractor_is_caught(break_it: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_extractor(Lengths(break_it), parts())
