"""What summaries are written of: a log with two odd lines, and a table."""

from sensorium.observations.values import Column, NotableRow, TableValue

LOG = [f"worker {i % 3} handled request {i} in {i * 7 % 50} ms" for i in range(1, 61)]
LOG[19] = "ERROR database connection lost after 30.5 s, 1,204 rows pending"
LOG[20] = "retry 1 of 3, balance -12.50"


def table() -> TableValue:
    return TableValue(
        columns=(
            Column(name="price", dtype="float64", unit="EUR", missing=1, low=1.5, high=9.0, mean=4.25),
            Column(name="city", dtype="string", top=(("Oslo", 2), ("Rome", 1))),
        ),
        num_rows=1000,
        rows=((1.5, "Oslo"), (9.0, "Rome"), (None, "Oslo")),
        row_numbers=(0, 7, 999),
        notable=(NotableRow(row=7, reason="price is the highest (9.0)"),),
    )
