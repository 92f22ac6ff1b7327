"""Notices with opening hours and prices."""

import random
from typing import NamedTuple

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer, TextAnswer, YesNoAnswer
from sensorium.envs.visual_qa.documents.model import Layout, Page
from sensorium.envs.visual_qa.documents.words import Words
from sensorium.envs.visual_qa.questions import Question, Template, ask

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OPENINGS = (8.0, 8.5, 9.0, 9.5, 10.0)
_CLOSINGS = (16.0, 17.5, 18.0, 20.0, 21.5)


class Notice(NamedTuple):
    """What a notice says; times in hours."""

    place: str
    hours: tuple[tuple[float, float] | None, ...]
    """Of each day; None when it is closed."""
    adult: int
    child: int
    group: int
    phone: str


def notice_question(rng: random.Random, split: str, width: int) -> tuple[Page, Question]:
    """A notice and a question about it."""
    words = Words(split)
    closed = rng.choice(range(7))
    hours = tuple(
        None if day == closed else (rng.choice(_OPENINGS), rng.choice(_CLOSINGS)) for day in range(7)
    )
    notice = Notice(
        place=f"{rng.choice(words.cities)} {rng.choice(words.places)}",
        hours=hours,
        adult=rng.randint(8, 24),
        child=rng.randint(2, 7),
        group=rng.randint(40, 90),
        phone=f"0{rng.randint(20, 99)} {rng.randint(100, 999)} {rng.randint(100, 999)}",
    )
    question = ask(notice, TEMPLATES, rng)
    assert question is not None
    return _lay_out(notice, rng, width), question


def _lay_out(notice: Notice, rng: random.Random, width: int) -> Page:
    page = Layout(width, margin=70, font=rng.choice(("sans", "serif")))
    page.text(notice.place, size=28, bold=True, align="center")
    page.down(54)
    page.text("Opening hours", size=20, bold=True)
    page.down(38)
    for day, times in zip(DAYS, notice.hours, strict=True):
        page.text(day)
        shown = "closed" if times is None else f"{clock(times[0])} to {clock(times[1])}"
        page.text(shown, x=page.left + 220)
        page.down(31)
    page.down(18)
    page.text("Tickets", size=20, bold=True)
    page.down(38)
    for name, price in (
        ("Adults", notice.adult),
        ("Children under 14", notice.child),
        ("Groups up to 10 people", notice.group),
    ):
        page.text(name)
        page.text(f"{price}.00 EUR", align="right")
        page.down(31)
    page.down(18)
    page.rule()
    page.down(14)
    page.text(f"Questions? Call {notice.phone}.", size=17)
    page.down(26)
    return page.page("notice", rng.choice(("#ffffff", "#fdf6e3", "#eef7ee")))


def clock(hour: float) -> str:
    """A time of day, e.g. ``9:30``."""
    return f"{int(hour)}:{round(hour % 1 * 60):02d}"


def _time_answer(hour: float) -> TextAnswer:
    whole, minutes = int(hour), round(hour % 1 * 60)
    half = "am" if whole < 12 else "pm"
    twelve = (whole - 1) % 12 + 1
    ways = [f"{whole:02d}:{minutes:02d}", f"{whole}.{minutes:02d}", f"{whole}h{minutes:02d}"]
    ways += [
        f"{twelve}:{minutes:02d} {half}",
        f"{twelve}:{minutes:02d}{half}",
        f"{whole}:{minutes:02d} {half}",
    ]
    if not minutes:
        ways += [f"{twelve} {half}", f"{twelve}{half}", f"{whole} o'clock", f"{twelve} {half[0]}.m."]
    others = tuple(clock(h) for h in _OPENINGS + _CLOSINGS if h != hour)
    return TextAnswer(value=clock(hour), synonyms=tuple(ways), others=others)


def _open_day(notice: Notice, rng: random.Random) -> int:
    return rng.choice([day for day, times in enumerate(notice.hours) if times is not None])


def _eur(value: int) -> NumberAnswer:
    return NumberAnswer(value=float(value), unit="EUR")


def opens(notice: Notice, rng: random.Random) -> Question | None:
    """When it opens or closes."""
    day = _open_day(notice, rng)
    times = notice.hours[day]
    assert times is not None
    end = rng.randrange(2)
    text = f"At what time does it {('open', 'close')[end]} on {DAYS[day]}?"
    return Question(text=text, answer=_time_answer(times[end]))


def closed_day(notice: Notice, rng: random.Random) -> Question | None:
    """On which day it is closed."""
    day = DAYS[notice.hours.index(None)]
    synonyms: dict[str, tuple[str, ...]] = {name: (f"{name}s", name[:3]) for name in DAYS}
    answer = ChoiceAnswer(value=day, options=DAYS, synonyms=synonyms)
    return Question(text="On which day of the week is it closed?", answer=answer)


def open_for(notice: Notice, rng: random.Random) -> Question | None:
    """How long it is open."""
    day = _open_day(notice, rng)
    times = notice.hours[day]
    assert times is not None
    text = f"For how many hours is it open on {DAYS[day]}?"
    return Question(text=text, answer=NumberAnswer(value=times[1] - times[0], unit="hours"))


def is_open(notice: Notice, rng: random.Random) -> Question | None:
    """Whether it is open at a time."""
    day, hour = rng.randrange(7), rng.choice((7.0, 9.25, 12.0, 17.0, 19.0, 22.0))
    times = notice.hours[day]
    answer = times is not None and times[0] < hour < times[1]
    return Question(text=f"Is it open on {DAYS[day]} at {clock(hour)}?", answer=YesNoAnswer(value=answer))


def price(notice: Notice, rng: random.Random) -> Question | None:
    """What one ticket costs."""
    name, value = rng.choice((("an adult", notice.adult), ("a child", notice.child)))
    return Question(text=f"What does a ticket for {name} cost?", answer=_eur(value))


def family(notice: Notice, rng: random.Random) -> Question | None:
    """What several tickets cost."""
    adults, children = rng.randint(1, 3), rng.randint(1, 3)
    text = (
        f"What do single tickets for {adults} adult{'s' * (adults > 1)} and {children} "
        f"{'children' if children > 1 else 'child'} under 14 cost together?"
    )
    return Question(text=text, answer=_eur(adults * notice.adult + children * notice.child))


def phone(notice: Notice, rng: random.Random) -> Question | None:
    """The number to call."""
    answer = TextAnswer(value=notice.phone, synonyms=(notice.phone.replace(" ", ""),))
    return Question(text="Which telephone number can one call?", answer=answer)


def place(notice: Notice, rng: random.Random) -> Question | None:
    """What it is about."""
    return Question(
        text="Of which place are these the opening hours? Give the full name in the heading.",
        answer=TextAnswer(value=notice.place),
    )


TEMPLATES: tuple[Template[Notice], ...] = (
    opens, opens, closed_day, open_for, is_open, price, family, phone, place,
)  # fmt: skip
