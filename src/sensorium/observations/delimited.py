"""CSV, TSV and their kin: encoding, separator and header found out, huge files read as a sample."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from sensorium.core.counted import counted
from sensorium.observations.columns import BLANKS, csv_format, find_columns, prepared
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import WIDE, encoding_of, is_binary
from sensorium.observations.grid import MAX_READ_CELLS, Grid
from sensorium.observations.text_types import MISSING, typed

_SEPARATORS = ",\t;|"
_NAMED = re.compile(r'"?sep=([,;|\t])"?')
_SNIFFED = 64 * 1024
_NUM_BLOCKS = 16
"""Places behind the beginning of a huge file from which rows are read."""


@runtime_checkable
class ByteStream(Protocol):
    """What is read from: an open binary file, or one like it."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a byte."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes."""
        ...


class Dialect(NamedTuple):
    """How a file is written."""

    separator: str
    has_header: bool
    skipped_lines: int
    """Comment lines before the table."""
    num_columns: int
    header: tuple[str, ...] = ()
    """Names of the columns that do not stand in a line of their own, e.g. in a comment."""


def read_delimited(source: ByteStream, size: int, config: ReadConfig, separator: str | None = None) -> Grid:
    """Read a table of separated values.

    Of a source larger than ``config.max_bytes``, or with more rows than ``config.max_rows``, a sample is
    read: its beginning, and blocks spread evenly over the rest. Time and memory depend on the limits only.

    Args:
        source: A seekable stream of bytes.
        size: Its length in bytes.
        config: Limits.
        separator: What stands between values; found out when None.
    """
    head = source.read(min(size, _SNIFFED))
    encoding, note = encoding_of(head)
    if is_binary(head, encoding):
        raise ValueError(f"not a table: {size:,} bytes of binary data")
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    if size > len(head) and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    dialect = sniff(text, separator)
    reader = _Reader(source, size, encoding, dialect, config)
    reader.read()
    return reader.grid((note,) if note else ())


class _Reader:
    def __init__(
        self, source: ByteStream, size: int, encoding: str, dialect: Dialect, config: ReadConfig
    ) -> None:
        self._source, self._size, self._encoding = source, size, encoding
        self._dialect, self._config = dialect, config
        self._header: list[str] | None = list(dialect.header) or None
        self._rows: list[list[str]] = []
        self._odd: dict[int, str] = {}
        self._notes: list[str] = []
        self._quoting: int = csv.QUOTE_MINIMAL
        self._is_sample = False
        self._reaches_end = False
        """Whether the stretch that is read ends with the file."""

    def read(self) -> None:
        limit = min(self._config.max_rows, max(10, MAX_READ_CELLS // max(1, self._dialect.num_columns)))
        budget = min(self._size, self._config.max_bytes)
        is_whole = budget == self._size
        # A sample keeps half of what may be read for the blocks behind the beginning.
        end, is_done = self._block(0, budget if is_whole else budget // 2, limit if is_whole else limit // 2)
        if is_done and end >= self._size:
            return
        self._is_sample = True
        if is_whole:  # more rows than allowed: the second half makes room for blocks
            del self._rows[limit // 2 :]
            self._odd = {row: reason for row, reason in self._odd.items() if row < limit // 2}
            end //= 2
        num_head = len(self._rows)
        if self._encoding.startswith(WIDE):  # its line ends cannot be found from the middle of the file
            self._notes.append(f"only the first {num_head:,} rows were read ({self._size:,} bytes)")
            return
        rest = self._size - end
        block_rows = (limit - num_head) // _NUM_BLOCKS
        # Blocks hold about as many rows as are taken, so that the last one reaches the end of the file.
        expected = int((block_rows + 2) * end / max(1, num_head))
        block_bytes = max(1, min((budget // 2) // _NUM_BLOCKS, rest // _NUM_BLOCKS, expected))
        for number in range(_NUM_BLOCKS):
            last = self._size - block_bytes
            start = end + (last - end) * number // (_NUM_BLOCKS - 1)
            self._block(max(end, start), block_bytes, block_rows)
        self._tell_sample(end, num_head)

    def _tell_sample(self, head_bytes: int, num_head: int) -> None:
        total = self._size / max(1.0, head_bytes / max(1, num_head))
        self._notes.append(
            f"a sample of {len(self._rows):,} rows out of about {total:,.0f} ({self._size:,} bytes): "
            f"the first {num_head:,}, then {_NUM_BLOCKS} blocks spread over the rest; "
            "rows after the first block are numbered as they were read"
        )

    def _block(self, start: int, num_bytes: int, max_rows: int) -> tuple[int, bool]:
        """Read rows from a stretch of the file.

        Returns:
            The byte behind what was read, and whether all rows of the stretch were read.
        """
        self._source.seek(start)
        data = self._source.read(num_bytes)
        self._reaches_end = start + len(data) >= self._size
        if start:  # begins in the middle of a line, most likely
            data = data[data.find(b"\n") + 1 :]
        if not self._reaches_end and b"\n" in data and not self._encoding.startswith(WIDE):
            data = data[: data.rindex(b"\n") + 1]
        text = data.decode(self._encoding, "replace").removeprefix("\ufeff")
        if "\ufffd" in text:
            self._notes.append(f"some bytes are not valid {self._encoding.upper()}: they are shown as \ufffd")
        if "\r" in text and "\n" not in text:
            text = text.replace("\r", "\n")
        before = len(self._rows)
        consumed, is_done = self._take(text, max_rows, is_first=start == 0)
        if is_done:
            return start + num_bytes, True
        share = consumed / max(1, len(text))
        return start + int(len(data) * share), len(self._rows) - before < max_rows

    def _take(self, text: str, max_rows: int, *, is_first: bool) -> tuple[int, bool]:
        """Add the rows of a text; how many characters they took and whether they were all."""
        lines = _Lines(text, prepared(self._dialect.separator))
        if is_first:
            for _ in range(self._dialect.skipped_lines):
                next(lines, "")
        delimiter, skips_blanks = csv_format(self._dialect.separator)
        rows = csv.reader(lines, delimiter=delimiter, quoting=self._quoting, skipinitialspace=skips_blanks)  # type: ignore[arg-type]
        taken, has_seen_header = 0, False
        while True:
            try:
                row = next(rows)
            except StopIteration:
                if taken and self._swallowed(text):
                    return self._again_unquoted(text, max_rows, taken, is_first)
                return lines.position, True
            except csv.Error as error:
                is_limit = "limit" in str(error)
                if is_limit and len(lines.last) > csv.field_size_limit():
                    row = lines.last.rstrip("\r\n").split(self._dialect.separator)  # one very long cell
                elif is_limit:
                    return self._again_unquoted(text, max_rows, taken, is_first)
                else:
                    self._notes.append(f"lines that cannot be read are left out ({error})")
                    continue
            if not row or row == [""]:
                continue
            if is_first and not taken and not has_seen_header and self._dialect.has_header:
                has_seen_header = True
                self._header = self._header or row
                continue
            if taken >= max_rows:
                return lines.position, False
            self._add(row, is_first)
            taken += 1

    def _swallowed(self, text: str) -> bool:
        """Whether the last row holds what follows a quotation mark that is never closed."""
        if self._quoting == csv.QUOTE_NONE or not self._reaches_end:
            return False
        return any(cell.count("\n") >= 3 for cell in self._rows[-1]) and text.count('"') % 2 == 1

    def _again_unquoted(self, text: str, max_rows: int, taken: int, is_first: bool) -> tuple[int, bool]:
        self._quoting = csv.QUOTE_NONE
        self._notes.append(
            "a quotation mark is never closed: quotation marks are read as ordinary characters"
        )
        del self._rows[len(self._rows) - taken :]
        if is_first:
            self._header = list(self._dialect.header) or None
            self._odd.clear()
        return self._take(text, max_rows, is_first=is_first)

    def _add(self, row: list[str], is_first: bool) -> None:
        width = len(self._header) if self._header is not None else self._dialect.num_columns
        if len(row) != width:
            if not is_first:
                return  # cut by the beginning or the end of the block
            fields = f"the row has {len(row)} instead of {width} fields"
            if len(row) > width:
                extra = self._dialect.separator.join(row[width:])
                fields += f", the last of them {extra[:40]!r}"
            self._odd[len(self._rows)] = fields
        self._rows.append(row)

    def grid(self, notes: tuple[str, ...]) -> Grid:
        width = len(self._header) if self._header is not None else self._dialect.num_columns
        names = self._header or [f"column {i + 1}" for i in range(width)]
        columns: list[Sequence[str]] = [
            [row[i] if i < len(row) else "" for row in self._rows] for i in range(len(names))
        ]
        if self._odd:
            self._notes.append(f"{counted(len(self._odd), 'row')} without {counted(width, 'field')}")
        if self._header is None and self._rows:
            self._notes.append("the file has no header line: columns are numbered")
        return Grid(
            names=[name.strip() for name in names],
            columns=columns,
            dtypes=[None] * len(names),
            row_numbers=range(len(self._rows)),
            total_rows=len(self._rows),
            is_text=True,
            decimal_comma=self._dialect.separator != ",",
            is_sample=self._is_sample,
            notes=(*notes, *dict.fromkeys(self._notes)),
            odd_rows=self._odd,
        )


class _Lines:
    """Lines of a text, and how far it was read; lighter than a file object."""

    def __init__(self, text: str, prepare: Callable[[str], str]) -> None:
        self._text, self._prepare = text, prepare
        self.position = 0
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        start = self.position
        if start >= len(self._text):
            raise StopIteration
        end = self._text.find("\n", start) + 1 or len(self._text)
        self.position = end
        line = self._text[start:end]
        self.last = self._prepare(line.replace("\r", " ") if "\r" in line[:-2] else line)
        return self.last


def sniff(text: str, separator: str | None = None) -> Dialect:
    """Find out how a table is written.

    Args:
        text: Its beginning, ending with a whole line.
        separator: What stands between values, when it is known.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    skipped = 0
    if (named := _NAMED.fullmatch(lines[0])) is not None:  # as Excel writes it
        skipped, separator = 1, named.group(1)
    while skipped < len(lines) - 1 and lines[skipped].lstrip().startswith("#"):
        skipped += 1
    body = "\n".join(lines[skipped : skipped + 200])
    candidates = [separator] if separator else list(_SEPARATORS)
    best: tuple[float, str, list[list[str]]] = (-1.0, ",", [])
    for candidate in candidates:
        rows = _parsed(body, candidate)
        score = _consistency(rows)
        if score > best[0]:
            best = (score, candidate, rows)
    if separator is None and (spaced := _spaced(text, best[0], best[1])) is not None:
        return spaced
    rows = best[2]
    if not rows:
        return Dialect(separator or ",", has_header=False, skipped_lines=skipped, num_columns=0)
    return Dialect(best[1], _has_header(rows), skipped, len(rows[0]))


def _spaced(text: str, score: float, separator: str) -> Dialect | None:
    """Columns with blanks between them: where no separator fits, or tabs and commas have another use."""
    is_ragged = separator == "\t" and score < 1.0
    if score > 0.0 and separator != "," and not is_ragged:
        return None
    found = find_columns(text)
    if found is None:
        return None
    if score > 0.0 and not is_ragged and not (found.separator == BLANKS and all(found.numeric)):
        return None
    return Dialect(found.separator, found.has_header, found.skipped_lines, found.width, found.header)


def _parsed(body: str, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(body), delimiter=separator):
            if row and row != [""]:
                rows.append(row)
    except csv.Error:
        pass
    return rows


def _consistency(rows: list[list[str]]) -> float:
    """How well a separator fits: the share of rows as wide as the first, more for more columns."""
    if not rows:
        return -1.0
    width = len(rows[0])
    same = sum(len(row) == width for row in rows) / len(rows)
    return 0.0 if width == 1 else same + min(width, 50) / 1_000


def _has_header(rows: list[list[str]]) -> bool:
    first, rest = rows[0], rows[1:]
    cells = [cell.strip() for cell in first]
    if any(cell in MISSING for cell in cells[1:]) or len(set(cells)) < len(cells) * 0.8:
        return False
    if any(typed([cell])[1] != "string" for cell in cells if cell):
        return False
    return bool(rest) or len(cells) > 1 or all(len(cell) < 60 for cell in cells)


def delimited_bytes(text: str) -> tuple[io.BytesIO, int]:
    """Text as the stream that `read_delimited` takes, with its length."""
    data = text.encode("utf-8", "replace")
    return io.BytesIO(data), len(data)
