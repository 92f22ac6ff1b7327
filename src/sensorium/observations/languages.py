"""Which language a piece of code is written in, and its parser."""

import ast
import re
import threading
import warnings
from functools import lru_cache
from symtable import symtable
from typing import TYPE_CHECKING, Any, cast

from sensorium.core.errors import MissingDependencyError, require
from sensorium.observations.files import suffix_of

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree

MAX_PARSED = 1_000_000
"""Characters up to which code is parsed; a longer file is data or generated."""

_QUIET = threading.Lock()

_BY_SUFFIX: dict[str, str] = {
    suffix: language
    for language, suffixes in {
        "python": "py pyi pyw",
        "javascript": "js jsx mjs cjs",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "java": "java",
        "kotlin": "kt kts",
        "scala": "scala sc",
        "groovy": "groovy gradle",
        "go": "go",
        "rust": "rs",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hpp hh hxx h++ ipp",
        "cuda": "cu cuh",
        "csharp": "cs",
        "fsharp": "fs fsx",
        "swift": "swift",
        "cython": "pyx pxd pxi",
        "objc": "m mm",
        "ruby": "rb rake gemspec",
        "php": "php",
        "perl": "pl pm",
        "lua": "lua",
        "r": "r",
        "julia": "jl",
        "matlab": "mlx",
        "bash": "sh bash zsh ksh",
        "fish": "fish",
        "powershell": "ps1 psm1",
        "sql": "sql",
        "haskell": "hs",
        "ocaml": "ml",
        "elixir": "ex exs",
        "erlang": "erl hrl",
        "clojure": "clj cljs cljc",
        "commonlisp": "lisp cl",
        "scheme": "scm",
        "racket": "rkt",
        "elm": "elm",
        "dart": "dart",
        "zig": "zig",
        "nim": "nim",
        "d": "d",
        "fortran": "f90 f95 f03 f08 f for",
        "pascal": "pas",
        "ada": "adb ads",
        "cobol": "cob cbl",
        "verilog": "v sv",
        "vhdl": "vhd vhdl",
        "solidity": "sol",
        "css": "css",
        "scss": "scss",
        "svelte": "svelte",
        "vue": "vue",
        "cmake": "cmake",
        "make": "mk",
        "nix": "nix",
        "proto": "proto",
        "graphql": "graphql gql",
        "terraform": "tf",
        "dockerfile": "dockerfile",
        "glsl": "glsl vert frag",
        "wgsl": "wgsl",
        "vim": "vim",
        "latex": "tex",
    }.items()
    for suffix in suffixes.split()
}
_BY_NAME = {
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "makefile": "make",
    "gnumakefile": "make",
    "cmakelists.txt": "cmake",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "jenkinsfile": "groovy",
    "build.bazel": "starlark",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
}
_BY_INTERPRETER = {
    "python": "python",
    "pypy": "python",
    "node": "javascript",
    "deno": "typescript",
    "bun": "typescript",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "dash": "bash",
    "ksh": "bash",
    "fish": "fish",
    "ruby": "ruby",
    "perl": "perl",
    "php": "php",
    "lua": "lua",
    "Rscript": "r",
    "julia": "julia",
    "pwsh": "powershell",
}
_ALIASES = {
    "py": "python",
    "python3": "python",
    "ipython": "python",
    "ipython3": "python",
    "js": "javascript",
    "node": "javascript",
    "jsx": "javascript",
    "ts": "typescript",
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
    "c++": "cpp",
    "c#": "csharp",
    "cs": "csharp",
    "f#": "fsharp",
    "golang": "go",
    "rs": "rust",
    "rb": "ruby",
    "kt": "kotlin",
    "hs": "haskell",
    "ps1": "powershell",
    "objective-c": "objc",
    "docker": "dockerfile",
    "makefile": "make",
    "tex": "latex",
}
_SHEBANG = re.compile(
    r"#!\s*(?:\S*/)?env\s+(?:-\S+\s+)*(?:\S+=\S+\s+)*(?P<env>[\w.+-]+)|#!\s*(?:\S*/)?(?P<direct>[\w.+-]+)"
)
_CPP_HEADER = re.compile(
    r"^\s*(?:class \w|namespace\b|template\s*<|using \w|public:|private:|protected:)|\bstd::|\w::\w", re.M
)
_MATLAB = re.compile(r"\s*(?:%|function\b|classdef\b|clear\b|clc\b)")
_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (language, re.compile(pattern, re.M))
    for language, pattern in (
        ("php", r"^<\?php\b"),
        ("go", r"^package \w+\s*$"),
        (
            "rust",
            r"^\s*(?:pub(?:\(\w+\))? )?(?:fn \w+(?:<[^>]*>)?\(|impl\b.*\{|use (?:std|crate|"
            r"super)::)|^#\[derive\(",
        ),
        (
            "python",
            r"^\s*(?:async )?(?:def \w+\(.*|class \w+(?:\(.*\))?:)|^from [\w.]+ import |"
            r"^import [\w.]+(?: as \w+)?$",
        ),
        (
            "java",
            r"^\s*(?:public |private |protected )(?:static |final |abstract )*(?:class|interface|"
            r"enum|void|[\w<>\[\]]+) \w+|^import java[\w.]*;",
        ),
        ("csharp", r"^\s*using System|^\s*namespace [\w.]+\s*[;{]?$"),
        ("cpp", r"^#include <\w+>|\bstd::|^template ?<|^using namespace "),
        ("c", r'^#include [<"]\w+\.h[>"]|^int main\('),
        ("typescript", r"^\s*(?:export )?(?:interface \w+ \{|type \w+ = )|^\s*(?:const|let) \w+: \w+"),
        (
            "javascript",
            r"^\s*(?:const|let|var) \w+ = |^\s*(?:export )?(?:async )?function\*? ?\w*\(|"
            r"^import .* from ['\"]|=> \{\s*$",
        ),
        ("ruby", r"^\s*def \w+[?!]?(?:\(.*\))?\s*$(?=[\s\S]*^\s*end\b)|^require ['\"]"),
        ("sql", r"^(?i:\s*(?:select\b.+\bfrom\b|create table |insert into |with \w+ as \())"),
        ("bash", r"^\s*(?:if \[|for \w+ in |fi$|done$|esac$|echo \")"),
    )
)


def canonical_language(name: str | None) -> str | None:
    """The name of a language as tree-sitter's language pack spells it: ``py`` is ``python``."""
    if not name or not name.strip():
        return None
    lowered = name.strip().lower()
    return _ALIASES.get(lowered, lowered)


def language_of_path(path: str | None) -> str | None:
    """The language that the name of a file says; None when it says none."""
    if not path:
        return None
    name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith("dockerfile."):
        return "dockerfile"
    return _BY_SUFFIX.get(suffix_of(name))


def detect_language(text: str, *, path: str | None = None) -> str | None:
    """The language of a piece of code: by path, else by its first line (``#!``), else by what stands in it.

    Returns:
        A name of tree-sitter's language pack, or None when nothing is telling.
    """
    found = language_of_path(path)
    if found == "c" and str(path).endswith(".h") and _CPP_HEADER.search(text[:20_000]):
        return "cpp"
    if found == "objc" and _MATLAB.match(text):
        return "matlab"
    if found is not None:
        return found
    if text.startswith("#!") and (match := _SHEBANG.match(text[:200])):
        interpreter = match["env"] or match["direct"]
        return _BY_INTERPRETER.get(interpreter) or _BY_INTERPRETER.get(re.sub(r"[\d.]+$", "", interpreter))
    sample = text[:8_000]
    scores = {language: len(pattern.findall(sample)) for language, pattern in _MARKS}
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] else None


def parse_code(text: str, language: str | None) -> "Tree | None":
    """Parse code with tree-sitter.

    Returns:
        The tree over the UTF-8 bytes of the text; None when the language is unknown, its parser is not
        installed, or the text is longer than `MAX_PARSED`.
    """
    if language is None or len(text) > MAX_PARSED:
        return None
    parser = _parser(language)
    return parser.parse(text.encode("utf-8", "replace")) if parser is not None else None


def parse_python(text: str) -> ast.Module:
    """Parse Python with its own parser, without its warnings about doubtful code.

    Raises:
        SyntaxError: The code does not parse.
        ValueError: It holds what no code may hold.
        RecursionError: It is nested too deeply.
        MemoryError: Likewise.
    """
    with _QUIET, warnings.catch_warnings():  # filters belong to the whole process
        warnings.simplefilter("ignore")
        return ast.parse(text)


def is_python(text: str) -> bool:
    """Whether Python's own parser takes a text, told faster than by building its tree as objects.

    No is no answer: some of what else keeps a module from being compiled counts, too, such as ``nonlocal``
    outside of functions. Ask `parse_python` what is wrong.
    """
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable(text, "<unknown>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


class _Parsers(threading.local):
    """Parsers keep state while they parse: every thread has its own."""

    def __init__(self) -> None:
        self.known: dict[str, Parser | None] = {}


_PARSERS = _Parsers()


def _parser(language: str) -> "Parser | None":
    known = _PARSERS.known
    if language not in known:
        pack = _pack()
        try:
            known[language] = cast("Parser", pack.get_parser(language)) if pack is not None else None
        except (LookupError, ValueError, OSError):
            known[language] = None
    return known[language]


@lru_cache(maxsize=1)
def _pack() -> Any:
    try:
        return require("tree_sitter_language_pack", extra="observe", purpose="parsing code")
    except MissingDependencyError:
        return None
