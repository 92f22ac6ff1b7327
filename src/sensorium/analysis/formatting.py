"""Numbers as people read them."""

import math


def count(value: float | int) -> str:
    """Thousands apart: 1234567 -> ``1,234,567``."""
    return f"{value:,.0f}"


def short_count(value: float) -> str:
    """For axes: 1500000 -> ``1.5M``, 50000 -> ``50k``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return _minus(f"{value / limit:.4g}{unit}")
    return _minus(f"{value:.4g}")


def number(value: float | int | None) -> str:
    """Three digits that matter; a dash for None, NaN and infinity: 0.00123456 -> ``0.00123``."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 1000:
        return _minus(f"{value:,.0f}")
    if magnitude < 1e-4:
        return _minus(f"{value:.2g}")
    return _minus(f"{value:.3g}")


def percent(share: float | int) -> str:
    """One decimal where it says something: 0.9725 -> ``97.2 %``, 1.0 -> ``100 %``."""
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def percent_range(low: float | int, high: float | int) -> str:
    """``95.2–98.5 %``."""
    return f"{percent(low).removesuffix(' %')}–{percent(high)}"


def points(difference: float) -> str:
    """Signed difference of two shares in points: -0.634 -> ``−63``."""
    rounded = round(100 * difference)
    return f"{'−' if rounded < 0 else '+' if rounded > 0 else '±'}{abs(rounded)}"


def duration(seconds: float | int) -> str:
    """The two largest units: 252 -> ``4 min 12 s``."""
    whole = round(seconds)
    if whole < 1:
        return f"{seconds:.2g} s"
    units = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")]
    parts = []
    for size, unit in units:
        amount, whole = divmod(whole, size)
        parts.append((amount, unit))
    first = next(i for i, (amount, _) in enumerate(parts) if amount)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount)


def _minus(text: str) -> str:
    """A minus sign as wide as a digit instead of a hyphen."""
    return "−" + text[1:] if text.startswith("-") else text
