"""The promise that everything else stands on: no representation is larger than its budget."""

import subprocess
import sys
from pathlib import Path

import pytest
from budget_cases import check_case

SUPPORT = Path(__file__).parents[1] / "support"


def check_apart(first: int, count: int, **size: int) -> int:
    """Check cases in a process of their own, where types are not checked at every call: ten times faster."""
    program = (
        f"from budget_cases import check_case\n"
        f"print(sum(check_case(n, **{size}) for n in range({first}, {first + count})))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=SUPPORT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def test_cases_with_every_type_checked():
    assert sum(check_case(number) for number in range(60)) > 30


def test_ten_thousand_states_budgets_and_histories():
    assert check_apart(0, 10_000) > 7_000


@pytest.mark.slow
def test_larger_states():
    assert check_apart(1_000_000, 600, max_parts=60, max_lines=400) > 400
