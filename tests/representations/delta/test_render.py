from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import edited, parts

from sensorium.core import Modality
from sensorium.observations.base import Part
from sensorium.observations.values import (
    ArrayValue,
    CaseResult,
    CellValue,
    CodeFault,
    CodeValue,
    Column,
    MessagesValue,
    OutputValue,
    ProblemValue,
    ProprioValue,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
    Turn,
)
from sensorium.representations.base import Document
from sensorium.representations.delta import make_delta, render_delta, tells_all


def told(old: Any, new: Any, **options: Any) -> Document:
    before, after = (Part(id="x", modality=Modality.TEXT, value=value) for value in (old, new))
    delta = make_delta(before, after)
    assert delta is not None
    return render_delta(delta, before, after, **options)


def lines(old: Any, new: Any) -> list[str]:
    return [segment.text for segment in told(old, new).segments]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_every_change_can_be_told(data: st.DataObject) -> None:
    old = data.draw(parts("x"))
    new = data.draw(edited(old) | parts("x"))
    delta = make_delta(old, new)
    if delta is not None:
        document = render_delta(delta, old, new, since=2)
        assert document.title.startswith("x: changed since step 2")
        assert "\n" not in document.title
        assert all(segment.text and segment.weight >= 0 for segment in document.segments)
        if delta.change is not None and tells_all(old, new):
            assert document.segments


def test_text_shows_changed_lines_with_numbers_and_context() -> None:
    text = "\n".join(f"line {at}" for at in range(1, 31))
    new = text.replace("line 7\n", "line seven\n").replace("line 20\n", "")
    assert told(TextValue(text=text), TextValue(text=new), since=4).title == (
        "x: changed since step 4 (+1 -2 of 29 lines)"
    )
    assert lines(TextValue(text=text), TextValue(text=new)) == [
        "  5  line 5",
        "  6  line 6",
        "- 7  line 7",
        "+ 7  line seven",
        "  8  line 8",
        "  9  line 9",
        "  18  line 18",
        "  19  line 19",
        "- 20  line 20",
        "  20  line 21",
        "  21  line 22",
    ]


def test_many_removed_lines_are_told_by_their_numbers() -> None:
    text = "\n".join(f"line {at}" for at in range(1, 31))
    new = "\n".join(f"line {at}" for at in range(1, 31) if not 5 <= at <= 20)
    assert lines(TextValue(text=text), TextValue(text=new))[2:5] == [
        "- 5  line 5",
        "- 6-19 (14 lines)",
        "- 20  line 20",
    ]


def test_a_long_line_shows_what_changed_in_it() -> None:
    words = [f"word{at}" for at in range(500)]
    old, new = " ".join(words), " ".join([*words[:200], "changed", *words[201:]])
    found = lines(TextValue(text=old), TextValue(text=new))
    assert len(found) == 1
    assert found[0].startswith("~ 1 character ")
    assert '"' in found[0]
    assert "changed" in found[0]
    assert len(found[0]) < 200


def test_a_line_end_is_a_change() -> None:
    assert lines(TextValue(text="one"), TextValue(text="one\n")) == ["  1  one", "+ 2  "]
    assert lines(TextValue(text="one\ntwo"), TextValue(text="one\r\ntwo"))[:2] == ["- 1  one", "+ 1  one\\r"]


def test_code_tells_tests_variables_and_exceptions() -> None:
    old = CodeValue(
        text="def f(x):\n    return x\n",
        tests=(CaseResult(name="a", status="passed"), CaseResult(name="b", status="failed", message="no")),
        variables={"x": "1", "y": "2"},
        faults=(CodeFault(line=1, column=2, message="bad"),),
    )
    new = CodeValue(
        text="def f(x):\n    return x\n",
        tests=(CaseResult(name="a", status="error", message="boom"), CaseResult(name="b", status="passed")),
        variables={"x": "3", "z": "4"},
        stack=StackTrace(type="KeyError", message="'k'"),
    )
    assert lines(old, new) == [
        "tests: 1 of 2 fail (before 1 of 2)",
        "newly failing (error): a: boom",
        "newly passed: b",
        "it parses now",
        "exception now KeyError: 'k'",
        "variable y is gone",
        "variable x: 1 -> 3",
        "new variable z = 4",
    ]
    pinned = [segment.text for segment in told(old, new).segments if segment.is_pinned]
    assert pinned == [
        "tests: 1 of 2 fail (before 1 of 2)",
        "newly failing (error): a: boom",
        "it parses now",
        "exception now KeyError: 'k'",
    ]


def test_cells_and_outputs() -> None:
    old = CellValue(index=1, cell_type="code", source="x = 1", execution_count=3)
    new = CellValue(index=2, cell_type="code", source="x = 2", execution_count=9)
    assert lines(old, new) == [
        "moved from place 1 to 2",
        "- 1  x = 1",
        "+ 1  x = 2",
        "execution_count: 3 -> 9",
    ]
    good = OutputValue(output_type="stream", text="fine")
    bad = OutputValue(output_type="error", text="Traceback", error=StackTrace(type="E", message="m"))
    assert lines(good, bad) == [
        "exception now E: m",
        "- 1  fine",
        "+ 1  Traceback",
        'output_type: "stream" -> "error"',
    ]


def table(*rows: tuple[Any, ...], mean: float = 1.0) -> TableValue:
    columns = (
        Column(name="item", dtype="string"),
        Column(name="price", dtype="float64", mean=mean),
        Column(name="n", dtype="int64"),
    )
    return TableValue(columns=columns, num_rows=len(rows), rows=rows, row_numbers=tuple(range(len(rows))))


def test_table_tells_cells_rows_and_profile() -> None:
    old = table(("a", 1.0, 1), ("b", 2.0, 2), ("c", 3.0, 3), ("d", 4.0, 4))
    new = table(("a", 1.5, 1), ("b", 2.0, 2), ("d", 4.0, 4), ("e", 5.0, 5), mean=3.125)
    assert told(old, new).title == "x: changed (1 row changed, 1 row new, 1 row gone)"
    assert lines(old, new) == [
        "column price: mean: 1.0 -> 3.125",
        "row 0: price 1.0 -> 1.5",
        "new rows, columns item | price | n",
        '+ row 3: "e" | 5.0 | 5',
        "- rows 2 (numbers before)",
        "row 3: number -1",
    ]


def test_structured_data_names_places() -> None:
    old = StructuredValue(data={"a": {"b": [1, 2, 3]}, "gone": 1})
    new = StructuredValue(data={"a": {"b": [1, 5, 3, 4]}, "new": None})
    assert lines(old, new) == ["- gone", "a.b[1]: 2 -> 5", "+ a.b[3] = 4", "+ new = null"]


def test_new_turns_and_moved_joints() -> None:
    first = Turn(role="user", content="hello")
    assert lines(
        MessagesValue(turns=(first,)), MessagesValue(turns=(first, Turn(role="assistant", content="hi")))
    ) == ["+ turn 2, assistant: hi"]
    old = ProprioValue(names=("knee", "hip"), values=(0.1, 0.2), units=("rad", "rad"))
    new = ProprioValue(names=("knee", "hip"), values=(0.1, 0.5), units=("rad", "rad"))
    assert lines(old, new) == ["hip: 0.2 -> 0.5 rad"]


def test_few_numbers_of_an_array_are_named() -> None:
    before = np.zeros((4, 4), np.float32)
    after = before.copy()
    after[1, 2] = 2.5
    many = np.ones((4, 8), np.float32)
    values = [
        ArrayValue(dtype="float32", shape=one.shape, data=one.tobytes())
        for one in (before, after, many, many * 2)
    ]
    assert lines(values[0], values[1]) == ["[1, 2]: 0.0 -> 2.5"]
    assert lines(values[2], values[3]) == ["all of them in [0:4, 0:8]"]
    some = [Part(id="x", modality=Modality.DEPTH, value=value) for value in values]
    assert tells_all(some[0], some[1])
    assert not tells_all(some[2], some[3])


def test_another_kind_is_said() -> None:
    document = told(TextValue(text="one"), ProblemValue(what="gone", mend="look"))
    assert document.title == "x: changed (was text, is problem now)"
    assert [segment.text for segment in document.segments] == ["problem instead of text"]


@pytest.mark.parametrize("notes", [((), ("n",)), (("n",), ())])
def test_notes_and_time(notes: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    value = TextValue(text="same")
    before, after = (Part(id="x", modality=Modality.TEXT, value=value, notes=one) for one in notes)
    delta = make_delta(before, after)
    assert delta is not None
    assert [segment.text[2:] for segment in render_delta(delta, before, after).segments] == ["note: n"]
    later = Part(id="x", modality=Modality.TEXT, value=value, timestamp_s=1.0, notes=after.notes)
    delta = make_delta(after, later)
    assert delta is not None
    assert render_delta(delta, after, later).title == "x: changed (only its time)"
