"""Tables of the evaluation suites on a narrow terminal, and in a file."""

import io

import pytest
from rich.console import Console

from sensorium.analysis.evaluation_tables import ResultRow, ResultTable
from sensorium.cli.evaluate import _print_table, _rich

SENSORS = ("rgb", "depth", "speech", "env_sound", "instruction", "notifications", "proprio")


def table() -> ResultTable:
    rows = tuple(
        ResultRow(name=f"{name} absent for 4 steps", cells=("0.17 → 0.25 (0.17)",) * len(SENSORS))
        for name in SENSORS
    )
    return ResultTable(title="Shares", reading="", columns=("failure", *SENSORS), rows=rows)


def test_a_file_gets_every_row_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _print_table(Console(), _rich(table()))
    printed = capsys.readouterr().out
    assert "…" not in printed
    for name in SENSORS:
        (line,) = [line for line in printed.splitlines() if f"{name} absent for 4 steps" in line]
        assert line.count("0.17 → 0.25 (0.17)") == len(SENSORS)


def test_a_narrow_window_folds_and_cuts_nothing() -> None:
    screen = io.StringIO()
    _print_table(Console(file=screen, width=80, force_terminal=True), _rich(table()))
    printed = screen.getvalue()
    assert "…" not in printed
    assert max(len(line) for line in printed.splitlines() if line.startswith("│")) <= 80
