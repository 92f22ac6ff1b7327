from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.notebook import read_notebook
from sensorium.observations.values import CellValue, OutputValue, StackTrace, TextValue
from sensorium.representations.base import Document
from sensorium.representations.config import CodeConfig, MultimodalConfig, NotebookConfig
from sensorium.representations.layout.notebook import lay_out_cell, lay_out_output
from sensorium.representations.scoring import worth


def cell(source: str, **more: Any) -> Part:
    value = CellValue(index=3, cell_type=more.pop("cell_type", "code"), source=source, **more)
    return Part(id="n/cell-3", modality=Modality.NOTEBOOK, value=value)


def output(text: str, **more: Any) -> Part:
    value = OutputValue(output_type=more.pop("output_type", "stream"), text=text, **more)
    return Part(id="n/cell-3/output-0", modality=Modality.NOTEBOOK, value=value)


def whole(document: Document) -> str:
    return document.separator.join(segment.text for segment in document.segments)


SOURCE = "import os\n\n\ndef f(x):\n    # add\n    return x + 1\n\n5 + 3\nf(2)"


def test_a_code_cell_keeps_its_text_without_line_numbers() -> None:
    document = lay_out_cell(cell(SOURCE, execution_count=7))
    assert document.title == "cell 3 (code, run 7)"
    assert document.fence == "python"
    assert [line for line in whole(document).split("\n") if line] == [
        line for line in SOURCE.split("\n") if line
    ]
    by_text = {segment.text.strip(): segment for segment in document.segments}
    body = by_text["return x + 1"]
    assert body.parent is not None
    assert document.segments[body.parent].text == "def f(x):"
    assert lay_out_cell(cell("x")).title == "cell 3 (code, not run)"


def test_code_settings_hold_for_cells() -> None:
    bare = lay_out_cell(cell(SOURCE), MultimodalConfig(code=CodeConfig(include_comments=False)))
    assert "# add" not in whole(bare)
    long = "\n".join(f"x{i} = {i}" for i in range(500))
    document = lay_out_cell(cell(long), MultimodalConfig(code=CodeConfig(max_lines=20)))
    assert "not shown (max_lines: 20)" in whole(document)
    assert whole(document).count("\n") < 25


def test_markdown_headings_are_parents() -> None:
    document = lay_out_cell(cell("# Title\n\nwords", cell_type="markdown"))
    assert document.title == "cell 3 (markdown)"
    assert document.segments[1].parent == 0


TRACEBACK = """---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[3], line 2
      1 x = 1
----> 2 model.fit(x)

File /usr/lib/python3.11/site-packages/sk/base.py:10, in fit(self, x)
      9 def fit(self, x):
---> 10     raise ValueError("bad x")

ValueError: bad x"""


def test_exception_and_last_own_frame_are_pinned() -> None:
    error = StackTrace(type="ValueError", message="bad x")
    document = lay_out_output(output(TRACEBACK, output_type="error", error=error))
    assert document.title == "error ValueError, 11 lines"
    assert [s.text for s in document.segments if s.is_pinned] == ["----> 2 model.fit(x)", "ValueError: bad x"]
    assert whole(document) == TRACEBACK
    weights = {s.text.strip(): s.weight for s in document.segments}
    assert (
        weights["----> 2 model.fit(x)"]
        > weights['---> 10     raise ValueError("bad x")']
        > weights["9 def fit(self, x):"]
    )


def test_a_plain_python_traceback_pins_the_frame_of_the_user() -> None:
    text = (
        'epoch 1\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
        "  File \"/x/site-packages/lib.py\", line 9, in run\n    raise KeyError(k)\nKeyError: 'a'"
    )
    document = lay_out_output(output(text, stream="stderr", error=StackTrace(type="KeyError", message="'a'")))
    assert [s.text.strip() for s in document.segments if s.is_pinned] == [
        'File "train.py", line 3, in <module>',
        "main()",
        "KeyError: 'a'",
    ]
    assert document.title == "stderr with KeyError, 7 lines"


def test_an_error_whose_text_does_not_name_it_is_named_first() -> None:
    error = StackTrace(type="MemoryError", message="too large")
    document = lay_out_output(output("killed", output_type="error", error=error))
    assert document.segments[0].text == "MemoryError: too large"
    assert document.segments[0].is_pinned


def test_repetition_is_worth_little_and_errors_much() -> None:
    lines = [f"step {i}: loss {1 / (i + 1):.3f}" for i in range(50)]
    lines[30] = "WARNING: learning rate is large"
    lines[31] = "ERROR: nan in gradient"
    document = lay_out_output(output("\n".join(lines), stream="stdout"))
    weights = worth(document)
    assert weights[31] > weights[30] > weights[0] > weights[20]
    assert weights[20] < 0.5
    assert weights[49] > weights[20]
    assert whole(document) == "\n".join(lines)


def test_long_outputs_keep_ends_and_telling_lines() -> None:
    lines = [f"line {i} of the log" for i in range(1_000)]
    lines[500] = "Error: disk full"
    document = lay_out_output(output("\n".join(lines)), NotebookConfig(max_output_lines=40))
    text = whole(document)
    assert len(document.segments) <= 43
    assert "line 0 of" in text
    assert "line 999 of" in text
    assert "Error: disk full" in text
    assert "lines not shown (max_output_lines: 40)" in text


def test_an_overlong_line_is_divided() -> None:
    document = lay_out_output(output("x" * 10_000))
    assert len(document.segments) == 5
    assert "".join(s.text for s in document.segments) == "x" * 10_000


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n"])
def test_empty_outputs_and_cells(text: str) -> None:
    assert isinstance(lay_out_output(output(text)), Document)
    assert isinstance(lay_out_cell(cell(text)), Document)


def test_parts_of_other_kinds_are_refused() -> None:
    part = Part(id="a", modality=Modality.TEXT, value=TextValue(text="x"))
    for lay_out in (lay_out_cell, lay_out_output):
        with pytest.raises(TypeError, match="got a part of kind 'text'"):
            lay_out(part)


TEXTS = st.lists(
    st.sampled_from(
        ["Traceback (most recent call last):", '  File "a.py", line 1', "E: x", "----> 1 x", "a", "", "5 %"]
    )
    | st.text(max_size=20),
    max_size=30,
).map("\n".join)


@settings(max_examples=100, deadline=None)
@given(source=TEXTS, limit=st.integers(1, 10), has_error=st.booleans())
def test_any_cell_and_output_is_laid_out_with_valid_parents(source: str, limit: int, has_error: bool) -> None:
    error = StackTrace(type="E", message="x") if has_error else None
    config = NotebookConfig(max_output_lines=limit)
    documents = [
        lay_out_cell(cell(source)),
        lay_out_cell(cell(source, cell_type="markdown")),
        lay_out_output(output(source, error=error), config),
        lay_out_output(output(source, error=error)),
    ]
    for document in documents:
        for number, segment in enumerate(document.segments):
            assert segment.parent is None or 0 <= segment.parent < number
            assert segment.weight >= 0
            assert not segment.is_pinned or len(segment.text) <= 300
    if not has_error:
        assert whole(documents[3]) == source
    shown = [s for s in documents[2].segments if not s.text.startswith("... ")]
    assert len(shown) <= limit + 1 or "... " in source


def test_parts_read_from_a_notebook_are_laid_out() -> None:
    raw = {
        "nbformat": 4,
        "cells": [
            {"cell_type": "code", "source": "1/0", "outputs": [{"output_type": "stream", "text": "hi"}]}
        ],
    }
    titles = [
        (lay_out_cell if part.value.kind == "cell" else lay_out_output)(part).title
        for part in read_notebook(raw)
    ]
    assert titles == ["cell 0 (code, not run)", "stdout, 1 line"]
