"""Columns of plain text are tables, prose and logs are not."""

from pathlib import Path
from typing import Any

import pytest

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read

PLAIN = " 1.0   2.5  a\n10.0  -3.5  b\n 7.25   0.0  c\n"
NAMED = "x      y     label\n1.0    2.5   a\n10.0  -3.5   b\n7.25   0.0   c\n"
ROWS = ((1.0, 2.5, "a"), (10.0, -3.5, "b"), (7.25, 0.0, "c"))


def read_file(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Part:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    (part,) = read(path).parts
    return part


def table(part: Part) -> tuple[list[str], tuple[tuple[Any, ...], ...]]:
    assert part.modality is Modality.TABLE, part
    return [column.name for column in part.value.columns], part.value.rows  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.dat", "a.prn"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (PLAIN, ["column 1", "column 2", "column 3"]),
        (NAMED, ["x", "y", "label"]),
        (NAMED.replace("\n", "\r\n"), ["x", "y", "label"]),
        ("# made by a probe\n# in 2024\n\n" + NAMED, ["x", "y", "label"]),
        ("# x y label\n" + PLAIN, ["x", "y", "label"]),
        ("#x\ty\tlabel\n" + PLAIN, ["x", "y", "label"]),
        (NAMED.replace("10.0", "# a second run\n10.0"), ["x", "y", "label"]),
        (NAMED.replace("   ", "\t"), ["x", "y", "label"]),
    ],
)
def test_runs_of_blanks_divide_columns(tmp_path: Path, name: str, text: str, names: list[str]) -> None:
    assert table(read_file(tmp_path, name, text)) == (names, ROWS)


def test_numbers_and_names_with_blanks(tmp_path: Path) -> None:
    text = "city      people   area\nNew York  8336000  783.8\nBonn   336465  141.1\nLa Paz  757184  472\n"
    names, rows = table(read_file(tmp_path, "cities.txt", text))
    assert names == ["city", "people", "area"]
    assert rows[0] == ("New York", 8336000, 783.8)
    quoted = 'city people\n"New York" 8336000\n"Bonn" 336465\n"La Paz" 757184\n'
    assert table(read_file(tmp_path, "quoted.txt", quoted))[1][2] == ("La Paz", 757184)


def test_a_header_without_a_name_above_the_labels(tmp_path: Path) -> None:
    text = '"mpg" "cyl"\n"Mazda RX4" 21 6\n"Datsun 710" 22.8 4\n"Valiant" 18.1 6\n'
    names, rows = table(read_file(tmp_path, "mtcars.txt", text))
    assert names == ["column 1", "mpg", "cyl"]
    assert rows[1] == ("Datsun 710", 22.8, 4)


def test_decimal_commas_are_no_separators(tmp_path: Path) -> None:
    names, rows = table(read_file(tmp_path, "a.dat", "1,5  2,25\n3,5  4,0\n5,0  6,5\n"))
    assert names == ["column 1", "column 2"]
    assert rows == ((1.5, 2.25), (3.5, 4.0), (5.0, 6.5))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", ", "])
def test_separators_in_text_files(tmp_path: Path, separator: str) -> None:
    text = "".join(
        separator.join(row) + "\n" for row in (("t", "v"), ("0", "1.5"), ("1", "2.5"), ("2", "3.5"))
    )
    names, rows = table(read_file(tmp_path, "a.txt", text))
    assert [name.strip() for name in names] == ["t", "v"]
    assert rows == ((0, 1.5), (1, 2.5), (2, 3.5))


def test_missing_values_and_wide_characters(tmp_path: Path) -> None:
    part = read_file(tmp_path, "a.txt", "t v\n0 nan\n1 2.5\n2 -\n", "utf-16")
    assert table(part) == (["t", "v"], ((0, None), (1, 2.5), (2, None)))


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox\njumps over the lazy\ndog and then it\nruns away from here\n",
        "In 2024 we sold 12 houses\nand in 2023 there were 9\nbut prices rose by 4 %\n",
        "1 Introduction\n2 Methods\n3 Results\n4 Discussion\n",
        "1. one\n2. two\n3. three\n",
        "step 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss 0.3\n",
        "total 12\n-rw-r--r-- 1 root root 123 Jan 1 12:00 a\n-rw-r--r-- 1 root root 99 Jan 2 12:00 b\n",
        "12:00:01 INFO started 5\n12:00:02 INFO running 6\n12:00:03 WARN slow 7\n",
        "a b\nc d\ne f\n",
        "1\n2\n3\n4\n",
        "1 2\n3 4\n",  # too few rows to be sure
        "",
        "   \n\n",
        "# only a comment\n",
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.dat", "notes"])
def test_prose_lists_and_logs_are_text(tmp_path: Path, text: str, name: str) -> None:
    part = read_file(tmp_path, name, text)
    assert (part.modality, part.value.kind) == (Modality.TEXT, "text")


def test_prose_in_a_csv_file_is_one_column(tmp_path: Path) -> None:
    text = "The quick brown fox\njumps over the lazy dog\nand then it runs\n"
    names, rows = table(read_file(tmp_path, "a.csv", text))
    assert len(names) == 1
    assert len(rows) in (2, 3)


def test_a_text_with_a_telling_name_is_read_alike() -> None:
    (part,) = read(NAMED, name="a.txt").parts
    assert table(part) == (["x", "y", "label"], ROWS)
    (plain,) = read(NAMED).parts
    assert plain.modality is Modality.TEXT


def test_a_long_file_is_sampled(tmp_path: Path) -> None:
    path = tmp_path / "long.dat"
    path.write_text("# i   square\n" + "".join(f"{i:8d}  {i * i:12d}\n" for i in range(5_000)))
    (part,) = read(path, config=ReadConfig(max_bytes=20_000)).parts
    names, rows = table(part)
    assert names == ["i", "square"]
    assert rows[:2] == ((0, 0), (1, 1))
    assert all(square == i * i for i, square in rows)
    assert any("a sample of" in note for note in part.notes)
