import datetime
import decimal
import math
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.observations.base import Observation, Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.table import read_table
from sensorium.observations.values import Column, TableValue

pd = pytest.importorskip("pandas", reason="pip install 'sensorium[observe]'")


def table_of(raw: Any, **more: Any) -> TableValue:
    (part,) = read_table(raw, **more)
    assert isinstance(part.value, TableValue), part.value
    round_trip(part)
    return part.value


def round_trip(part: Part) -> None:
    assert Part.model_validate_json(part.model_dump_json()) == part


def reasons(table: TableValue) -> dict[int, str]:
    return {notable.row: notable.reason for notable in table.notable}


def test_a_numeric_column_is_measured_as_pandas_and_numpy_do() -> None:
    series = pd.Series([1.0, 4.0, 2.5, np.nan, 9.0, 2.5], name="latency_ms")
    column = table_of(series).columns[0]
    plain = series.dropna()
    assert column.name == "latency_ms"
    assert (column.dtype, column.unit, column.missing, column.distinct) == ("float64", "ms", 1, 4)
    assert (column.low, column.high) == (1.0, 9.0)
    assert column.mean == pytest.approx(plain.mean())
    assert column.std == pytest.approx(plain.std())
    assert column.quantiles == pytest.approx(plain.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).tolist())
    assert column.top == ((2.5, 2), (1.0, 1), (4.0, 1), (9.0, 1))


def test_infinities_are_counted_out_and_named() -> None:
    table = table_of(pd.DataFrame({"x": [1.0, np.inf, 3.0, -np.inf]}))
    assert (table.columns[0].low, table.columns[0].high, table.columns[0].mean) == (1.0, 3.0, 2.0)
    assert table.rows == ((1.0,), ("inf",), (3.0,), ("-inf",))
    assert reasons(table)[1] == "x is infinite"


def test_text_columns_have_their_frequent_values() -> None:
    column = table_of(pd.DataFrame({"kind": ["a", "b", "a", None, "a"]})).columns[0]
    assert (column.missing, column.distinct, column.top) == (1, 2, (("a", 3), ("b", 1)))


def test_outliers_duplicates_gaps_and_rare_categories_are_notable() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"price": rng.normal(20, 2, 200).round(3), "kind": ["a", "b"] * 100, "note": ["x"] * 200}
    )
    frame.loc[50, "price"] = 900.0
    frame.loc[60, "kind"] = "rare one"
    frame.loc[70, "note"] = None
    frame.loc[120] = frame.loc[30]
    found = reasons(table_of(frame, config=ReadConfig(keep_rows=20)))
    assert "price is an outlier (" in found[50]
    assert "kind is rare ('rare one', 1 of 200)" in found[60]
    assert found[70] == "note is missing"
    assert found[120] == "repeats row 30"


def test_a_counter_has_no_extremes() -> None:
    assert not table_of(pd.DataFrame({"id": range(100), "name": ["x"] * 100})).notable


def test_texts_in_a_numeric_csv_column_are_notable() -> None:
    text = "v\n" + "\n".join(map(str, range(40))) + "\nn.n.\n"
    table = table_of("k,v\n" + "".join(f"{k},{k * k}\n" for k in range(40)) + "40,broken\n")
    assert table.columns[1].dtype == "float (mixed)"
    assert table.columns[1].high == 39.0**2
    assert "v is not a number ('broken')" in reasons(table)[40]
    assert table_of(text).columns[0].missing == 0


def test_kept_rows_are_head_tail_and_notable_ones_in_order() -> None:
    values = np.zeros(10_000)
    values[7_776] = 5.0
    values[1::2] = 1.0
    table = table_of(pd.DataFrame({"v": values}), config=ReadConfig(keep_rows=50))
    assert len(table.rows) == 50
    assert list(table.row_numbers) == sorted(set(table.row_numbers))
    assert {0, 9_999, 7_776} <= set(table.row_numbers)
    assert table.num_rows == 10_000
    assert all(notable.row in table.row_numbers for notable in table.notable)


def test_no_rows_may_be_kept() -> None:
    table = table_of(pd.DataFrame({"v": range(100)}), config=ReadConfig(keep_rows=0))
    assert table.rows == ()
    assert table.columns[0].high == 99


def test_multi_index_names_and_labels_are_joined() -> None:
    frame = pd.DataFrame(
        [[1, 2], [3, 4]],
        index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"]),
        columns=pd.MultiIndex.from_tuples([("x", "mean"), ("x", "std")]),
    )
    (part,) = read_table(frame)
    assert [c.name for c in part.value.columns] == ["x / mean", "x / std"]
    assert part.value.index == ("a / 1", "b / 2")
    assert "rows are labelled by k / n" in part.notes


def test_labels_of_a_filtered_frame_are_kept_and_default_ones_left_out() -> None:
    frame = pd.DataFrame({"v": range(10)})
    assert table_of(frame).index is None
    assert table_of(frame[frame.v > 7]).index == ("8", "9")
    dated = pd.DataFrame({"v": [1]}, index=pd.to_datetime(["2024-01-01"]))
    assert table_of(dated).index == ("2024-01-01T00:00:00",)


def test_repeated_empty_and_odd_names_are_told_apart() -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", "", 7])
    (part,) = read_table(frame)
    assert [c.name for c in part.value.columns] == ["a", "a (2)", "column 3", "7"]
    assert any("1 columns" in note for note in part.notes)


def test_types_that_pandas_brings() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "c": pd.Categorical(["u", "v", "u"]),
            "t": pd.to_datetime(["2024-01-01", None, "2024-01-03"]).tz_localize("Europe/Berlin"),
            "d": pd.to_timedelta(["1h", None, "2h"]),
            "p": pd.period_range("2024-01", periods=3, freq="M"),
            "n": [{"a": [1]}, None, [1, 2]],
            "m": [1, "x", 2.5],
            "z": [1 + 2j, 0, 0],
            "y": [b"\xff", None, b"ok"],
        }
    )
    table = table_of(frame)
    columns = {c.name: c for c in table.columns}
    assert (columns["i"].low, columns["i"].high, columns["i"].missing) == (1, 3, 1)
    assert columns["b"].missing == 1
    assert columns["c"].top == (("u", 2), ("v", 1))
    assert columns["t"].low == "2024-01-01T00:00:00+01:00"
    assert columns["m"].dtype.startswith("mixed")
    row = dict(zip(columns, table.rows[0], strict=True))
    assert row["n"] == '{"a": [1]}'
    assert row["y"] == "b'\\xff'"
    assert row["i"] == 1
    assert table.rows[1][columns_index(table, "d")] is None


def columns_index(table: TableValue, name: str) -> int:
    return [c.name for c in table.columns].index(name)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=range(5)),
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": [np.nan] * 3}),
        pd.Series([], dtype=float),
        pd.Index([1, 2]),
    ],
)
def test_empty_frames_are_tables(frame: Any) -> None:
    table = table_of(frame)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.num_rows == len(frame)


def test_ten_thousand_columns_keep_fewer_rows() -> None:
    table = table_of(pd.DataFrame(np.arange(1_000_000.0).reshape(100, 10_000)))
    assert len(table.columns) == 10_000
    assert len(table.rows) == 20
    assert table.num_rows == 100


def test_a_large_frame_is_sampled_and_says_so() -> None:
    (part,) = read_table(
        pd.DataFrame({"v": np.arange(1_000_000)}), config=ReadConfig(max_rows=1_000, keep_rows=10)
    )
    assert part.value.num_rows == 1_000_000
    assert part.value.is_sample
    assert part.value.columns[0].low == 0
    assert part.value.columns[0].high == 999_999
    assert "1,000 rows spread evenly over 1,000,000" in part.notes[0]


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("raw", "names", "first"),
    [
        ([{"a": 1, "b": "x"}, {"b": "y", "c": 2.5}], ["a", "b", "c"], (1, "x", None)),
        ([(1, 2), (3, 4, 5)], ["column 1", "column 2", "column 3"], (1, 2, None)),
        ([Point(1, 2)], ["x", "y"], (1, 2)),
        ({"a": [1, 2], "b": [3]}, ["a", "b"], (1, 3)),
        ([5, "x"], ["value"], (5,)),
        ([], ["value"], None),
    ],
)
def test_records_and_columns_are_tables(raw: Any, names: list[str], first: Any) -> None:
    table = table_of(raw)
    assert [c.name for c in table.columns] == names
    assert (table.rows[0] if table.rows else None) == first


def test_plain_values_of_records_become_cells() -> None:
    record = {
        "d": datetime.date(2024, 1, 2),
        "e": decimal.Decimal("1.50"),
        "big": 2**70,
        "huge": 10**5_000,
        "nan": math.nan,
        "inf": -math.inf,
        "text": "a\ud800",
        "np": np.float32(0.5),
        "long": "x" * 5_000,
    }
    table = table_of([record, record])
    row = dict(zip(record, table.rows[0], strict=True))
    assert row["d"] == "2024-01-02"
    assert row["e"] == 1.5
    assert row["big"] == str(2**70)
    assert row["huge"] == "integer of 16,610 bits"
    assert row["nan"] is None
    assert row["inf"] == "-inf"
    assert row["np"] == 0.5
    assert isinstance(row["long"], str)
    assert len(row["long"]) == 2_001


def test_units_and_meanings_of_the_user_win() -> None:
    table = table_of({"t_ms": [1, 2], "b": [1, 2]}, units={"t_ms": "µs"}, meanings={"b": "bananas"})
    assert [(c.unit, c.meaning) for c in table.columns] == [("µs", None), (None, "bananas")]


class Evil:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__
    __hash__ = None  # type: ignore[assignment]


def test_objects_that_raise_do_no_harm() -> None:
    table = table_of([{"a": Evil()}, {"a": Evil()}])
    assert "Evil" in str(table.rows[0][0])
    (part,) = read_table(object())
    assert part.value.kind == "problem"


def test_a_missing_engine_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (part,) = read_table(b"PAR1" + b"\0" * 20, part_id="x.parquet")
    assert part.value.kind == "problem"
    assert "pyarrow" in part.value.what
    assert "Install" in part.value.mend


def test_files_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n1,5\t2\n2,5\t3\n")
    table = table_of(tmp_path / "a.tsv")
    assert [c.name for c in table.columns] == ["a", "b"]
    (part,) = read_table(tmp_path / "missing.csv")
    assert part.value.kind == "problem"
    assert "exists" in part.value.mend


def test_polars_frames_are_read_when_polars_is_there() -> None:
    polars = pytest.importorskip("polars", reason="pip install polars")
    table = table_of(polars.DataFrame({"a": [1, None, 3], "b": ["x", "y", "z"], "c": [1.0, 2.0, 3.0]}))
    assert [(c.name, c.missing) for c in table.columns] == [("a", 1), ("b", 0), ("c", 0)]
    assert table.rows[1] == (None, "y", 2.0)


CELLS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.lists(st.integers(), max_size=2)
    | st.binary(max_size=3)
    | st.decimals(allow_nan=True)
)


@settings(max_examples=150, deadline=None)
@given(
    records=st.lists(st.dictionaries(st.text(max_size=3), CELLS, max_size=4), max_size=6),
    keep=st.integers(0, 8),
)
def test_any_records_become_tables_that_survive_json(records: list[dict[str, Any]], keep: int) -> None:
    config = ReadConfig(keep_rows=keep)
    for raw in (records, pd.DataFrame(records)):
        (part,) = read_table(raw, config=config)
        assert isinstance(part.value, TableValue), part.value
        assert isinstance(part.value.columns, tuple)
        assert all(isinstance(column, Column) for column in part.value.columns)
        assert Observation.model_validate_json(Observation(parts=(part,)).model_dump_json()).parts[0] == part
