"""Small inline SVG charts that stand in a table's row; their width follows the page, so that rows line up."""

from collections.abc import Sequence
from html import escape

from sensorium.analysis.charts import NUM_COLOURS
from sensorium.analysis.evaluation_tables import Measured
from sensorium.analysis.formatting import percent, percent_range

_LINE = 11
_BAR = 12


def interval_dots(
    measured: Sequence[Measured],
    legend: Sequence[str],
    *,
    name: str,
    right_end: float = 1.0,
    mark: float | None = None,
) -> str:
    """One dot with its interval per series, below each other; empty text when there is none.

    Args:
        measured: Values from 0 up; what lies beyond `right_end` is drawn at it.
        legend: Name of every series.
        name: What was measured, for the title.
        right_end: Value at the right end.
        mark: Where a dashed line goes, in the same unit.
    """
    if not measured:
        return ""
    height = _LINE * len(measured) + 6

    def at(value: float) -> str:
        return f"{100 * min(max(value / right_end, 0.0), 1.0):.2f}%"

    parts, titles = [], []
    for row, one in enumerate(measured):
        y = 3 + _LINE * row + _LINE / 2
        colour = f"series-{one.series % NUM_COLOURS}"
        titles.append(
            f"{legend[one.series]} {percent(one.value)} (95 % interval {percent_range(one.low, one.high)})"
        )
        parts.append(
            f'<line class="span {colour}" x1="{at(one.low)}" x2="{at(one.high)}" y1="{y:g}" y2="{y:g}"/>'
        )
        parts.append(f'<circle class="dot {colour}" cx="{at(one.value)}" cy="{y:g}" r="4"/>')
    line = ""
    if mark is not None:
        line = f'<line class="chance" x1="{at(mark)}" x2="{at(mark)}" y1="0" y2="{height}"/>'
    title = escape(f"{name}: {'; '.join(titles)}")
    return (
        f'<svg class="bar" width="100%" height="{height}" role="img" aria-label="{title}">'
        f'<title>{title}</title><rect class="track" x="0" y="0" width="100%" height="{height}" rx="4"/>'
        f"{line}{''.join(parts)}</svg>"
    )


def share_bars(bars: Sequence[Sequence[float]], legend: Sequence[str], *, name: str) -> str:
    """Stacked bars below each other; empty text when there is none.

    Args:
        bars: Each holds one share per legend entry; together at most 1.
        legend: Name of every share.
        name: What was measured, for the title.
    """
    if not bars:
        return ""
    height = (_BAR + 3) * len(bars) + 3
    parts, titles = [], []
    for row, shares in enumerate(bars):
        left, y = 0.0, 3 + (_BAR + 3) * row
        for index, share in enumerate(shares):
            width = max(0.0, min(share, 1.0 - left))
            parts.append(
                f'<rect class="share series-{index % NUM_COLOURS}" x="{100 * left:.2f}%" y="{y}" '
                f'width="{100 * width:.2f}%" height="{_BAR}"/>'
            )
            left += width
        titles.append(", ".join(f"{key} {share:.2f}" for key, share in zip(legend, shares, strict=True)))
    title = escape(f"{name}: {' → '.join(titles)}")
    return (
        f'<svg class="bar" width="100%" height="{height}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )
