from typing import Any

from summary_parts import table

from sensorium.core import Modality
from sensorium.features.extractors.numbered_lines import Line, Row, lines_of, rows_of, where
from sensorium.observations.base import Part
from sensorium.observations.values import CellValue, CodeValue, OutputValue, StructuredValue, TextValue


def test_every_kind_of_part_has_lines_with_names() -> None:
    def lines(value: Any) -> list[tuple[str, str]]:
        return [
            (line.place, line.text) for line in lines_of(Part(id="x", modality=Modality.TEXT, value=value))
        ]

    text = [("line 1", "a"), ("line 2", ""), ("line 3", "b")]
    assert lines(TextValue(text="a\n\nb")) == text
    assert lines(CodeValue(text="a\n\nb")) == text
    assert lines(CellValue(index=0, cell_type="code", source="a\n\nb")) == text
    assert lines(OutputValue(output_type="stream", text="a\n\nb")) == text
    assert lines(table()) == [
        ("column price", "column price (float64): unit EUR, missing 1, low 1.5, high 9.0, mean 4.25"),
        ("column city", "column city (string): top Oslo (2), Rome (1)"),
        ("row 0", "price=1.5, city=Oslo"),
        ("row 7", "price=9.0, city=Rome  (price is the highest (9.0))"),
        ("row 999", "city=Oslo"),
    ]
    data = {"orders": [{"id": 7, "note": "too\nlate"}, {}], "ok": None}
    assert lines(StructuredValue(data=data)) == [
        ("orders[0].id", "orders[0].id: 7"),
        ("orders[0].note", "orders[0].note: too late"),
        ("orders[1]", "orders[1]: {}"),
        ("ok", "ok: null"),
    ]
    assert lines(StructuredValue(data="plain")) == [("line 1", "plain")]
    sql = StructuredValue(data={"columns": ["a", "b"], "rows": [[1, 2], [3, None]]}, format="sql")
    assert lines(sql) == [("row 0", "a=1, b=2"), ("row 1", "a=3")]
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert len(lines(StructuredValue.model_construct(data=deep))) == 1


def test_long_lines_keep_their_number_and_blank_ones_are_not_sent() -> None:
    lines = [Line("a" * 1300, "line 1"), Line(" ", "line 2"), Line("b ", "line 3")]
    assert rows_of(lines) == [Row(1, "a" * 600), Row(1, "a" * 600), Row(1, "a" * 100), Row(3, "b")]
    assert str(Row(3, "b")) == "3| b"


def test_where_it_stands_in_words() -> None:
    lines = lines_of(Part(id="x", modality=Modality.TABLE, value=table()))
    assert [where(lines, a, b) for a, b in [(3, 3), (3, 5), (1, 2), (1, 4)]] == [
        "row 0",
        "rows 0-999",
        "column price to column city",
        "column price to row 7",
    ]
