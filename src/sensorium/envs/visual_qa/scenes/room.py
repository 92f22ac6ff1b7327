"""Rooms seen from within: which things, of what colour and shape, and where."""

import math
import random

from sensorium.envs.visual_qa.answers import ChoiceAnswer, NumberAnswer, YesNoAnswer
from sensorium.envs.visual_qa.colors import SYNONYMS
from sensorium.envs.visual_qa.questions import Question, Template, ask, listed
from sensorium.envs.visual_qa.scenes.drawing import random_room, with_pixels
from sensorium.envs.visual_qa.scenes.model import SHAPE_SYNONYMS, Scene, Thing

COLORS = ("red", "green", "blue", "yellow", "purple", "grey")
SHAPES = ("ball", "box", "cone", "pillar")
_PREFACE = "The picture shows a room with coloured objects (balls, boxes, cones and pillars)."
_CLEAR_ACROSS = 0.15  # of half the picture's width
_CLEAR_RATIO = 1.3
_VIEWS = 24


def room_question(rng: random.Random, split: str, size: int) -> tuple[Scene, Question]:
    """A view into a room and a question about it; the splits have different rooms."""
    while True:
        seed = 2 * rng.randrange(2**40) + (split == "test")
        scene = _good_view(rng, random_room(seed, rng.randint(3, 6), size))
        question = ask(scene, TEMPLATES, rng) if scene is not None else None
        if scene is not None and question is not None:
            return scene, question.model_copy(update={"text": f"{_PREFACE} {question.text}"})


def _good_view(rng: random.Random, room: Scene) -> Scene | None:
    """The room, looked at so that at least two things are plain to see."""
    for _ in range(_VIEWS):
        scene = room.model_copy(update={"heading": round(rng.uniform(-math.pi, math.pi), 3)})
        ahead = [thing for thing in scene.things if abs(scene.bearing(thing)) < math.pi / 4]
        near = any(scene.gap(thing) < 0.8 for thing in scene.things)
        if len(ahead) < 2 or near:
            continue
        counted = with_pixels(scene)
        if counted is not None and len(counted.seen) >= 2:
            return counted
    return None


def color_choice(value: str, among: tuple[str, ...] = COLORS) -> ChoiceAnswer:
    """A colour of an object."""
    synonyms = {name: SYNONYMS[name] for name in among if name in SYNONYMS}
    return ChoiceAnswer(value=value, options=among, synonyms=synonyms)


def num_things(scene: Scene, rng: random.Random) -> Question | None:
    """How many things can be seen."""
    answer = NumberAnswer(value=float(len(scene.seen)))
    return Question(text="How many objects can be seen?", answer=answer)


def num_of_shape(scene: Scene, rng: random.Random) -> Question | None:
    """How many things of a shape can be seen."""
    shape = rng.choice([*SHAPES, *(thing.shape for thing in scene.seen)])
    number = sum(thing.shape == shape for thing in scene.seen)
    plural = "boxes" if shape == "box" else f"{shape}s"
    return Question(text=f"How many {plural} can be seen?", answer=NumberAnswer(value=float(number)))


def color_of_shape(scene: Scene, rng: random.Random) -> Question | None:
    """The colour of the only thing of a shape."""
    single = [t for t in scene.seen if sum(o.shape == t.shape for o in scene.seen) == 1]
    if not single:
        return None
    thing = rng.choice(single)
    return Question(text=f"Which colour is the {thing.shape}?", answer=color_choice(thing.color))


def shape_of_color(scene: Scene, rng: random.Random) -> Question | None:
    """The shape of a thing."""
    thing = rng.choice(scene.seen)
    answer = ChoiceAnswer(value=thing.shape, options=SHAPES, synonyms=SHAPE_SYNONYMS)
    return Question(text=f"Which shape has the {thing.color} object: {listed(SHAPES)}?", answer=answer)


def is_there(scene: Scene, rng: random.Random) -> Question | None:
    """Whether a thing of a colour can be seen."""
    seen = {thing.color for thing in scene.seen}
    color = rng.choice(sorted(seen)) if rng.random() < 0.5 else rng.choice(COLORS)
    text = f"Can a {color} object be seen?"
    return Question(text=text, answer=YesNoAnswer(value=color in seen))


def leftmost(scene: Scene, rng: random.Random) -> Question | None:
    """Which thing is furthest to one side."""
    side, sign = rng.choice((("left", 1), ("right", -1)))
    order = sorted(scene.seen, key=lambda thing: sign * scene.across(thing))
    if abs(scene.across(order[0]) - scene.across(order[1])) < _CLEAR_ACROSS:
        return None
    text = f"Which colour is the object furthest to the {side}?"
    return Question(text=text, answer=color_choice(order[0].color))


def side_of(scene: Scene, rng: random.Random) -> Question | None:
    """Whether one thing is left or right of another."""
    one, other = rng.sample(scene.seen, 2)
    gap = scene.across(one) - scene.across(other)
    if abs(gap) < _CLEAR_ACROSS:
        return None
    text = f"Is the {one.name} to the left or to the right of the {other.name}?"
    answer = ChoiceAnswer(value="left" if gap < 0 else "right", options=("left", "right"))
    return Question(text=text, answer=answer)


def nearest(scene: Scene, rng: random.Random) -> Question | None:
    """Which thing is nearest or farthest."""
    near = rng.random() < 0.6
    order = sorted(scene.seen, key=scene.gap, reverse=not near)
    gaps = sorted((scene.gap(order[0]), scene.gap(order[1])))
    if gaps[1] < _CLEAR_RATIO * gaps[0]:
        return None
    text = f"Which colour is the object that is {'nearest to' if near else 'farthest from'} the viewer?"
    return Question(
        text=text, answer=color_choice(order[0].color), template="nearest" if near else "farthest"
    )


def nearer(scene: Scene, rng: random.Random) -> Question | None:
    """Which of two things is nearer."""
    one, other = rng.sample(scene.seen, 2)
    gaps = sorted((scene.gap(one), scene.gap(other)))
    if gaps[1] < _CLEAR_RATIO * gaps[0]:
        return None
    right: Thing = one if scene.gap(one) < scene.gap(other) else other
    text = f"Which is nearer to the viewer: the {one.name} or the {other.name}?"
    return Question(text=text, answer=color_choice(right.color, (one.color, other.color)))


TEMPLATES: tuple[Template[Scene], ...] = (
    num_things, num_of_shape, color_of_shape, shape_of_color, is_there, leftmost, side_of, nearest, nearer,
)  # fmt: skip
