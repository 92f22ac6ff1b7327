"""SQLite databases: tables with their keys; large, damaged and hostile ones."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read
from sensorium.observations.values import ProblemValue, TableValue

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, photo BLOB);
CREATE TABLE "order""s" (id INTEGER PRIMARY KEY, customer INT REFERENCES customers(id), total REAL);
CREATE VIEW dear AS SELECT * FROM "order""s" WHERE total > 90;
CREATE VIRTUAL TABLE docs USING fts5(body);
INSERT INTO customers VALUES (1, 'Ada', x'ffd8'), (2, NULL, NULL);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SHOP)
        rows = [(number, 1, number / 2) for number in range(50)]
        database.executemany('INSERT INTO "order""s" VALUES (?, ?, ?)', rows)
        database.commit()
    return path


def table(part: Part) -> TableValue:
    assert isinstance(part.value, TableValue)
    return part.value


def problem(path: Path, config: ReadConfig = ReadConfig()) -> str:
    (part,) = read(path, config=config).parts
    assert isinstance(part.value, ProblemValue)
    return part.value.what


def test_every_table_is_a_part_with_its_keys(shop: Path) -> None:
    customers, orders = read(shop).parts

    assert (customers.id, orders.id) == ("shop.db/customers", 'shop.db/order"s')
    assert customers.notes == ("primary key id", "views and virtual tables are not read: dear, docs")
    assert orders.notes == ("primary key id", "customer refers to customers.id")
    assert table(customers).rows == ((1, "Ada", "2 bytes"), (2, None, None))
    assert [(column.name, column.dtype) for column in table(orders).columns] == [
        ("id", "integer"), ("customer", "int"), ("total", "real")
    ]  # fmt: skip
    assert table(orders).num_rows == 50
    assert sorted(path.name for path in shop.parent.iterdir()) == ["shop.db"]


def test_bytes_say_the_same_as_the_file(shop: Path) -> None:
    assert [part.value for part in read({"shop.db": shop.read_bytes()}).parts] == [
        part.value for part in read(shop).parts
    ]


def test_of_a_large_table_the_first_rows_are_read(shop: Path) -> None:
    _, orders = read(shop, config=ReadConfig(max_rows=10, max_bytes=1_000)).parts

    assert "the first 10 of 50 rows were read" in orders.notes
    assert (table(orders).num_rows, table(orders).is_sample) == (50, True)
    assert table(orders).rows[-1][0] == 9


def test_long_texts_end_the_reading_of_a_table(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database:
        database.executemany(
            "INSERT INTO customers VALUES (?, ?, NULL)", [(n, "x" * 900) for n in range(3, 30)]
        )
        database.commit()
    customers, _ = read(shop, config=ReadConfig(max_bytes=5_000)).parts

    assert "the first 7 of 29 rows were read" in customers.notes
    assert (table(customers).num_rows, table(customers).is_sample) == (29, True)


def test_a_table_too_long_to_count_is_a_sample_all_the_same(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sensorium.observations.database._count", lambda *_: None)
    _, orders = read(shop, config=ReadConfig(max_rows=10)).parts

    assert "the first 10 rows were read" in orders.notes
    assert table(orders).is_sample


def test_only_what_virtual_tables_keep_is_left_out(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database:
        database.executescript("CREATE TABLE docs_of_mine (x INT); INSERT INTO docs_of_mine VALUES (1)")
    *_, mine = read(shop).parts

    assert mine.id == "shop.db/docs_of_mine"


def test_what_is_not_yet_in_the_file_is_said(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("INSERT INTO customers VALUES (3, 'Eve', NULL)")
        database.commit()
        customers, _ = read(shop).parts

    assert "changes that are still in shop.db-wal are not read" in customers.notes


def test_a_damaged_database_is_a_problem(shop: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.db"
    cut.write_bytes(shop.read_bytes()[:4_500])
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"SQLite format 3\x00" + b"\xab" * 500)

    assert "cannot be read" in problem(noise)
    assert all(isinstance(part.value, TableValue | ProblemValue) for part in read(cut).parts)


def test_a_damaged_table_leaves_the_others(shop: Path) -> None:
    data = bytearray(shop.read_bytes())
    with closing(sqlite3.connect(shop)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'order\"s'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data[(page - 1) * size : page * size] = b"\xab" * size
    shop.write_bytes(data)
    customers, orders = read(shop).parts

    assert table(customers).num_rows == 2
    assert any("cannot be read" in note for note in orders.notes)


def test_a_database_without_tables_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE VIEW one AS SELECT 1")

    assert "the database has no tables" in problem(path)
