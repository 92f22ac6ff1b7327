import dataclasses
import datetime as dt
import enum
import json
import sqlite3
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.plain import to_plain
from sensorium.observations.structured import detect_structure, read_rows, read_structured
from sensorium.observations.values import FieldNote, ProblemValue, StructuredValue, TextValue


def structured(parts: list[Part]) -> StructuredValue:
    value = parts[0].value
    assert isinstance(value, StructuredValue)
    return value


def read(raw: Any, **settings: Any) -> StructuredValue:
    return structured(read_structured(raw, part_id="d", **settings))


def notes(raw: Any, **settings: Any) -> dict[str, FieldNote]:
    return {note.path: note for note in read(raw, **settings).fields}


ORDERS = [
    {"id": 1, "price_eur": 2.5, "created_at": "2024-01-05", "who": {"email": "a@b.c"}, "tags": ["x"]},
    {"id": 2, "price_eur": 10, "created_at": "2023-12-31", "who": {"email": None}, "tags": []},
    {"id": 3, "price_eur": 4, "created_at": "2024-02-01T10:00:00Z"},
]


def test_fields_are_described() -> None:
    found = notes({"orders": ORDERS}, meanings={"orders[].id": "number of the order", "tags": "labels"})
    assert found["orders[].id"] == FieldNote(
        path="orders[].id", type="integer", low=1.0, high=3.0, distinct=3, meaning="number of the order"
    )
    price = found["orders[].price_eur"]
    assert (price.type, price.unit, price.low, price.high) == ("number", "EUR", 2.5, 10.0)
    assert price.meaning == "amount of money?"
    created = found["orders[].created_at"]
    assert (created.type, created.low, created.high) == ("date", "2023-12-31", "2024-02-01T10:00:00Z")
    assert found["orders[].who"].missing == pytest.approx(1 / 3)
    email = found["orders[].who.email"]
    assert (email.type, email.missing, email.examples) == ("string | null", 0.5, ("a@b.c",))
    assert found["orders[].tags"].meaning == "labels"
    assert found["orders[].tags[]"].examples == ("x",)


def test_json_text_and_bytes() -> None:
    assert read(b'{"a": [1, 2.5, null, true, "x"]}').data == {"a": [1, 2.5, None, True, "x"]}
    assert read("[1]").format == "json"


def test_json_lines_and_a_broken_line() -> None:
    assert read('{"a": 1}\n{"a": 2}\n\n').data == [{"a": 1}, {"a": 2}]
    parts = read_structured('{"a": 1}\n{"a": 2}\n{"a": \n', part_id="d")
    assert structured(parts).data == [{"a": 1}, {"a": 2}]
    assert parts[1].id == "d/problem"
    assert isinstance(parts[1].value, ProblemValue)
    assert "lines 3" in parts[1].value.where


@pytest.mark.parametrize(
    ("text", "saved", "line", "column"),
    [
        ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1, 2]}, 1, 20),
        ('{"a": 1,\n "b" 2}', {"a": 1}, 2, 6),
        ('{"a": "x\\qy"}', None, 1, 7),
        ("[1, 2}", [1, 2], 1, 6),
        ("[1] x", [1], 1, 5),
        ("{'a': 1}", None, 1, 2),
    ],
)
def test_broken_json_is_saved_and_told(text: str, saved: Any, line: int, column: int) -> None:
    parts = read_structured(text, part_id="d", format="json")
    assert len(parts) == 2
    problem = parts[1].value
    assert isinstance(problem, ProblemValue)
    assert problem.what.startswith("broken JSON")
    assert problem.where == f"d: line {line}, column {column}"
    if saved is None:
        assert parts[0].value == TextValue(text=text)
    else:
        assert structured(parts).data == saved


def test_a_comma_too_many_is_forgiven_with_a_note_free_result() -> None:
    assert read('{"a": [1, 2,],}').data == {"a": [1, 2]}


def test_depth_and_cycles() -> None:
    deep: Any = {}
    inner = deep
    for _ in range(10_000):
        inner["a"] = {}
        inner = inner["a"]
    cyclic: list[Any] = [1]
    cyclic.append({"self": cyclic})
    twice = [1, 2]
    for raw in (deep, "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 10_000):
        part = read_structured(raw, part_id="d")[0]
        assert "nested more than 64 deep" in part.notes[0] or "broken" in part.notes[0]
        assert Part.model_validate_json(part.model_dump_json()) == part
    assert read(cyclic).data == [1, {"self": "<contains itself>"}]
    assert read([twice, twice]).data == [[1, 2], [1, 2]]


def test_the_greatest_depth_survives_json() -> None:
    deep: Any = 1
    for _ in range(1_000):
        deep = [deep]
    (part,) = read_structured(deep, part_id="d", config=ReadConfig(max_depth=5_000))
    assert Part.model_validate_json(part.model_dump_json()) == part


def test_near_the_end_of_the_stack_nothing_recurses() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = {"a": [deep]}

    def at_depth(left: int) -> Any:
        return at_depth(left - 1) if left else to_plain(deep, max_depth=64, max_items=100).data

    used = 0
    frame: Any = sys._getframe()
    while frame is not None:
        used, frame = used + 1, frame.f_back
    assert isinstance(at_depth(sys.getrecursionlimit() - used - 60), dict)


def test_numbers_that_json_cannot_hold() -> None:
    value = read('{"a": NaN, "b": -Infinity, "c": 1e999, "d": ' + "9" * 5_000 + "}").data
    assert value == {"a": "NaN", "b": "-Infinity", "c": "Infinity", "d": "<integer of 5,000 digits>"}
    assert read([10**400]).data == ["<integer of 1,329 bits>"]
    assert read([2**70, -(2**64)]).data == [2**70, -(2**64)]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: Any


class Model(BaseModel):
    name: str
    point: Point


class Pair(NamedTuple):
    first: int
    second: str


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Endless(Mapping[int, int]):
    def __getitem__(self, key: int) -> int:
        return key

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1


def test_python_objects() -> None:
    raw = {
        1: "int key",
        None: "null key",
        (1, 2): "tuple key",
        b"k": b"\x00\xff",
        "date": dt.date(2024, 1, 2),
        "time": dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC),
        "delta": dt.timedelta(seconds=90),
        "decimal": [Decimal("1.5"), Decimal("0.1"), Decimal("1.00000000000000000001"), Decimal("NaN")],
        "model": Model(name="m", point=Point(1, Colour.RED)),
        "pair": Pair(1, "x"),
        "set": {3, 1, 2},
        "others": [deque([1]), OrderedDict(a=1), Hostile(), (1, 2)],
        "numpy": [np.float32(0.5), np.int64(3), np.bool_(True), np.array([[1, 2]]), np.float64("nan")],
    }
    data = read(raw).data
    assert data == {
        "1": "int key",
        "null": "null key",
        "(1, 2)": "tuple key",
        "k": "base64:AP8=",
        "date": "2024-01-02",
        "time": "2024-01-02T03:04:00+00:00",
        "delta": "90.0 s",
        "decimal": [1.5, 0.1, "1.00000000000000000001", "NaN"],
        "model": {"name": "m", "point": {"x": 1, "y": "red"}},
        "pair": {"first": 1, "second": "x"},
        "set": [1, 2, 3],
        "others": [[1], {"a": 1}, "<Hostile: its repr raises RuntimeError>", [1, 2]],
        "numpy": [0.5, 3, True, [[1, 2]], "NaN"],
    }


def test_equal_keys_get_numbers() -> None:
    assert read({1: "a", "1": "b"}).data == {"1": "a", "1 (2)": "b"}


def test_endless_and_wide_data_is_cut() -> None:
    config = ReadConfig(max_items=10)
    (part,) = read_structured(list(range(100)), part_id="d", config=config)
    assert structured([part]).data == [*range(10), "<more values left out>"]
    assert part.notes == ("first 10 values; the rest is left out",)
    (part,) = read_structured({"e": Endless()}, part_id="d", config=config)
    assert len(structured([part]).data["e"]) == 10


def test_yaml() -> None:
    text = "a: 1\nwhen: 2024-01-02\n1: x\nlist: [yes, ~]\n"
    assert read(text, path="x.yaml").data == {"a": 1, "when": "2024-01-02", "1": "x", "list": [True, None]}
    assert read("a: 1\n---\na: 2\n", format="yaml").data == [{"a": 1}, {"a": 2}]


def test_yaml_bombs_and_objects() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for last, name in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n"
    (part,) = read_structured(bomb, part_id="d", format="yaml", config=ReadConfig(max_items=5_000))
    assert "first 5,000 values" in part.notes[0]
    assert read("&a [*a]", format="yaml").data == ["<contains itself>"]
    for text in ("!!python/object/apply:os.system [ls]", "a: [1", "a: b: c", "- " * 10_000, "x: 2024-99-99"):
        parts = read_structured(text, part_id="d", format="yaml")
        assert parts[0].value == TextValue(text=text)
        assert parts[1].is_error


def test_toml_and_xml() -> None:
    assert read("[a]\nb = 1\nc = 2024-01-02\n", path="x.toml").data == {"a": {"b": 1, "c": "2024-01-02"}}
    xml = '<?xml version="1.0" encoding="latin-1"?><r id="1"><i>ä</i><i n="2">b</i><e/></r>'
    assert read(xml, path="x.xml").data == {
        "r": {"@id": "1", "i": ["ä", {"@n": "2", "#text": "b"}], "e": None}
    }
    for text, format in (("a = ", "toml"), ("a = " + "[" * 5_000, "toml"), ("<a>", "xml")):
        assert read_structured(text, part_id="d", format=format)[1].is_error
    laughs = '<!DOCTYPE x [<!ENTITY a "ha">]><x>&a;</x>'
    assert "entities" in str(read_structured(laughs, part_id="d", format="xml")[1].value)


def test_a_query_keeps_columns_rows_and_types() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table t (id integer, price_eur real, name text, data blob)")
        connection.executemany(
            "insert into t values (?, ?, ?, ?)", [(i, i / 2, f"n{i}", b"\xff") for i in range(30)]
        )
        cursor = connection.execute("select id, price_eur, name, name, data from t")
        (part,) = read_structured(
            cursor, part_id="q", config=ReadConfig(keep_rows=10), meanings={"id": "key"}
        )
    connection.close()
    value = structured([part])
    assert value.format == "sql"
    assert value.data["columns"] == ["id", "price_eur", "name", "name", "data"]
    assert len(value.data["rows"]) == 10
    assert value.data["rows"][1] == [1, 0.5, "n1", "n1", "base64:/w=="]
    assert (value.fields[0].high, value.fields[0].meaning, value.fields[1].unit) == (29.0, "key", "EUR")
    assert part.notes[0].startswith("10 of 30 rows are kept")


def test_a_query_that_breaks_keeps_what_it_gave() -> None:
    def rows() -> Iterator[list[int]]:
        yield [1]
        raise sqlite3.OperationalError("gone")

    parts = read_rows(["a"], rows(), part_id="q")
    assert structured(parts).data["rows"] == [[1]]
    assert "gone" in str(parts[1].value)


def test_a_cursor_without_a_result_is_a_problem() -> None:
    connection = sqlite3.connect(":memory:")
    assert read_structured(connection.cursor(), part_id="q")[0].is_error
    connection.close()


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a": 1}', None, "json"),
        (" [1, 2]", None, "json"),
        ("[1] a footnote", None, None),
        ("[INFO] a log", None, None),
        ("{name} is a template", None, None),
        ("<?xml version='1.0'?><a/>", None, "xml"),
        ("a: 1", None, None),
        ("a: 1", "c.yml", "yaml"),
        ("", "x.jsonl", "json"),
        ("plain", None, None),
    ],
)
def test_structure_is_detected(text: str, path: str | None, expected: str | None) -> None:
    assert detect_structure(text, path=path) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON.filter(lambda data: "\\u0000" not in json.dumps(data)))
def test_plain_data_is_not_changed(data: Any) -> None:
    value = to_plain(data, max_depth=64, max_items=10_000)
    assert value.data == data
    assert value.notes == ()


@given(
    st.binary(max_size=200) | st.text(max_size=200) | JSON.map(json.dumps),
    st.sampled_from([None, "json", "yaml", "toml", "xml"]),
)
def test_anything_is_read_and_survives_json(raw: Any, format: Any) -> None:
    for part in read_structured(raw, part_id="d", format=format):
        assert Part.model_validate_json(part.model_dump_json()) == part
        assert len(part.digest) == 32


ANYTHING = st.recursive(
    st.none()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers() | st.text(st.characters()), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(ANYTHING)
def test_any_object_survives_json(raw: Any) -> None:
    for part in read_structured({"x": raw}, part_id="d"):
        assert Part.model_validate_json(part.model_dump_json()) == part
