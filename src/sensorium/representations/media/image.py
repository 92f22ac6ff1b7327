"""The ways to show a picture: whole within its limits, as thumbnails, in words."""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sensorium.core import MissingDependencyError, ObservationError
from sensorium.features.extractors.base import Features
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock, ImageBlock, TextBlock
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue
from sensorium.representations.base import Level, Variant
from sensorium.representations.config import ImageConfig
from sensorium.representations.media.words import line_beside, text_instead, words_of_picture

Serve = Callable[[bytes, str], str]
"""Keeps encoded bytes of a MIME type and returns the address under which a client can load them."""

UNKNOWN_SIDE_PX = 1024
"""Side that is counted for a picture of which only the address is known."""

MIN_SIDE_PX = 32
"""Longest side of the smallest thumbnail."""

WORDS_RETAINED = 0.15
"""What a description keeps of a picture's information: the objects, not where and how they are."""

READ_TEXT_RETAINED = 0.4
"""What the text that was read in a picture keeps of it, e.g. of a screenshot: words, not layout and marks."""


class _Useful(NamedTuple):
    """Which thumbnails are worth the time of encoding them."""

    counter: TokenCounter
    compression_ratio: float

    def sizes(self, width: int, height: int, sides: Iterable[int]) -> list[int]:
        """Longest sides that cost less than those before and no less than the ratio allows, descending."""
        from sensorium.representations.media.encode import scaled_size

        whole = last = self.counter.image(width, height)
        kept = []
        for side in sorted({s for s in sides if MIN_SIDE_PX <= s < max(width, height)}, reverse=True):
            tokens = self.counter.image(*scaled_size(width, height, side))
            if self.compression_ratio * whole <= tokens < last:
                kept.append(side)
                last = tokens
        return kept


class _Shown(NamedTuple):
    """An address for a picture of a size."""

    url: str
    width: int
    height: int
    why: str


def image_variants(
    part: Part,
    config: ImageConfig,
    counter: TokenCounter,
    *,
    compression_ratio: float,
    serve: Serve | None = None,
    features: Mapping[str, Features] | None = None,
) -> list[Variant]:
    """Build all variants of a picture, from whole to words.

    - FULL: within `max_size_kb` and `max_side_px` (see `media.encode.fit`).
    - THUMBNAIL: half the side, `thumbnail_px` and half of that, as far as each costs fewer tokens than the
      one before and at least `compression_ratio` of FULL. What a thumbnail retains is estimated as the square
      root of the share of its side: half the side, 0.71; a quarter, 0.5.
    - SUMMARY: words alone, when caption or extractors gave any, or when the picture cannot be shown.

    With ``encoding: words`` there is only the SUMMARY. With ``encoding: url``, blocks hold the picture's own
    address where the original is sent unchanged, otherwise that which `serve` returns; without either the
    picture is embedded, and `why` says so.

    Args:
        part: One with an `ImageValue`.
        config: Limits and encoding.
        counter: Counts pictures by its model's rule.
        compression_ratio: Smallest share of FULL's tokens that a thumbnail may cost, in (0, 1].
        serve: Registers bytes with a media store.
        features: Extractor -> what it found in this picture.

    Returns:
        At least one variant, the largest first. A picture that cannot be decoded or made small enough gives
        one SUMMARY that says so.

    Raises:
        TypeError: The part is no picture.
    """
    value = _image_of(part)
    description, read = words_of_picture(part, features or {})
    if config.encoding == "words":
        return [_told(part, description, read, counter, "")]
    try:
        shown = _shown(value, config, serve, _Useful(counter, compression_ratio))
    except Exception as error:  # bytes that were not read by `read_image` may break any decoder
        return [_told(part, description, read, counter, _problem(error))]
    variants = _pictures(shown, line_beside(description, read), counter, compression_ratio)
    if description or read:
        words = _told(part, description, read, counter, "")
        if words.tokens < variants[-1].tokens:
            variants.append(words)
    return variants


def crop(part: Part, region: tuple[int, int, int, int]) -> Part:
    """Cut a region out of a picture, at the picture's full resolution.

    Args:
        part: One with an `ImageValue` that has bytes.
        region: Left, top, right, bottom in pixels of the picture; right and bottom lie outside the region.
            What reaches over an edge is cut off.

    Returns:
        A part with the region as PNG (JPEG of quality 95 when the picture is one), named
        ``{part.id}/region-{left}-{top}-{right}-{bottom}``.

    Raises:
        ValueError: The region lies outside the picture or is empty; the message says how large that is.
        TypeError: The part is no picture.
        ObservationError: The picture has no bytes, or they cannot be decoded.
        MissingDependencyError: Pillow is not installed.
    """
    from sensorium.observations.pixels import encode, pixel_hash
    from sensorium.representations.media.encode import open_value

    value = _image_of(part)
    picture = open_value(value)
    left, top = max(region[0], 0), max(region[1], 0)
    right, bottom = min(region[2], picture.width), min(region[3], picture.height)
    if left >= right or top >= bottom:
        raise ValueError(
            f"Region {region} of {part.id} is empty; expected left, top, right, bottom within "
            f"0, 0, {picture.width}, {picture.height}."
        )
    cut = picture.crop((left, top, right, bottom))
    is_photo, sha256 = value.mime == "image/jpeg", pixel_hash(cut)
    piece = ImageValue(
        data=encode(cut, sha256, as_jpeg=is_photo),
        mime="image/jpeg" if is_photo else "image/png",
        width=cut.width,
        height=cut.height,
        sha256=sha256,
        alt=value.alt,
    )
    note = f"pixels {left}-{right} x {top}-{bottom} of {picture.width}x{picture.height}"
    name = f"{part.id}/region-{left}-{top}-{right}-{bottom}"
    return part.model_copy(update={"id": name, "value": piece, "notes": (*part.notes, note)})


def _image_of(part: Part) -> ImageValue:
    if not isinstance(part.value, ImageValue):
        raise TypeError(f"{part.id} is {part.value.kind}, not a picture.")
    return part.value


def _problem(error: Exception) -> str:
    """Why a picture cannot be shown."""
    match error:
        case MissingDependencyError():
            return f"cannot be encoded: {error}"
        case ObservationError():
            return str(error)
        case _:
            return f"cannot be shown: {type(error).__name__}: {error}"


def _shown(value: ImageValue, config: ImageConfig, serve: Serve | None, useful: _Useful) -> list[_Shown]:
    """The picture within its limits, and thumbnails from large to small."""
    if value.data is None:
        return [_by_address(value, config)]
    from sensorium.representations.media.encode import fit

    limit = int(config.max_size_kb * 1024)
    full = fit(value, max_bytes=limit, max_side_px=config.max_side_px, quality=config.quality)
    if full is None:
        raise ObservationError(f"not even one pixel fits image.max_size_kb = {config.max_size_kb:g}")
    shown = [_address(full.data, full.mime, (full.width, full.height), full.why, value, config, serve)]
    # Thumbnails are made from FULL, so that a large original is decoded once.
    source = value.model_copy(
        update={"data": full.data, "mime": full.mime, "width": full.width, "height": full.height}
    )
    side = max(full.width, full.height)
    sides = (side // 2, config.thumbnail_px, config.thumbnail_px // 2)
    for smaller in useful.sizes(full.width, full.height, sides):
        small = fit(source, max_bytes=limit, max_side_px=smaller, quality=config.quality)
        if small is not None:
            why = f"{small.width}x{small.height} of {value.width or full.width}x{value.height or full.height}"
            size = (small.width, small.height)
            shown.append(_address(small.data, small.mime, size, why, value, config, serve))
    return shown


def _by_address(value: ImageValue, config: ImageConfig) -> _Shown:
    if value.url is None:
        raise ObservationError("the picture has neither bytes nor an address")
    if config.encoding != "url":
        raise ObservationError(
            f"the picture behind {value.url} was not loaded, so it cannot be embedded: set "
            "reading.allow_urls, or image.encoding to url"
        )
    width, height = value.width or UNKNOWN_SIDE_PX, value.height or UNKNOWN_SIDE_PX
    is_known = value.width is not None and value.height is not None
    return _Shown(value.url, width, height, "" if is_known else f"by address; counted as {width}x{height}")


def _address(
    data: bytes,
    mime: str,
    size: tuple[int, int],
    why: str,
    value: ImageValue,
    config: ImageConfig,
    serve: Serve | None,
) -> _Shown:
    if config.encoding == "url":
        if value.url is not None and data == value.data:
            return _Shown(value.url, *size, why)
        if serve is not None:
            return _Shown(serve(data, mime), *size, why)
        why = f"{why}; " if why else ""
        why += "embedded, because no media store serves it"
    return _Shown(f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}", *size, why)


def _pictures(
    shown: Sequence[_Shown], line: str, counter: TokenCounter, compression_ratio: float
) -> list[Variant]:
    """FULL and the thumbnails, each with the line beside it."""
    variants = [_picture(Level.FULL, shown[0], line, counter, 1.0)]
    side = max(shown[0].width, shown[0].height)
    for thumbnail in shown[1:]:
        if counter.image(thumbnail.width, thumbnail.height) < compression_ratio * variants[0].tokens:
            continue  # `max_size_kb` made it smaller than was planned
        retained = math.sqrt(max(thumbnail.width, thumbnail.height) / side)
        variants.append(_picture(Level.THUMBNAIL, thumbnail, line, counter, retained))
    return variants


def _picture(level: Level, shown: _Shown, line: str, counter: TokenCounter, retained: float) -> Variant:
    blocks: tuple[AnyBlock, ...] = (ImageBlock(url=shown.url, width=shown.width, height=shown.height),)
    tokens = counter.image(shown.width, shown.height)
    if line:
        blocks = (TextBlock(text=line), *blocks)
        tokens += counter.text(line)
    return Variant(level, blocks, tokens, retained, shown.why)


def _told(part: Part, description: str, read: str, counter: TokenCounter, problem: str) -> Variant:
    """The picture in words alone; `problem` says why it cannot be shown, if so."""
    text = text_instead(part, description, read)
    if problem:
        text += f"\nNot shown: {problem}"
    retained = READ_TEXT_RETAINED if read else WORDS_RETAINED if description else 0.0
    why = problem or "in words only"
    return Variant(Level.SUMMARY, (TextBlock(text=text),), counter.text(text), retained, why)
