"""How the senses fared during training: their curves, and where each of them looked at the end."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sensorium.analysis.charts import COMPACT, NUM_COLOURS
from sensorium.analysis.curves import Chart, Course, Plan, draw_charts
from sensorium.metrics.names import meaning

_SENSES = (
    Plan("Contribution", r"contribution/([^/]+)", "contribution/a sense", level=0.0),
    Plan("Factor on the learning rate", r"gate/([^/]+)", "gate/a sense", level=1.0),
    Plan("Fusion gate", r"fusion/gate/([^/]+)", "fusion/gate/a sense", is_share=True),
    Plan("Gradient before clipping", r"gradient/norm/([^/]+)", "gradient/norm/a sense"),
    Plan("Length of the step", r"gradient/update_norm/([^/]+)", "gradient/update_norm/a sense"),
    Plan("Presence", r"presence/([^/]+)", "presence/a sense", is_share=True),
    Plan("Likeness of pairs (CKA)", r"similarity/cka/([^/]+)", "similarity/cka/two senses"),
    Plan("Effective rank", r"similarity/effective_rank/([^/]+)", "similarity/effective_rank/a sense"),
)
_ATTENTION = re.compile(r"attention/([^/]+)->([^/]+)")
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """Where one sense looks."""

    sensor: str
    colour: int | None
    """Index of the page's series colours; None for a sense that the run does not name."""
    shares: Sequence[float | None]
    """One per column, 0 to 1; None where it was not measured."""


@dataclass(frozen=True, slots=True)
class AttentionMatrix:
    """The last attention that was measured, from rows to columns."""

    step: int
    columns: Sequence[str]
    rows: Sequence[AttentionRow]
    explanation: str | None


def sense_charts(course: Course) -> list[Chart]:
    """What each sense contributed, learnt and let through over environment steps, where it was measured."""
    return draw_charts(course, _SENSES, COMPACT)


def attention_matrix(course: Course) -> AttentionMatrix | None:
    """Attention between the senses when it was last measured, or None when it never was.

    Senses stand in their canonical order, the slot for attending to nothing behind them. A sense that was
    absent then has no row.
    """
    cells = {
        (match[1], match[2]): course.values(name)
        for name in course.names
        if (match := _ATTENTION.fullmatch(name))
    }
    measured = [
        i for i in range(len(course.rows)) if any(math.isfinite(values[i]) for values in cells.values())
    ]
    if not measured:
        return None
    last = measured[-1]
    shares = {pair: values[last] for pair, values in cells.items() if math.isfinite(values[last])}
    place = {name: i for i, name in enumerate(course.sensors)}

    def order(name: str) -> tuple[bool, int, str]:
        return name == _NOTHING, place.get(name, len(place)), name

    columns = sorted({target for _, target in shares}, key=order)
    return AttentionMatrix(
        step=int(course.rows[last]["step"]),
        columns=columns,
        rows=[
            AttentionRow(
                sensor=source,
                colour=place[source] % NUM_COLOURS if source in place else None,
                shares=[shares.get((source, target)) for target in columns],
            )
            for source in sorted({source for source, _ in shares}, key=order)
        ],
        explanation=meaning("attention/the row's sense->the column's"),
    )
