"""The agent's copy of a project: pristine files, and over them what was changed."""

import ast
import difflib
import posixpath
import re
from collections.abc import Iterator, Mapping

from sensorium.core.errors import nearest
from sensorium.envs.code_repair.projects import Workspace, is_test
from sensorium.envs.tools import ToolError

MAX_HITS = 50
MAX_TEXT_CHARS = 500_000
_ROOT = "/box/"


class Files:
    """A project's Python files with changes; nothing is written to any disk.

    Args:
        workspace: The pristine files.
        changed: Path -> text of those that differ.
    """

    def __init__(self, workspace: Workspace, changed: Mapping[str, str]) -> None:
        self._workspace = workspace
        self.changed = dict(changed)

    def find(self, path: str) -> str:
        """The path of a file as the project names it.

        Raises:
            ToolError: There is no such file; the message names the nearest.
        """
        clean = posixpath.normpath(path.strip().removeprefix(_ROOT).lstrip("/"))
        if clean in self._workspace.files and clean.endswith(".py"):
            return clean
        known = [name for name in self._workspace.files if name.endswith(".py")]
        ends = [name for name in known if name.endswith("/" + clean)]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise ToolError(f"{path!r} may be any of: {', '.join(ends[:5])}")
        close = difflib.get_close_matches(clean, known, n=3, cutoff=0.6)
        same = [name for name in known if posixpath.basename(name) == posixpath.basename(clean)][:3]
        hint = f"Did you mean {' or '.join(close or same)}? " if close or same else ""
        raise ToolError(f"there is no Python file {path!r}. {hint}search finds names of files too")

    def text(self, path: str) -> str:
        """The present text of a file, named as the project names it."""
        return self.changed[path] if path in self.changed else self._workspace.text(path)

    def lines(self, path: str, start: int, end: int) -> str:
        """Some lines of a file, below a line that says which.

        Raises:
            ToolError: There are no such lines.
        """
        lines = self.text(path).split("\n")
        if start > len(lines) or end < start:
            raise ToolError(f"{path} has lines 1 to {len(lines)}, not {start} to {end}")
        end = min(end, len(lines))
        return f"{path}, lines {start}-{end} of {len(lines)}:\n" + "\n".join(lines[start - 1 : end])

    def search(self, pattern: str, below: str, *, is_regex: bool) -> Iterator[str]:
        """Hits as ``path:line: text``; names of files that match come first.

        Raises:
            ToolError: The expression is not valid.
        """
        try:
            # Long repetitions over long lines could take forever: lines are cut, and patterns are short.
            matcher = re.compile(pattern if is_regex else re.escape(pattern))
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"{pattern!r} is no regular expression: {error}") from error
        below = posixpath.normpath(below.removeprefix(_ROOT).lstrip("/")) if below else ""
        paths = [
            path for path in (*self._workspace.sources, *self._workspace.tests) if path.startswith(below)
        ]
        if below and not paths:
            raise ToolError(f"there is nothing below {below!r}. {nearest(below, self._folders())}")
        yield from (path for path in paths if matcher.search(path))
        for path in paths:
            for number, line in enumerate(self.text(path).split("\n"), start=1):
                if matcher.search(line[:300]):
                    yield f"{path}:{number}: {line.strip()[:200]}"

    def _folders(self) -> set[str]:
        return {posixpath.dirname(path) for path in self._workspace.sources}

    def replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs once.

        Returns:
            What was done, and whether the file still parses.

        Raises:
            ToolError: The text does not occur, occurs more than once, or nothing would change.
        """
        text = self.text(path)
        if not old:
            raise ToolError("`old` is empty; give the lines to replace, exactly as they are in the file")
        if old == new:
            raise ToolError("`old` and `new` are the same; nothing was changed")
        count = text.count(old)
        if count == 0:
            raise ToolError(f"`old` does not occur in {path}. {_closest(text, old)}")
        if count > 1:
            starts = [match.start() for match in re.finditer(re.escape(old), text)][:5]
            numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
            raise ToolError(
                f"`old` occurs {count} times in {path} (lines {numbers}); "
                "add lines around it until it is unique"
            )
        changed = text.replace(old, new)
        if len(changed) > MAX_TEXT_CHARS:
            raise ToolError(f"the file would have {len(changed):,} characters, more than {MAX_TEXT_CHARS:,}")
        self.changed[path] = changed
        line = text.count("\n", 0, text.index(old)) + 1
        return f"changed {path} at line {line}.{_parses(changed)}{_judged(path)}"


def _closest(text: str, old: str) -> str:
    """The line of a file most like the first one of what was looked for."""
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    lines = [line.strip() for line in text.split("\n")]
    if wanted and wanted in lines:
        number = lines.index(wanted) + 1
        return f"Its first line is line {number}; check the spaces before it and the lines after it"
    close = difflib.get_close_matches(wanted, list(filter(None, lines))[:3000], n=1, cutoff=0.6)
    if not close:
        return "Read the file and copy the lines exactly"
    return f"The nearest line is {lines.index(close[0]) + 1}: {close[0][:200]!r}"


def _parses(text: str) -> str:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f" But the file does not parse any more: {error}."
    return ""


def _judged(path: str) -> str:
    return " Your change of a test is not judged: the original tests are." if is_test(path) else ""
