"""What counts as the right answer to a question, and whether a text gives it."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from sensorium.envs.base import Record
from sensorium.envs.visual_qa.number_words import MAX_CHARS, Mention, mentions, normalise

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_MARKUP = (
    (re.compile(r"\\text\w*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\(?=%)|\\[()\[\]]|\{,\}(?=\d)|[`_]{1,3}(?=\s|$)|(?<!\S)[`_]{1,3}"), ""),
    (re.compile(r"\*\*([^*\n]{0,40}:)\s*\*\*"), r"\1 "),
    (re.compile(r":\s*\n\s*"), ": "),
    (re.compile(r"\s*\n\s*"), " ; "),
)
_FINAL = re.compile(
    r"(?:final answer|the answer|answer|result)\s*(?:is|:|=)+\s*:?\s*"
    r"|\\boxed\{|\*\*(?=[^*]{1,60}\*\*)|####\s*"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\*\*|\}")
_COMPARED = re.compile(
    r"[(]|(?<!\w)(?:than|rather|instead|not|while|whereas|compared|versus|vs|unlike|over|ahead of|"
    r"followed by|but|to the left of|to the right of|exceeds|beats)(?!\w)"
)
_EITHER = re.compile(r"(?<!\w)(?:or|maybe|perhaps|possibly)(?!\w)")
_ROUND_OFF = 1e-9
_FEW_WORDS = 6
_ZERO = re.compile(r"(?:there (?:are|is) |i (?:can )?see )?no(?!\w)")
_SINGLE = re.compile(r"(?<!\w)(?:a|only|just) single(?!\w)")
_EDGE, _END = r"(?<!\w)(?<!\d\.)", r"(?!\w)(?!\.\d)"
_NOT = r"(?:not|never|neither|nor|isn't|wasn't)(?: in| the| a| an)*"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

_YES = re.compile(
    r"\W*(?:yes|true|correct|yep|yeah|it does|it is|they are|there is)(?!\w)(?! not| no(?!\w)| false|n't)"
)
_NO = re.compile(
    r"\W*(?:no|false|incorrect|nope|not|wrong|it does not|it is not|it isn't|there is no|they are not)(?!\w)"
)
_BOTH = re.compile(
    r"(?<!\w)(?:(?:yes|true)(?:\W+(?:and|or)\W+|\s*/\s*|\s+|,\s*(?=\w+\W*$))(?:no|false)"
    r"|(?:no|false)(?:\W+(?:and|or)\W+|\s*/\s*|\s+|,\s*(?=\w+\W*$))(?:yes|true))(?!\w)"
)
_WORDS_YES = re.compile(r"(?<!\w)(?:yes|true)(?!\w)")
_WORDS_NO = re.compile(r"(?<!\w)(?:no|false)(?!\w)")


class NumberAnswer(Record):
    """A number that was read, counted or calculated."""

    type: Literal["number"] = "number"
    value: float
    tolerance: float = Field(default=0.0, ge=0.0)
    """Greatest error that reading the picture may make."""
    unit: str = ""
    """As the picture shows it, e.g. ``%`` or ``million USD``."""
    labels: tuple[str, ...] = ()
    """Names in picture and question that hold digits; they are no answer."""


class ChoiceAnswer(Record):
    """One of several names."""

    type: Literal["choice"] = "choice"
    value: str
    options: tuple[str, ...]
    """Everything that might be named, the right one too."""
    synonyms: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Other words for options."""


class NamesAnswer(Record):
    """Several names in any order."""

    type: Literal["names"] = "names"
    values: tuple[str, ...]
    options: tuple[str, ...]


class YesNoAnswer(Record):
    """Yes or no."""

    type: Literal["yes_no"] = "yes_no"
    value: bool


class TextAnswer(Record):
    """A text that stands in the picture."""

    type: Literal["text"] = "text"
    value: str
    synonyms: tuple[str, ...] = ()
    """Other ways to write it."""
    others: tuple[str, ...] = ()
    """Texts of the same kind in the picture; an answer that also holds one of them is wrong."""


Answer = Annotated[
    NumberAnswer | ChoiceAnswer | NamesAnswer | YesNoAnswer | TextAnswer, Field(discriminator="type")
]
_ADAPTER: TypeAdapter[Answer] = TypeAdapter(Answer)


def answer_from(data: object) -> Answer:
    """The answer that was kept as JSON."""
    return _ADAPTER.validate_python(data)


def gold_text(answer: Answer) -> str:
    """The right answer as a person would give it."""
    match answer:
        case NumberAnswer(value=value):
            return f"{value:.10g}"
        case NamesAnswer(values=values):
            return ", ".join(values)
        case YesNoAnswer(value=value):
            return "yes" if value else "no"
        case _:
            return answer.value


def is_right(text: str, answer: Answer) -> bool:
    """Whether a text gives the right answer, and no other one.

    Sentences around the answer, letter case, units, separators of thousands and number words do not matter.
    What names several different answers is wrong, unless it marks one (``answer: 12``, ``**12**``), or the
    others are part of the question's own words.

    Example:
        >>> is_right("About 1,240 cars.", NumberAnswer(value=1234, tolerance=10))
        True
        >>> is_right("1240 or 1300", NumberAnswer(value=1234, tolerance=10))
        False
    """
    said = _THOUGHTS.sub(" ", text[:MAX_CHARS]).strip()
    for pattern, plain in _MARKUP:
        said = pattern.sub(plain, said)
    said = normalise(said)
    if not said:
        return False
    finals = {said[match.end() :] for match in _FINAL.finditer(said)}
    marked = {_SENTENCE_END.split(final, maxsplit=1)[0].strip() for final in finals} - {""}
    if len(marked) == 1 and _gives(marked.pop(), answer):
        return True
    return _gives(said, answer)


def _gives(said: str, answer: Answer) -> bool:
    match answer:
        case NumberAnswer():
            return _gives_number(said, answer)
        case ChoiceAnswer():
            return _chosen(said, answer) == {answer.value}
        case NamesAnswer():
            return _named(said, {name: (name,) for name in answer.options}) == set(answer.values)
        case YesNoAnswer():
            return _yes_or_no(said) is answer.value
        case TextAnswer():
            return _gives_text(said, answer)


def _gives_number(said: str, answer: NumberAnswer) -> bool:
    found = _numbers(said, answer)
    if not found:
        word = 0.0 if _ZERO.match(said) else 1.0 if _SINGLE.search(said) else None
        return word is not None and abs(word - answer.value) <= answer.tolerance
    return all(_is_near(mention, answer) for mention in found)


def _numbers(said: str, answer: NumberAnswer) -> list[Mention]:
    """The numbers that may be meant: not those inside names, unless there are no others."""
    found = mentions(said)
    plain = said
    for label in sorted({normalise(label) for label in answer.labels}, key=len, reverse=True):
        plain = re.sub(rf"(?<![\w.,-]){re.escape(label)}(?![\w%]|[.,]\d)", "#" * len(label), plain)
    unit = normalise(answer.unit)
    if re.search(r"\d", unit):
        plain = plain.replace(unit, "#" * len(unit))
    outside = mentions(plain)
    if not outside:  # a bare number may be equal to a name; a sentence about names has no answer in it
        return found if len(said.split()) <= _FEW_WORDS else []
    digits = [m for m in outside if any(c.isdigit() for c in said[m.start : m.end])]
    return digits or _without_pronouns(said, outside)


def _without_pronouns(said: str, found: list[Mention]) -> list[Mention]:
    """Number words without ``one`` where it stands for a thing (``the one that``)."""
    kept = [
        m
        for m in found
        if not (said[m.start : m.end] == "one" and said[: m.start].endswith(("the ", "this ")))
    ]
    return kept or found


def _is_near(mention: Mention, answer: NumberAnswer) -> bool:
    unit = normalise(answer.unit)
    if mention.is_percent and "%" not in unit and "percent" not in unit:
        return False
    scale = next(
        (s for word, s in (("thousand", 1e3), ("million", 1e6), ("billion", 1e9)) if word in unit), 1.0
    )
    slack = answer.tolerance + _ROUND_OFF * max(1.0, abs(answer.value))
    values = [mention.value * mention.multiplier / scale]
    if mention.multiplier == 1.0:  # in the unit already, or spelt out
        values.append(mention.value)
    return any(abs(value - answer.value) <= slack for value in values)


def _chosen(said: str, answer: ChoiceAnswer) -> set[str]:
    """The options that a text chooses; what it compares them with is not chosen."""
    words = {name: (name, *answer.synonyms.get(name, ())) for name in answer.options}
    found = _named(said, words)
    if len(found) > 1:
        before = _COMPARED.split(said, maxsplit=1)[0]
        if before != said and not _EITHER.search(said):
            return _named(before, words)
    if len(found) == 1 and _EITHER.search(said) and any(c.isdigit() for c in answer.value):
        rest = re.sub(_EDGE + re.escape(normalise(answer.value)) + _END, "#", said)
        return set() if mentions(rest) else found
    return found


def _named(said: str, words: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Names that a text mentions and does not deny; a name inside a longer one does not count."""
    pairs = sorted(
        ((normalise(word), name) for name, ways in words.items() for word in ways),
        key=lambda pair: len(pair[0]),
        reverse=True,
    )
    said = _THOUSANDS.sub("", said)
    found: set[str] = set()
    for word, name in pairs:
        pattern = _EDGE + re.escape(_THOUSANDS.sub("", word)) + _END
        said = re.sub(rf"(?<!\w){_NOT} {pattern}", " # ", said)
        said, count = re.subn(pattern, " # ", said)
        if count:
            found.add(name)
    return found


def _yes_or_no(said: str) -> bool | None:
    if _BOTH.search(said):
        return None
    if _NO.match(said):
        return False
    if _YES.match(said):
        return True
    yes, no = bool(_WORDS_YES.search(said)), bool(_WORDS_NO.search(said))
    return yes if yes != no else None


def _gives_text(said: str, answer: TextAnswer) -> bool:
    ways = [_letters(way) for way in (answer.value, *answer.synonyms)]
    given = _letters(said)
    if given in ways:
        return True
    if len(given.split()) > max(len(way.split()) for way in ways) + 15:
        return False
    held = [way for way in ways if f" {way} " in f" {given} "]
    if not held:
        return False
    rest = f" {given} ".replace(f" {max(held, key=len)} ", " # ")
    if any(f" {_letters(other)} " in rest for other in answer.others):
        return False
    shapes = {_shape(word) for word in _letters(answer.value).split() if any(c.isdigit() for c in word)}
    return not any(_shape(word) in shapes for word in rest.split())


def _shape(word: str) -> str:
    """A word with its digits and letters made equal: two guesses at one code have the same shape."""
    return "".join("9" if c.isdigit() else "a" for c in word)


def _letters(text: str) -> str:
    """Words of letters and digits alone, so that punctuation and blanks do not matter."""
    return " ".join(re.findall(r"\w+", normalise(text).replace("'", "")))
