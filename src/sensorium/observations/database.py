"""Tables of SQLite databases; nothing in them is run: no views, no triggers, no virtual tables."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import encodable
from sensorium.observations.grid import MAX_COLUMNS, Grid, rows_within

_MAX_TABLES = 50
_MAX_CELL_CHARS = 2_000
"""As much of a text as a table keeps."""
_MAX_CELL_BYTES = 64 * 1024 * 1024
"""Longest value that SQLite may load; one that is longer makes its table unreadable."""
_HOLDERS = (
    *("content", "docsize", "config", "data", "idx"),
    *("segments", "segdir", "stat"),
    *("node", "rowid", "parent"),
)
"""Ends of the names of tables in which virtual tables (FTS5, FTS4, R*Tree) keep what they hold."""
_MAX_INSTRUCTIONS = 200_000_000
"""Of SQLite's machine for one statement, so that no damaged or hostile file takes longer than seconds."""


def database_grids(source: Path | bytes, config: ReadConfig) -> list[tuple[str, Grid]]:
    """Read the tables of a database, the first rows of large ones.

    Args:
        source: A file, which is opened without any lock and never written, or its content.
        config: ``max_rows`` limits the rows of a table.

    Returns:
        For each table its name and its rows. A table that cannot be read has no rows and a note.

    Raises:
        ValueError: There are no tables.
        sqlite3.DatabaseError: It is no database, or a damaged one.
    """
    with _opened(source) as database:
        rows = database.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        virtual = [name for name, kind, sql in rows if kind == "table" and _is_virtual(sql)]
        views = [name for name, kind, _ in rows if kind == "view"]
        hidden = {*virtual, *(f"{name}_{end}" for name in virtual for end in _HOLDERS)}
        tables = [name for name, kind, _ in rows if kind == "table" and name not in hidden]
        if not tables:
            raise ValueError("the database has no tables")
        grids = [(name, _table(database, name, config)) for name in tables[:_MAX_TABLES]]
    notes = _of_database(source, tables, views + virtual)
    first_name, first = grids[0]
    grids[0] = first_name, first._replace(notes=(*first.notes, *notes))
    return [(encodable(name).replace("/", "-"), grid) for name, grid in grids]


@contextmanager
def _opened(source: Path | bytes) -> Iterator[sqlite3.Connection]:
    if isinstance(source, bytes):
        database = sqlite3.connect(":memory:")
        database.deserialize(source)
    else:
        # Immutable: SQLite takes no lock and makes no file beside this one.
        database = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    with closing(database):
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL_BYTES)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA query_only = ON")
        yield database


def _is_virtual(sql: str | None) -> bool:
    return (sql or "").lstrip().upper().startswith("CREATE VIRTUAL")


def _table(database: sqlite3.Connection, name: str, config: ReadConfig) -> Grid:
    try:
        return _rows(database, name, config)
    except sqlite3.Error as error:
        return Grid([], [], [], [], 0, notes=(f"the table cannot be read: {error}",))


def _rows(database: sqlite3.Connection, name: str, config: ReadConfig) -> Grid:
    columns = database.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    columns = columns[:MAX_COLUMNS]
    quoted = _quoted(name)
    wanted = rows_within(config.max_rows, len(columns), config)
    cells = ", ".join(_cell(column) for column, _, _ in columns)
    with _limited(database):
        rows, is_all = _first(database.execute(f"SELECT {cells} FROM {quoted}"), wanted, config.max_bytes)
    notes = _keys(database, name, [column for column, _, position in columns if position])
    total = len(rows)
    if not is_all:
        counted = _count(database, quoted)
        total = total if counted is None else counted
        of_all = "" if counted is None else f" of {counted:,}"
        notes += (f"the first {len(rows):,}{of_all} rows were read",)
    return Grid(
        names=[column for column, _, _ in columns],
        columns=[[row[i] for row in rows] for i in range(len(columns))],
        dtypes=[declared.lower() or None for _, declared, _ in columns],
        row_numbers=range(len(rows)),
        total_rows=total,
        is_sample=not is_all,
        notes=notes,
    )


def _first(
    found: Iterable[tuple[Any, ...]], wanted: int, max_chars: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """The first rows, as many as are wanted and as their texts may take; and whether they are all."""
    rows: list[tuple[Any, ...]] = []
    for row in found:
        max_chars -= sum(len(cell) for cell in row if isinstance(cell, str))
        if len(rows) == wanted or (rows and max_chars < 0):
            return rows, False
        rows.append(row)
    return rows, True


def _cell(column: str) -> str:
    """What is asked of a column: long texts shortened and bytes by their number, before they are loaded."""
    name = _quoted(column)
    return (
        f"CASE typeof({name}) WHEN 'blob' THEN length({name}) || ' bytes' "
        f"WHEN 'text' THEN substr({name}, 1, {_MAX_CELL_CHARS}) ELSE {name} END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _limited(database: sqlite3.Connection) -> Iterator[None]:
    """Interrupt a statement that takes too many instructions."""
    step = 1_000_000
    left = _MAX_INSTRUCTIONS // step

    def over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    database.set_progress_handler(over, step)
    try:
        yield
    finally:
        database.set_progress_handler(None, 0)


def _count(database: sqlite3.Connection, quoted: str) -> int | None:
    """Number of rows; None when counting would take too long."""
    try:
        with _limited(database):
            return int(database.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0])
    except sqlite3.OperationalError:
        return None


def _keys(database: sqlite3.Connection, name: str, primary: list[str]) -> tuple[str, ...]:
    notes: tuple[str, ...] = (f"primary key {', '.join(primary)}",) if primary else ()
    asked = 'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)'
    for column, table, target in database.execute(asked, (name,)):
        notes += (f"{column} refers to {table}" + (f".{target}" if target else ""),)
    return notes


def _of_database(source: Path | bytes, tables: list[str], unread: list[str]) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if len(tables) > _MAX_TABLES:
        notes += (f"the database has {len(tables):,} tables; the first {_MAX_TABLES} were read",)
    if unread:
        named = ", ".join(unread[:10]) + (", ..." if len(unread) > 10 else "")
        notes += (f"views and virtual tables are not read: {named}",)
    if isinstance(source, Path):
        log = source.with_name(source.name + "-wal")
        if log.exists() and log.stat().st_size:
            notes += (f"changes that are still in {encodable(log.name)} are not read",)
    return notes
