import base64
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.notebook import read_notebook
from sensorium.observations.notebook_output import MAX_OUTPUT_CHARS

PNG = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()


def code(source: Any, outputs: Any = (), **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": list(outputs)} | more


def notebook(*cells: Any, minor: int = 5, **more: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": list(cells)} | more


def by_id(parts: list[Part]) -> dict[str, Part]:
    found = {part.id: part for part in parts}
    assert len(found) == len(parts), "ids are not unique"
    return found


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
    parts = by_id(read_notebook(raw, part_id="r.ipynb", timestamp_s=2.0, importance=3.0))
    assert list(parts) == ["r.ipynb/cell-ab", "r.ipynb/cell-ab/output-0", "r.ipynb/cell-cd"]
    cell = parts["r.ipynb/cell-ab"]
    assert cell.value.source == "x = 1\nx"
    assert cell.value.execution_count == 3
    assert parts["r.ipynb/cell-ab/output-0"].text == "1"
    assert parts["r.ipynb/cell-cd"].value.language == "markdown"
    assert {part.timestamp_s for part in parts.values()} == {2.0}
    assert {part.importance for part in parts.values()} == {3.0}


def test_streams_of_one_name_are_joined_and_others_are_not() -> None:
    def stream(name: str, text: Any) -> dict[str, Any]:
        return {"output_type": "stream", "name": name, "text": text}

    outputs = [
        stream("stdout", "a\n"),
        stream("stdout", ["b\n", "c"]),
        stream("stderr", "w"),
        stream("stdout", "d"),
    ]
    parts = by_id(read_notebook(notebook(code("", outputs)), part_id="n"))
    shown = [(i, p.text, p.value.stream) for i, p in parts.items() if "output" in i]
    assert shown == [
        ("n/cell-0/output-0", "a\nb\nc", "stdout"),
        ("n/cell-0/output-1", "w", "stderr"),
        ("n/cell-0/output-2", "d", "stdout"),
    ]


def test_an_error_is_taken_apart_and_its_colours_removed() -> None:
    traceback = [
        "\x1b[0;31m---------\x1b[0m",
        "\x1b[0;31mKeyError\x1b[0m      Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[3], line 2\x1b[0m\n      1 d = {}\n----> 2 d['price']\n",
        "\x1b[0;31mKeyError\x1b[0m: 'price'",
    ]
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'price'", "traceback": traceback}
    part = read_notebook(notebook(code("d['price']", [error])))[1]
    assert part.is_error
    assert part.stack is not None
    assert (part.stack.type, part.stack.message) == ("KeyError", "'price'")
    assert any(frame.line == 2 for frame in part.stack.frames)
    assert "\x1b" not in (part.text or "")
    assert (part.text or "").endswith("KeyError: 'price'")


def test_an_error_without_traceback_keeps_name_and_message() -> None:
    part = read_notebook(
        notebook(code("", [{"output_type": "error", "ename": "E", "evalue": "m", "traceback": []}]))
    )[1]
    assert part.text == "E: m"
    assert part.stack is not None
    assert part.stack.type == "E"


def test_a_traceback_printed_by_a_subprocess_is_an_error_too() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    1 / 0\n'
        "ZeroDivisionError: division by zero\n"
    )
    part = read_notebook(
        notebook(code("!python a.py", [{"output_type": "stream", "name": "stdout", "text": text}]))
    )[1]
    assert part.is_error
    assert part.stack is not None
    assert part.stack.type == "ZeroDivisionError"


def test_a_figure_is_a_picture_and_its_label_is_left_out() -> None:
    data = {"image/png": PNG + "\n", "text/plain": "<Figure size 640x480 with 1 Axes>"}
    parts = read_notebook(
        notebook(code("plot()", [{"output_type": "display_data", "data": data}])), timestamp_s=1.0
    )
    assert [(p.id, p.modality, p.timestamp_s) for p in parts[1:]] == [
        ("notebook/cell-0/output-0", Modality.IMAGE, 1.0)
    ]
    assert (parts[1].value.width, parts[1].value.height) == (1, 1)


def test_telling_text_beside_a_figure_is_kept() -> None:
    data = {"image/png": PNG, "text/plain": "accuracy 0.93"}
    parts = read_notebook(notebook(code("", [{"output_type": "display_data", "data": data}])))
    assert [(p.id, p.value.kind) for p in parts[1:]] == [
        ("notebook/cell-0/output-0", "image"),
        ("notebook/cell-0/output-0/text", "output"),
    ]


@pytest.mark.parametrize("data", ["%%%not base64", 17, None, {"a": 1}, ["iVBOR", 3]])
def test_a_broken_figure_is_told_as_a_problem(data: Any) -> None:
    parts = read_notebook(notebook(code("", [{"output_type": "display_data", "data": {"image/png": data}}])))
    assert [p.value.kind for p in parts] == ["cell", "problem"]
    assert parts[1].modality is Modality.IMAGE


HTML = """<div><style scoped>.a {b: c}</style><table border="1" class="dataframe"><thead>
<tr style="text-align: right;"><th></th><th>name</th><th>price</th></tr></thead><tbody>
<tr><th>0</th><td>a &amp; b</td><td>1.5</td></tr><tr><th>1</th><td>c</td><td>NaN</td></tr>
<tr><th>...</th><td>...</td><td>...</td></tr><tr><th>999</th><td>z</td><td>7.0</td></tr>
</tbody></table><p>1000 rows × 2 columns</p></div>"""


def test_a_shortened_data_frame_becomes_a_table_that_says_so() -> None:
    plain = "  name  price\n0  a & b  1.5\n..     ...    ...\n999   z   7.0\n\n[1000 rows x 2 columns]"
    data = {"text/html": HTML, "text/plain": plain}
    part = read_notebook(notebook(code("df", [{"output_type": "execute_result", "data": data}])))[1]
    table = part.value
    assert table.kind == "table"
    assert part.modality is Modality.TABLE
    assert [column.name for column in table.columns] == ["name", "price"]
    assert table.num_rows == 1000
    assert table.row_numbers == (0, 1, 999)
    assert table.rows == (("a & b", 1.5), ("c", None), ("z", 7.0))
    assert table.index is None
    assert table.is_sample
    assert any("3 of its 1,000 rows" in note for note in part.notes)


def test_a_data_frame_that_is_whole_stays_text() -> None:
    data = {"text/html": HTML, "text/plain": "  name  price\n0    a    1.5"}
    part = read_notebook(notebook(code("df", [{"output_type": "execute_result", "data": data}])))[1]
    assert part.text == "  name  price\n0    a    1.5"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/latex": "$x^2$", "text/plain": "x**2"}, "$x^2$"),
        ({"text/markdown": "**b**", "text/plain": "<Markdown object>"}, "**b**"),
        ({"text/html": "<h1>Hi</h1><script>x()</script><p>you &lt;3</p>"}, "Hi\nyou <3"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>words</b>"}, "words"),
        ({"application/json": {"a": [1]}}, '{\n "a": [\n  1\n ]\n}'),
        ({"application/x-thing": "abc"}, "[application/x-thing (3 characters)]"),
        ({}, "[empty output]"),
    ],
)
def test_the_most_telling_text_of_a_bundle_is_taken(data: dict[str, Any], text: str) -> None:
    assert read_notebook(notebook(code("", [{"output_type": "display_data", "data": data}])))[1].text == text


def test_a_plotly_figure_is_described() -> None:
    figure = {
        "data": [{"type": "bar", "name": "sales", "y": [1, 2, 3]}],
        "layout": {"title": {"text": "Sales"}},
    }
    data = {"application/vnd.plotly.v1+json": figure}
    text = read_notebook(notebook(code("", [{"output_type": "display_data", "data": data}])))[1].text
    assert text == "plotly figure\ntitle: Sales\ntrace bar sales: 3 points"


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


def test_a_cut_off_notebook_gives_the_cells_before_the_cut() -> None:
    cells = [code(f"value_{i} = {i}\n" * 5, id=f"c{i}") for i in range(10)]
    text = json.dumps(notebook(*cells), indent=1)
    cut = text[: text.index("value_7") + 40]
    parts = by_id(read_notebook(cut, part_id="n"))
    assert "not valid JSON" in parts["n/problem-0"].value.what
    assert [f"n/cell-c{i}" in parts for i in range(7)] == [True] * 7
    assert parts["n/cell-c3"].value.source == cells[3]["source"]


def test_merge_conflicts_in_the_middle_lose_only_their_cell() -> None:
    cells = [code(f"value_{i} = {i}", id=f"c{i}") for i in range(5)]
    text = json.dumps(notebook(*cells), indent=1)
    broken = text.replace('"value_2 = 2"', '<<<<<<< HEAD\n"a"\n=======\n"b"\n>>>>>>> x\n')
    ids = [p.id for p in read_notebook(broken, part_id="n")]
    assert {"n/cell-c0", "n/cell-c1", "n/cell-c3", "n/cell-c4", "n/problem-0"} <= set(ids)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        "null",
        "17",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        "[" * 100_000,
        '{"cells": ' + "[" * 50_000,
        '{"cells": 5, "nbformat": 4}',
        '{"nbformat": "4", "cells": null}',
        '{"nbformat": 3, "worksheets": [1, {"cells": 3}, {"cells": [4, {"cell_type": 5}]}]}',
        '{"nbformat": 2, "worksheets": "x"}',
        '{"nbformat": -1, "cells": []}',
    ],
)
def test_what_is_no_notebook_is_told(raw: Any) -> None:
    parts = read_notebook(raw)
    assert any(p.value.kind == "problem" for p in parts)
    assert Observation(parts=tuple(parts)).model_dump_json()


def test_wrong_types_everywhere_do_no_harm() -> None:
    outputs = [
        1,
        None,
        {"output_type": 3, "text": 5},
        {"output_type": "stream", "name": 4, "text": {"a": 1}},
        {"output_type": "display_data", "data": [1]},
        {"output_type": "execute_result", "data": {"text/plain": None, 3: 4}},
        {"output_type": "error", "ename": 1, "evalue": None, "traceback": "text"},
        {"output_type": "error", "traceback": [1, None, ["x"]]},
    ]
    cells = [
        None,
        3,
        "text",
        {},
        {"cell_type": 4, "source": {"a": 1}},
        code(None, execution_count="3"),
        code(["a", 1, None], outputs),
        code("", attachments=4) | {"outputs": "none"},
        {"cell_type": "markdown", "source": "x", "attachments": {"a": 3, "b": {"image/png": 4}}},
    ]
    parts = read_notebook(notebook(*cells), part_id="n")
    by_id(parts)
    text = Observation(parts=tuple(parts)).model_dump_json()
    assert Observation.model_validate_json(text).model_dump_json() == text
    assert sum(p.value.kind == "cell" for p in parts) == 6


def test_a_huge_output_keeps_its_beginning_and_end() -> None:
    text = "begin\n" + "x" * (2 * MAX_OUTPUT_CHARS) + "\nthe end"
    part = read_notebook(notebook(code("", [{"output_type": "stream", "name": "stdout", "text": text}])))[1]
    assert len(part.text or "") < MAX_OUTPUT_CHARS + 100
    assert (part.text or "").startswith("begin\n")
    assert (part.text or "").endswith("the end")
    assert "were not read" in part.notes[0]


def test_a_notebook_above_the_limit_is_read_up_to_it() -> None:
    text = json.dumps(notebook(*[code("y" * 1_000, id=f"c{i}") for i in range(100)]))
    parts = read_notebook(text.encode(), config=ReadConfig(max_bytes=20_000))
    assert 15 < sum(p.value.kind == "cell" for p in parts) < 25
    assert "more than 20,000 bytes" in parts[0].value.what


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        "output_type": st.sampled_from(["stream", "error", "display_data", "execute_result"]) | JSON_VALUES,
        "name": JSON_VALUES,
        "text": st.text() | JSON_VALUES,
        "data": st.dictionaries(
            st.sampled_from(["text/plain", "text/html", "text/latex", "image/png", "image/svg+xml", "x"]),
            st.text() | st.just("<table><tr><td>1</td></tr></table>") | JSON_VALUES,
            max_size=3,
        )
        | JSON_VALUES,
        "ename": JSON_VALUES,
        "evalue": JSON_VALUES,
        "traceback": JSON_VALUES,
    },
)
CELLS = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw"]) | JSON_VALUES,
        "id": st.sampled_from(["a", "b", "0", "1"]) | JSON_VALUES,
        "source": st.text() | JSON_VALUES,
        "outputs": st.lists(OUTPUTS | JSON_VALUES, max_size=3) | JSON_VALUES,
        "execution_count": JSON_VALUES,
    },
)


@settings(max_examples=150, deadline=None)
@given(cells=st.lists(CELLS | JSON_VALUES, max_size=4), cut=st.floats(0, 1), damage=st.binary(max_size=3))
def test_any_notebook_whole_cut_or_damaged_is_read_into_parts_that_survive_json(
    cells: list[Any], cut: float, damage: bytes
) -> None:
    raw = notebook(*cells)
    data = json.dumps(raw).encode()
    place = int(cut * len(data))
    for variant in (raw, data, data[:place], data[:place] + damage + data[place + len(damage) :]):
        parts = read_notebook(variant)
        by_id(parts)
        observation = Observation(parts=tuple(parts))
        text = observation.model_dump_json()
        assert Observation.model_validate_json(text) == observation
        assert len({part.digest for part in parts}) <= len(parts)


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
