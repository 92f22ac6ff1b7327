"""Source code with the state of its execution: cursor, faults, variables, stack trace, tests, tools."""

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode
from sensorium.observations.languages import (
    MAX_PARSED,
    canonical_language,
    detect_language,
    is_python,
    parse_code,
    parse_python,
)
from sensorium.observations.test_results import parse_test_results
from sensorium.observations.traces import parse_traceback, trace_of
from sensorium.observations.values import CaseResult, CodeFault, CodeValue, ProblemValue, StackTrace

if TYPE_CHECKING:
    from tree_sitter import Node

_CODING = re.compile(
    rb"(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|--|;|%)[^\n]*?coding[:=][ \t]*"
    rb"((?:latin|iso|cp|windows|koi8|gb|big5|euc|shift|mac)[-\w]{0,20})"
)
MAX_FAULTS = 20
"""Faults kept of one file: the first ones, which cause the others."""
MAX_VARIABLES = 500
_REPR_CHARS = 200
_CACHED_CHARS = 50_000
_UNCHECKED_NAMES = (
    "c cpp cuda objc csharp sql css scss fortran d verilog scheme proto powershell cython "
    "markdown latex vim perl make cobol"
)
_UNCHECKED = frozenset(_UNCHECKED_NAMES.split())
"""Languages in which faults are not looked for: a false alarm is worse than none, as it is shown as an error.
On installed files, presumably right, grammars report a fault in 33 of 57 of C, 36 of 56 of C++, 56 of 58
of SQL, 7 of 55 of CSS, 8 of 60 of Fortran, 2 of 26 of PowerShell: no grammar has macros and dialects. Of
those that are checked: 0 of 56 of JavaScript, 2 of 53 of PHP, 2 of 42 of R, 3 of 60 of Bash."""


class CodeState(NamedTuple):
    """What is known about code beside its text; everything may be left out."""

    cursor: int | tuple[int, int] | None = None
    """Line, or line and column, from 1."""
    variables: Mapping[str, Any] = {}
    """Name -> value, of which a shortened repr is kept, or its repr as text."""
    stack: StackTrace | BaseException | str | None = None
    """An exception, or the text of a stack trace."""
    tests: Sequence[CaseResult] | str | bytes = ()
    """Results, or the output of a test runner, or JUnit XML."""
    tools: Sequence[str] = ()
    """Tools at hand: compiler, debugger, test runner."""


def read_code(
    raw: str | bytes,
    *,
    part_id: str,
    config: ReadConfig | None = None,
    path: str | None = None,
    language: str | None = None,
    state: CodeState | None = None,
) -> list[Part]:
    """Read source code.

    Args:
        raw: The code.
        part_id: Id of the part.
        config: `max_bytes` limits what is read.
        path: Where the file is, relative to its project; stack traces and imports are matched with it.
        language: Its language; found from path, ``#!`` line and content when not given.
        state: Cursor, variables, stack trace, tests, tools.

    Returns:
        One code part; for bytes that are not text a part with a problem.
    """
    state = state or CodeState()
    raw = _declared(raw) if isinstance(raw, bytes) else raw
    decoded = decode(raw, max_bytes=(config or ReadConfig()).max_bytes)
    if decoded.is_binary:
        problem = ProblemValue(
            what=f"not source code: {len(raw):,} bytes of binary data",
            where=path or part_id,
            mend="give the source file instead of what was compiled from it",
        )
        return [Part(id=part_id, modality=Modality.CODE, value=problem, notes=decoded.notes)]
    text = decoded.text
    notes = list(decoded.notes)
    name = canonical_language(language) or detect_language(text, path=path)
    if len(text) > MAX_PARSED:
        notes.append(f"longer than {MAX_PARSED:,} characters: its syntax was not checked")
    line, column = _cursor(state.cursor, text, notes)
    value = CodeValue(
        text=text,
        path=path,
        language=name,
        cursor_line=line,
        cursor_column=column,
        faults=find_faults(text, name),
        variables=_variables(state.variables, notes),
        stack=_stack(state.stack, notes),
        tests=_tests(state.tests, notes),
        tools=tuple(decode(str(tool)).text for tool in state.tools),
    )
    return [Part(id=part_id, modality=Modality.CODE, value=value, notes=tuple(notes))]


def _declared(raw: bytes) -> str | bytes:
    """Code in the encoding that its first or second line names, as Python's ``coding:`` and Emacs do."""
    found = _CODING.match(raw[:400])
    if found is None or raw.isascii():
        return raw
    try:
        return raw.decode(found.group(1).decode("ascii"))
    except (LookupError, ValueError):
        return raw


def find_faults(text: str, language: str | None) -> tuple[CodeFault, ...]:
    """Places where code does not parse, at most `MAX_FAULTS`.

    Python is read by its own parser, whose messages are the ones its users know; other languages by
    tree-sitter. Empty when the language is unknown, its parser is not installed, or its grammar often errs
    (C and C++ with their macros, SQL with its dialects): ask a compiler there.
    """
    if len(text) > MAX_PARSED or not text.strip():
        return ()
    return _cached_faults(text, language) if len(text) <= _CACHED_CHARS else _faults(text, language)


def _faults(text: str, language: str | None) -> tuple[CodeFault, ...]:
    if language == "python":
        return _python_faults(text)
    if language is None or language in _UNCHECKED:
        return ()
    tree = parse_code(text, language)
    if tree is None or not tree.root_node.has_error:
        return ()
    return _tree_faults(tree.root_node, text.encode("utf-8", "replace"))


_cached_faults = lru_cache(maxsize=256)(_faults)
"""An agent sees the same file step after step, mostly unchanged."""


def _python_faults(text: str) -> tuple[CodeFault, ...]:
    if is_python(text):
        return ()
    try:
        parse_python(text)
    except SyntaxError as error:
        message = f"{type(error).__name__}: {error.msg}"
        return (CodeFault(line=max(1, error.lineno or 1), column=max(1, error.offset or 1), message=message),)
    except (ValueError, RecursionError, MemoryError) as error:
        why = f"nested too deeply to be parsed ({type(error).__name__})"
        return (CodeFault(line=1, column=1, message=why),)
    return ()


def _tree_faults(root: "Node", source: bytes) -> tuple[CodeFault, ...]:
    faults: list[CodeFault] = []
    for node in _broken(root):
        line = node.start_point[0] + 1
        begin = source.rfind(b"\n", 0, node.start_byte) + 1
        column = len(source[begin : node.start_byte].decode("utf-8", "replace")) + 1
        if node.is_missing:
            message = f"`{node.type}` is missing"
        else:
            words = source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip().split("\n")[0]
            message = f"does not parse: `{words[:60]}{'...' if len(words) > 60 else ''}`"
        faults.append(CodeFault(line=line, column=column, message=message))
        if len(faults) == MAX_FAULTS:
            break
    return tuple(faults)


def _broken(root: "Node") -> Iterator["Node"]:
    """Nodes that are an error or missing, in order; an error's inside is not looked at."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_missing or (node.is_error and node is not root):
            yield node
        elif node.has_error:
            inside = [child for child in node.children if child.has_error or child.is_missing]
            if inside:
                stack.extend(reversed(inside))
            else:
                yield node


def _cursor(
    cursor: int | tuple[int, int] | None, text: str, notes: list[str]
) -> tuple[int | None, int | None]:
    if cursor is None:
        return None, None
    line, column = cursor if isinstance(cursor, tuple) else (cursor, None)
    last = text.count("\n") + 1
    if not 1 <= line <= last:
        notes.append(f"the cursor is said to be at line {line:,}, but there are {last:,} lines")
        line = min(max(1, line), last)
    return int(line), max(1, int(column)) if column is not None else None


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = _REPR_CHARS
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 8
        self.maxlevel = 3


def _variables(variables: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    short = _ShortRepr()
    kept: dict[str, str] = {}
    for name, value in variables.items():
        if len(kept) == MAX_VARIABLES:
            notes.append(f"first {MAX_VARIABLES} of {len(variables):,} variables")
            break
        try:
            shown = value if isinstance(value, str) else short.repr(value)
        except Exception as error:  # whatever a stranger's __repr__ raises
            shown = f"<{type(value).__name__}: its repr raises {type(error).__name__}>"
        if len(shown) > _REPR_CHARS:
            shown = f"{shown[: _REPR_CHARS - 40]}...{shown[-30:]}"
        kept[decode(str(name)).text] = decode(shown).text
    return kept


def _stack(stack: StackTrace | BaseException | str | None, notes: list[str]) -> StackTrace | None:
    if stack is None or isinstance(stack, StackTrace):
        return stack
    if isinstance(stack, BaseException):
        return trace_of(stack)
    text = decode(stack).text
    found = parse_traceback(text)
    if found is None and text.strip():
        notes.append("the stack trace is of an unknown form; its last lines are kept as its message")
        found = StackTrace(type="Error", message="\n".join(text.strip().split("\n")[-20:])[-2_000:])
    return found


def _tests(tests: Sequence[CaseResult] | str | bytes, notes: list[str]) -> tuple[CaseResult, ...]:
    if not isinstance(tests, str | bytes):
        return tuple(tests)
    results = parse_test_results(tests)
    if not results and tests.strip():
        notes.append("no results of tests were found in the output of the test runner")
    return results
