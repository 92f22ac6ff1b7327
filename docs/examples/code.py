"""Code with its cursor, an exception, results of tests, variables and tools."""

from sensorium import ObservationPipeline, Source
from sensorium.observations import CodeState

PRICES = '''"""Prices of houses."""

import csv
from pathlib import Path


def load(path: Path) -> list[dict[str, str]]:
    """Rows of a file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def mean_price(rows: list[dict[str, str]]) -> float:
    """Mean over rows that have a price."""
    # Rows without one are left out.
    prices = [float(row["Price"]) for row in rows if row["Price"]]
    return sum(prices) / len(prices)
'''
TRACE = """Traceback (most recent call last):
  File "tests/test_prices.py", line 9, in test_mean
    assert mean_price(rows) == 295.5
  File "prices.py", line 16, in mean_price
    prices = [float(row["Price"]) for row in rows if row["Price"]]
KeyError: 'Price'
"""
TESTS = """tests/test_prices.py::test_load PASSED
tests/test_prices.py::test_mean FAILED
FAILED tests/test_prices.py::test_mean - KeyError: 'Price'
"""

state = CodeState(
    cursor=(16, 21),
    variables={"rows": [{"size": "155.1", "price": "295.5"}]},
    stack=TRACE,
    tests=TESTS,
    tools=("python -m pytest", "ruff check"),
)
source = Source(PRICES, path="prices.py", state=state)
print(ObservationPipeline()({"prices.py": source}, task="Make the tests pass.").messages[-1].text)
