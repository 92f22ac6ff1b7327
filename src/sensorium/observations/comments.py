"""Code without comments and docstrings, every line keeping its number."""

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from sensorium.observations.languages import parse_code

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPES = frozenset({"comment", "comments", "haddock", "pod", "marginalia"})
_SUFFIX = "comment"
_PYTHON = re.compile(
    r"""#[^\n]*|[rRuUbBfFtT]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.S,
)
"""A comment or a string; what begins first hides the other."""
_NEWLINE = re.compile(r"\n")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_COLON = re.compile(r":[ \t]*(?:#.*)?$")
_SIGNATURE = re.compile(r"[ \t]*(?:(?:async[ \t]+)?def\b|class\b)")
_MAX_SIGNATURE = 80
"""Lines that are looked at for the beginning of a signature."""
_KEPT_FIRST = ("#!", "<?")
"""Beginnings of a first line that is no comment to the one who runs the file."""


def without_comments(text: str, language: str | None) -> list[str | None]:
    """Take comments and docstrings out.

    Args:
        text: The code.
        language: Its language; all but Python need their tree-sitter parser.

    Returns:
        For each line of `text` what is left of it, or None when it held nothing but comments. Unchanged when
        the language has no parser.
    """
    lines = text.split("\n")
    spans = _python_spans(text) if language == "python" else _tree_spans(text, language)
    if not spans:
        return list(lines)
    return _cut(lines, spans)


_Span = tuple[tuple[int, int], tuple[int, int]]
"""First and last place, each (row from 0, character from 0), the end excluded."""


def _python_spans(text: str) -> list[_Span]:
    """Comments and docstrings of Python, found by one pass over its strings: works for broken code, too."""
    begins = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    spans: list[_Span] = []
    for match in _PYTHON.finditer(text):
        begin, end = match.span()
        if text[begin] == "#":
            if begin == 0 and text.startswith("#!"):
                continue
            spans.append((_at(begins, begin), _at(begins, end)))
            continue
        row = bisect_right(begins, begin) - 1
        if not text[begins[row] : begin].strip() and _ends_line(text, end) and _opens_body(text, begins[row]):
            spans.append((_at(begins, begin), _at(begins, end)))
    return spans


def _at(begins: list[int], position: int) -> tuple[int, int]:
    row = bisect_right(begins, position) - 1
    return row, position - begins[row]


def _ends_line(text: str, position: int) -> bool:
    return _REST.match(text, position) is not None


def _opens_body(text: str, position: int) -> bool:
    """Whether the code before a position is a signature, or there is none."""
    balance, is_last = 0, True
    for _ in range(_MAX_SIGNATURE):
        if position <= 0:
            return is_last
        begin = text.rfind("\n", 0, position - 1) + 1
        line = text[begin : position - 1]
        position = begin
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if is_last and not _COLON.search(line):
            return False
        is_last = False
        balance += line.count("(") + line.count("[") - line.count(")") - line.count("]")
        if balance >= 0:
            return _SIGNATURE.match(line) is not None
    return False


def _place(lines: list[str], row: int, offset: int) -> tuple[int, int]:
    """Characters instead of the bytes that the parser counts."""
    before = lines[row].encode("utf-8", "replace")[:offset]
    return row, len(before.decode("utf-8", "replace"))


def _tree_spans(text: str, language: str | None) -> list[_Span]:
    tree = parse_code(text, language)
    if tree is None:
        return []
    lines = text.split("\n")
    spans: list[_Span] = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if _is_comment(node):
            begin, end = node.start_point, node.end_point
            if not (begin[0] == 0 and lines[0].startswith(_KEPT_FIRST)):
                spans.append((_place(lines, *begin), _place(lines, *end)))
        elif node.child_count:
            stack.extend(node.children)
    return sorted(spans)


def _is_comment(node: "Node") -> bool:
    return node.is_named and (node.type in _TYPES or node.type.endswith(_SUFFIX))


def _cut(lines: list[str], spans: list[_Span]) -> list[str | None]:
    """Remove spans; a line that only held what was removed is None."""
    kept: list[str | None] = list(lines)
    touched: dict[int, list[tuple[int, int]]] = {}
    for (first, begin), (last, end) in spans:
        for row in range(first, min(last, len(lines) - 1) + 1):
            left = begin if row == first else 0
            right = end if row == last else len(lines[row])
            touched.setdefault(row, []).append((left, right))
    for row, cuts in touched.items():
        line, pieces, at = lines[row], [], 0
        for left, right in sorted(cuts):
            pieces.append(line[at : max(at, left)])
            at = max(at, right)
        rest = line[at:]
        text = ("".join(pieces).rstrip() + rest if not rest.strip() else "".join(pieces) + rest).rstrip()
        kept[row] = text if text.strip() else None
    return kept
