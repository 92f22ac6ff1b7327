"""Filled-in forms with boxes to tick."""

import random
from typing import NamedTuple

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NamesAnswer, NumberAnswer, TextAnswer, YesNoAnswer
from sensorium.envs.visual_qa.documents.dates import Date, date_answer, written_date
from sensorium.envs.visual_qa.documents.model import Layout, Page
from sensorium.envs.visual_qa.documents.words import Words
from sensorium.envs.visual_qa.questions import Question, Template, ask

_LEVELS = ("Basic", "Standard", "Premium", "Family")
_EXTRAS = ("Newsletter", "Locker", "Parking", "Guest pass", "Insurance", "Equipment")


class Form(NamedTuple):
    """What was filled in."""

    club: str
    name: str
    street: str
    city: str
    phone: str
    member_id: str
    born: Date
    level: str
    extras: tuple[tuple[str, bool], ...]
    fee: int

    @property
    def ticked(self) -> tuple[str, ...]:
        """Extras whose box is ticked."""
        return tuple(name for name, is_ticked in self.extras if is_ticked)


def form_question(rng: random.Random, split: str, width: int) -> tuple[Page, Question]:
    """A form and a question about it."""
    form = _invent(rng, Words(split))
    question = ask(form, TEMPLATES, rng)
    assert question is not None
    return _lay_out(form, rng, width), question


def _invent(rng: random.Random, words: Words) -> Form:
    extras = rng.sample(_EXTRAS, rng.randint(3, 6))
    return Form(
        club=f"{rng.choice(words.cities)} {rng.choice(words.clubs)}",
        name=f"{rng.choice(words.first_names)} {rng.choice(words.last_names)}",
        street=f"{rng.randint(1, 99)} {rng.choice(words.streets)}",
        city=rng.choice(words.cities),
        phone=f"0{rng.randint(20, 99)} {rng.randint(100, 999)} {rng.randint(1000, 9999)}",
        member_id=f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNPRST')}{rng.randint(10000, 99999)}",
        born=(rng.randint(1950, 2005), rng.randint(1, 12), rng.randint(1, 28)),
        level=rng.choice(_LEVELS),
        extras=tuple((name, rng.random() < 0.5) for name in extras),
        fee=5 * rng.randint(6, 60),
    )


def _lay_out(form: Form, rng: random.Random, width: int) -> Page:
    page = Layout(width)
    page.text(form.club, size=26, bold=True, align="center")
    page.down(38)
    page.text("Application for membership", size=20, align="center")
    page.down(44)
    fields = [
        ("Full name", form.name),
        ("Date of birth", written_date(form.born, rng.choice(("iso", "long")))),
        ("Street", form.street),
        ("City", form.city),
        ("Telephone", form.phone),
        ("Member no.", form.member_id),
        ("Yearly fee", f"{form.fee} EUR"),
    ]
    for name, value in rng.sample(fields, len(fields)):
        page.text(f"{name}:", size=16)
        page.text(value, x=page.left + 170)
        page.down(27)
        page.rule()
        page.down(15)
    for title, boxes in (
        ("Membership", [(name, name == form.level) for name in _LEVELS]),
        ("Extras", list(form.extras)),
    ):
        page.down(8)
        page.text(title, size=18, bold=True)
        page.down(32)
        for start in range(0, len(boxes), 3):
            for column, (name, is_ticked) in enumerate(boxes[start : start + 3]):
                x = page.left + column * (page.right - page.left) / 3
                page.box(x, 20, ticked=is_ticked)
                page.text(name, x=x + 30, size=17)
            page.down(34)
    return page.page("form", rng.choice(("#ffffff", "#fdfaf1", "#f4f8fd")))


def read_field(form: Form, rng: random.Random) -> Question | None:
    """One of the fields."""
    what, value = rng.choice(
        (
            ("name of the applicant", form.name),
            ("city of the applicant", form.city),
            ("street and house number of the applicant", form.street),
            ("telephone number", form.phone),
            ("member number", form.member_id),
        )
    )
    synonyms = (value.replace(" ", ""),) if value == form.phone else ()
    return Question(text=f"What is the {what}?", answer=TextAnswer(value=value, synonyms=synonyms))


def birthday(form: Form, rng: random.Random) -> Question | None:
    """A date."""
    return Question(text="When was the applicant born?", answer=date_answer(form.born))


def club(form: Form, rng: random.Random) -> Question | None:
    """The heading."""
    return Question(
        text="What does the applicant want to become a member of? Give the full name in the heading.",
        answer=TextAnswer(value=form.club),
    )


def fee(form: Form, rng: random.Random) -> Question | None:
    """An amount."""
    answer = NumberAnswer(value=float(form.fee), unit="EUR")
    return Question(text="How high is the yearly fee?", answer=answer)


def level(form: Form, rng: random.Random) -> Question | None:
    """The one box of four."""
    answer = ChoiceAnswer(value=form.level, options=_LEVELS)
    return Question(text="Which kind of membership is ticked?", answer=answer)


def is_ticked(form: Form, rng: random.Random) -> Question | None:
    """One box."""
    name, answer = rng.choice(form.extras)
    return Question(text=f"Is the box {name!r} ticked?", answer=YesNoAnswer(value=answer))


def num_ticked(form: Form, rng: random.Random) -> Question | None:
    """How many boxes."""
    answer = NumberAnswer(value=float(len(form.ticked)))
    return Question(text="How many boxes are ticked under Extras?", answer=answer)


def which_ticked(form: Form, rng: random.Random) -> Question | None:
    """All ticked boxes."""
    if not form.ticked:
        return None
    answer = NamesAnswer(values=form.ticked, options=tuple(name for name, _ in form.extras))
    return Question(text="Which boxes are ticked under Extras? Name them all.", answer=answer)


TEMPLATES: tuple[Template[Form], ...] = (
    read_field, read_field, birthday, club, fee, level, is_ticked, num_ticked, which_ticked,
)  # fmt: skip
