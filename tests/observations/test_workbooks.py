"""Excel workbooks, Parquet and Arrow files, whatever they are called."""

from pathlib import Path

import pandas as pd
import pytest

from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read
from sensorium.observations.values import ProblemValue, TableValue

FRAME = pd.DataFrame({"city": ["Oslo", "Rome", None], "degrees": [3.5, 21.0, 7.25]})


def table(part: Part) -> TableValue:
    assert isinstance(part.value, TableValue)
    return part.value


@pytest.mark.parametrize("name", ["a.xlsx", "no_suffix"])
def test_each_sheet_of_a_workbook_is_a_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / "two.xlsx"
    with pd.ExcelWriter(path) as writer:
        FRAME.to_excel(writer, sheet_name="now", index=False)
        FRAME.head(1).to_excel(writer, sheet_name="then", index=False)
    path = path.rename(tmp_path / name)

    now, then = read(path).parts
    assert (now.id, then.id) == (f"{name}/now", f"{name}/then")
    assert table(now).rows == (("Oslo", 3.5), ("Rome", 21.0), (None, 7.25))
    assert table(then).num_rows == 1


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.data", "a"])
@pytest.mark.parametrize("save", ["to_parquet", "to_feather"])
def test_columns_are_read_by_content_not_by_name(tmp_path: Path, name: str, save: str) -> None:
    path = tmp_path / name
    getattr(FRAME, save)(path)

    (part,) = read(path).parts
    (same,) = read({name: path.read_bytes()}).parts
    assert table(part).rows == (("Oslo", 3.5), ("Rome", 21.0), (None, 7.25))
    assert part.value == same.value


@pytest.mark.parametrize("save", ["to_parquet", "to_feather"])
def test_of_a_long_file_the_first_rows_are_read(tmp_path: Path, save: str) -> None:
    path = tmp_path / "long"
    getattr(pd.DataFrame({"x": range(300)}), save)(path)

    (part,) = read(path, config=ReadConfig(max_rows=20)).parts
    assert "the first 20 of 300 rows were read" in part.notes
    assert (table(part).num_rows, table(part).is_sample) == (300, True)
    assert table(part).rows[-1] == (19,)


@pytest.mark.parametrize("head", [b"PAR1", b"ARROW1\0\0", b"PK\x03\x04xl/"])
def test_a_damaged_file_is_a_problem(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "broken.xlsx"
    path.write_bytes(head + b"\xab" * 200)

    (part,) = read(path).parts
    assert isinstance(part.value, ProblemValue)
    assert "cannot be read" in part.value.what
