"""Rooms of `doom/find`, drawn by the game's engine; needs ViZDoom."""

import contextlib
import itertools
import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError
from sensorium.envs.base import Record
from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer, YesNoAnswer
from sensorium.envs.visual_qa.questions import Question, Template, ask

if TYPE_CHECKING:
    from sensorium.envs.embodied.gym import MultiModalGym

_PREFACE = "The picture is a view into a room of a computer game, with some objects on the floor."
_MAX_SIZE = 512
_MAX_TURNS = 40
_IN_VIEW = math.radians(36)
_OUT_OF_VIEW = math.radians(56)
_APART = math.radians(9)
_CLEAR_RATIO = 1.3
_NEAR, _FAR = 90.0, 420.0  # map units
_TRIES = 40


class DoomScene(Record):
    """A view into a room: how to get it out of the engine."""

    family: Literal["doom"] = "doom"
    seed: int
    num_things: int
    num_turns: int
    """To the left, from where the episode begins."""
    size: int
    """Height and width of the picture, pixels."""


class _Seen(NamedTuple):
    kind: str
    gap: float
    bearing: float


class _View(NamedTuple):
    things: tuple[_Seen, ...]
    """That are seen, from left to right."""
    kinds: tuple[str, ...]
    """Of all things in the room."""


def draw_doom(scene: DoomScene) -> NDArray[np.uint8]:
    """The picture of a scene.

    Returns:
        (size, size, 3) uint8.

    Raises:
        MissingDependencyError: ViZDoom is not installed.
    """
    with _room(scene.num_things, scene.size) as room:
        picture = room.reset(seed=scene.seed)[0]["rgb"]
        for _ in range(scene.num_turns):
            picture = room.step(1)[0]["rgb"]
    return np.asarray(picture)


def doom_question(rng: random.Random, split: str, size: int) -> tuple[DoomScene, Question]:
    """A view and a question about it; the splits have different rooms.

    Raises:
        MissingDependencyError: ViZDoom is not installed.
        EnvError: No room with a clear view was found.
    """
    num_things, size = rng.randint(3, 5), min(size, _MAX_SIZE)
    with _room(num_things, 32) as room:
        for _ in range(_TRIES):
            seed = 2 * rng.randrange(2**40) + (split == "test")
            found = _good_view(room, seed)
            question = ask(found[1], TEMPLATES, rng) if found else None
            if found is not None and question is not None:
                scene = DoomScene(seed=seed, num_things=num_things, num_turns=found[0], size=size)
                return scene, question.model_copy(update={"text": f"{_PREFACE} {question.text}"})
    raise EnvError(f"None of {_TRIES} rooms of doom/find had a clear view of two objects.")


@contextlib.contextmanager
def _room(num_things: int, size: int) -> "Iterator[MultiModalGym]":
    from sensorium.envs.embodied.gym import MultiModalGym

    options = {"num_walls": 0, "num_objects": num_things, "sounding": "none"}
    room = MultiModalGym("doom/find", visual_obs=("rgb",), image_size=size, backend_options=options)
    try:
        yield room
    finally:
        room.close()


def _good_view(room: "MultiModalGym", seed: int) -> tuple[int, _View] | None:
    """How often to turn until at least two things are plain to see, and what is seen then."""
    room.reset(seed=seed)
    for turns in range(_MAX_TURNS):
        view = _clear_view(dict(room.worlds.backend.describe(0)))
        if view is not None:
            return turns, view
        room.step(1)
    return None


def _clear_view(truth: dict[str, Any]) -> _View | None:
    x, y = truth["position"][:2]
    heading = math.radians(truth["angle"])
    things = []
    for one in truth["objects"]:
        dx, dy = one["position"][0] - x, one["position"][1] - y
        angle = math.atan2(dy, dx) - heading
        bearing = math.atan2(math.sin(angle), math.cos(angle))
        things.append(_Seen(one["kind"], math.hypot(dx, dy), bearing))
    seen = sorted((t for t in things if abs(t.bearing) < _IN_VIEW), key=lambda t: -t.bearing)
    is_unclear = any(_IN_VIEW <= abs(t.bearing) <= _OUT_OF_VIEW for t in things)
    if len(seen) < 2 or is_unclear or not all(_NEAR < t.gap < _FAR for t in seen):
        return None
    if any(a.bearing - b.bearing < _APART for a, b in itertools.pairwise(seen)):
        return None
    return _View(tuple(seen), tuple(t.kind for t in things))


def num_things(view: _View, rng: random.Random) -> Question | None:
    """How many things are seen."""
    answer = NumberAnswer(value=float(len(view.things)))
    return Question(text="How many objects can be seen?", answer=answer)


def leftmost(view: _View, rng: random.Random) -> Question | None:
    """Which thing is furthest to one side."""
    side, index = rng.choice((("left", 0), ("right", -1)))
    names = tuple(rng.sample([thing.kind for thing in view.things], len(view.things)))
    text = f"Which of these is furthest to the {side}: {', '.join(names)}?"
    return Question(text=text, answer=ChoiceAnswer(value=view.things[index].kind, options=names))


def nearest(view: _View, rng: random.Random) -> Question | None:
    """Which of two things is nearer."""
    one, other = rng.sample(view.things, 2)
    if max(one.gap, other.gap) < _CLEAR_RATIO * min(one.gap, other.gap):
        return None
    right = one if one.gap < other.gap else other
    text = f"Which is nearer to the viewer: the {one.kind} or the {other.kind}?"
    return Question(text=text, answer=ChoiceAnswer(value=right.kind, options=(one.kind, other.kind)))


def is_there(view: _View, rng: random.Random) -> Question | None:
    """Whether a thing is seen."""
    kinds = {thing.kind for thing in view.things}
    kind = rng.choice(sorted(kinds) if rng.random() < 0.5 else view.kinds)
    return Question(text=f"Can a {kind} be seen?", answer=YesNoAnswer(value=kind in kinds))


TEMPLATES: tuple[Template[_View], ...] = (num_things, leftmost, nearest, is_there)
