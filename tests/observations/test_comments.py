import ast
import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.comments import without_comments

PYTHON = '''#!/usr/bin/env python
"""Module."""
import os  # why

# about f
def f(
    x: str = "#no",
) -> str:
    """Doc
    of f.
    """
    y = """kept
    # kept too"""
    d = {
        "a":
        "not a docstring"
    }
    return x + y  # end
'''


def test_python_keeps_its_lines() -> None:
    assert without_comments(PYTHON, "python") == [
        "#!/usr/bin/env python",
        None,
        "import os",
        "",
        None,
        "def f(",
        '    x: str = "#no",',
        ") -> str:",
        None,
        None,
        None,
        '    y = """kept',
        '    # kept too"""',
        "    d = {",
        '        "a":',
        '        "not a docstring"',
        "    }",
        "    return x + y",
        "",
    ]


def test_python_that_does_not_parse() -> None:
    assert without_comments("def f(:  # bad\n    '''doc'''\n    x = '#'\n", "python") == [
        "def f(:",
        None,
        "    x = '#'",
        "",
    ]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "javascript",
            "// a\nlet x = '//'; // b\n/* c\n d */ let y;",
            [None, "let x = '//';", None, " let y;"],
        ),
        (
            "rust",
            '/// doc\nfn f() {} // é\nlet s = "// é"; /* a */ x',
            [None, "fn f() {}", 'let s = "// é";  x'],
        ),
        ("c", "#include <a.h>\n// é\nint a; /* x */ int b;", ["#include <a.h>", None, "int a;  int b;"]),
        ("java", "/** doc */\nclass A {\n // x\n}", [None, "class A {", None, "}"]),
        ("bash", "#!/bin/sh\n# a\necho '# b' # c", ["#!/bin/sh", None, "echo '# b'"]),
        ("sql", "-- a\nselect 1 -- b", [None, "select 1"]),
        ("go", "// a\npackage x // b", [None, "package x"]),
        ("ruby", "# a\nputs 'x' # b", [None, "puts 'x'"]),
        ("lua", "-- a\nx = 1 -- b", [None, "x = 1"]),
        ("klingon", "# a\nb", ["# a", "b"]),
        (None, "# a", ["# a"]),
    ],
)
def test_other_languages(language: str | None, text: str, expected: list[str | None]) -> None:
    assert without_comments(text, language) == expected


def _code(text: str) -> tuple[list[str], int, int]:
    kept, comments, strings = [], 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
            kept.append(token.string)
        comments += token.type == tokenize.COMMENT and not token.string.startswith("#!")
        strings += token.type == tokenize.STRING
    return kept, comments, strings


@pytest.mark.parametrize("name", ["argparse", "typing", "dataclasses", "subprocess", "textwrap", "inspect"])
def test_the_standard_library_loses_comments_and_docstrings_only(name: str) -> None:
    text = Path(str(__import__(name).__file__)).read_text()
    stripped = "\n".join(line or "" for line in without_comments(text, "python"))
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(text)
    docstrings = sum(
        isinstance(n, holders) and ast.get_docstring(n, clean=False) is not None for n in ast.walk(tree)
    )
    code, _, strings = _code(text)
    code_after, comments_after, strings_after = _code(stripped)
    assert code_after == code
    assert comments_after == 0
    assert strings - strings_after == docstrings


@given(
    st.text(alphabet="#'\"\\\n :()def/x*-é", max_size=120),
    st.sampled_from(["python", "c", "javascript", "bash"]),
)
def test_line_numbers_stay(text: str, language: str) -> None:
    assert len(without_comments(text, language)) == text.count("\n") + 1
