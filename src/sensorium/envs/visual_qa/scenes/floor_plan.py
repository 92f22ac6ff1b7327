"""Rooms seen from above, with a robot in them."""

import math
import random
from collections.abc import Callable, Sequence

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer
from sensorium.envs.visual_qa.questions import Question, Template, ask
from sensorium.envs.visual_qa.scenes.drawing import random_room
from sensorium.envs.visual_qa.scenes.model import Scene, Thing
from sensorium.envs.visual_qa.scenes.room import color_choice

_PREFACE = (
    "The picture shows a room from above. The orange disc is a robot; the dark line on it points to where it "
    "looks. All else in the room are objects."
)
_CLEAR_RATIO = 1.25
_CLEAR_M = 0.5
_CLEAR_ANGLE = math.radians(20)


def floor_plan_question(rng: random.Random, split: str, size: int) -> tuple[Scene, Question]:
    """A plan of a room and a question about it; the splits have different rooms."""
    while True:
        seed = 2 * rng.randrange(2**40) + (split == "test")
        plan = random_room(seed, rng.randint(3, 6), size).model_copy(update={"kind": "floor_plan"})
        question = ask(plan, TEMPLATES, rng) if _is_clear(plan) else None
        if question is not None:
            return plan, question.model_copy(update={"text": f"{_PREFACE} {question.text}"})


def _is_clear(plan: Scene) -> bool:
    """Whether nothing touches anything else."""
    places = [(thing.x, thing.y) for thing in plan.things] + [(plan.x, plan.y)]
    return all(math.dist(a, b) > 0.85 for i, a in enumerate(places) for b in places[:i])


def _nearest(things: Sequence[Thing], x: float, y: float) -> Thing | None:
    """The nearest thing, when it is clearly nearer than the next."""
    order = sorted(things, key=lambda thing: math.hypot(thing.x - x, thing.y - y))
    gaps = [math.hypot(thing.x - x, thing.y - y) for thing in order[:2]]
    return None if len(gaps) > 1 and gaps[1] < _CLEAR_RATIO * gaps[0] else order[0]


def num_objects(plan: Scene, rng: random.Random) -> Question | None:
    """How many things there are."""
    answer = NumberAnswer(value=float(len(plan.things)))
    return Question(text="How many objects are in the room, without the robot?", answer=answer)


def nearest_to_robot(plan: Scene, rng: random.Random) -> Question | None:
    """Which thing is nearest to the robot."""
    thing = _nearest(plan.things, plan.x, plan.y)
    if thing is None:
        return None
    return Question(text="Which colour is the object nearest to the robot?", answer=color_choice(thing.color))


def nearest_to_thing(plan: Scene, rng: random.Random) -> Question | None:
    """Which thing is nearest to another."""
    one = rng.choice(plan.things)
    others = [thing for thing in plan.things if thing is not one]
    thing = _nearest(others, one.x, one.y)
    if thing is None:
        return None
    text = f"Which colour is the object nearest to the {one.color} one?"
    among = tuple(other.color for other in others)
    return Question(text=text, answer=color_choice(thing.color, among))


def ahead(plan: Scene, rng: random.Random) -> Question | None:
    """Which thing the robot looks at."""
    order = sorted(plan.things, key=lambda thing: abs(plan.bearing(thing)))
    first, second = (abs(plan.bearing(thing)) for thing in order[:2])
    if first > math.radians(12) or second - first < _CLEAR_ANGLE:
        return None
    text = "Which colour is the object that the robot looks at?"
    return Question(text=text, answer=color_choice(order[0].color))


def hand(plan: Scene, rng: random.Random) -> Question | None:
    """On which hand of the robot a thing is."""
    thing = rng.choice(plan.things)
    angle = plan.bearing(thing)
    if not _CLEAR_ANGLE < abs(angle) < math.pi - _CLEAR_ANGLE:
        return None
    text = f"Seen by the robot: is the {thing.color} object to its left or to its right?"
    answer = ChoiceAnswer(value="left" if angle > 0 else "right", options=("left", "right"))
    return Question(text=text, answer=answer)


def above(plan: Scene, rng: random.Random) -> Question | None:
    """Whether one thing is above or below another in the picture."""
    one, other = rng.sample(plan.things, 2)
    if abs(one.y - other.y) < _CLEAR_M:
        return None
    text = f"In the picture, is the {one.color} object above or below the {other.color} one?"
    synonyms = {"above": ("higher",), "below": ("under", "beneath", "lower")}
    right = "above" if one.y > other.y else "below"
    answer = ChoiceAnswer(value=right, options=("above", "below"), synonyms=synonyms)
    return Question(text=text, answer=answer)


def furthest(plan: Scene, rng: random.Random) -> Question | None:
    """Which thing is furthest to one side of the picture."""
    sides: tuple[tuple[str, Callable[[Thing], float]], ...] = (
        ("left", lambda t: t.x),
        ("right", lambda t: -t.x),
        ("top", lambda t: -t.y),
        ("bottom", lambda t: t.y),
    )
    side, key = rng.choice(sides)
    order = sorted(plan.things, key=key)
    if key(order[1]) - key(order[0]) < _CLEAR_M:
        return None
    text = f"Which colour is the object nearest to the {side} edge of the picture?"
    return Question(text=text, answer=color_choice(order[0].color))


def in_half(plan: Scene, rng: random.Random) -> Question | None:
    """How many things are in one half of the room."""
    middle = plan.room_size_m / 2
    if any(min(abs(t.x - middle), abs(t.y - middle)) < _CLEAR_M for t in plan.things):
        return None
    halves: tuple[tuple[str, Callable[[Thing], bool]], ...] = (
        ("left", lambda t: t.x < middle),
        ("right", lambda t: t.x > middle),
        ("upper", lambda t: t.y > middle),
        ("lower", lambda t: t.y < middle),
    )
    name, holds = rng.choice(halves)
    number = sum(holds(thing) for thing in plan.things)
    text = f"How many objects, without the robot, are in the {name} half of the picture?"
    return Question(text=text, answer=NumberAnswer(value=float(number)))


TEMPLATES: tuple[Template[Scene], ...] = (
    num_objects, nearest_to_robot, nearest_to_thing, ahead, hand, above, furthest, in_half,
)  # fmt: skip
