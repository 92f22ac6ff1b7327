"""Invoices: what they say, how they look, what is asked."""

import random
from typing import NamedTuple

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer, TextAnswer
from sensorium.envs.visual_qa.documents.dates import Date, date_answer, written_date
from sensorium.envs.visual_qa.documents.model import Layout, Page
from sensorium.envs.visual_qa.documents.words import Words
from sensorium.envs.visual_qa.questions import Question, Template, ask

_CENT = 0.005
_TAX_RATES = (5, 7, 10, 19, 20, 25)


class _Line(NamedTuple):
    name: str
    quantity: int
    price_cents: int

    @property
    def cents(self) -> int:
        return self.quantity * self.price_cents


class Invoice(NamedTuple):
    """What an invoice says; money in cents."""

    company: str
    customer: str
    street: str
    city: str
    number: str
    date: Date
    due: Date
    lines: tuple[_Line, ...]
    tax_rate: int
    currency: str

    @property
    def subtotal(self) -> int:
        """Before tax, cents."""
        return sum(line.cents for line in self.lines)

    @property
    def tax(self) -> int:
        """Cents."""
        return round(self.subtotal * self.tax_rate / 100)

    @property
    def total(self) -> int:
        """With tax, cents."""
        return self.subtotal + self.tax


def invoice_question(rng: random.Random, split: str, width: int) -> tuple[Page, Question]:
    """An invoice and a question about it."""
    invoice = _invent(rng, Words(split))
    question = ask(invoice, TEMPLATES, rng)
    assert question is not None
    return _lay_out(invoice, rng, width), question


def _invent(rng: random.Random, words: Words) -> Invoice:
    year, month, day = rng.randint(2015, 2024), rng.randint(1, 11), rng.randint(1, 28)
    goods = rng.sample(words.goods, rng.randint(3, 6))
    return Invoice(
        company=rng.choice(words.companies),
        customer=f"{rng.choice(words.first_names)} {rng.choice(words.last_names)}",
        street=f"{rng.randint(1, 99)} {rng.choice(words.streets)}",
        city=rng.choice(words.cities),
        number=f"{rng.choice(('INV', 'R', 'BK'))}-{rng.randint(1000, 9999)}",
        date=(year, month, day),
        due=(year, month + 1, day),
        lines=tuple(_Line(name, rng.randint(1, 24), 5 * rng.randint(30, 2500)) for name in goods),
        tax_rate=rng.choice(_TAX_RATES),
        currency=rng.choice(("EUR", "USD", "GBP")),
    )


def _lay_out(invoice: Invoice, rng: random.Random, width: int) -> Page:
    page = Layout(width, font=rng.choice(("sans", "serif")))
    page.text(invoice.company, size=26, bold=True)
    page.text("INVOICE", size=24, align="right")
    page.down(56)
    style = rng.choice(("iso", "long"))
    right = page.right - 250
    for name, value, left in (
        ("Invoice no.", invoice.number, invoice.customer),
        ("Date", written_date(invoice.date, style), invoice.street),
        ("Due date", written_date(invoice.due, style), invoice.city),
    ):
        page.text(left)
        page.text(name, x=right)
        page.text(value, align="right")
        page.down(28)
    page.down(20)
    columns = (
        page.left + 6,
        page.left + 0.56 * (page.right - page.left),
        page.left + 0.78 * (page.right - page.left),
    )
    page.band(32, "#e5e7eb")
    page.down(6)
    page.text("Item", x=columns[0], bold=True, size=16)
    for x, name in ((columns[1], "Quantity"), (columns[2], "Unit price"), (page.right - 6, "Amount")):
        page.text(name, x=x, bold=True, size=16, align="right")
    page.down(34)
    for line in invoice.lines:
        page.text(line.name, x=columns[0])
        page.text(str(line.quantity), x=columns[1], align="right")
        page.text(_money(line.price_cents), x=columns[2], align="right")
        page.text(_money(line.cents), x=page.right - 6, align="right")
        page.down(32)
    page.rule()
    page.down(10)
    for name, cents, bold in (
        ("Subtotal", invoice.subtotal, False),
        (f"Tax {invoice.tax_rate} %", invoice.tax, False),
        (f"Total {invoice.currency}", invoice.total, True),
    ):
        page.text(name, x=columns[2], bold=bold, align="right")
        page.text(_money(cents), x=page.right - 6, bold=bold, align="right")
        page.down(30)
    return page.page("invoice")


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _amount(invoice: Invoice, cents: int) -> NumberAnswer:
    labels = tuple(line.name for line in invoice.lines if any(c.isdigit() for c in line.name))
    return NumberAnswer(value=cents / 100, tolerance=_CENT, unit=invoice.currency, labels=labels)


def _whole(invoice: Invoice, value: int, unit: str = "") -> NumberAnswer:
    return _amount(invoice, 100 * value).model_copy(update={"tolerance": 0.0, "unit": unit})


def number(invoice: Invoice, rng: random.Random) -> Question | None:
    """Its number."""
    return Question(text="What is the number of the invoice?", answer=TextAnswer(value=invoice.number))


def due_date(invoice: Invoice, rng: random.Random) -> Question | None:
    """When it must be paid."""
    return Question(text="When is the invoice due?", answer=date_answer(invoice.due, others=(invoice.date,)))


def customer(invoice: Invoice, rng: random.Random) -> Question | None:
    """Who must pay."""
    answer = TextAnswer(value=invoice.customer, others=(invoice.company,))
    return Question(text="What is the name of the customer?", answer=answer)


def company(invoice: Invoice, rng: random.Random) -> Question | None:
    """Who wrote it."""
    answer = TextAnswer(value=invoice.company, others=(invoice.customer,))
    return Question(text="Which company issued the invoice?", answer=answer)


def city(invoice: Invoice, rng: random.Random) -> Question | None:
    """Where the customer lives."""
    return Question(text="In which city does the customer live?", answer=TextAnswer(value=invoice.city))


def total(invoice: Invoice, rng: random.Random) -> Question | None:
    """What must be paid."""
    return Question(text="What is the total to be paid, with tax?", answer=_amount(invoice, invoice.total))


def tax(invoice: Invoice, rng: random.Random) -> Question | None:
    """The tax in percent."""
    return Question(
        text="What is the tax rate in percent?", answer=_whole(invoice, invoice.tax_rate, unit="%")
    )


def quantity(invoice: Invoice, rng: random.Random) -> Question | None:
    """How many of a thing."""
    line = rng.choice(invoice.lines)
    text = f"How many pieces of {line.name!r} were ordered?"
    return Question(text=text, answer=_whole(invoice, line.quantity))


def unit_price(invoice: Invoice, rng: random.Random) -> Question | None:
    """The price of one piece."""
    line = rng.choice(invoice.lines)
    text = f"What is the unit price of {line.name!r}?"
    return Question(text=text, answer=_amount(invoice, line.price_cents))


def two_amounts(invoice: Invoice, rng: random.Random) -> Question | None:
    """Two rows together."""
    one, other = rng.sample(invoice.lines, 2)
    text = f"How much do {one.name!r} and {other.name!r} cost together, before tax?"
    return Question(text=text, answer=_amount(invoice, one.cents + other.cents))


def all_pieces(invoice: Invoice, rng: random.Random) -> Question | None:
    """The sum of a column."""
    pieces = sum(line.quantity for line in invoice.lines)
    text = "How many pieces were ordered in all, the quantities of all rows together?"
    return Question(text=text, answer=_whole(invoice, pieces))


def num_rows(invoice: Invoice, rng: random.Random) -> Question | None:
    """How many different things."""
    text = "How many different items does the invoice list?"
    return Question(text=text, answer=_whole(invoice, len(invoice.lines)))


def dearest(invoice: Invoice, rng: random.Random) -> Question | None:
    """Which row has the largest amount."""
    by_unit = rng.random() < 0.5
    values = [line.price_cents if by_unit else line.cents for line in invoice.lines]
    if values.count(max(values)) > 1:
        return None
    name = invoice.lines[values.index(max(values))].name
    text = f"Which item has the highest {'unit price' if by_unit else 'amount'}?"
    options = tuple(line.name for line in invoice.lines)
    return Question(text=text, answer=ChoiceAnswer(value=name, options=options))


TEMPLATES: tuple[Template[Invoice], ...] = (
    number, due_date, customer, company, city, total, tax, quantity, unit_price, two_amounts, all_pieces,
    num_rows, dearest,
)  # fmt: skip
