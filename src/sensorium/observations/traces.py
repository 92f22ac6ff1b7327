"""Stack traces taken apart: Python, IPython, Node, Java, Rust, Go, gdb and sanitizers."""

import re
import traceback
from collections.abc import Callable
from typing import NamedTuple

from sensorium.observations.terminal import strip_ansi
from sensorium.observations.values import StackFrame, StackTrace

MAX_FRAMES = 200
"""Frames kept of one trace: half from the outer end, half from the inner: recursion repeats itself."""
_TAIL = 400_000
"""Characters from the end that are searched: a trace ends what it interrupts."""
_LINE = 1_000
"""Characters of a line that are matched: no pattern meets a line long enough to be slow on."""

_PY_HEAD = re.compile(r"^[ \t|+\-]*(?:\+ )?(?:Exception Group )?Traceback \(most recent call last\)", re.M)
_PY_FRAME = re.compile(r'^[ \t|]*File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$')
_PY_END = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::\s?(?P<message>.*))?$")
_PY_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_IPY_FRAME = re.compile(
    r"^(?:File |Cell |Input )?(?P<file>In ?\[\d+\]|[^\s:][^:\n]*?)"
    r"(?:, line (?P<line>\d+)|:(?P<line2>\d+))?(?:,)? in (?P<function>[\w.<>]+)(?:\(.*)?$"
)
_IPY_CELL = re.compile(r"^Cell (?P<file>In ?\[\d+\]), line (?P<line>\d+)(?:, in (?P<function>[\w.<>]+).*)?$")
_IPY_ARROW = re.compile(r"^-+> ?(?P<line>\d+) (?P<code>.*)$")
_JS_FRAME = re.compile(
    r"^\s+at (?:(?:async )?(?P<function>.+?) \()?(?P<file>(?:file://|node:)?[^()\s][^()]*?):(?P<line>\d+):\d+\)?$"
)
_JS_HEAD = re.compile(r"^(?:Uncaught )?(?P<type>[A-Z]\w*)(?: \[\w+\])?(?:: (?P<message>.*))?$")
_JAVA_FRAME = re.compile(
    r"^\s+at (?P<function>[\w.$<>/@ -]+)\((?P<file>[^():]+)(?::(?P<line>\d+))?\)(?:\s*~?\[.*\])?$"
)
_JAVA_HEAD = re.compile(
    r'^(?:Exception in thread "[^"]*" |'
    r"Caused by: )?(?P<type>[a-zA-Z_][\w$]*(?:\.[\w$]+)*)(?:: (?P<message>.*))?$"
)
_RUST_HEAD = re.compile(r"^thread '(?P<thread>[^']*)'(?: \(\d+\))? panicked at (?P<rest>.*)$", re.M)
_RUST_PLACE = re.compile(r"^(?:'(?P<message>.*)', )?(?P<file>[^\s:,'][^:,']*):(?P<line>\d+):\d+:?$")
_RUST_FRAME = re.compile(r"^\s*\d+:\s+(?:0x[0-9a-f]+ - )?(?P<function>\S.*)$")
_RUST_AT = re.compile(r"^\s+at (?P<file>.+?):(?P<line>\d+)(?::\d+)?$")
_GO_HEAD = re.compile(r"^(?P<type>panic|fatal error): (?P<message>.*)$", re.M)
_GO_FUNCTION = re.compile(
    r"^(?:created by )?(?P<function>[\w./*()\[\]{}$·-]+?)(?:\(.*\)| in goroutine \d+)?$"
)
_GO_PLACE = re.compile(r"^\t(?P<file>.+?):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")
_GDB_FRAME = re.compile(
    r"^\s*#\d+\s+(?:0x[0-9a-f]+ in )?(?P<function>[^\s(]+(?:<.*?>)?)(?: \(.*?\)|\(.*?\))?"
    r"(?:\s+(?:at )?(?P<file>[^\s:()]+):(?P<line>\d+)(?::\d+)?|\s+from \S+|\s+\(.*\))?\s*$"
)
_GDB_HEAD = re.compile(
    r"(?:received signal (?P<signal>SIG\w+), (?P<what>[^.\n]+)|"
    r"ERROR: (?P<type>\w+Sanitizer): (?P<message>[^\n]+)|"
    r"terminate called after throwing an instance of '(?P<thrown>[^']+)'(?:\s*what\(\):\s*(?P<said>[^\n]*))?)"
)


def parse_traceback(text: str) -> StackTrace | None:
    """Take the last stack trace in a text apart.

    Args:
        text: Output of a program, a log, a notebook's error; terminal colours are removed first.

    Returns:
        The exception with its frames, the outermost first, whatever order the language prints them in; None
        when there is no trace. Of chained exceptions the one that ended the program (of Java the root cause).
    """
    text = strip_ansi(text[-_TAIL:])
    for probe, parse in _PARSERS:
        if probe(text):
            found = parse([line[:_LINE] for line in text.replace("\r\n", "\n").split("\n")])
            if found is not None:
                return found._replace(frames=_shortened(found.frames)).trace()
    return None


def trace_of(error: BaseException) -> StackTrace:
    """The stack trace of a live exception."""
    summary = traceback.extract_tb(error.__traceback__)
    frames = [
        StackFrame(file=f.filename, line=f.lineno, function=f.name, code=f.line or None) for f in summary
    ]
    try:
        message = str(error)
    except Exception:  # an exception whose __str__ is broken
        message = ""
    return StackTrace(type=type(error).__name__, message=message, frames=_shortened(tuple(frames)))


class _Found(NamedTuple):
    type: str
    message: str
    frames: tuple[StackFrame, ...]

    def trace(self) -> StackTrace:
        return StackTrace(type=self.type, message=self.message.strip(), frames=self.frames)


def _shortened(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    if len(frames) <= MAX_FRAMES:
        return frames
    half = MAX_FRAMES // 2
    return frames[:half] + frames[-half:]


def _frame(match: re.Match[str], code: str | None = None) -> StackFrame:
    groups = match.groupdict()
    line = groups.get("line") or groups.get("line2")
    function = (groups.get("function") or "").strip() or None
    number = int(line) if line and len(line) < 10 else None
    return StackFrame(file=(groups.get("file") or "?").strip(), line=number, function=function, code=code)


def _python(lines: list[str]) -> _Found | None:
    start = max((i for i, line in enumerate(lines) if _PY_HEAD.match(line)), default=None)
    if start is None:
        return None
    frames: list[StackFrame] = []
    ending: tuple[str, str] | None = None
    index = start + 1
    while index < len(lines):
        line = lines[index]
        bare = line.lstrip(" |")
        if match := _PY_FRAME.match(line):
            code = lines[index + 1].strip(" |\t") if index + 1 < len(lines) else ""
            is_code = bool(code) and not _PY_FRAME.match(lines[index + 1]) and lines[index + 1][:1] in " |\t"
            frames.append(_frame(match, code if is_code else None))
            index += is_code
        elif (match := _PY_END.match(line if line[:1].isalpha() or line[:1] == "_" else bare)) and (
            line[:1] not in " \t" or "|" in line
        ):
            ending = (match["type"], _with_more(match["message"] or "", lines, index + 1))
            break
        index += 1
    if ending is None:  # cut off before its last line
        return _Found("Exception", "", tuple(frames)) if frames else None
    return _Found(ending[0].rsplit(".", 1)[-1], ending[1], tuple(frames))


def _with_more(message: str, lines: list[str], index: int) -> str:
    """Messages may have several lines; they end at a blank line, a frame or another trace."""
    more = [message]
    for line in lines[index : index + 20]:
        if (
            not line.strip()
            or _PY_HEAD.match(line)
            or line.startswith(_PY_CHAIN)
            or line.lstrip().startswith("+--")
        ):
            break
        more.append(line)
    return "\n".join(more)


def _syntax_error(lines: list[str]) -> _Found | None:
    """A SyntaxError of Python is printed without the head of a trace."""
    for index in range(len(lines) - 1, -1, -1):
        match = _PY_END.match(lines[index])
        if match is None or match["type"] not in ("SyntaxError", "IndentationError", "TabError"):
            continue
        for back in range(index - 1, max(-1, index - 6), -1):
            frame = _PY_FRAME.match(lines[back]) or _IPY_CELL.match(lines[back].strip())
            if frame:
                code = lines[back + 1].strip() or None
                return _Found(match["type"], match["message"] or "", (_frame(frame, code),))
    return None


def _ipython(lines: list[str]) -> _Found | None:
    rules = [i for i, line in enumerate(lines) if len(line) > 20 and not line.strip("-")]
    start = rules[-1] if rules else 0
    head = re.match(
        r"^(?P<type>[A-Za-z_][\w.]*)\s+Traceback \(most recent call last\)", _at(lines, start + 1)
    )
    if head is None:
        return None
    frames: list[StackFrame] = []
    for line in lines[start + 2 :]:
        if match := _IPY_CELL.match(line) or _IPY_FRAME.match(line):
            frames.append(_frame(match))
        elif (match := _IPY_ARROW.match(line)) and frames:
            number = frames[-1].line or int(match["line"][:9])
            frames[-1] = frames[-1].model_copy(update={"line": number, "code": match["code"].strip()})
    kind = head["type"]
    for index in range(len(lines) - 1, start, -1):
        match = _PY_END.match(lines[index])
        if match and match["type"].rsplit(".", 1)[-1] == kind.rsplit(".", 1)[-1]:
            message = _with_more(match["message"] or "", lines, index + 1)
            return _Found(kind.rsplit(".", 1)[-1], message, tuple(frames))
    return _Found(kind, "", tuple(frames)) if frames else None


def _at(lines: list[str], index: int) -> str:
    return lines[index] if 0 <= index < len(lines) else ""


def _innermost_first(lines: list[str], frame: re.Pattern[str], head: re.Pattern[str]) -> _Found | None:
    """Node and Java: a head line, then frames from the innermost to the outermost."""
    last = max((i for i, line in enumerate(lines) if frame.match(line)), default=None)
    if last is None:
        return None
    first = last
    while first > 0 and lines[first - 1].lstrip().startswith(("at ", "... ")):
        first -= 1
    frames = tuple(_frame(match) for line in lines[first : last + 1] if (match := frame.match(line)))
    for back in range(first - 1, max(-1, first - 12), -1):
        match = head.match(lines[back].strip())
        if match and (match["message"] is not None or back == first - 1):
            message = "\n".join([match["message"] or "", *lines[back + 1 : first]])
            return _Found(match["type"].rsplit(".", 1)[-1], message, frames[::-1])
    return _Found("Error", _at(lines, first - 1), frames[::-1])


def _javascript(lines: list[str]) -> _Found | None:
    return _innermost_first(lines, _JS_FRAME, _JS_HEAD)


def _java(lines: list[str]) -> _Found | None:
    return _innermost_first(lines, _JAVA_FRAME, _JAVA_HEAD)


def _rust(lines: list[str]) -> _Found | None:
    start = max((i for i, line in enumerate(lines) if _RUST_HEAD.match(line)), default=None)
    if start is None:
        return None
    head = _RUST_HEAD.match(lines[start])
    place = _RUST_PLACE.match(head["rest"].strip()) if head else None
    if place is None:
        return None
    message = place["message"] if place["message"] is not None else _at(lines, start + 1)
    frames: list[StackFrame] = []
    for index in range(start + 1, len(lines)):
        function = _RUST_FRAME.match(lines[index])
        at = _RUST_AT.match(_at(lines, index + 1))
        if function and at:
            frames.append(_frame(at).model_copy(update={"function": function["function"]}))
    if not any(frame.line == int(place["line"]) for frame in frames):
        frames.insert(0, StackFrame(file=place["file"], line=int(place["line"])))
    return _Found("panic", message, tuple(frames[::-1]))


def _go(lines: list[str]) -> _Found | None:
    start = next((i for i, line in enumerate(lines) if _GO_HEAD.match(line)), None)
    head = _GO_HEAD.match(lines[start]) if start is not None else None
    if start is None or head is None:
        return None
    frames: list[StackFrame] = []
    in_goroutine = False
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if line.startswith("goroutine "):
            if frames:  # only the first goroutine is the one that failed
                break
            in_goroutine = True
        elif in_goroutine and (place := _GO_PLACE.match(line)):
            function = _GO_FUNCTION.match(lines[index - 1])
            name = function["function"] if function else None
            frames.append(_frame(place).model_copy(update={"function": name}))
    return _Found(head["type"], head["message"], tuple(frames[::-1])) if in_goroutine else None


def _native(lines: list[str]) -> _Found | None:
    last = max((i for i, line in enumerate(lines) if re.match(r"\s*#0\s", line)), default=None)
    if last is None:
        return None
    frames = []
    for line in lines[last:]:
        if match := _GDB_FRAME.match(line):
            frames.append(_frame(match))
    if not frames:
        return None
    heads = list(_GDB_HEAD.finditer("\n".join(lines[: last + 1])))
    head = heads[-1].groupdict() if heads else {}
    kind = head.get("signal") or head.get("type") or head.get("thrown") or "crash"
    message = head.get("what") or head.get("message") or head.get("said") or ""
    return _Found(kind, message, tuple(frames[::-1]))


_PARSERS: tuple[tuple[Callable[[str], object], Callable[[list[str]], _Found | None]], ...] = (
    (lambda text: "Traceback (most recent call last)" in text, _ipython),
    (lambda text: "Traceback (most recent call last)" in text, _python),
    (
        lambda text: "SyntaxError: " in text or "IndentationError: " in text or "TabError: " in text,
        _syntax_error,
    ),
    (lambda text: "panicked at " in text, _rust),
    (lambda text: "\ngoroutine " in text, _go),
    (
        lambda text: ".java:" in text or ".kt:" in text or ".scala:" in text or "(Native Method)" in text,
        _java,
    ),
    (lambda text: "\n    at " in text, _javascript),
    (lambda text: "#0 " in text, _native),
)
"""In this order: a cheap look, then the parser; the first that finds a trace wins."""
