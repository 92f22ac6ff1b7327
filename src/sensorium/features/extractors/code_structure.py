"""The structure of code: outline, cyclomatic complexity, lines."""

import re
from collections.abc import Sequence
from typing import Any

from sensorium.core.counted import counted
from sensorium.core.errors import require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.outline import outline_of
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.observations.base import Part
from sensorium.observations.comments import without_comments
from sensorium.observations.languages import MAX_PARSED, canonical_language

_SUFFIX = {
    "python": "py",
    "c": "c",
    "cpp": "cpp",
    "cuda": "cpp",
    "java": "java",
    "csharp": "cs",
    "javascript": "js",
    "typescript": "ts",
    "tsx": "tsx",
    "objc": "m",
    "ruby": "rb",
    "php": "php",
    "swift": "swift",
    "scala": "scala",
    "gdscript": "gd",
    "go": "go",
    "lua": "lua",
    "rust": "rs",
    "fortran": "f90",
    "kotlin": "kt",
    "solidity": "sol",
    "erlang": "erl",
    "zig": "zig",
    "vue": "vue",
    "perl": "pl",
    "r": "r",
}
"""Language -> suffix by which lizard knows it."""
_BRACKETS = re.compile(r"[()\[\]{}]")
_MAX_NESTING = 100
"""Open brackets of code that is measured: lizard recurses, and complains on the terminal when it cannot."""
_MAX_MEASURED = 200_000
"""Characters up to which complexity is measured: lizard reads about a megabyte in ten seconds."""


class CodeStructure:
    """Finds what a piece of code defines, how branched it is and how long.

    `Features.data` holds ``language``; ``lines`` with ``total``, ``code``, ``comment`` (docstrings
    included) and ``blank``; ``functions`` (``name``, ``line``, ``end_line`` and, where measured,
    ``complexity`` and ``parameters``); ``classes`` (``name``, ``line``, ``end_line``); ``imports``
    (``module``, ``line``); ``complexity`` with ``max`` and ``mean`` over functions, McCabe's number of
    linearly independent paths, or None where it was not measured.

    Source: T. McCabe, A Complexity Measure, 1976; measured by lizard.
    """

    name, version = "code_structure", "1"

    def accepts(self, part: Part) -> bool:
        """Code parts and code cells."""
        return part.code is not None

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Take each part's code apart; a language without a parser has lines only.

        Raises:
            MissingDependencyError: lizard is not installed.
        """
        _lizard()
        return extract_each(self, parts, _structure)


def _lizard() -> Any:
    return require("lizard", extra="observe", purpose="measuring the complexity of code")


def _structure(part: Part) -> Found:
    text, language = part.code or ("", None)
    language = canonical_language(language)
    outline = outline_of(text, language)
    measured = _measure(text, language)
    data: dict[str, Any] = {"language": language, "lines": count_lines(text, language)}
    by_line = {(entry["line"], _last(entry["name"])): entry for entry in measured or ()}
    functions: list[dict[str, Any]] = []
    if outline is not None:
        for definition in outline.functions:
            found = by_line.get((definition.line, _last(definition.name)), {})
            functions.append({**found, **definition._asdict()})
    else:
        functions = list(measured or ())
    data["functions"] = functions
    data["classes"] = [definition._asdict() for definition in outline.classes] if outline else []
    data["imports"] = (
        [{"module": "." * item.level + item.module, "line": item.line} for item in outline.imports]
        if outline
        else []
    )
    data["complexity"] = _complexity(measured)
    return Found(data=data, summary=_summary(data))


def _last(name: str) -> str:
    """``m`` of ``A.m`` and ``A::m``."""
    return name.replace("::", ".").rsplit(".", 1)[-1]


def count_lines(text: str, language: str | None) -> dict[str, int]:
    """Lines of a piece of code: ``total``, which is the sum of ``code``, ``comment`` and ``blank``.

    A line counts as comment when it holds nothing else; docstrings are comments.
    """
    if not text:
        return {"total": 0, "code": 0, "comment": 0, "blank": 0}
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    kept = without_comments(text, language)[: len(lines)] if len(text) <= MAX_PARSED else list(lines)
    blank = sum(not line.strip() for line in lines)
    comment = sum(rest is None and bool(line.strip()) for line, rest in zip(lines, kept, strict=True))
    return {"total": len(lines), "code": len(lines) - blank - comment, "comment": comment, "blank": blank}


def _measure(text: str, language: str | None) -> list[dict[str, Any]] | None:
    """Functions with their complexity; None where lizard does not know the language or fails on the text."""
    suffix = _SUFFIX.get(language or "")
    if suffix is None or len(text) > _MAX_MEASURED or _nesting(text) > _MAX_NESTING:
        return None
    try:
        found = _lizard().analyze_file.analyze_source_code(f"code.{suffix}", text)
    except Exception:  # its readers raise whatever they stumble over in code that does not parse
        return None
    return [
        {
            "name": str(function.name),
            "line": int(function.start_line),
            "end_line": int(function.end_line),
            "complexity": int(function.cyclomatic_complexity),
            "parameters": len(function.full_parameters),
        }
        for function in found.function_list
    ]


def _nesting(text: str) -> int:
    """How many brackets are open at once at most."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        depth = max(0, depth + (1 if found.group() in "([{" else -1))
        deepest = max(deepest, depth)
    return deepest


def _complexity(measured: list[dict[str, Any]] | None) -> dict[str, float] | None:
    if not measured:
        return None
    values = [entry["complexity"] for entry in measured]
    return {"max": max(values), "mean": round(sum(values) / len(values), 2)}


def _summary(data: dict[str, Any]) -> str:
    functions, classes = data["functions"], data["classes"]
    said = [f"{counted(data['lines']['code'], 'line')} of code"]
    if classes:
        said.append(f"{len(classes):,} {'class' if len(classes) == 1 else 'classes'}")
    if functions:
        said.append(counted(len(functions), "function"))
        worst = max(functions, key=lambda entry: entry.get("complexity", 0))
        if worst.get("complexity", 0) > 5:
            said.append(
                f"most branched: {worst['name']} (complexity {worst['complexity']}, line {worst['line']})"
            )
    return ", ".join(said)
