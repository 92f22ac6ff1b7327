"""Tokens of pictures: one pure function per rule, rounded up."""

import math

from sensorium.llm.config import FixedRule, ImageRule, PatchesRule, PixelsRule, TilesRule


def image_tokens(rule: ImageRule, width: int, height: int) -> int:
    """Tokens of a picture under `rule`.

    Args:
        rule: Whose pictures.
        width: Pixels; 0 when the size is not known: then the most that the rule can charge is counted.
        height: Pixels, as `width`.
    """
    if width < 1 or height < 1:
        return _most(rule)
    match rule:
        case TilesRule():
            return _tiles(rule, width, height)
        case PatchesRule():
            return _patches(rule, width, height)
        case PixelsRule():
            return _pixels(rule, width, height)
        case FixedRule():
            return rule.tokens


def _most(rule: ImageRule) -> int:
    """What the most expensive picture of a usual shape (at most 20:1) costs."""
    match rule:
        case TilesRule():
            across, down = (math.ceil(side / rule.tile) for side in (rule.max_side, rule.short_side))
            return rule.base + (rule.per_tile * across * down if rule.detail == "high" else 0)
        case PatchesRule():
            return max(1, rule.max_pixels // (rule.size * rule.merge) ** 2) + rule.extra
        case PixelsRule():
            return min(rule.max_tokens, math.ceil(_settled(rule.max_side**2 / rule.per_token)))
        case FixedRule():
            return rule.tokens


def _tiles(rule: TilesRule, width: int, height: int) -> int:
    if rule.detail == "low":
        return rule.base
    shrink = min(1.0, rule.max_side / max(width, height))
    shrink *= min(1.0, rule.short_side / (min(width, height) * shrink))
    across, down = (max(1, math.ceil(_settled(side * shrink) / rule.tile)) for side in (width, height))
    return rule.base + rule.per_tile * across * down


def _patches(rule: PatchesRule, width: int, height: int) -> int:
    side = rule.size * rule.merge
    across, down = max(1, round(width / side)), max(1, round(height / side))
    if across * down * side * side > rule.max_pixels:
        scale = math.sqrt(width * height / rule.max_pixels)
        across = max(1, math.floor(width / scale / side))
        down = max(1, math.floor(height / scale / side))
    elif across * down * side * side < rule.min_pixels:
        scale = math.sqrt(rule.min_pixels / (width * height))
        across, down = math.ceil(width * scale / side), math.ceil(height * scale / side)
    return across * down + rule.extra


def _pixels(rule: PixelsRule, width: int, height: int) -> int:
    shrink = min(1.0, rule.max_side / max(width, height))
    return min(rule.max_tokens, math.ceil(_settled(width * height * shrink * shrink / rule.per_token)))


def _settled(value: float) -> float:
    """Without the last digits, in which 768 may read 768.0000000000001."""
    return round(value, 6)
