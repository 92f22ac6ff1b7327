"""What a repair may not add: ways for source code to reach the tests that judge it.

Judged tests run in the same interpreter as the code that they test. The sandbox keeps that code from the
host; this check keeps it from the test runner. It compares the syntax tree of a changed file with the one
that the agent was given and the original: names that give access to the interpreter, to other modules or to
comparison itself may not become more. A repair of a small bug needs none of them.
"""

import ast
import collections
import sys
from collections.abc import Iterator, Sequence

HARMLESS_MODULES = frozenset(
    {"__future__", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions"}
    | {"functools", "heapq", "itertools", "math", "numbers", "random", "re", "string", "textwrap", "typing"}
    | {"unicodedata", "warnings"}
)
"""Modules that may be imported anew; those of the project itself may be too."""
REACHING_NAMES = frozenset(
    {"breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr", "globals", "help", "input"}
    | {"locals", "memoryview", "open", "quit", "setattr", "super", "vars"}
)
REACHING_ATTRIBUTES = frozenset(
    {"abort", "atexit", "attrgetter", "builtins", "ctypes", "environ", "excepthook", "exit", "fork", "gc"}
    | {"gi_frame", "cr_frame", "tb_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals"}
    | {"importlib", "inspect", "kill", "meta_path", "methodcaller", "modules", "os", "path_hooks", "pluggy"}
    | {"pytest", "setprofile", "settrace", "signal", "sys", "threading", "unittest"}
)
"""Attributes through which harmless modules lead to others, and frames to whoever called."""
MAX_CHANGED_CHARS = 4_000


def violations(original: str, given: str, changed: str, *, project: str) -> list[str]:
    """What a changed file adds that it may not, in words; empty when it is a fair repair.

    Args:
        original: The file without the bug.
        given: The file as the agent got it.
        changed: The file as the agent leaves it.
        project: Name of the package, whose own modules may be imported.
    """
    try:
        tree = ast.parse(changed)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"it does not parse: {error}"]
    known = [collections.Counter(_reaching(ast.parse(text), project)) for text in (original, given)]
    found = collections.Counter(_reaching(tree, project))
    problems = [f"it adds {word}" for word, count in found.items() if count > max(k[word] for k in known)]
    added = len(changed) - max(len(original), len(given))
    if added > MAX_CHANGED_CHARS:
        problems.append(f"it adds {added:,} characters, at most {MAX_CHANGED_CHARS:,} are a repair")
    return problems


def _reaching(tree: ast.AST, project: str) -> Iterator[str]:
    """Every use of something that reaches beyond the module, as words."""
    for node in ast.walk(tree):
        yield from (f"`{name}`" for name in _names(node) if _reaches(name, node))
        for module in _imported(node, project):
            yield f"an import of `{module}`"


def _names(node: ast.AST) -> Sequence[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.alias(name=name, asname=other):
            return (*name.split("."), other or "")
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return tuple(names)
        case ast.Constant(value=str() as text) if len(text) < 100:
            # Names as text: `getattr(x, "__dict__")`, `{0.__class__}`.
            return tuple(word for word in text.replace("{", " ").replace(".", " ").split() if "__" in word)
    return ()


def _reaches(name: str, node: ast.AST) -> bool:
    if name.startswith("__") or ("__" in name and isinstance(node, ast.Constant)):
        return True
    bare = name.lstrip("_")
    if isinstance(node, ast.Attribute | ast.alias):
        return bare in REACHING_ATTRIBUTES or (name.startswith("_") and bare in sys.stdlib_module_names)
    return isinstance(node, ast.Name) and (bare in REACHING_NAMES or bare in REACHING_ATTRIBUTES)


def _imported(node: ast.AST, project: str) -> Iterator[str]:
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        modules = [node.module or ""]
    for module in modules:
        if module.partition(".")[0] not in HARMLESS_MODULES | {project}:
            yield module
