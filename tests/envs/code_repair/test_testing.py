"""Tests run on code that does what it can to look right."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from sensorium.core.errors import EnvError
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.projects import Project, Workspace
from sensorium.envs.code_repair.testing import TestReport, TestRunner
from sensorium.envs.sandbox import SandboxLimits, SandboxUnavailable

CODE = "def add(a, b):\n    return a - b\n"
TEST = (
    "from pack.sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_zero():\n    assert add(4, 0) == 4\n"
)
WORKSPACE = Workspace(
    Project(name="pack", licence="MIT", summary=""),
    "1.0",
    {
        "pack/__init__.py": b"",
        "pack/sums.py": CODE.encode(),
        "pack/tests/__init__.py": b"",
        "pack/tests/test_sums.py": TEST.encode(),
    },
    {},
)
ADD, ZERO = (f"pack/tests/test_sums.py::test_{name}" for name in ("add", "zero"))


def run(changed: Mapping[str, str], *, is_judged: bool = True, **limits: float) -> TestReport:
    config = CodeRepairConfig(sandbox=SandboxLimits(**{"wall_s": 30.0, **limits}))
    try:
        return asyncio.run(
            TestRunner(config).run(WORKSPACE, ["pack/tests/test_sums.py"], changed, is_judged=is_judged)
        )
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def test_outcomes_and_details() -> None:
    report = run({})
    assert dict(report.outcomes) == {ADD: "failed", ZERO: "passed"}
    assert report.failing == (ADD,)
    assert report.details[ADD].message == "assert -1 == 3\n +  where -1 = add(1, 2)"
    assert report.details[ADD].frames == (("pack/tests/test_sums.py", 5),)
    assert report.problem == ""


def test_a_repair() -> None:
    assert run({"pack/sums.py": CODE.replace("-", "+")}).passed == {ADD, ZERO}


def test_a_file_that_cannot_be_imported() -> None:
    report = run({"pack/sums.py": "import nowhere\n"})
    assert report.failing == ("pack/tests/test_sums.py",)
    assert "No module named 'nowhere'" in report.details["pack/tests/test_sums.py"].trace


PASS_EVERYTHING = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
CALL_EVERYTHING_PASSED = """
import _pytest.reports
made = _pytest.reports.TestReport.from_item_and_call.__func__
def always(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(always)
"""
FORGED_LINE = """
import json, os
for fd in range(3, 30):
    try: os.write(fd, b'\\n0123456789abcdef' + json.dumps({"outcomes": {}, "details": {}}).encode() + b'\\n')
    except OSError: pass
"""


@pytest.mark.parametrize("attack", [PASS_EVERYTHING, CALL_EVERYTHING_PASSED])
def test_a_changed_test_runner_is_seen_by_its_canaries(attack: str) -> None:
    report = run({"pack/sums.py": attack + CODE})
    assert "interferes with the test runner" in report.problem
    assert report.passed == frozenset()


@pytest.mark.parametrize(
    "attack", ["import os\nos._exit(0)\n", "import os, signal\nos.kill(os.getpid(), 9)\n"]
)
def test_an_early_end_is_no_success(attack: str) -> None:
    report = run({"pack/sums.py": attack + CODE})
    assert "ended" in report.problem
    assert report.passed == frozenset()


@pytest.mark.parametrize(
    "attack", ["raise SystemExit(0)\n", FORGED_LINE, "import pytest\npytest.skip(allow_module_level=True)\n"]
)
def test_other_tricks_pass_nothing(attack: str) -> None:
    assert ADD not in run({"pack/sums.py": attack + CODE}).passed


def test_files_that_python_or_pytest_would_run_do_nothing() -> None:
    forged = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    report = run(
        {
            "sitecustomize.py": "import os\nos._exit(0)\n",
            "usercustomize.py": "import os\nos._exit(0)\n",
            "pytest.ini": "[pytest]\naddopts = --collect-only\n",
            "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
        }
    )
    assert report.failing == (ADD,)
    assert ADD not in run({"conftest.py": forged}).passed


def test_without_isolation_only_on_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tests = ["pack/tests/test_sums.py"]
    with pytest.raises(SandboxUnavailable):
        asyncio.run(TestRunner(CodeRepairConfig()).run(WORKSPACE, tests, {}))
    unsafe = TestRunner(CodeRepairConfig(unsafe_no_sandbox=True))
    assert asyncio.run(unsafe.run(WORKSPACE, tests, {}, is_judged=True)).failing == (ADD,)


def test_code_that_never_ends() -> None:
    report = run({"pack/sums.py": "while True: pass\n"}, cpu_s=1.0)
    assert report.problem == "the tests used more processor time than they may"


def test_a_hidden_original_cannot_be_read() -> None:
    """The installed package has the answer."""
    import toolz

    workspace = Workspace(
        Project(name="toolz", licence="BSD-3-Clause", summary=""),
        "1",
        {"toolz/__init__.py": b"", "test_x.py": f"def test_x():\n    open({toolz.__file__!r})\n".encode()},
        {},
    )
    try:
        report = asyncio.run(TestRunner(CodeRepairConfig()).run(workspace, ["test_x.py"], {}))
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert "No such file" in report.details["test_x.py::test_x"].message


def test_nonsense_of_the_runner_is_a_fault_of_the_environment() -> None:
    from sensorium.envs.code_repair.testing import _report
    from sensorium.envs.sandbox import Completed

    done = Completed(0, b"\ntoken{}\n", b"", False, False, False, None, 0.1)
    with pytest.raises(EnvError, match="nonsense"):
        _report(done, "token")
