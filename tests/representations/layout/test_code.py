import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.code import CodeState, read_code
from sensorium.observations.values import CaseResult, CodeValue, StackFrame, StackTrace, TextValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import CodeConfig
from sensorium.representations.layout.code import code_document, lay_out_code
from sensorium.representations.layout.code_lines import is_signature, weight_of
from sensorium.representations.layout.code_window import same_file, window_of

MODULE = '''import os


class Reader:
    """Reads."""

    def read(
        self,
        path,
    ):
        # open it
        with open(path) as f:
            return f.read()


def main():
    pass
'''


def laid_out(
    text: str, *, state: CodeState | None = None, path: str | None = "a.py", **settings: int
) -> Document:
    return lay_out_code(read_code(text, part_id="p", path=path, state=state)[0], CodeConfig(**settings))


def find(document: Document, words: str) -> Segment:
    return next(segment for segment in document.segments if words in segment.text)


def test_lines_are_numbered_and_whole() -> None:
    document = laid_out(MODULE)
    assert document.separator.join(segment.text for segment in document.segments).split("\n") == [
        f"{number:>2} {line}" if line else ""
        for number, line in enumerate(MODULE.rstrip().split("\n"), start=1)
    ]
    assert document.fence == "python"
    assert document.title == "a.py: python, 17 lines"


def test_signatures_are_parents_of_bodies() -> None:
    document = laid_out(MODULE)
    signature = find(document, "def read(")
    assert signature.text.count("\n") == 3
    assert document.segments[find(document, "return f.read").parent or 0] is signature
    assert document.segments[signature.parent or 0] is find(document, "class Reader")
    assert find(document, "def main").parent is None
    assert signature.weight > find(document, "import os").weight > find(document, "# open it").weight


def test_comments_and_docstrings_can_be_left_out() -> None:
    document = laid_out(MODULE, include_comments=False)
    text = "\n".join(segment.text for segment in document.segments)
    assert "# open it" not in text
    assert "Reads." not in text
    assert "12         with open(path) as f:\n13             return f.read()" in text
    assert find(document, "return f.read").place == "line 13"


def test_a_long_file_is_shown_around_the_cursor() -> None:
    text = "\n".join(f"x{n} = {n}" for n in range(1, 1_001))
    document = laid_out(text, state=CodeState(cursor=500), max_lines=30)
    numbers = [int(s.place.split()[1]) for s in document.segments if s.place.startswith("line ")]
    assert len(numbers) == 30
    assert numbers == list(range(480, 510))
    assert find(document, "x500 =").is_pinned
    assert [s.text for s in document.segments if "not shown" in s.text] == [
        "... lines 1-479 not shown (max_lines: 30) ...",
        "... lines 510-1000 not shown (max_lines: 30) ...",
    ]


def test_a_long_file_without_a_place_is_shown_from_its_beginning() -> None:
    document = laid_out("\n".join(f"x{n} = {n}" for n in range(1, 101)), max_lines=10)
    assert [segment.place for segment in document.segments] == [
        *(f"line {n}" for n in range(1, 11)),
        "lines 11-100",
    ]


def test_the_signature_around_a_window_is_kept() -> None:
    body = "\n".join(f"        x{n} = {n}" for n in range(200))
    document = laid_out(f"class A:\n    def f(self):\n{body}\n", state=CodeState(cursor=150), max_lines=20)
    shown = [segment for segment in document.segments if segment.place.startswith("line ")]
    assert [segment.place for segment in shown][:2] == ["line 1", "line 2"]
    assert len(shown) == 20
    assert document.segments[find(document, "x147 ").parent or 0].text.endswith("def f(self):")


def test_frames_faults_and_cursor_share_the_window() -> None:
    text = "\n".join(f"x{n} = {n}" for n in range(1, 301)).replace("x200 = 200", "x200 = = 200")
    stack = StackTrace(
        type="E", frames=(StackFrame(file="/app/src/a.py", line=250), StackFrame(file="b.py", line=9))
    )
    document = laid_out(text, path="src/a.py", state=CodeState(cursor=50, stack=stack), max_lines=30)
    pinned = [segment.place for segment in document.segments if segment.is_pinned]
    assert {"line 50", "line 200", "line 250"} <= set(pinned)
    assert "line 9" not in pinned


def test_the_state_stands_around_the_code() -> None:
    stack = StackTrace(
        type="ZeroDivisionError",
        message="division by zero",
        frames=(
            StackFrame(file="/x/site-packages/lib.py", line=1, function="run"),
            StackFrame(file="a.py", line=2, function="f", code="return 1 / x"),
        ),
    )
    state = CodeState(
        stack=stack,
        variables={"x": 0, "other": 1},
        tests="FAILED t.py::test_f - assert 1 == 2\nt.py::test_g PASSED [ 50%]\n",
        tools=("pytest",),
    )
    document = laid_out("def f(x):\n    return 1 / x\n", state=state)
    texts = [segment.text for segment in document.segments]
    assert texts == [
        "ZeroDivisionError: division by zero",
        "  at /x/site-packages/lib.py:1 in run",
        "  at a.py:2 in f: return 1 / x",
        "tests: 1 failed, 1 passed",
        "  FAILED t.py::test_f: assert 1 == 2",
        "  passed t.py::test_g",
        "```python",
        "1 def f(x):",
        "2     return 1 / x",
        "```",
        "variables:",
        "  x = 0",
        "  other = 1",
        "tools: pytest",
    ]
    assert document.fence is None
    assert find(document, "x = 0").weight > find(document, "other = 1").weight
    assert document.segments[find(document, "x = 0").parent or 0].text == "variables:"
    assert document.segments[find(document, "2     return").parent or 0].text == "1 def f(x):"
    assert [s.text for s in document.segments if s.is_pinned and s.place != "code"] == [
        texts[0],
        texts[2],
        texts[3],
        texts[4],
        texts[8],
    ]


def test_faults_are_pinned_with_their_line() -> None:
    document = laid_out("x = 1\ny = (\nz = 2\n")
    assert document.segments[0].text == "fault at line 2, column 5: SyntaxError: '(' was never closed"
    assert document.segments[0].is_pinned
    assert find(document, "y = (").is_pinned


@pytest.mark.parametrize(
    ("text", "is_brace", "expected"),
    [
        ("def f(x):", False, True),
        ("    async def f():", False, True),
        ("class A:", False, True),
        ("type = 5", False, False),
        ("data.append(1)", False, False),
        ("export default function f() {", True, True),
        ("const f = async (x) => {", True, True),
        ("  render() {", True, True),
        ("static int f(char *x) {", True, True),
        ("public void run(String a) {", True, True),
        ("pub(crate) fn f() -> i32 {", True, True),
        ("    if (x) {", True, False),
        ("    return f(x);", True, False),
        ("} else if (a) {", True, False),
        ("create table t (", False, True),
    ],
)
def test_signatures_are_recognised(text: str, is_brace: bool, expected: bool) -> None:
    assert is_signature(text, is_brace=is_brace) is expected


def test_paths_that_may_be_one_file() -> None:
    assert same_file("/app/src/a.py", "src/a.py")
    assert same_file("./a.py", "a.py")
    assert same_file("C:\\x\\a.py", "x/a.py")
    assert not same_file("b/a.py", "c/a.py")
    assert not same_file("", "a.py")


def test_a_window_deals_its_lines_out() -> None:
    value = CodeValue(text="\n" * 99, cursor_line=10)
    assert window_of(value, range(1, 101), 200) == frozenset(range(100))
    assert window_of(value, range(1, 101), 1) == {9}
    assert window_of(value, range(1, 101), 4) == {7, 8, 9, 10}


def test_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="kind 'text'"):
        lay_out_code(Part(id="d", modality=Modality.TEXT, value=TextValue(text="x")))


def test_empty_code_has_no_lines() -> None:
    assert laid_out("").segments == ()
    assert laid_out("\n\n").segments == ()


LINES = st.lists(
    st.sampled_from(
        ["def f(", "    x = 1", "):", "", "class A:", "  # c", '  """d', '"""', "}", "{", "\t}", "a(b", "é)"]
    ),
    max_size=40,
)


@given(
    LINES,
    st.integers(1, 12),
    st.booleans(),
    st.integers(1, 50) | st.none(),
    st.sampled_from(["a.py", "a.c", "a.x"]),
)
def test_any_code_keeps_its_rules(
    lines: list[str], most: int, comments: bool, cursor: int | None, path: str
) -> None:
    text = "\n".join(lines)
    document = laid_out(
        text, path=path, state=CodeState(cursor=cursor), max_lines=most, include_comments=comments
    )
    shown = 0
    for position, segment in enumerate(document.segments):
        assert segment.parent is None or 0 <= segment.parent < position
        shown += len([s for s in segment.text.split("\n") if s]) if segment.place.startswith("line ") else 0
    assert shown <= most + sum("not shown" in segment.text for segment in document.segments)
    whole = laid_out(text, path=path, max_lines=1_000)
    words = " ".join(segment.text for segment in whole.segments)
    assert all(line.strip() in words for line in lines)


def test_results_without_code_have_neither_fence_nor_count() -> None:
    state = CodeState(tests=[CaseResult(name="test_a", status="failed", message="boom")])
    document = laid_out("", state=state, path=None)
    assert [segment.text for segment in document.segments] == ["tests: 1 failed", "  FAILED test_a: boom"]
    assert (document.title, document.fence) == ("test results", None)


def test_code_of_which_only_comments_are_left_out_has_no_empty_fence() -> None:
    value = CodeValue(text="# only this\n", language="python", tools=("gcc",))
    document = code_document(value, CodeConfig(include_comments=False))
    assert [segment.text for segment in document.segments] == ["tools: gcc"]
    assert document.title == "python, 1 line"


def test_an_empty_file_says_so() -> None:
    document = laid_out("", path="a.py")
    assert (document.title, document.segments) == ("a.py: python, empty", ())


@pytest.mark.parametrize(
    "line", ["LIMIT = 30", "name: str = 'x'", "const rate = 0.5;", "k <- 3", "static const double c = -1.5;"]
)
def test_constants_at_top_level_weigh_more_than_other_lines(line: str) -> None:
    assert weight_of(line) > weight_of("total = compute(rows)") >= weight_of(f"    {line}")
