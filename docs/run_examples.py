"""Tables and examples of the pages on observations, made from the code while the pages are built."""

import ast
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs/examples"


def example(name: str) -> str:
    """A script of ``docs/examples``, and what it prints."""
    return f"{source(f'{name}.py')}\n\nprints\n\n{printed(name)}"


def source(name: str) -> str:
    """A file of ``docs/examples``."""
    path = EXAMPLES / name
    if not path.is_file():
        raise PluginError(f"There is no example {path}.")
    language = {".py": "python", ".yaml": "yaml"}[path.suffix]
    return f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"


def printed(name: str) -> str:
    """What a script of ``docs/examples`` prints; one that fails stops the build."""
    done = subprocess.run(
        [sys.executable, f"{name}.py"],
        cwd=EXAMPLES,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise PluginError(f"docs/examples/{name}.py failed: {done.stderr}")
    return f"`````text\n{done.stdout.rstrip()}\n`````"


def named_constants(target: str) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of the documented constants of a module.

    Args:
        target: The module, or ``module:FIRST,SECOND`` for some of them.
    """
    module, _, chosen = target.partition(":")
    wanted = chosen.split(",") if chosen else []
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    found = {}
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            is_told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if is_told and isinstance(following.value.value, str) and not name.startswith("_"):
                found[name] = (name, ast.unparse(statement.value), following.value.value)
    if missing := set(wanted) - found.keys():
        raise PluginError(f"{module} has no documented constants {sorted(missing)}")
    return iter([found[name] for name in wanted or found])


def text_of(target: str) -> str:
    """A text constant, given as ``module:NAME``."""
    module, _, name = target.partition(":")
    return f"```text\n{getattr(importlib.import_module(module), name)}\n```"


def said(target: str) -> str:
    """The docstring of ``module:name`` without its sections (arguments, errors)."""
    module, _, name = target.partition(":")
    text = inspect.getdoc(
        getattr(importlib.import_module(module), name) if name else importlib.import_module(module)
    )
    return re.split(r"\n\n(?:Args|Returns|Raises|Example|Source):", text or "")[0]


def extractor_rows() -> Iterator[tuple[str, str, str]]:
    """Name of every extractor, what it finds, and which parts it reads, from its docstrings."""
    from sensorium.features.extractors.registry import EXTRACTORS

    for name, target in EXTRACTORS.items():
        module, _, attribute = target.partition(":")
        kind = getattr(importlib.import_module(module), attribute)
        first, reads = (re.split(r"\n\n", inspect.getdoc(o) or "")[0] for o in (kind, kind.accepts))
        yield name, first, reads.replace("Whether the part ", "What ")
