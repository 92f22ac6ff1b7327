import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.structured import read_rows, read_structured
from sensorium.observations.values import FieldNote, TextValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TextConfig
from sensorium.representations.layout.structured import ONE_LINE, describe_field, lay_out_structured


def laid_out(raw: Any, **settings: Any) -> Document:
    return lay_out_structured(read_structured(raw, part_id="d", **settings)[0])


def data_lines(document: Document) -> list[str]:
    texts = [segment.text for segment in document.segments]
    return texts[texts.index("data:") + 1 :] if "data:" in texts else texts


def find(document: Document, words: str) -> Segment:
    return next(segment for segment in document.segments if words in segment.text)


def test_objects_are_indented_and_short_ones_stay_on_a_line() -> None:
    raw = {"status": "ok", "page": {"n": 1, "of": 3}, "deep": {"list": [{"x": "a" * 420}, {"y": [1, 2]}]}}
    assert data_lines(laid_out(raw)) == [
        "status: ok",
        'page: {"n": 1, "of": 3}',
        "deep:",
        "  list:",
        "    -",
        f"      x: {'a' * 420}",
        '    - {"y": [1, 2]}',
    ]


def test_alike_records_are_a_table() -> None:
    raw = {"rows": [{"id": n, "name": f"n {n}", "note": None} for n in range(4)]}
    document = laid_out(raw)
    assert data_lines(document)[0] == "rows:"
    assert data_lines(document)[1] == "  id | name | note"
    assert data_lines(document)[2] == "  0 | n 0 | null"
    head = find(document, "id | name")
    assert head.is_pinned
    assert document.segments[find(document, "2 | n 2").parent or 0] is head
    assert find(document, "2 | n 2").place == "rows 2"


def test_extremes_and_errors_weigh_more() -> None:
    rows = [{"id": "x", "v": n if n != 5 else 99, "error": "bad" if n == 7 else None} for n in range(12)]
    document = laid_out(rows)
    usual = find(document, "x | 4 | null").weight
    assert find(document, "x | 99 | null").weight > usual
    assert find(document, "x | 7 | bad").weight > usual
    assert find(document, "x | 0 | null").weight > usual


def test_text_is_quoted_where_it_could_be_taken_for_something_else() -> None:
    raw = {
        "a": "true",
        "b": "12",
        "c": "a: b",
        "d": "",
        "e": "two\nlines",
        "f": "plain words",
        "g": "2024-01-02",
    }
    assert data_lines(laid_out(raw)) == [
        'a: "true"',
        'b: "12"',
        'c: "a: b"',
        'd: ""',
        'e: "two\\nlines"',
        "f: plain words",
        "g: 2024-01-02",
    ]


def test_long_lists_of_numbers_fill_lines() -> None:
    document = laid_out({"values": list(range(200))})
    lines = data_lines(document)
    assert lines[0] == "values:  # 200 items"
    assert all(len(line) <= ONE_LINE + 10 for line in lines)
    assert json.loads("[" + "".join(line.strip() + " " for line in lines[1:]) + "]") == list(range(200))
    assert find(document, "198, 199").place.endswith("..199]")


def test_a_query_has_its_columns_once() -> None:
    part = read_rows(["id", "id"], [(1, "a"), (2, "b")], part_id="q")[0]
    document = lay_out_structured(part)
    assert document.title == "sql, 2 rows, 2 columns"
    assert data_lines(document) == ["id | id", "1 | a", "2 | b"]


def test_fields_are_told_in_a_line() -> None:
    note = FieldNote(
        path="a[].b", type="number", unit="EUR", low=1.5, high=20.0, missing=0.25, meaning="price paid"
    )
    assert describe_field(note) == "a[].b: number, EUR, 1.5 to 20, 25 % missing; price paid"
    assert (
        describe_field(FieldNote(path="", type="string", distinct=1, examples=("x",)))
        == '(value): string, one of "x"'
    )
    document = laid_out([{"n": 1}], meanings={"n": "how often"})
    assert find(document, "how often").weight > 2


def test_long_texts_are_divided() -> None:
    text = "word. " * 1_000
    document = laid_out({"a": text})
    joined = "".join(segment.text for segment in document.segments if segment.place == "a")
    assert joined == f"a: {json.dumps(text)}"


def test_the_limit_of_length_is_said() -> None:
    part = read_structured({f"k{n}": "x" * 50 for n in range(100)}, part_id="d")[0]
    document = lay_out_structured(part, TextConfig(max_chars=500))
    assert document.segments[-1].text == "... more values are not shown ..."
    assert sum(len(segment.text) for segment in document.segments) < 700


def test_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="kind 'text'"):
        lay_out_structured(Part(id="d", modality=Modality.TEXT, value=TextValue(text="x")))


@pytest.mark.parametrize(
    "raw", [5, "[]", "{}", None, [[]], [{}] * 5, [{"a|b": 1}] * 5, [[[[1]]]], {"a": {"": None}}]
)
def test_small_and_odd_data(raw: Any) -> None:
    assert laid_out(raw).segments


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=40,
)


@given(JSON)
def test_every_value_is_laid_out_and_parents_come_first(data: Any) -> None:
    part = read_structured({"x": data}, part_id="d")[0]
    document = lay_out_structured(part)
    text = "\n".join(data_lines(document))
    stack = [part.value.data]  # type: ignore[union-attr]
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            assert repr(value) in text
    for position, segment in enumerate(document.segments):
        assert segment.parent is None or 0 <= segment.parent < position
