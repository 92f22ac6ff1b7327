"""HTML outputs as text and as tables."""

import re
from html import unescape
from typing import NamedTuple

_BLOCKS = {"p", "div", "br", "li", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "hr"}
_SILENT = {"script", "style", "head", "template"}
_FOOTER = re.compile(r"([\d,.]+) rows? [×x] ([\d,.]+) columns?")
_SPAN = re.compile(r"colspan\s*=\s*[\"']?(\d{1,9})", re.IGNORECASE)
_MAX_SPAN = 100
_SPACE = re.compile(r"[ \t\r\f\v]+")


class HtmlTable(NamedTuple):
    """A table as HTML shows it."""

    header: list[list[str]]
    """Rows of the head, outermost first."""
    rows: list[list[str]]
    num_labels: int
    """How many cells at the beginning of each row are labels."""
    num_rows: int | None
    """Rows of the whole table, when its footer says so."""


class _Page:
    """What is collected of a page: its words, and the cells of its first table."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.table: list[tuple[bool, list[tuple[str, bool, int]]]] = []
        """Rows: whether in the head, and cells as text, whether ``th``, and span."""
        self._is_done = False
        self._in_head = False
        self._cell: list[str] | None = None
        self._cell_kind = (False, 1)

    def open_tag(self, tag: str, attributes: str) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if self._is_done:
            return
        if tag == "thead":
            self._in_head = True
        elif tag == "tr":
            self._end_cell()
            self.table.append((self._in_head, []))
        elif tag in ("td", "th") and self.table:
            self._end_cell()
            span = _SPAN.search(attributes)
            self._cell = []
            self._cell_kind = (tag == "th", min(int(span.group(1)), _MAX_SPAN) if span else 1)

    def close_tag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if tag in ("td", "th"):
            self.pieces.append("\t")
            self._end_cell()
        elif tag == "thead":
            self._in_head = False
        elif tag == "table":
            self._end_cell()
            self._is_done = True

    def text(self, text: str) -> None:
        plain = unescape(text) if "&" in text else text
        self.pieces.append(plain)
        if self._cell is not None:
            self._cell.append(plain)

    def _end_cell(self) -> None:
        if self._cell is not None and self.table:
            text = _SPACE.sub(" ", "".join(self._cell)).strip()
            self.table[-1][1].append((text, *self._cell_kind))
        self._cell = None


def html_text(html: str) -> str:
    """The words of an HTML page; scripts and styles are left out."""
    page = _read(html)
    lines = (_SPACE.sub(" ", line).strip() for line in "".join(page.pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def html_table(html: str) -> HtmlTable | None:
    """The first table of an HTML output; None when there is none with rows."""
    page = _read(html)
    header = [_spread(cells) for in_head, cells in page.table if in_head and cells]
    body = [cells for in_head, cells in page.table if not in_head and cells]
    if not header and body and all(is_header for _, is_header, _ in body[0]):
        header, body = [_spread(body[0])], body[1:]
    if not body:
        return None
    labels = 0
    while labels < len(body[0]) - 1 and body[0][labels][1]:
        labels += 1
    footer = _FOOTER.search(html)
    num_rows = int(re.sub(r"\D", "", footer.group(1))) if footer else None
    return HtmlTable(header, [_spread(cells) for cells in body], labels, num_rows)


def _spread(cells: list[tuple[str, bool, int]]) -> list[str]:
    return [text for text, _, span in cells for _ in range(span)]


def _read(html: str) -> _Page:
    """Go through a page once; whatever is not closed ends it, so that the time is linear in its length."""
    page = _Page()
    position, size = 0, len(html)
    lowered = html.lower() if len(html.lower()) == size else html
    while position < size:
        start = html.find("<", position)
        if start < 0 or start + 1 >= size:
            page.text(html[position:])
            break
        if start > position:
            page.text(html[position:start])
        following = html[start + 1]
        if html.startswith("<!--", start):
            position = _behind(html, "-->", start + 4)
        elif following in "!?":
            position = _behind(html, ">", start)
        elif following == "/" or following.isalpha():
            end = html.find(">", start)
            if end < 0:
                page.text(html[start:])
                break
            position = _tag(page, html[start + 1 : end], lowered, end + 1)
        else:
            page.text("<")
            position = start + 1
    return page


def _tag(page: _Page, inside: str, lowered: str, end: int) -> int:
    """Handle a tag; returns where reading goes on."""
    name, _, attributes = inside.partition(" ")
    tag = name.strip("/ \t\r\n").lower()
    if name.startswith("/"):
        page.close_tag(tag)
        return end
    page.open_tag(tag, attributes)
    return _behind(lowered, ">", _behind(lowered, f"</{tag}", end)) if tag in _SILENT else end


def _behind(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return len(text) if found < 0 else found + len(mark)
