import doctest
import importlib
from pathlib import Path

import pytest

import sensorium

ROOT = Path(sensorium.__file__).parent


def is_run(line: str) -> bool:
    return line.lstrip().startswith(">>> ") and "doctest: +SKIP" not in line


def modules_with_examples() -> list[str]:
    files = sorted(ROOT.rglob("*.py"))
    kept = [path for path in files if any(map(is_run, path.read_text(encoding="utf-8").splitlines()))]
    return [".".join(("sensorium", *path.relative_to(ROOT).with_suffix("").parts)) for path in kept]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    """Names that a reader would import first are at hand: torch, numpy and the module's own."""
    module = importlib.import_module(name)
    context = {"torch": importlib.import_module("torch"), "np": importlib.import_module("numpy")}
    found = doctest.testmod(module, extraglobs=context, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
