"""The agent's copy of the files."""

import pytest

from sensorium.envs.code_repair.editing import Files
from sensorium.envs.code_repair.projects import Project, Workspace, is_test
from sensorium.envs.tools import ToolError

CODE = b"def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
WORKSPACE = Workspace(
    Project(name="pack", licence="MIT", summary=""),
    "1.0",
    {
        "pack/__init__.py": b"from pack.sums import add\n",
        "pack/sums.py": CODE,
        "pack/deep/sums.py": b"def other():\n    pass\n",
        "pack/data.bin": b"\xff\x00",
        "pack/tests/test_sums.py": b"from pack import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    },
    {},
)


@pytest.fixture
def files() -> Files:
    return Files(WORKSPACE, {})


@pytest.mark.parametrize("path", ["pack/sums.py", "./pack//sums.py", "/box/pack/sums.py", " pack/sums.py "])
def test_files_are_found_however_they_are_written(files: Files, path: str) -> None:
    assert files.find(path) == "pack/sums.py"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("pack/sum.py", r"Did you mean pack/sums\.py"),
        ("sums.py", r"may be any of: pack/sums\.py, pack/deep/sums\.py|may be any of"),
        ("../../etc/passwd", "there is no Python file"),
        ("pack/data.bin", "there is no Python file"),
        ("pack/new.py", "there is no Python file"),
        ("conftest.py", "there is no Python file"),
    ],
)
def test_files_that_are_not_there(files: Files, path: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        files.find(path)


def test_replacing(files: Files) -> None:
    assert files.replace("pack/sums.py", "a - b", "b - a") == "changed pack/sums.py at line 6."
    assert files.text("pack/sums.py") == CODE.decode().replace("a - b", "b - a")
    assert files.changed == {"pack/sums.py": files.text("pack/sums.py")}
    assert WORKSPACE.text("pack/sums.py") == CODE.decode()


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("", "`old` is empty"),
        ("(a, b):", r"occurs 2 times in pack/sums.py \(lines 1, 5\); add lines"),
        ("  return a + b\n\n\n\n", r"Its first line is line 2; check the spaces"),
        ("return a + c", r"The nearest line is 2: 'return a \+ b'"),
        ("something quite different", "copy the lines exactly"),
    ],
)
def test_what_cannot_be_replaced_is_explained(files: Files, old: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        files.replace("pack/sums.py", old, "x")
    with pytest.raises(ToolError, match="the same"):
        files.replace("pack/sums.py", "a + b", "a + b")
    assert files.changed == {}


def test_a_change_that_breaks_the_file_or_is_of_a_test_is_told(files: Files) -> None:
    assert "does not parse any more" in files.replace("pack/sums.py", "return a - b", "return (a")
    assert "not judged" in files.replace("pack/tests/test_sums.py", "== 3", "== 4")


def test_lines(files: Files) -> None:
    assert files.lines("pack/sums.py", 5, 99) == (
        "pack/sums.py, lines 5-7 of 7:\ndef sub(a, b):\n    return a - b\n"
    )
    with pytest.raises(ToolError, match="lines 1 to 7, not 9 to 12"):
        files.lines("pack/sums.py", 9, 12)


def test_searching(files: Files) -> None:
    files.replace("pack/sums.py", "a - b", "b - a")
    assert list(files.search("b - a", "", is_regex=False)) == ["pack/sums.py:6: return b - a"]
    assert list(files.search("a - b", "", is_regex=False)) == []
    assert list(files.search("sums", "", is_regex=False))[:3] == [
        "pack/deep/sums.py",
        "pack/sums.py",
        "pack/tests/test_sums.py",
    ]
    assert list(files.search(r"def \w+\(\)", "pack/deep", is_regex=True)) == [
        "pack/deep/sums.py:1: def other():"
    ]
    with pytest.raises(ToolError, match="no regular expression"):
        list(files.search("(", "", is_regex=True))
    with pytest.raises(ToolError, match="nothing below 'nowhere'"):
        list(files.search("x", "nowhere", is_regex=False))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pack/sums.py", False),
        ("pack/tests/test_sums.py", True),
        ("pack/tests/helper.py", True),
        ("pack/conftest.py", True),
        ("sitecustomize.py", True),
        ("pack/testing_tools.py", False),
        ("pack/contest.py", False),
    ],
)
def test_what_is_a_test(path: str, expected: bool) -> None:
    assert is_test(path) is expected


def test_tests_of_a_file_are_found_by_name() -> None:
    assert WORKSPACE.tests_of("pack/sums.py") == ("pack/tests/test_sums.py",)
    assert WORKSPACE.sources == ("pack/__init__.py", "pack/deep/sums.py", "pack/sums.py")
