import io
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sensorium.observations.base import Observation
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.delimited import read_delimited, sniff
from sensorium.observations.table import read_table
from sensorium.observations.text_types import typed
from sensorium.observations.values import ProblemValue, TableValue


def table_of(text: str | bytes, config: ReadConfig = ReadConfig()) -> tuple[TableValue, tuple[str, ...]]:
    (part,) = read_table(text, config=config)
    assert isinstance(part.value, TableValue), part.value
    return part.value, part.notes


@pytest.mark.parametrize(
    ("text", "separator", "has_header", "num_columns"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", ",", True, 3),
        ("a;b\n1,5;2\n2,5;3\n", ";", True, 2),
        ("a\tb\nx, y\t2\n", "\t", True, 2),
        ("a|b|c\n1|2|3\n", "|", True, 3),
        ("1,2\n3,4\n", ",", False, 2),
        ("# made by x\n# on monday\nname,age\nann,3\n", ",", True, 2),
        ('name,says\nann,"hi, you"\nbob,"a ""b"" c"\n', ",", True, 2),
        ("words\none\ntwo\n", ",", True, 1),
        ("", ",", False, 0),
    ],
)
def test_separator_and_header_are_found(
    text: str, separator: str, has_header: bool, num_columns: int
) -> None:
    found = sniff(text)
    assert (found.separator, found.has_header, found.num_columns) == (separator, has_header, num_columns)


@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        (["1", "2", ""], [1, 2, None], "int"),
        (["1.5", " 2", "NaN"], [1.5, 2.0, None], "float"),
        (["true", "False", "n/a"], [True, False, None], "bool"),
        (["00123", "04567"], ["00123", "04567"], "string"),
        (["1_000", "2_000"], ["1_000", "2_000"], "string"),
        (["", "NA"], [None, None], "empty"),
        (["a", "1"], ["a", "1"], "string"),
        (["1"] * 19 + ["oops"], [1.0] * 19 + ["oops"], "float (mixed)"),
        (["1", "x"], ["1", "x"], "string"),
    ],
)
def test_types_of_text_columns(values: list[str], expected: list[object], dtype: str) -> None:
    found, name = typed(values)
    assert (found, name) == (expected, dtype)


def test_decimal_commas_are_read_where_the_comma_does_not_separate() -> None:
    table, _ = table_of("preis;menge\n1,5;3\n1.234,25;4\n")
    assert table.rows == ((1.5, 3), (1234.25, 4))


def test_dates_are_ordered_and_kept_as_iso_text() -> None:
    table, _ = table_of("day,at\n2024-02-01,2024-02-01T10:00:00+02:00\n2023-12-31,2024-01-01T00:00:00Z\n")
    day, at = table.columns
    assert (day.dtype, day.low, day.high) == ("date", "2023-12-31", "2024-02-01")
    assert at.dtype == "datetime"
    assert table.rows[1] == ("2023-12-31", "2024-01-01T00:00:00+00:00")


def test_rows_of_other_widths_are_kept_and_named() -> None:
    table, notes = table_of("a,b,c\n1,2,3\n4,5\n6,7,8,9\n")
    assert table.rows == ((1, 2, 3), (4, 5, None), (6, 7, 8))
    reasons = {n.row: n.reason for n in table.notable}
    assert "2 instead of 3 fields" in reasons[1]
    assert "'9'" in reasons[2]
    assert any("2 rows without 3 fields" in note for note in notes)


def test_a_quotation_mark_that_is_never_closed_loses_nothing() -> None:
    text = "a,b\n" + '"open,1\n' + "".join(f"x{i},{i}\n" for i in range(20_000))
    table, notes = table_of(text)
    assert table.num_rows == 20_001
    assert any("never closed" in note for note in notes)


@pytest.mark.parametrize(
    ("data", "cell", "note"),
    [
        ("näme,b\nü,1\nö,2\n".encode("cp1252"), "ü", "Windows-1252"),
        ("näme,b\nü,1\nö,2\n".encode("utf-16"), "ü", ""),
        ("name,b\nu,1\no,2\n".encode("utf-16-le"), "u", "UTF-16"),
        ("\ufeffnäme,b\r\nü,1\r\nö,2\r\n".encode(), "ü", ""),
        (b"name,b\ru,1\ro,2\r", "u", ""),
        (b"name,b\nu\x00,1\no,2\n", "u\u2400", ""),
    ],
)
def test_encodings_and_line_ends(data: bytes, cell: str, note: str) -> None:
    table, notes = table_of(data)
    assert table.rows[0] == (cell, 1)
    assert table.num_rows == 2
    assert note in " ".join(notes)
    assert bool(notes) is bool(note)


class Endless(io.RawIOBase):
    """A CSV of any size that is never in memory: row k stands at byte 16 * k."""

    def __init__(self, size: int) -> None:
        self.size, self.place, self.bytes_read = size, 0, 0

    def seek(self, place: int, whence: int = 0) -> int:
        self.place = place
        return place

    def read(self, count: int = -1) -> bytes:
        count = min(count, self.size - self.place)
        first, last = self.place // 16, (self.place + count) // 16 + 1
        data = "".join(self.rows(first, last)).encode()
        begin = self.place - first * 16
        self.place += count
        self.bytes_read += count
        return data[begin : begin + count]

    def rows(self, first: int, last: int) -> Iterator[str]:
        for k in range(first, last):
            yield "number,rest,end\n" if k == 0 else f"{k:011d},{k % 7},x\n"


def test_of_two_gigabytes_a_sample_from_all_over_the_file_is_read() -> None:
    source = Endless(2 * 1024**3)
    config = ReadConfig(max_bytes=1_000_000, max_rows=10_000)
    grid = read_delimited(source, source.size, config)  # type: ignore[arg-type]
    assert source.bytes_read < 1_500_000
    assert grid.is_sample
    assert list(grid.names) == ["number", "rest", "end"]
    numbers = [int(text) for text in grid.columns[0]]
    assert 5_000 < len(numbers) <= 10_000
    assert numbers[:5_000] == list(range(1, 5_001))
    assert max(numbers) > 0.99 * source.size / 16
    assert len({number * 10 // (source.size // 16) for number in numbers}) >= 9, (
        "the sample leaves stretches out"
    )
    assert "out of about 134," in grid.notes[-1]


def test_more_rows_than_allowed_are_sampled_and_numbered_in_order() -> None:
    text = "k,v\n" + "".join(f"{k},{k * 2}\n" for k in range(50_000))
    table, notes = table_of(text, ReadConfig(max_rows=1_000, keep_rows=100))
    assert table.is_sample
    assert table.num_rows <= 1_000
    assert len(table.rows) == 100
    assert list(table.row_numbers) == sorted(set(table.row_numbers))
    assert table.columns[0].high is not None
    assert float(table.columns[0].high) > 45_000
    assert any(note.startswith("a sample of") for note in notes)


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300) | st.text(alphabet='a1,;\t"\n\r .-\0é', max_size=200).map(str.encode))
def test_any_bytes_become_a_table_that_survives_json(data: bytes) -> None:
    assume(not data.startswith((b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")))
    for config in (ReadConfig(), ReadConfig(max_bytes=50, max_rows=3, keep_rows=2)):
        observation = Observation(parts=tuple(read_table(data, config=config)))
        assert Observation.model_validate_json(observation.model_dump_json()) == observation
        table = observation.parts[0].value
        if decode(data).is_binary and isinstance(table, ProblemValue):
            assert "binary" in table.what
            continue
        assert isinstance(table, TableValue)
        assert all(len(row) == len(table.columns) for row in table.rows)
