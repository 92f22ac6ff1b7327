"""What can be told of any picture without a model: brightness, colours, and whether it is a photo."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

PictureKind = Literal["photo", "graphic", "blank"]

_NAMED_RGB = {
    "black": (0, 0, 0),
    "dark grey": (80, 80, 80),
    "grey": (150, 150, 150),
    "light grey": (205, 205, 205),
    "white": (255, 255, 255),
    "red": (215, 30, 35),
    "dark red": (120, 15, 20),
    "orange": (255, 140, 10),
    "brown": (125, 75, 40),
    "beige": (225, 200, 165),
    "yellow": (250, 225, 40),
    "olive": (110, 110, 40),
    "green": (45, 160, 60),
    "dark green": (20, 80, 35),
    "light green": (150, 215, 140),
    "turquoise": (40, 180, 175),
    "light blue": (150, 195, 235),
    "blue": (35, 110, 200),
    "dark blue": (20, 30, 100),
    "purple": (130, 60, 165),
    "pink": (240, 140, 180),
}
_SAMPLE = 256  # rows and columns that are looked at, at most
_BLOCK = 8


class PictureStatistics(NamedTuple):
    """Measures of one picture."""

    kind: PictureKind
    """`blank`: one colour all over; `graphic`: a chart, screenshot or drawing, mostly even surfaces."""
    brightness: float
    """Mean luma, 0 black to 1 white."""
    contrast: float
    """Standard deviation of the luma."""
    flatness: float
    """Share of blocks of 8 x 8 pixels that are of exactly one colour: over a half in most charts, near 0 in
    photos, as cameras are never without noise."""
    chart_likeness: float
    """0 to 1: an even background, thin marks on it, and straight lines along both sides, as charts have."""
    colours: tuple[tuple[str, float], ...]
    """Names of the most frequent colours and their shares, the most frequent first."""

    def as_data(self) -> dict[str, Any]:
        """As plain JSON data."""
        data = self._asdict()
        return data | {"colours": [{"name": name, "share": share} for name, share in self.colours]}

    @property
    def light(self) -> Literal["dark", "medium", "bright"]:
        """The brightness in a word."""
        return "dark" if self.brightness < 0.25 else "bright" if self.brightness > 0.75 else "medium"

    @property
    def summary(self) -> str:
        """In a few words, e.g. ``a graphic, probably a chart or a document; bright; mostly white, blue``."""
        if self.kind == "blank":
            return f"a blank picture, {self.colours[0][0]} all over" if self.colours else "a blank picture"
        what = (
            "a photo or a picture like one"
            if self.kind == "photo"
            else "a graphic (drawing, text or screenshot)"
        )
        if self.chart_likeness >= 0.6:
            what = "a graphic, probably a chart or a document"
        light = "of medium brightness" if self.light == "medium" else self.light
        return f"{what}; {light}; mostly {', '.join(name for name, _ in self.colours)}"


def picture_statistics(picture: NDArray[np.uint8]) -> PictureStatistics:
    """Measure a picture, from at most 256 x 256 of its pixels and 256 of its lines.

    Args:
        picture: (H, W, 3) uint8, sRGB.
    """
    luma = _luma(_thinned(picture))
    contrast = float(luma.std()) / 255.0
    flatness, evenness = _surfaces(picture)
    if float(np.ptp(luma)) <= 3.0 and flatness > 0.9:
        kind: PictureKind = "blank"
    else:
        # A thing cut out of a photo has an even ground, but is itself as noisy as any photo.
        kind = "graphic" if flatness > 0.25 and evenness > 0.2 else "photo"
    return PictureStatistics(
        kind=kind,
        brightness=round(float(luma.mean()) / 255.0, 3),
        contrast=round(contrast, 3),
        flatness=round(flatness, 3),
        chart_likeness=round(_chart_likeness(picture), 2) if kind == "graphic" else 0.0,
        colours=_colours(_thinned(picture)),
    )


def _thinned(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """At most 256 x 256 of the pixels, without mixing any."""
    rows, columns = (max(1, -(-length // _SAMPLE)) for length in picture.shape[:2])
    return picture[::rows, ::columns]


def _luma(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    luma: NDArray[np.float32] = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    return luma


def _surfaces(picture: NDArray[np.uint8]) -> tuple[float, float]:
    """Share of blocks of one colour, and share of equal neighbours in the other blocks (1 without others)."""
    side = min(_BLOCK, *picture.shape[:2])
    rows, columns = picture.shape[0] // side, picture.shape[1] // side
    blocks = picture[: rows * side, : columns * side].reshape(rows, side, columns, side, 3)
    blocks = blocks[:: max(1, rows // 64), :, :: max(1, columns // 64)]
    is_flat = (blocks == blocks[:, :1, :, :1]).all(axis=(1, 3, 4))
    across = (
        (blocks[:, :, :, 1:] == blocks[:, :, :, :-1]).all(axis=4).mean(axis=(1, 3)) if side > 1 else is_flat
    )
    others = across[~is_flat]
    return float(is_flat.mean()), float(others.mean()) if others.size else 1.0


def _chart_likeness(picture: NDArray[np.uint8]) -> float:
    """Even background (0.4), little ink (0.2), a long straight line across (0.2) and one upwards (0.2)."""
    height, width = picture.shape[:2]
    if min(height, width) < 32:
        return 0.0
    luma = _luma(
        picture if max(height, width) <= 1024 else picture[:: height // 1024 + 1, :: width // 1024 + 1]
    )
    values, counts = np.unique((luma / 4).astype(np.uint8), return_counts=True)
    background = 4.0 * float(values[counts.argmax()]) + 2.0
    ink = np.abs(luma - background) > 24
    share = float(1.0 - ink.mean())
    even = np.clip((share - 0.4) / 0.3, 0.0, 1.0)
    marks = 1.0 if 0.001 < ink.mean() < 0.45 else 0.0
    return float(even * (0.4 + 0.2 * marks + 0.2 * _has_line(ink) + 0.2 * _has_line(ink.T)))


def _has_line(ink: NDArray[np.bool_]) -> bool:
    """Whether some row is inked over half of its length in one piece, and not part of a thick bar."""
    length = ink.shape[1] // 2
    sums = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    is_line = (sums[:, length:] - sums[:, :-length] == length).any(axis=1)
    above = np.concatenate([np.zeros(4, np.bool_), is_line[:-4]])
    below = np.concatenate([is_line[4:], np.zeros(4, np.bool_)])
    return bool((is_line & ~(above & below)).any())


def _colours(picture: NDArray[np.uint8]) -> tuple[tuple[str, float], ...]:
    """Up to four names that cover at least 5 % each."""
    names = list(_NAMED_RGB)
    palette = np.array([_NAMED_RGB[name] for name in names], np.float32)
    is_grey = np.ptp(palette, axis=1) == 0
    # 4096 bins of colour first: a bin is named once, however many pixels it has.
    coarse = (picture >> 4).reshape(-1, 3).astype(np.int32)
    bins = np.bincount(coarse[:, 0] * 256 + coarse[:, 1] * 16 + coarse[:, 2], minlength=4096)
    used = np.flatnonzero(bins)
    rgb = np.stack([used // 256, used // 16 % 16, used % 16], axis=1).astype(np.float32) * 17.0
    distance = (rgb[:, None] - palette[None]) ** 2 @ np.array([0.3, 0.5, 0.2], np.float32)
    # What has hardly any colour is named as a grey, and what has some never, unless it is very dark.
    faint = np.ptp(rgb, axis=1) < 20
    coloured = ~faint & (rgb.max(axis=1) > 60)
    distance[np.ix_(faint, ~is_grey)] = np.inf
    distance[np.ix_(coloured, is_grey)] = np.inf
    nearest = distance.argmin(axis=1)
    shares = np.bincount(nearest, weights=bins[used], minlength=len(names)) / max(1, bins.sum())
    best = [int(index) for index in np.argsort(-shares, kind="stable")[:4]]
    kept = [index for index in best if shares[index] >= 0.05] or best[:1]
    return tuple((names[index], round(float(shares[index]), 3)) for index in kept)
