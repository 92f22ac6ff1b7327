"""The kinds of things that detectors trained on COCO know, by their number."""

_NAMES = {
    1: "person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant",
    13: "stop sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe",
    27: "backpack, umbrella",
    31: "handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove",
    41: "skateboard, surfboard, tennis racket, bottle",
    46: "wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange, broccoli, carrot",
    58: "hot dog, pizza, donut, cake, chair, couch, potted plant, bed",
    67: "dining table",
    70: "toilet",
    72: "tv, laptop, mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator",
    84: "book, clock, vase, scissors, teddy bear, hair drier, toothbrush",
}

COCO_LABELS: dict[int, str] = {
    first + offset: name for first, names in _NAMES.items() for offset, name in enumerate(names.split(", "))
}
"""Number -> name, 80 of the numbers 1 to 90."""

SUPPORTS = frozenset({"bench", "bicycle", "boat", "motorcycle", "skateboard", "snowboard", "surfboard"}) | {
    "bed",
    "chair",
    "couch",
    "dining table",
    "horse",
    "elephant",
}
"""Kinds of things that others stand, sit or lie on."""

_PLURALS = {
    "person": "people",
    "mouse": "mice",
    "knife": "knives",
    "sheep": "sheep",
    "skis": "pairs of skis",
    "scissors": "pairs of scissors",
    "wine glass": "wine glasses",
    "toothbrush": "toothbrushes",
    "sandwich": "sandwiches",
    "bus": "buses",
    "bench": "benches",
    "couch": "couches",
}


def count_of(label: str, number: int) -> str:
    """A kind of thing with its number in words, e.g. ``a cat``, ``an orange``, ``2 people``."""
    if number != 1:
        return f"{number} {_PLURALS.get(label, label + 's')}"
    if label in ("skis", "scissors"):
        return f"a pair of {label}"
    return f"{'an' if label[0] in 'aeiou' else 'a'} {label}"
