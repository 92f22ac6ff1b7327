import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.html_text import html_table, html_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Hi</h1><p>you &lt;3 &amp; me</p>", "Hi\nyou <3 & me"),
        ("<SCRIPT>if (a<b) x('</p>')</SCRIPT >after", "after"),
        ("<style>a{}</style><b>bold</b> <i>text</i>", "bold text"),
        ("a<!-- <p>no</p> -->b", "ab"),
        ("<!DOCTYPE html><p>x", "x"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("cut <a href='x", "cut <a href='x"),
        ("", ""),
    ],
)
def test_words_of_a_page(html: str, text: str) -> None:
    assert html_text(html) == text


def test_a_table_with_head_labels_spans_and_footer() -> None:
    html = (
        "<table><thead><tr><th></th><th colspan='2'>x</th></tr>"
        "<tr><th>k</th><th>mean</th><th>std</th></tr></thead>"
        "<tbody><tr><th>a</th><td>1</td><td>2</td></tr></tbody></table><p>1,200 rows × 3 columns</p>"
    )
    table = html_table(html)
    assert table is not None
    assert table.header == [["", "x", "x"], ["k", "mean", "std"]]
    assert table.rows == [["a", "1", "2"]]
    assert (table.num_labels, table.num_rows) == (1, 1_200)


def test_a_head_without_thead_and_cells_that_are_not_closed() -> None:
    table = html_table("<table><tr><th>a<th>b<tr><td>1<td>2</table><table><tr><td>9</table>")
    assert table is not None
    assert (table.header, table.rows) == ([["a", "b"]], [["1", "2"]])


def test_a_page_without_rows_has_no_table() -> None:
    assert html_table("<table></table>") is None
    assert html_table("words") is None


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<a ", "<a x='", "</", "<![", "<script>", "<td>", "<table><tr><td>", "&"]
)
def test_many_open_marks_are_gone_through_once(piece: str) -> None:
    page = piece * (200_000 // len(piece))
    assert isinstance(html_text(page), str)
    html_table(page)


@given(st.text(alphabet="<>/!-&;abtdrh \"'=", max_size=80) | st.text(max_size=40))
def test_any_text_is_a_page(html: str) -> None:
    html_text(html)
    table = html_table(html)
    assert table is None or table.rows
