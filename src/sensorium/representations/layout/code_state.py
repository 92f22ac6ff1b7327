"""The state around code as segments: faults, exception, tests, variables, tools."""

import re
from collections import Counter

from sensorium.observations.values import CaseResult, CodeValue, StackFrame, StackTrace
from sensorium.representations.base import Segment
from sensorium.representations.layout.code_window import anchors_of

_PINNED_CHARS = 300
_MAX_PINNED_FRAMES = 3
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python|node_modules|node:internal|/rustc/|^java\.|^<frozen"
)


def state_before(value: CodeValue) -> list[Segment]:
    """What is told before the code: faults, the exception, results of tests."""
    segments: list[Segment] = []
    for number, fault in enumerate(value.faults):
        text = f"fault at line {fault.line}, column {fault.column}: {fault.message}"
        segments.append(
            Segment(text, 5.0 - 0.1 * number, "faults", None, number < 3 and len(text) <= _PINNED_CHARS)
        )
    if value.stack is not None:
        segments += lay_out_stack(value.stack, start=len(segments))
    if value.tests:
        segments += _tests(value.tests, len(segments))
    return segments


def state_after(value: CodeValue) -> list[Segment]:
    """What is told after the code: variables and tools. Parents count from its own first segment."""
    segments: list[Segment] = []
    if value.variables:
        used = re.findall(r"\w+", value.stack.message) if value.stack else ()
        near = _words_near(value)
        segments.append(Segment("variables:", 1.5, "variables"))
        for name, shown in value.variables.items():
            weight = 1.0 + 1.5 * (name in near) + 1.0 * (name in used) - 0.5 * name.startswith("_")
            segments.append(Segment(f"  {name} = {shown}", weight, f"variable {name}", 0))
    if value.tools:
        segments.append(Segment(f"tools: {', '.join(value.tools)}", 1.5, "tools"))
    return segments


def _words_near(value: CodeValue) -> set[str]:
    """Names in the lines where something is going on."""
    anchors = anchors_of(value)
    places = {*anchors.stack, *anchors.other}
    if not places:
        return set()
    lines = value.text.split("\n")
    return {
        word
        for place in places
        for line in lines[max(0, place - 2) : place + 1]
        for word in re.findall(r"[A-Za-z_]\w*", line[:1_000])
    }


def lay_out_stack(stack: StackTrace, *, start: int = 0) -> list[Segment]:
    """An exception as segments: what and why pinned, then its frames, the outermost first.

    Args:
        stack: The exception.
        start: Position of the first segment in its document, for parents.
    """
    said = f"{stack.type}: {stack.message}" if stack.message else stack.type
    first, _, more = said.partition("\n")
    if len(first) > _PINNED_CHARS:
        first, more = first[:_PINNED_CHARS], first[_PINNED_CHARS:] + ("\n" + more if more else "")
    segments = [Segment(first, 6.0, "exception", None, True)]
    if more:
        segments.append(Segment(more, 2.0, "exception", start))
    own = [i for i, frame in enumerate(stack.frames) if not _LIBRARY.search(frame.file)]
    pinned = {*own[-_MAX_PINNED_FRAMES:], len(stack.frames) - 1}
    for index, frame in enumerate(stack.frames):
        weight = 3.0 if index in pinned else 2.0 if index in own else 0.8
        text = describe_frame(frame)
        is_pinned = index in pinned and len(text) <= _PINNED_CHARS
        segments.append(Segment(text, weight, f"frame {index}", start, is_pinned))
    return segments


def describe_frame(frame: StackFrame) -> str:
    """One frame on one line: ``at src/a.py:12 in load: data = json.loads(text)``."""
    place = frame.file if frame.line is None else f"{frame.file}:{frame.line}"
    function = f" in {frame.function}" if frame.function else ""
    return f"  at {place}{function}{f': {frame.code}' if frame.code else ''}"


def _tests(tests: tuple[CaseResult, ...], start: int) -> list[Segment]:
    counts = Counter(test.status for test in tests)
    total = ", ".join(f"{counts[s]:,} {s}" for s in ("failed", "error", "passed", "skipped") if counts[s])
    segments = [Segment(f"tests: {total}", 4.0, "tests", None, True)]
    bad = [test for test in tests if test.status in ("failed", "error")]
    for number, test in enumerate(bad):
        first, _, more = test.message.partition("\n")
        text = f"  {test.status.upper()} {test.name}{f': {first}' if first else ''}"
        position = start + len(segments)
        segments.append(
            Segment(text, 4.0, f"test {test.name}", start, number < 3 and len(text) <= _PINNED_CHARS)
        )
        segments += [
            Segment(f"    {line}", 2.0, f"test {test.name}", position)
            for line in more.split("\n")
            if line.strip()
        ]
    for test in tests:
        if test.status == "skipped":
            text = f"  skipped {test.name}{f': {test.message}' if test.message else ''}"
            segments.append(Segment(text, 0.4, f"test {test.name}", start))
    passed = [test.name for test in tests if test.status == "passed"]
    for begin in range(0, len(passed), 10):
        names = ", ".join(passed[begin : begin + 10])
        segments.append(Segment(f"  passed {names}", 0.3, "passed tests", start))
    return segments
