import os
import subprocess
import sys
from pathlib import Path

import pytest

from sensorium.core.errors import ObservationError
from sensorium.observations.test_results import MAX_MESSAGE, parse_junit, parse_test_results

SUITE = """
import pytest
def test_good(): pass
@pytest.mark.parametrize("x", [1, 2])
def test_each(x): assert x == 1, "x is wrong"
@pytest.mark.skip(reason="not now")
def test_skipped(): pass
@pytest.fixture
def broken(): raise RuntimeError("no fixture")
def test_error(broken): pass
class TestGroup:
    def test_in_class(self): assert {"a": 1} == {"a": 2}
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, bytes]:
    """What pytest prints with ``-v``, what it prints without, and its JUnit XML."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_s.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    outputs = [_run(folder, "-v", "--junitxml=r.xml"), _run(folder, "-q")]
    return outputs[0], outputs[1], (folder / "r.xml").read_bytes()


def _run(folder: Path, *flags: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *flags, "test_s.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    ).stdout


def test_verbose_pytest(reports: tuple[str, str, bytes]) -> None:
    results = {case.name.removeprefix("test_s.py::"): case for case in parse_test_results(reports[0])}
    assert {name: case.status for name, case in results.items()} == {
        "test_good": "passed",
        "test_each[1]": "passed",
        "test_each[2]": "failed",
        "test_skipped": "skipped",
        "test_error": "error",
        "TestGroup::test_in_class": "failed",
    }
    assert "x is wrong" in results["test_each[2]"].message
    assert "assert {'a': 1} == {'a': 2}" in results["TestGroup::test_in_class"].message
    assert "RuntimeError: no fixture" in results["test_error"].message


def test_quiet_pytest_names_what_failed(reports: tuple[str, str, bytes]) -> None:
    assert {(case.name.split("::")[-1], case.status) for case in parse_test_results(reports[1])} == {
        ("test_each[2]", "failed"),
        ("test_in_class", "failed"),
        ("test_error", "error"),
    }


def test_junit(reports: tuple[str, str, bytes]) -> None:
    results = {case.name: case for case in parse_test_results(reports[2])}
    assert len(results) == 6
    assert results["test_s::test_each[2]"].status == "failed"
    assert "x is wrong" in results["test_s::test_each[2]"].message
    assert results["test_s::test_skipped"].message == "not now"
    assert results["test_s::test_error"].status == "error"
    duration = results["test_s::test_good"].duration_s
    assert duration is not None
    assert duration >= 0


def test_unittest_cargo_and_go() -> None:
    text = (
        "test_a (pkg.mod.Case.test_a) ... ok\ntest_b (pkg.mod.Case) ... FAIL\n"
        "test_c (m.C.test_c) ... skipped 'why'\n"
        "test tests::adds ... ok\ntest tests::breaks ... FAILED\n"
        "--- FAIL: TestSum (0.02s)\n--- PASS: TestOk (0.00s)\n"
    )
    assert [(case.name, case.status) for case in parse_test_results(text)] == [
        ("pkg.mod.Case.test_a", "passed"),
        ("pkg.mod.Case.test_b", "failed"),
        ("m.C.test_c", "skipped"),
        ("tests::adds", "passed"),
        ("tests::breaks", "failed"),
        ("TestSum", "failed"),
        ("TestOk", "passed"),
    ]


def test_hostile_junit_is_refused_and_told() -> None:
    text = '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>'
    with pytest.raises(ObservationError):
        parse_junit(text)
    (case,) = parse_test_results(text)
    assert case.status == "error"
    assert "entities" in case.message


def test_long_messages_keep_both_ends() -> None:
    text = f'<testsuite><testcase name="t"><failure message="begin{"x" * 10_000}end"/></testcase></testsuite>'
    (case,) = parse_junit(text)
    assert case.message.startswith("begin")
    assert case.message.endswith("end")
    assert len(case.message) < MAX_MESSAGE + 10


def test_other_output_has_no_results() -> None:
    assert parse_test_results("ERROR in sight\nFAILED to load\n") == ()
    assert parse_test_results(b"\xff\x00\x01") == ()
