import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks import PNG, by_id, code, notebook

from sensorium.observations.notebook import read_notebook
from sensorium.observations.read import read
from sensorium.observations.source import Source


def test_cells_and_outputs_become_parts_with_ids_of_the_notebook() -> None:
    raw = notebook(
        code(
            ["x = 1\n", "x"],
            [{"output_type": "execute_result", "data": {"text/plain": ["1"]}}],
            id="ab",
            execution_count=3,
        ),
        {"cell_type": "markdown", "source": "# Title", "metadata": {}, "id": "cd"},
    )
    source = Source(raw, timestamp_s=2.0, importance=3.0)
    parts = by_id(list(read({"r.ipynb": source})))
    assert list(parts) == ["r.ipynb/cell-ab", "r.ipynb/cell-ab/output-0", "r.ipynb/cell-cd"]
    cell = parts["r.ipynb/cell-ab"]
    assert cell.value.source == "x = 1\nx"
    assert cell.value.execution_count == 3
    assert parts["r.ipynb/cell-ab/output-0"].text == "1"
    assert parts["r.ipynb/cell-cd"].value.language == "markdown"
    assert {part.timestamp_s for part in parts.values()} == {2.0}
    assert {part.importance for part in parts.values()} == {3.0}


def test_missing_improper_and_repeated_ids_fall_back_to_positions() -> None:
    raw = notebook(
        code("", id="a"), code("", id="a"), code(""), code("", id="x/y"), code("", id=7), code("", id="2")
    )
    assert [p.id for p in read_notebook(raw, part_id="n")] == [
        "n/cell-a",
        "n/cell-1",
        "n/cell-2",
        "n/cell-3",
        "n/cell-4",
        "n/cell-5",
    ]
    taken = notebook(code("", id="1"), code(""))
    assert [p.id for p in read_notebook(taken, part_id="n")] == ["n/cell-1", "n/cell-1-again"]


def test_magic_and_kernel_decide_the_language() -> None:
    raw = notebook(code("%%bash\nls"), code("x"), metadata={"kernelspec": {"language": "R"}})
    assert [p.value.language for p in read_notebook(raw)] == ["bash", "r"]


def test_pictures_in_markdown_and_attachments_become_parts() -> None:
    inline = {"cell_type": "markdown", "source": f"see ![a](data:image/png;base64,{PNG}) here"}
    attached = {
        "cell_type": "markdown",
        "source": "![](attachment:b.png)",
        "attachments": {"b.png": {"image/png": PNG}},
    }
    parts = read_notebook(notebook(inline, attached), part_id="n")
    assert [(p.id, p.value.kind) for p in parts] == [
        ("n/cell-0", "cell"),
        ("n/cell-0/picture-0", "image"),
        ("n/cell-1", "cell"),
        ("n/cell-1/attachment-0", "image"),
    ]
    assert parts[0].value.source == "see ![a](picture-0) here"


VERSION_3 = {
    "nbformat": 3,
    "nbformat_minor": 0,
    "metadata": {"name": "old"},
    "worksheets": [
        {
            "cells": [
                {"cell_type": "heading", "level": 2, "source": ["Old"], "metadata": {}},
                {
                    "cell_type": "code",
                    "language": "python",
                    "input": ["1/0"],
                    "prompt_number": 4,
                    "collapsed": False,
                    "metadata": {},
                    "outputs": [
                        {"output_type": "pyout", "prompt_number": 4, "text": ["42"], "metadata": {}},
                        {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": ["E: v"]},
                        {"output_type": "stream", "stream": "stderr", "text": ["warn"]},
                    ],
                },
            ],
            "metadata": {},
        }
    ],
}


@pytest.mark.parametrize("hide_nbformat", [False, True])
def test_version_3_is_converted_with_and_without_nbformat(
    hide_nbformat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hide_nbformat:
        monkeypatch.setitem(sys.modules, "nbformat", None)
    first = read_notebook(json.dumps(VERSION_3), part_id="o")
    assert [p.id for p in first] == [p.id for p in read_notebook(VERSION_3, part_id="o")], (
        "ids change between readings"
    )
    parts = by_id([p for p in first if p.value.kind != "problem"])
    assert parts["o/cell-0"].value.source == "## Old"
    assert parts["o/cell-1"].value.source == "1/0"
    assert parts["o/cell-1"].value.execution_count == 4
    assert parts["o/cell-1/output-0"].text == "42"
    assert parts["o/cell-1/output-1"].is_error
    assert parts["o/cell-1/output-2"].value.stream == "stderr"
    assert (len(first) > len(parts)) is hide_nbformat


def installed_notebooks() -> list[Path]:
    found: list[Path] = []
    for package in ("nbdime", "papermill", "nbformat"):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found += sorted(Path(folder).rglob("*.ipynb"))
    return found


def test_notebooks_of_installed_packages_are_read() -> None:
    paths = installed_notebooks()
    if not paths:
        pytest.skip("no installed package brings notebooks: pip install --no-deps nbdime papermill")
    for path in paths:
        raw = json.loads(path.read_text())
        parts = by_id(read_notebook(path.read_bytes(), part_id=path.name))
        cells = raw.get("cells") or [c for sheet in raw.get("worksheets", []) for c in sheet["cells"]]
        assert sum(p.value.kind == "cell" for p in parts.values()) == len(cells), path
        sources = [
            p.value.source for p in parts.values() if p.value.kind == "cell" and p.value.cell_type == "code"
        ]
        written = ["".join(c.get("source", c.get("input", ""))) for c in cells if c["cell_type"] == "code"]
        assert sources == written, path


def test_reading_a_plain_notebook_loads_neither_pandas_nor_torch() -> None:
    script = (
        "import sys, json\n"
        "from sensorium.observations.read import read\n"
        "read({'nbformat': 4, 'nbformat_minor': 5, 'metadata': {}, 'cells': [{'cell_type': 'code', "
        "'source': 'x', 'outputs': [{'output_type': 'stream', 'name': 'stdout', 'text': 'y'}]}]})\n"
        "print([m for m in ('pandas', 'torch', 'polars', 'PIL', 'nbformat') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
