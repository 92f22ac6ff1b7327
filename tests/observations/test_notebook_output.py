from typing import Any

import pytest
from notebooks import PNG, by_id, code, notebook

from sensorium.core.types import Modality
from sensorium.observations.notebook import read_notebook
from sensorium.observations.notebook_output import MAX_OUTPUT_CHARS
from sensorium.observations.read import read


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
    raw = notebook(code("plot()", [{"output_type": "display_data", "data": data}]))
    parts = read(raw, timestamp_s=1.0).parts
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


def test_a_huge_output_keeps_its_beginning_and_end() -> None:
    text = "begin\n" + "x" * (2 * MAX_OUTPUT_CHARS) + "\nthe end"
    part = read_notebook(notebook(code("", [{"output_type": "stream", "name": "stdout", "text": text}])))[1]
    assert len(part.text or "") < MAX_OUTPUT_CHARS + 100
    assert (part.text or "").startswith("begin\n")
    assert (part.text or "").endswith("the end")
    assert "were not read" in part.notes[0]
