"""Differences of pictures: which rectangles of the screen changed, and a lossless change where one exists.

A part holds the encoded file, and applying a change must give exactly that file. So patches are used for PNGs
whose pixel data Pillow's encoder reproduces byte by byte, and whose other chunks (resolution, program) stay.
The others (JPEG, PNGs of another encoder) are replaced. `changed_rectangles` works for all
that can be decoded.
"""

import io
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core.errors import require
from sensorium.observations.values import ImageValue
from sensorium.representations.delta.base import FieldDelta, ImageDelta, Patch
from sensorium.representations.delta.fields import apply_fields, field_delta

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 16_000_000
"""Larger pictures are not decoded."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TILE = 16
"""Side of the squares that changes are gathered in, pixels."""
_MAX_RECTANGLES = 16
"""More are joined into one."""
_MAX_SHARE = 0.5
"""Share of the pixels above which a picture is replaced."""
_ENCODERS: dict[str, dict[str, Any]] = {
    "pillow": {},
    "pillow-1": {"compress_level": 1},
    "pillow-optimize": {"optimize": True},
}
"""Settings of Pillow's PNG writer that may have made a file."""
_ENCODER_OF = {0x9C: "pillow", 0x01: "pillow-1", 0xDA: "pillow-optimize"}
"""Second byte of the compressed pixel data, which tells how hard it was tried -> setting."""


class Rectangle(NamedTuple):
    """A part of a picture, pixels."""

    left: int
    top: int
    width: int
    height: int


class ImageChange(NamedTuple):
    """Where two pictures of one size differ."""

    rectangles: tuple[Rectangle, ...]
    """Apart from each other, top to bottom; together they hold every changed pixel."""
    share: float
    """Share of the pixels that differ, in [0, 1]."""


def changed_rectangles(old: ImageValue, new: ImageValue) -> ImageChange | None:
    """Where two pictures differ; None when they cannot be compared (size, not decodable, no Pillow)."""
    pictures = _decoded(old), _decoded(new)
    if pictures[0] is None or pictures[1] is None or pictures[0].size != pictures[1].size:
        return None
    before, after = (np.asarray(picture.convert("RGBA")) for picture in (pictures[0], pictures[1]))
    return _change(before, after)


def image_delta(old: ImageValue, new: ImageValue) -> ImageDelta | FieldDelta:
    """How a picture changed; by its fields when patches cannot reproduce the new file, or are no use."""
    whole = field_delta(old, new)
    if "data" not in whole.changed or old.mime != "image/png" or new.mime != "image/png":
        return whole
    before, after = _decoded(old), _decoded(new)
    if before is None or after is None or (before.size, before.mode) != (after.size, after.mode):
        return whole
    if before.getpalette() != after.getpalette():
        return whole
    change = _change(np.asarray(before), np.asarray(after))
    if change.share > _MAX_SHARE:
        return whole
    ends, body = _split(new.data or b"")
    if not body or _split(old.data or b"")[0] != ends:
        return whole
    encoder = _ENCODER_OF.get(body[9]) if len(body) > 9 else None
    if encoder is None:
        return whole
    patches = []
    for left, top, width, height in change.rectangles:
        patch = after.crop((left, top, left + width, top + height))
        patches.append(Patch(left, top, _encoded(patch, "pillow")))
    delta = ImageDelta(
        patches=tuple(patches),
        encoder=encoder,
        fields={name: change for name, change in whole.changed.items() if name != "data"},
    )
    return delta if _reencoded(old.data or b"", before, delta) == new.data else whole


def apply_image(old: ImageValue, delta: ImageDelta) -> ImageValue:
    """The new picture.

    Raises:
        ValueError, TypeError, KeyError, IndexError: The change does not fit.
        MissingDependencyError: Pillow is not installed.
    """
    require("PIL.Image", extra="observe", purpose="applying a change of a picture")
    before = _decoded(old)
    if before is None:
        raise ValueError("the old picture has no data, or it cannot be decoded")
    return apply_fields(old, delta.fields, {"data": _reencoded(old.data or b"", before, delta)})


def _reencoded(old: bytes, before: "Image", delta: ImageDelta) -> bytes:
    """The new file: the old one with the pixel data of the patched picture."""
    (head, tail), _ = _split(old)
    return head + _split(_encoded(_patched(before, delta), delta.encoder))[1] + tail


def _split(png: bytes) -> tuple[tuple[bytes, bytes], bytes]:
    """A PNG's chunks around its pixel data, and the chunks of pixel data (none of anything else)."""
    start = end = 0
    at = len(_SIGNATURE) if png.startswith(_SIGNATURE) else len(png)
    while at + 12 <= len(png):
        after = at + 12 + int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT" and end in (0, at):
            start, end = start or at, after
        at = after
    return (png[:start], png[end:]), png[start:end]


def _patched(before: "Image", delta: ImageDelta) -> "Image":
    from PIL import Image

    picture = before.copy()
    picture.info = {}
    for left, top, png in delta.patches:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as patch:
            if left + patch.width > picture.width or top + patch.height > picture.height:
                raise ValueError(f"a patch of {patch.size} pixels at ({left}, {top}) of {picture.size}")
            picture.paste(patch.copy(), (left, top))
    return picture


def _encoded(picture: "Image", encoder: str) -> bytes:
    if encoder not in _ENCODERS:
        raise ValueError(f"unknown encoder {encoder!r}; known: {', '.join(_ENCODERS)}")
    file = io.BytesIO()
    picture.save(file, format="PNG", **_ENCODERS[encoder])
    return file.getvalue()


def _decoded(value: ImageValue) -> "Image | None":
    """The picture without its metadata; None when there is none, it is too large, broken or animated."""
    if value.data is None:
        return None
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(value.data), formats=["PNG", "JPEG", "WEBP"]) as file:
            if file.width * file.height > MAX_PIXELS or getattr(file, "n_frames", 1) != 1:
                return None
            picture = file.copy()
    except Exception:  # Pillow raises of every sort for broken files
        return None
    picture.info = {}
    return picture


def _change(before: NDArray[Any], after: NDArray[Any]) -> ImageChange:
    """Changed tiles of two pictures (height, width[, channels]), gathered into rectangles."""
    differs = before != after
    if differs.ndim == 3:
        differs = differs.any(axis=-1)
    height, width = differs.shape
    tiles = np.logical_or.reduceat(differs, np.arange(0, height, _TILE), axis=0)
    tiles = np.logical_or.reduceat(tiles, np.arange(0, width, _TILE), axis=1)
    boxes = _boxes(tiles)
    if len(boxes) > _MAX_RECTANGLES:
        boxes = [(*np.min(boxes, axis=0)[:2].tolist(), *np.max(boxes, axis=0)[2:].tolist())]
    found = []
    for top, left, bottom, right in boxes:
        inside = differs[top * _TILE : bottom * _TILE, left * _TILE : right * _TILE]
        rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
        found.append(
            Rectangle(
                left * _TILE + int(columns[0]),
                top * _TILE + int(rows[0]),
                int(columns[-1] - columns[0]) + 1,
                int(rows[-1] - rows[0]) + 1,
            )
        )
    return ImageChange(tuple(sorted(found, key=lambda one: (one.top, one.left))), float(differs.mean()))


def _boxes(tiles: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """Boxes (top, left, bottom, right) in tiles around changed tiles; boxes that touch are one."""
    boxes: list[tuple[int, int, int, int]] = []
    for row in np.flatnonzero(tiles.any(axis=1)).tolist():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], tiles[row].astype(np.int8), [0]])))
        for left, right in edges.reshape(-1, 2).tolist():
            box = (row, left, row + 1, right)
            while True:
                touching = [one for one in boxes if _touch(one, box)]
                if not touching:
                    break
                boxes = [one for one in boxes if one not in touching]
                both = [*touching, box]
                box = (
                    min(one[0] for one in both),
                    min(one[1] for one in both),
                    max(one[2] for one in both),
                    max(one[3] for one in both),
                )
            boxes.append(box)
    return boxes


def _touch(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]
