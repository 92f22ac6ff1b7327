import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.base import Part
from sensorium.observations.code import MAX_FAULTS, MAX_VARIABLES, CodeState, find_faults, read_code
from sensorium.observations.values import CaseResult, CodeFault, CodeValue, ProblemValue, StackTrace


def value_of(text: str | bytes, path: str | None = None, state: CodeState | None = None) -> CodeValue:
    value = read_code(text, part_id="p", path=path, state=state)[0].value
    assert isinstance(value, CodeValue)
    return value


def test_a_file() -> None:
    value = value_of("def f():\r\n    return 1\r\n", "src/a.py")
    assert value == CodeValue(text="def f():\n    return 1\n", path="src/a.py", language="python")


def test_python_faults_are_in_python_s_words() -> None:
    assert find_faults("x = 1\nprint 'a'\n", "python") == (
        CodeFault(
            line=2,
            column=1,
            message="SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?",
        ),
    )


@pytest.mark.parametrize(
    ("language", "text", "line", "column", "message"),
    [
        ("php", "<?php\n$a = 1\n$b = 2;\n", 2, 6, None),
        ("rust", "fn f() {\n  let é = 1\n}", 2, 12, "`;` is missing"),
        ("javascript", "let a = 1;\nlet b = ;\n", 2, 7, "does not parse: `=`"),
        ("go", "package a\nfunc f( {\n", 2, 1, "does not parse: `func f( {`"),
    ],
)
def test_faults_of_other_languages(
    language: str, text: str, line: int, column: int, message: str | None
) -> None:
    fault = find_faults(text, language)[0]
    assert fault.line == line
    assert fault.column == column
    assert message is None or fault.message == message


@pytest.mark.parametrize("language", ["python", "javascript", "c", "java", "go", "rust", "json", "bash"])
@pytest.mark.parametrize(
    "text", ["(" * 50_000, "-" * 50_000 + "1", "{" * 50_000, "\\" * 1_000, "'" * 999, "é" * 99]
)
def test_hostile_code_gives_faults_at_most(language: str, text: str) -> None:
    assert len(find_faults(text, language)) <= MAX_FAULTS


@pytest.mark.parametrize("text", ["1" + "+1" * 50_000, "a" + ".b" * 50_000, "x = " + "[" * 150 + "]" * 150])
def test_deep_python_is_no_crash(text: str) -> None:
    assert len(find_faults(text, "python")) <= 1


def test_grammars_that_often_err_are_not_asked() -> None:
    macro = "DECLARE_THING(a, b)\nint f(void) API_EXPORT { return 0; }\n"
    assert (
        find_faults(macro, "c") == find_faults(macro, "cpp") == find_faults("select top 1 from", "sql") == ()
    )


def test_code_that_parses_has_none() -> None:
    assert find_faults("import os\n", "python") == ()
    assert find_faults("let x: number = 1;", "typescript") == ()
    assert find_faults("anything ((", None) == ()
    assert find_faults("anything ((", "klingon") == ()
    assert find_faults("", "c") == ()


def test_the_state() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise ValueError("no")

    try:
        raise KeyError("k")
    except KeyError as error:
        stack: BaseException = error
    state = CodeState(
        cursor=(2, 5),
        variables={"x": [1, 2], "long": "y" * 1_000, "bad": Bad(), "many": list(range(100))},
        stack=stack,
        tests="FAILED tests/t.py::test_a - assert 0\n",
        tools=["pytest", "gdb"],
    )
    value = value_of("a\nb\nc", "a.py", state)
    assert (value.cursor_line, value.cursor_column) == (2, 5)
    assert value.variables["x"] == "[1, 2]"
    assert len(value.variables["long"]) < 210
    assert value.variables["bad"].startswith("<Bad instance")
    assert value.variables["many"] == "[0, 1, 2, 3, 4, 5, 6, 7, ...]"
    assert value.stack is not None
    assert value.stack.type == "KeyError"
    assert value.tests == (CaseResult(name="tests/t.py::test_a", status="failed", message="assert 0"),)
    assert value.tools == ("pytest", "gdb")


def test_what_is_odd_in_the_state_is_noted() -> None:
    state = CodeState(
        cursor=9, stack="it broke\nsomehow", tests="nothing", variables={str(i): i for i in range(600)}
    )
    (part,) = read_code("a\n", part_id="p", state=state)
    value = part.value
    assert isinstance(value, CodeValue)
    assert value.cursor_line == 2
    assert value.stack == StackTrace(type="Error", message="it broke\nsomehow")
    assert len(value.variables) == MAX_VARIABLES
    assert len(part.notes) == 4


def test_a_given_trace_is_kept() -> None:
    stack = StackTrace(type="X")
    assert value_of("a", state=CodeState(stack=stack)).stack is stack


def test_binary_is_a_problem() -> None:
    (part,) = read_code(b"\x7fELF\x00\x01\x02" * 100, part_id="p", path="a.out")
    assert isinstance(part.value, ProblemValue)
    assert part.value.where == "a.out"


PATHS = st.sampled_from(["a.py", "a.js", "a.c", "a.rs", "a.java", "a.go", "a.rb", "a.html", "a.css", None])


@given(st.binary(max_size=200) | st.text(st.characters(), max_size=200), PATHS)
def test_anything_is_read_and_survives_json(raw: bytes | str, path: str | None) -> None:
    for part in read_code(raw, part_id="p", path=path):
        assert Part.model_validate_json(part.model_dump_json()) == part
        assert len(part.digest) == 32
