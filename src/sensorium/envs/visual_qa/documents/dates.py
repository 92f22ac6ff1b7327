"""Dates as documents write them, and as people write them back."""

from collections.abc import Sequence

from sensorium.envs.visual_qa.answers import TextAnswer

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
Date = tuple[int, int, int]
"""Year, month, day."""


def written_date(date: Date, style: str) -> str:
    """A date on a page: ``iso`` as 2024-03-05, ``long`` as 5 March 2024."""
    year, month, day = date
    return f"{year}-{month:02d}-{day:02d}" if style == "iso" else f"{day} {MONTHS[month - 1]} {year}"


def date_answer(date: Date, others: Sequence[Date] = ()) -> TextAnswer:
    """A date in any way of writing it.

    Args:
        date: The right one.
        others: Other dates on the page.
    """
    ways = _ways(date)
    return TextAnswer(
        value=ways[0], synonyms=ways[1:], others=tuple(way for other in others for way in _ways(other))
    )


def _ways(date: Date) -> tuple[str, ...]:
    year, month, day = date
    name, short = MONTHS[month - 1], MONTHS[month - 1][:3]
    days = [str(day), f"{day:02d}", f"{day}{_ordinal(day)}"]
    ways = [f"{year}-{month:02d}-{day:02d}", f"{year}/{month:02d}/{day:02d}", f"{year}-{month}-{day}"]
    for one in days:
        for word in (name, short):
            ways += [f"{one} {word} {year}", f"{word} {one} {year}", f"{one} of {word} {year}"]
    ways += [f"{day:02d}.{month:02d}.{year}", f"{day}.{month}.{year}", f"{day:02d}/{month:02d}/{year}",
             f"{month:02d}/{day:02d}/{year}", f"{month}/{day}/{year}", f"{day}/{month}/{year}"]  # fmt: skip
    return tuple(dict.fromkeys(ways))


def _ordinal(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
