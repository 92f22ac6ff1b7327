from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.table import read_table
from sensorium.observations.values import Column, TextValue
from sensorium.representations.base import Document
from sensorium.representations.config import TableConfig
from sensorium.representations.layout.table import describe_column, lay_out_table


def laid_out(raw: Any, max_rows: int = 50, **more: Any) -> Document:
    (part,) = read_table(raw, **more)
    return lay_out_table(part, TableConfig(max_rows=max_rows))


def test_profile_header_and_rows() -> None:
    records = [{"price (EUR)": 1.5 * k, "kind": "ab"[k % 2], "ok": k != 3} for k in range(30)]
    records[20]["price (EUR)"] = 5_000.0
    document = laid_out(records)
    assert document.title == "table, 30 rows x 3 columns"
    lines = [segment.text for segment in document.segments]
    assert lines[0].startswith("price (EUR) (float, EUR): 0 to 5000, median 21")
    assert lines[1].startswith("kind (string): a (15x); b (15x)")
    pinned = [segment.text for segment in document.segments if segment.is_pinned]
    assert pinned == ["row | price (EUR) | kind | ok"]
    header = lines.index(pinned[0])
    rows = document.segments[header + 1 :]
    assert len(rows) == 30
    assert all(row.parent == header for row in rows)
    assert rows[3].text.startswith("3 | 4.5 | b | false")
    assert rows[20].text.startswith("20 | 5000 | a | true  <- price (EUR) is an outlier (")
    assert rows[20].weight > rows[0].weight > rows[10].weight
    assert rows[20].place == "row 20"


def test_small_tables_need_no_profile() -> None:
    lines = [segment.text for segment in laid_out([{"a": 1, "b": None}, {"a": 2, "b": "x\ny"}]).segments]
    assert lines == ["types: a int, b string", "row | a | b", "0 | 1 | -  <- b is missing", "1 | 2 | x y"]


def test_the_limit_of_rows_keeps_ends_and_notable_rows() -> None:
    records = [{"k": k, "v": k % 3} for k in range(1_000)]
    records[567]["v"] = 99
    document = laid_out(records, max_rows=20)
    rows = [int(s.place.split()[1]) for s in document.segments if s.place.startswith("row ")]
    assert len(rows) == 20
    assert rows == sorted(set(rows))
    assert {0, 1, 567, 999} <= set(rows)
    assert document.title == "table, 1,000 rows x 2 columns, 20 of them laid out"
    assert not [s for s in laid_out(records, max_rows=0).segments if s.place.startswith("row ")]


def test_wide_tables_are_grouped_and_their_rows_divided() -> None:
    record = {f"x{i}": float(i) for i in range(300)} | {"label": "a"}
    document = laid_out([record, {**record, "x7": None}])
    pinned = [segment.text for segment in document.segments if segment.is_pinned]
    assert pinned[0] == "x0 ... x299: 300 columns of float, 0 to 299, 1 missing values in 1 of them"
    assert "rows, as name=value for 301 columns:" in pinned
    assert sum(map(len, pinned)) < 400
    pieces = [s for s in document.segments if s.place.startswith("row 0, columns")]
    assert len(pieces) == 16
    assert "x0=0, x1=1" in pieces[0].text
    assert pieces[-1].text == "row 0: label=a"
    assert any(s.text == "row 1: x7 is missing" for s in document.segments)


def test_labels_and_notes_are_told() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"v": [1.0, 2.0]}, index=pandas.Index(["ann", "bob"], name="who"))
    texts = [segment.text for segment in laid_out(frame).segments]
    assert "note: rows are labelled by who" in texts
    assert any(text.startswith("0 ann | 1") for text in texts)


def test_a_sample_is_called_one() -> None:
    text = "k,v\n" + "".join(f"{k},{k}\n" for k in range(9_000))
    document = laid_out(text, config=ReadConfig(max_rows=100))
    assert document.title.startswith("table, sample of ")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (
            Column(name="a", dtype="int", low=3, high=3, distinct=1, mean=3.0, quantiles=(3.0,) * 5),
            "a (int): 3 to 3, 1 distinct",
        ),
        (Column(name="b", dtype="empty", missing=10), "b (empty): 10 missing (100%)"),
        (Column(name="c", dtype="x", meaning="cats?"), "c (x) [cats?]: no values"),
        (
            Column(
                name="d\nd",
                dtype="float",
                unit="s",
                low=0.1,
                high=2.5,
                mean=1.0,
                std=0.5,
                quantiles=(0.1, 0.2, 1.1, 2.0, 2.4),
            ),
            "d d (float, s): 0.1 to 2.5, median 1.1, mean 1 ± 0.5",
        ),
    ],
)
def test_columns_on_one_line(column: Column, text: str) -> None:
    assert describe_column(column, 10) == text


def test_parts_of_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="lays out tables"):
        lay_out_table(Part(id="a", modality=Modality.TEXT, value=TextValue(text="x")))


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)


@settings(max_examples=80, deadline=None)
@given(
    records=st.lists(st.dictionaries(st.text(max_size=3), CELLS, max_size=4), max_size=12),
    width=st.sampled_from([0, 45]),
    max_rows=st.integers(0, 6),
)
def test_any_table_is_laid_out_with_valid_parents(
    records: list[dict[str, Any]], width: int, max_rows: int
) -> None:
    wide = [record | {f"w{i}": i for i in range(width)} for record in records]
    document = laid_out(wide, max_rows)
    for number, segment in enumerate(document.segments):
        assert segment.parent is None or 0 <= segment.parent < number
        assert "\n" not in segment.text
        assert not segment.is_pinned or len(segment.text) < 450
    rows = {s.place.split(",")[0] for s in document.segments if s.place.startswith("row ")}
    assert len(rows) == min(len(records), max_rows)
