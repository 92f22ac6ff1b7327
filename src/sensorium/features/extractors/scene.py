"""A sentence about what is where in a picture, from boxes: counts, places, sizes and doubts."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorium.features.extractors.coco_labels import SUPPORTS, count_of

_SURE, _LIKELY = 0.8, 0.6


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One object in a picture."""

    label: str
    score: float
    """How sure the detector is, in [0, 1]."""
    box: tuple[int, int, int, int]
    """Left, top, right, bottom in pixels."""

    @property
    def area(self) -> int:
        """Pixels of the box."""
        left, top, right, bottom = self.box
        return max(0, right - left) * max(0, bottom - top)


def place_of(box: tuple[int, int, int, int], width: int, height: int) -> str:
    """Where the centre of a box lies, in words: ``in the centre``, ``on the left``, ``at the top right`` ...

    A box that covers more than 60 % of the picture fills it.
    """
    left, top, right, bottom = box
    if (right - left) * (bottom - top) > 0.6 * width * height:
        return "filling the picture"
    across = 3 * (left + right) / 2 / max(width, 1)
    down = 3 * (top + bottom) / 2 / max(height, 1)
    side = "left" if across < 1 else "right" if across > 2 else ""
    level = "top" if down < 1 else "bottom" if down > 2 else ""
    if level:
        return f"at the {level} {side}".rstrip()
    return f"on the {side}" if side else "in the centre"


def size_of(box: tuple[int, int, int, int], width: int, height: int) -> str:
    """How large a box is, in words: ``large`` above a quarter of the picture, ``small`` below 4 %, or ""."""
    left, top, right, bottom = box
    share = (right - left) * (bottom - top) / max(width * height, 1)
    return "large" if share > 0.25 else "small" if share < 0.04 else ""


def describe_scene(objects: Sequence[SeenObject], width: int, height: int) -> str:
    """Say what is where, the largest first.

    Things of one kind at one place are counted together; one that stands on another is told with it. What the
    detector is not sure of (below 80 %) is ``probably`` there, below 60 % ``perhaps``.

    Returns:
        For instance ``2 people on the left; probably a cat on a couch in the centre (large)``; empty
        without objects.
    """
    below = {id(one): _support(one, objects) for one in objects}
    carriers = {id(one) for one in below.values() if one is not None}
    groups: dict[tuple[str, str, str, str], list[SeenObject]] = {}
    for one in sorted(objects, key=lambda seen: -seen.area):
        support = below[id(one)]
        if id(one) in carriers and support is None:
            continue  # it is told together with what is on it
        key = (one.label, _under(support), place_of(one.box, width, height), _doubt(one))
        groups.setdefault(key, []).append(one)
    phrases = []
    for (label, under, place, doubt), members in groups.items():
        sizes = {size_of(member.box, width, height) for member in members}
        size = sizes.pop() if len(sizes) == 1 and "filling" not in place else ""
        note = f" ({size})" if size else ""
        phrases.append(f"{doubt}{count_of(label, len(members))}{under} {place}{note}")
    return "; ".join(phrases)


def _under(support: SeenObject | None) -> str:
    if support is None:
        return ""
    under = f"{_doubt(support)}on {count_of(support.label, 1)}"
    return f" ({under})" if _doubt(support) else f" {under}"


def _doubt(one: SeenObject) -> str:
    return "" if one.score >= _SURE else "probably " if one.score >= _LIKELY else "perhaps "


def _support(one: SeenObject, objects: Sequence[SeenObject]) -> SeenObject | None:
    """The piece of furniture or vehicle that the object is on: its foot is within, and most of it above."""
    left, top, right, bottom = one.box
    for other in objects:
        if other is one or other.label not in SUPPORTS or other.label == one.label:
            continue
        o_left, o_top, o_right, o_bottom = other.box
        shared = min(right, o_right) - max(left, o_left)
        is_above = shared >= 0.7 * (right - left) and o_top <= bottom <= o_bottom and top < o_bottom
        if is_above and other.area > 0.5 * one.area and (one.label not in SUPPORTS or other.area > one.area):
            return other
    return None
