"""Write the generated parts of README.md and CONTRIBUTING.md: the tree of rooms and the picture of layers.

Names and order come from the import-linter contract in pyproject.toml, sentences from the first line of each
room's docstring, so that neither can drift. With ``--check`` nothing is written; the exit status says whether
the files are up to date.
"""

import argparse
import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sensorium"


def layers() -> list[list[str]]:
    """Rooms by layer, highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (names,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in names]


def sentence(room: str) -> str:
    """First line of a room's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    return text.split("\n", 1)[0].removesuffix(".")


def tree() -> str:
    """One line per room, highest first."""
    rooms = [room for layer in layers() for room in layer]
    width = max(map(len, rooms)) + 1
    return "\n".join(["src/sensorium/", *(f"  {room + '/':<{width}}  {sentence(room)}" for room in rooms)])


def picture() -> str:
    """The layers as boxes: a room may import what is below its line."""
    rows = ["   ".join(layer) for layer in layers()]
    width = max(map(len, rows)) + 4
    line = f"+{'-' * width}+"
    boxes = "\n".join(f"|{row:^{width}}|\n{line}" for row in rows)
    return f"{line}\n{boxes}"


PARTS = {"rooms": tree, "layers": picture}


def filled(text: str) -> str:
    """Replace what stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``."""
    for name, make in PARTS.items():
        marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        text = marks.sub(lambda m, make=make: f"{m[1]}```text\n{make()}\n```\n{m[2]}", text)
    return text


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    check = parser.parse_args().check
    stale = 0
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        text = path.read_text()
        if filled(text) == text:
            continue
        stale += 1
        if check:
            print(f"{path.name} is out of date. Run: make rooms", file=sys.stderr)
        else:
            path.write_text(filled(text))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
