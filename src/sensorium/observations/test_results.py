"""Results of tests, from what pytest, unittest, cargo and go print and from JUnit XML."""

import re
from typing import Literal
from xml.etree.ElementTree import Element

from sensorium.core.errors import ObservationError
from sensorium.observations.decoding import decode
from sensorium.observations.terminal import strip_ansi
from sensorium.observations.values import CaseResult
from sensorium.observations.xml import parse_xml

Status = Literal["passed", "failed", "error", "skipped"]

MAX_MESSAGE = 2_000
"""Characters kept of one message."""
_MAX_CASES = 50_000
_STATUS: dict[str, Status] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "ERROR": "error",
    "SKIPPED": "skipped",
    "XFAIL": "skipped",
    "XPASS": "passed",
    "ok": "passed",
    "FAIL": "failed",
    "skipped": "skipped",
    "ignored": "skipped",
    "PASS": "passed",
    "SKIP": "skipped",
    "expected failure": "skipped",
    "unexpected success": "failed",
}
_VERBOSE = re.compile(
    r"^(?:\[gw\d+\] (?:\[ *\d+%\] )?(?P<status2>PASSED|FAILED|ERROR|SKIPPED|XFAIL|"
    r"XPASS) (?P<name2>\S+::\S.*?)"
    r"|(?P<name>\S+::\S.*?) (?P<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \((?P<why>.*)\))?)"
    r"(?:\s+\[ *\d+%\])?\s*$"
)
_SUMMARY = re.compile(
    r"^(?P<status>PASSED|FAILED|ERROR|XFAIL|XPASS) (?P<name>\S+?(?:::\S.*?)?)(?: - (?P<message>.*))?$"
)
_SKIPPED = re.compile(r"^SKIPPED \[(?P<count>\d+)\] (?P<name>\S+?:\d+|\S+?)(?:: (?P<message>.*))?$")
_SECTION = re.compile(r"^_{3,} (?:(?P<stage>ERROR at \w+ of|ERROR collecting) )?(?P<name>\S.*?) _{3,}$")
_RULE = re.compile(r"^={3,} .* ={3,}$|^_{3,} .* _{3,}$")
_DURATION = re.compile(r"^(?P<seconds>\d+(?:\.\d+)?)s call\s+(?P<name>\S.*)$")
_UNITTEST = re.compile(
    r"^(?P<test>\w+) \((?P<case>[\w.]+)\)(?:.*)? \.\.\. (?P<status>ok|FAIL|ERROR|skipped|"
    r"expected failure|unexpected success)"
    r"(?: ['\"]?(?P<message>.*?)['\"]?)?$"
)
_CARGO = re.compile(
    r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<status>ok|FAILED|ignored)(?:, (?P<message>.*))?$"
)
_GO = re.compile(r"^\s*--- (?P<status>PASS|FAIL|SKIP): (?P<name>\S+) \((?P<seconds>[\d.]+)s\)$")
_JUNIT = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<testsuites?[\s>]")


def parse_test_results(raw: str | bytes) -> tuple[CaseResult, ...]:
    """Results of single tests, in the order they are reported.

    Args:
        raw: JUnit XML, or the output of pytest, unittest, cargo or go. Passed tests are known only where the
            output names them (``pytest -v``).

    Returns:
        One result per test; empty when the text reports none. A broken or hostile XML file gives one result
        with status ``error`` that says so.
    """
    decoded = decode(raw)
    text = decoded.text
    if text.lstrip()[:1] == "<" and re.search(r"<testsuites?\b|<testcase\b", text[:20_000]):
        try:
            return parse_junit(raw)
        except ObservationError as error:
            return (CaseResult(name="(test report)", status="error", message=str(error)),)
    return _parse_output(strip_ansi(text).split("\n"))


def is_junit(raw: str | bytes) -> bool:
    """Whether the beginning of a text is that of a report in JUnit's XML."""
    return _JUNIT.match(decode(raw[:2_000]).text) is not None


def parse_junit(raw: str | bytes) -> tuple[CaseResult, ...]:
    """Results from JUnit XML.

    Raises:
        ObservationError: It is not well-formed XML, or declares entities.
    """
    cases = []
    for case in parse_xml(raw).iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part) or "(unnamed)"
        status, message = _junit_status(case)
        seconds = _number(case.get("time"))
        cases.append(CaseResult(name=name, status=status, message=_cut(message), duration_s=seconds))
    return tuple(cases[:_MAX_CASES])


def _junit_status(case: Element) -> tuple[Status, str]:
    kinds: tuple[tuple[str, Status], ...] = (
        ("error", "error"),
        ("failure", "failed"),
        ("skipped", "skipped"),
    )
    for tag, status in kinds:
        found = case.find(tag)
        if found is not None:
            said = found.get("message") or ""
            detail = (found.text or "").strip()
            if status == "skipped" or detail.startswith(said):
                said, detail = ("", detail) if status != "skipped" else (said or detail, "")
            return status, "\n".join(piece for piece in (said, detail) if piece)
    return "passed", ""


def _number(text: str | None) -> float | None:
    try:
        value = float(text.replace(",", "")) if text else None
    except ValueError:
        return None
    return value if value is not None and 0.0 <= value < 1e9 else None


def _cut(message: str) -> str:
    if len(message) <= MAX_MESSAGE:
        return message
    half = MAX_MESSAGE // 2
    return f"{message[:half]}\n...\n{message[-half:]}"


def _parse_output(lines: list[str]) -> tuple[CaseResult, ...]:
    found: dict[str, CaseResult] = {}
    details = _sections(lines)
    seconds: dict[str, float] = {}
    for line in lines:
        if len(line) > 2_000:
            continue
        if match := _DURATION.match(line):
            seconds[match["name"].strip()] = float(match["seconds"])
        elif (case := _case(line)) is not None:
            known = found.get(case.name)
            if known is not None and not case.message:
                case = case.model_copy(update={"message": known.message})
            found[case.name] = case
            if len(found) >= _MAX_CASES:
                break
    return tuple(_completed(case, details, seconds) for case in found.values())


def _case(line: str) -> CaseResult | None:
    """The test that one line of output reports."""
    if match := _VERBOSE.match(line):
        name, status = match["name"] or match["name2"], match["status"] or match["status2"]
        return CaseResult(name=name, status=_STATUS[status], message=match["why"] or "")
    if match := _SKIPPED.match(line):
        return CaseResult(name=match["name"], status="skipped", message=match["message"] or "")
    if match := _SUMMARY.match(line):
        if "::" in match["name"] or "." in match["name"]:
            return CaseResult(
                name=match["name"], status=_STATUS[match["status"]], message=match["message"] or ""
            )
        return None
    if match := _UNITTEST.match(line):
        case = match["case"]
        name = case if case.endswith(f".{match['test']}") else f"{case}.{match['test']}"
        return CaseResult(name=name, status=_STATUS[match["status"]], message=match["message"] or "")
    if match := _CARGO.match(line):
        return CaseResult(name=match["name"], status=_STATUS[match["status"]], message=match["message"] or "")
    if match := _GO.match(line):
        return CaseResult(
            name=match["name"], status=_STATUS[match["status"]], duration_s=_number(match["seconds"])
        )
    return None


def _sections(lines: list[str]) -> dict[str, list[str]]:
    """Name of a failed test, as pytest heads it -> the lines that begin with ``E`` and the place."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if match := _SECTION.match(line[:300]):
            current = sections.setdefault(match["name"], [])
        elif _RULE.match(line[:300]):
            current = None
        elif current is not None and (line.startswith("E  ") or re.match(r"^\S+\.\w+:\d+: \w", line[:300])):
            current.append(line[1:].strip() if line.startswith("E") else line.strip())
    return sections


def _completed(case: CaseResult, details: dict[str, list[str]], seconds: dict[str, float]) -> CaseResult:
    changes: dict[str, object] = {}
    if case.status in ("failed", "error"):
        short = case.name.split("::", 1)[-1].replace("::", ".")
        said = "\n".join(details.get(short, details.get(case.name, [])))
        if said:
            changes["message"] = _cut(said)
    if case.name in seconds:
        changes["duration_s"] = seconds[case.name]
    return case.model_copy(update=changes) if changes else case
