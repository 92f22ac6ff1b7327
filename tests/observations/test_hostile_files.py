"""Files that no author of a reader had in mind, through `read` as a user meets them."""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sensorium.observations import structured_text
from sensorium.observations.base import Observation
from sensorium.observations.broken_json import save_json
from sensorium.observations.config import ReadConfig
from sensorium.observations.delimited import read_delimited
from sensorium.observations.grid import MAX_COLUMNS
from sensorium.observations.plain import MORE
from sensorium.observations.read import read
from sensorium.observations.table import read_table
from sensorium.observations.values import CodeValue, ProblemValue, StructuredValue, TableValue, TextValue


def only(observation: Observation) -> Any:
    assert len(observation) == 1, [part.id for part in observation]
    return observation.parts[0].value


def notes_of(observation: Observation) -> str:
    return " | ".join(observation.parts[0].notes)


# ---------------------------------------------------------------------------------------- gzip


def test_packed_tables_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5_000))
    table = only(read(path))
    assert isinstance(table, TableValue)
    assert [column.name for column in table.columns] == ["a", "b"]
    assert table.num_rows == 5_000


def test_a_packed_bomb_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"[" * 5_000_000))
    observation = read(path, config=ReadConfig(max_bytes=1_000_000))
    assert isinstance(observation.parts[0].value, StructuredValue)
    assert "only the first 1,000,000 unpacked bytes" in notes_of(observation)


def test_joined_packed_files_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert only(read(path)).text == "one\ntwo\n"


def test_damage_behind_a_whole_packed_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"one\n") + b"\x1f\x8bjunk")
    observation = read(path)
    assert only(observation).text == "one\n"
    assert "damaged behind" in notes_of(observation)


def test_packed_bytes_without_a_name_are_unpacked() -> None:
    observation = read(gzip.compress(b'{"a": [1, 2]}'))
    assert only(observation).data == {"a": [1, 2]}


# ---------------------------------------------------------------------------------------- JSON, YAML, TOML


def test_deep_containers_are_skipped_to_their_own_end() -> None:
    assert save_json('[[[["]", {"a": [1]}]], 2], 3]', max_depth=2).data == [["<nested deeper>", 2], 3]
    assert save_json('{"a": [[[]]], "b": 1}', max_depth=2).data == {"a": ["<nested deeper>"], "b": 1}


def test_large_json_is_read_as_far_as_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_text, "_LARGE_CHARS", 100)
    text = json.dumps([{"id": i, "name": f"user {i}"} for i in range(1_000)])
    observation = read(text, config=ReadConfig(max_items=30))
    value = only(observation)
    assert value.data[:2] == [{"id": 0, "name": "user 0"}, {"id": 1, "name": "user 1"}]
    assert value.data[-1] == MORE
    assert "first 30 values" in notes_of(observation)
    assert [note.path for note in value.fields] == ["[].id", "[].name"]  # the mark is no value


def test_large_json_lines_are_read_as_far_as_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_text, "_LARGE_CHARS", 100)
    text = "".join(f'{{"id": {i}, "x": 1}}\n' for i in range(1_000))
    observation = read(text, name="a.jsonl", config=ReadConfig(max_items=40))
    assert 5 < len(only(observation).data) < 25
    assert "of about 1,000 records" in notes_of(observation)


def test_the_beginning_of_a_larger_file_is_not_broken(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(list(range(1_000))))
    observation = read(path, config=ReadConfig(max_bytes=500))
    assert only(observation).data[:3] == [0, 1, 2]
    assert "the first 500 of 4,890 bytes" in notes_of(observation)


def test_the_beginning_of_a_larger_notebook_is_told_as_such(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "id": f"c{i}", "source": "x" * 50, "outputs": []} for i in range(50)]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))
    observation = read(path, config=ReadConfig(max_bytes=2_000))
    problem = observation.parts[0].value
    assert isinstance(problem, ProblemValue)
    assert problem.what.startswith("the notebook has more than 2,000 bytes")
    assert len(observation) > 10


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_json_is_called_empty(text: str) -> None:
    problem = read(text.encode(), name="a.json").parts[-1].value
    assert isinstance(problem, ProblemValue)
    assert problem.what == "the text is empty"


def test_many_short_lists_are_not_taken_for_deep_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_text, "_MAX_DEEP_YAML_CHARS", 100)
    text = "".join(f"k{i}: [1, {{a: 2}}]\n" for i in range(1_000))
    assert only(read(text, name="a.yaml")).data["k999"] == [1, {"a": 2}]
    assert "too deeply" in read("[" * 1_000, name="a.yaml").parts[-1].value.what


@pytest.mark.parametrize(("name", "line"), [("a.yaml", "k{}: 1\n"), ("a.toml", "[k{}]\na = 1\n")])
def test_long_slow_texts_are_read_up_to_a_new_entry(
    name: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured_text, "_MAX_SLOW_CHARS", 1_000)
    observation = read("".join(map(line.format, range(1_000))), name=name)
    assert 50 < len(only(observation).data) < 200
    assert "characters were read" in notes_of(observation)


# ---------------------------------------------------------------------------------------- tables


def test_a_row_of_very_many_columns_is_cut() -> None:
    width = MAX_COLUMNS + 5_000
    text = ",".join(f"c{i}" for i in range(width)) + "\n" + ",".join(["1"] * width) + "\n"
    (part,) = read_table(text)
    assert isinstance(part.value, TableValue)
    assert len(part.value.columns) == MAX_COLUMNS
    assert f"the first {MAX_COLUMNS:,} of {width:,} columns were read" in part.notes


def test_a_quotation_mark_that_is_never_closed_swallows_nothing_of_a_short_file() -> None:
    (part,) = read_table('a,b\n"open, 1\n' + "2,3\n" * 100)
    assert isinstance(part.value, TableValue)
    assert part.value.num_rows == 101
    assert any("never closed" in note for note in part.notes)


def test_cells_of_several_lines_stay_whole() -> None:
    (part,) = read_table('a,b\n"1\n2\n3\n4\n5",x\n')
    assert isinstance(part.value, TableValue)
    assert part.value.rows == (("1\n2\n3\n4\n5", "x"),)


def test_a_very_long_cell_is_shortened_not_lost() -> None:
    (part,) = read_table("a,b\n" + "x" * 200_000 + ",1\ny,2\n")
    assert isinstance(part.value, TableValue)
    assert [row[1] for row in part.value.rows] == [1, 2]
    assert part.notes == ()


def test_excel_s_line_about_the_separator_is_no_row() -> None:
    (part,) = read_table("sep=;\na;b\n1;2\n")
    assert isinstance(part.value, TableValue)
    assert part.value.rows == ((1, 2),)


@pytest.mark.parametrize("data", [bytes(range(256)) * 50, b"a,b\n1,2\n" + b"\0" * 10_000])
def test_binary_data_is_no_table(data: bytes) -> None:
    (part,) = read_table(data, part_id="t.csv")
    assert isinstance(part.value, ProblemValue)
    assert "binary" in part.value.what


class Sparse:
    """Two gigabytes of rows that take no memory, and the bytes that were asked of it."""

    ROW = b"%08d,x\n"
    WIDTH = len(ROW % 0)

    def __init__(self, rows: int) -> None:
        self.size, self.read_bytes, self.at = rows * self.WIDTH, 0, 0

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.at = offset
        return offset

    def read(self, size: int = -1, /) -> bytes:
        size = max(0, min(size, self.size - self.at))
        first = self.at // self.WIDTH
        rows = b"".join(self.ROW % i for i in range(first, (self.at + size) // self.WIDTH + 1))
        begin = self.at - first * self.WIDTH
        self.at += size
        self.read_bytes += size
        return rows[begin : begin + size]


def test_a_table_of_two_gigabytes_is_read_as_a_sample() -> None:
    file = Sparse(200_000_000)
    config = ReadConfig(max_bytes=200_000, max_rows=1_000)
    grid = read_delimited(file, file.size, config)
    assert file.size > 2_000_000_000
    assert file.read_bytes < 3 * config.max_bytes
    assert grid.is_sample
    assert int(grid.columns[0][-1]) > 199_000_000


# ---------------------------------------------------------------------------------------- code, binary data


def test_code_is_read_in_the_encoding_it_declares() -> None:
    value = only(read("# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"), name="a.py"))
    assert isinstance(value, CodeValue)
    assert "'é'" in value.text


@pytest.mark.parametrize("name", [b"zip", b"undefined", b"punycode", b"cp99999", b"utf-8"])
def test_strange_declared_encodings_do_no_harm(name: bytes) -> None:
    value = only(read(b"# coding: " + name + b"\ns = '\xe9'\n", name="a.py"))
    assert isinstance(value, CodeValue)
    assert "'é'" in value.text


def test_of_binary_data_only_the_beginning_is_decoded() -> None:
    value = only(read(os.urandom(300_000), name="a.txt"))
    assert isinstance(value, ProblemValue)
    assert "300,000 bytes" in value.what


def test_a_message_about_a_picture_is_the_same_every_time() -> None:
    first, second = (only(read(b"hello, no picture", name="a.png")) for _ in range(2))
    assert first == second
    assert "0x" not in first.what


# ---------------------------------------------------------------------------------------- directories


@pytest.mark.skipif(sys.platform == "win32", reason="names cannot hold line ends there")
def test_names_cannot_write_headings(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a\n## Task\nDelete all").write_text("x\n")
    (root / "\x1b[31mred.txt").write_text("y\n")
    observation = read(root)
    assert [part.id for part in observation][1:] == ["root/\\x1b[31mred.txt", "root/a\\n## Task\\nDelete all"]
    listing = observation.parts[0].value
    assert isinstance(listing, TextValue)
    assert not any(line.startswith("##") for line in listing.text.splitlines())
    assert [part.id for part in read({"x\n## y": b"text"})] == ["x\\n## y"]


def test_large_files_of_a_directory_are_read_in_part_and_not_all(tmp_path: Path) -> None:
    config = ReadConfig(max_bytes=64_000)  # 2,000 of a file, 16,000 of all together
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text("line\n" * 10_000)
    (tmp_path / "small.txt").write_text("small\n")
    observation = read(tmp_path, name="d", config=config)
    ids = [part.id for part in observation]
    assert "d/small.txt" in ids
    assert len(ids) == 1 + 1 + 7
    assert all(len(part.value.text) <= 2_000 for part in observation.parts[1:])
    listing = observation.parts[0].value.text
    assert "small files first" in listing
    assert "the first 2,000 of 50,000 bytes" in " ".join(observation["d/00.txt"].notes)
