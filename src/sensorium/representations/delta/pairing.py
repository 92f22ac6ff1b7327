"""Which parts of two observations are the same thing: by id and content, by content, by id, by place."""

from collections.abc import Hashable, Sequence

from sensorium.observations.base import Part
from sensorium.observations.values import CellValue
from sensorium.representations.delta.renumber import id_rule
from sensorium.representations.delta.sequences import gaps, matching_blocks

_MAX_TWINS = 8
"""Parts of one content that are tried as what moved."""


def content_key(part: Part) -> Hashable:
    """What stays the same when a part only moves: the digest; of cells all but position and count."""
    value = part.value
    if isinstance(value, CellValue):
        return value.cell_type, value.language, value.source
    return value.kind, part.digest


def pair_parts(old: Sequence[Part], new: Sequence[Part]) -> dict[int, int]:
    """Place among the new parts -> place among the old ones, for parts that are the same thing.

    Linear in the number of parts; contents are compared by digest, whole texts never.
    """
    keys_old, keys_new = [content_key(part) for part in old], [content_key(part) for part in new]
    pairs: dict[int, int] = {}
    blocks = matching_blocks(
        [(part.id, key) for part, key in zip(old, keys_old, strict=True)],
        [(part.id, key) for part, key in zip(new, keys_new, strict=True)],
    )
    for i, j, length in blocks:
        pairs.update((j + step, i + step) for step in range(length))
    ids_old, ids_new = {part.id for part in old}, {part.id for part in new}

    def may_be(i: int, j: int) -> bool:
        before, after = old[i].id, new[j].id
        return id_rule(before, after) is not None or (before not in ids_new and after not in ids_old)

    for gap in gaps(blocks, len(old), len(new)):
        inner = matching_blocks(keys_old[gap.old_start : gap.old_end], keys_new[gap.new_start : gap.new_end])
        for i, j, length in inner:
            for step in range(length):
                place_old, place_new = gap.old_start + i + step, gap.new_start + j + step
                if may_be(place_old, place_new):
                    pairs[place_new] = place_old
    taken = set(pairs.values())
    by_id = {old[i].id: i for i in range(len(old)) if i not in taken}
    _pair_moved(pairs, by_id, keys_old, keys_new, new)
    for j, part in enumerate(new):
        if j not in pairs and part.id in by_id:
            pairs[j] = by_id.pop(part.id)
    _pair_places(pairs, old, new)
    return pairs


def _pair_moved(
    pairs: dict[int, int],
    by_id: dict[str, int],
    keys_old: Sequence[Hashable],
    keys_new: Sequence[Hashable],
    new: Sequence[Part],
) -> None:
    """Parts that are elsewhere with the content they had: under their own id, a shifted one, or a new one."""
    by_key: dict[Hashable, list[str]] = {}
    for part_id, i in by_id.items():
        by_key.setdefault(keys_old[i], []).append(part_id)
    open_places = [j for j in range(len(new)) if j not in pairs]
    for j in open_places:
        here = by_id.get(new[j].id)
        if here is not None and keys_old[here] == keys_new[j]:
            pairs[j] = by_id.pop(new[j].id)
    ids_new = {part.id for part in new}
    for j in open_places:
        for part_id in by_key.get(keys_new[j], ())[:_MAX_TWINS] if j not in pairs else ():
            is_free = part_id not in ids_new and new[j].id not in by_id
            if part_id in by_id and (is_free or id_rule(part_id, new[j].id) is not None):
                pairs[j] = by_id.pop(part_id)
                break


def _pair_places(pairs: dict[int, int], old: Sequence[Part], new: Sequence[Part]) -> None:
    """Parts between the same neighbours whose ids differ by one number: shifted and edited at once."""
    taken = set(pairs.values())
    for j, part in enumerate(new):
        if j in pairs or j == 0:
            continue
        i = pairs.get(j - 1, -2) + 1
        if not 0 <= i < len(old) or i in taken or old[i].value.kind != part.value.kind:
            continue
        if id_rule(old[i].id, part.id) is not None:
            pairs[j] = i
            taken.add(i)
