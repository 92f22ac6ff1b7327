import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebooks import by_id, code, notebook

from sensorium.observations.base import Observation
from sensorium.observations.config import ReadConfig
from sensorium.observations.notebook import read_notebook


def test_a_cut_off_notebook_gives_the_cells_before_the_cut() -> None:
    cells = [code(f"value_{i} = {i}\n" * 5, id=f"c{i}") for i in range(10)]
    text = json.dumps(notebook(*cells), indent=1)
    cut = text[: text.index("value_7") + 40]
    parts = by_id(read_notebook(cut, part_id="n"))
    assert "not valid JSON" in parts["n/problem-0"].value.what
    assert [f"n/cell-c{i}" in parts for i in range(7)] == [True] * 7
    assert parts["n/cell-c3"].value.source == cells[3]["source"]


def test_merge_conflicts_in_the_middle_lose_only_their_cell() -> None:
    cells = [code(f"value_{i} = {i}", id=f"c{i}") for i in range(5)]
    text = json.dumps(notebook(*cells), indent=1)
    broken = text.replace('"value_2 = 2"', '<<<<<<< HEAD\n"a"\n=======\n"b"\n>>>>>>> x\n')
    ids = [p.id for p in read_notebook(broken, part_id="n")]
    assert {"n/cell-c0", "n/cell-c1", "n/cell-c3", "n/cell-c4", "n/problem-0"} <= set(ids)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        "null",
        "17",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        "[" * 100_000,
        '{"cells": ' + "[" * 50_000,
        '{"cells": 5, "nbformat": 4}',
        '{"nbformat": "4", "cells": null}',
        '{"nbformat": 3, "worksheets": [1, {"cells": 3}, {"cells": [4, {"cell_type": 5}]}]}',
        '{"nbformat": 2, "worksheets": "x"}',
        '{"nbformat": -1, "cells": []}',
    ],
)
def test_what_is_no_notebook_is_told(raw: Any) -> None:
    parts = read_notebook(raw)
    assert any(p.value.kind == "problem" for p in parts)
    assert Observation(parts=tuple(parts)).model_dump_json()


def test_wrong_types_everywhere_do_no_harm() -> None:
    outputs = [
        1,
        None,
        {"output_type": 3, "text": 5},
        {"output_type": "stream", "name": 4, "text": {"a": 1}},
        {"output_type": "display_data", "data": [1]},
        {"output_type": "execute_result", "data": {"text/plain": None, 3: 4}},
        {"output_type": "error", "ename": 1, "evalue": None, "traceback": "text"},
        {"output_type": "error", "traceback": [1, None, ["x"]]},
    ]
    cells = [
        None,
        3,
        "text",
        {},
        {"cell_type": 4, "source": {"a": 1}},
        code(None, execution_count="3"),
        code(["a", 1, None], outputs),
        code("", attachments=4) | {"outputs": "none"},
        {"cell_type": "markdown", "source": "x", "attachments": {"a": 3, "b": {"image/png": 4}}},
    ]
    parts = read_notebook(notebook(*cells), part_id="n")
    by_id(parts)
    text = Observation(parts=tuple(parts)).model_dump_json()
    assert Observation.model_validate_json(text).model_dump_json() == text
    assert sum(p.value.kind == "cell" for p in parts) == 6


def test_a_notebook_above_the_limit_is_read_up_to_it() -> None:
    text = json.dumps(notebook(*[code("y" * 1_000, id=f"c{i}") for i in range(100)]))
    parts = read_notebook(text.encode(), config=ReadConfig(max_bytes=20_000))
    assert 15 < sum(p.value.kind == "cell" for p in parts) < 25
    assert "more than 20,000 bytes" in parts[0].value.what


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        "output_type": st.sampled_from(["stream", "error", "display_data", "execute_result"]) | JSON_VALUES,
        "name": JSON_VALUES,
        "text": st.text() | JSON_VALUES,
        "data": st.dictionaries(
            st.sampled_from(["text/plain", "text/html", "text/latex", "image/png", "image/svg+xml", "x"]),
            st.text() | st.just("<table><tr><td>1</td></tr></table>") | JSON_VALUES,
            max_size=3,
        )
        | JSON_VALUES,
        "ename": JSON_VALUES,
        "evalue": JSON_VALUES,
        "traceback": JSON_VALUES,
    },
)
CELLS = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw"]) | JSON_VALUES,
        "id": st.sampled_from(["a", "b", "0", "1"]) | JSON_VALUES,
        "source": st.text() | JSON_VALUES,
        "outputs": st.lists(OUTPUTS | JSON_VALUES, max_size=3) | JSON_VALUES,
        "execution_count": JSON_VALUES,
    },
)


@settings(max_examples=150, deadline=None)
@given(cells=st.lists(CELLS | JSON_VALUES, max_size=4), cut=st.floats(0, 1), damage=st.binary(max_size=3))
def test_any_notebook_whole_cut_or_damaged_is_read_into_parts_that_survive_json(
    cells: list[Any], cut: float, damage: bytes
) -> None:
    raw = notebook(*cells)
    data = json.dumps(raw).encode()
    place = int(cut * len(data))
    for variant in (raw, data, data[:place], data[:place] + damage + data[place + len(damage) :]):
        parts = read_notebook(variant)
        by_id(parts)
        observation = Observation(parts=tuple(parts))
        text = observation.model_dump_json()
        assert Observation.model_validate_json(text) == observation
        assert all(part.digest for part in parts)
