"""A question about a picture, and how templates of them are tried."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from sensorium.envs.base import Record
from sensorium.envs.visual_qa.answers import Answer

PictureT = TypeVar("PictureT")


class Question(Record):
    """A question with its answer."""

    text: str
    answer: Answer
    template: str = ""
    """Which kind of question it is, e.g. ``highest``."""


Template = Callable[[PictureT, random.Random], Question | None]
"""Asks about a picture; None when the question would have no clear answer there."""


def ask(picture: PictureT, templates: Sequence[Template[PictureT]], rng: random.Random) -> Question | None:
    """The first of the templates, in random order, that has a clear answer; None when there is none."""
    for template in rng.sample(templates, len(templates)):
        question = template(picture, rng)
        if question is not None:
            name = template.__name__.strip("_")
            return question.model_copy(update={"template": question.template or name})
    return None


def listed(names: Sequence[str], last: str = "or") -> str:
    """Names in a sentence.

    Example:
        >>> listed(["red", "green", "blue"])
        'red, green or blue'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
