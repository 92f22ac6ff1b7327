"""Pictures: files, addresses, arrays and Pillow pictures become parts.

A picture that needs no change keeps its bytes. Turned, deep, transparent, CMYK and profiled pictures are
brought into one form, so that whoever reads them later need not know; notes say what was done.
"""

import re
from typing import TYPE_CHECKING, Any

from sensorium.core import MissingDependencyError, Modality, ObservationError, require
from sensorium.observations.array import as_array
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode, decode_data_url, encodable
from sensorium.observations.files import file_bytes
from sensorium.observations.values import ImageValue, ProblemValue, TextValue, Value

if TYPE_CHECKING:
    from PIL import Image

MAX_FRAMES = 3
"""Pictures shown of an animation or a file of several pages: the first, the middle one and the last."""

MAX_COUNTED_FRAMES = 500
"""Frames that are counted: a hostile file can hold millions."""

_KEPT_MIMES = {"PNG": "image/png", "JPEG": "image/jpeg", "MPO": "image/jpeg", "WEBP": "image/webp"}
_SVG_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*|<!--(?:(?!-->).)*-->\s*|<!DOCTYPE[^>]*>\s*)*<(?:\w+:)?svg[\s>]", re.DOTALL
)
_SVG_WORDS = re.compile(r"<(?:title|desc|text|tspan)\b[^<>]{0,2000}>([^<>]{1,500})|<!--([^<>]{1,200}?)-->")
_SVG_SEARCHED_CHARS = 2_000_000
_SVG_WORDS_CHARS = 4_000
_SVG_SOURCE_CHARS = 20_000


def read_image(
    raw: Any,
    *,
    part_id: str,
    config: ReadConfig | None = None,
    url: str | None = None,
    alt: str = "",
) -> list[Part]:
    """Read one picture.

    Args:
        raw: Bytes of a file (PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF, ICO, PPM, JPEG 2000, SVG), an open
            binary file, a path, a Pillow picture, an array (see `observations.pixels.array_picture`;
            anything with ``__array__``, torch tensors too), or an address (``data:``, ``http:``, ``https:``).
        part_id: Id of the part; further frames are ``{part_id}/frame-N``.
        config: Limits on bytes and pixels, both checked before anything is decoded; whether addresses may be
            loaded.
        url: Where a client can load the picture.
        alt: What is known of it in words.

    Returns:
        A part with an `ImageValue`; up to `MAX_FRAMES` of them for an animation; a text part for SVG; a part
        with a `ProblemValue` when nothing could be read. An address that may not be loaded gives an
        `ImageValue` that holds only the address. Nothing about the content raises.
    """
    config = config or ReadConfig()
    reader = _Reader(part_id, config, None if url is None else encodable(url), encodable(alt))
    try:
        return reader.read(raw)
    except MissingDependencyError as error:
        return [reader.problem(str(error), mend="pip install 'sensorium[observe]'")]
    except ObservationError as error:
        return [reader.problem(str(error))]
    except Exception as error:  # hostile input can fail anywhere in a decoder: say so, read on
        return [reader.problem(f"The picture cannot be read: {type(error).__name__}: {error}")]


class _Reader:
    """Reads one picture; holds what all steps need."""

    def __init__(self, part_id: str, config: ReadConfig, url: str | None, alt: str) -> None:
        self.part_id = part_id
        self.config = config
        self.url = url
        self.alt = alt

    def read(self, raw: Any) -> list[Part]:
        if isinstance(raw, str):
            return self._read_address(encodable(raw))
        content = file_bytes(raw, self.config.max_bytes)
        if content is not None:
            return self._read_bytes(content)
        require("PIL", extra="observe", purpose="reading pictures")
        from PIL import Image

        if isinstance(raw, Image.Image):
            return self._read_picture(raw)
        if isinstance(raw, list | tuple) or hasattr(raw, "__array__"):
            return self._read_array(as_array(raw)[0])
        raise ObservationError(
            f"A {type(raw).__name__} is no picture; expected bytes, an open file, a path, an address, a "
            "Pillow picture or an array."
        )

    def problem(self, what: str, *, mend: str | None = None) -> Part:
        if mend is None:
            is_large = "at most" in what or "too large" in what
            mend = "scale the picture down, or raise reading.max_pixels / max_bytes" if is_large else ""
        where = self.url if self.url is not None else ""
        return self._part(ProblemValue(what=encodable(what), where=where, mend=mend))

    def _part(self, value: Value, *notes: str, suffix: str = "", modality: Modality = Modality.IMAGE) -> Part:
        return Part(id=self.part_id + suffix, modality=modality, value=value, notes=notes)  # type: ignore[arg-type]

    def _read_address(self, address: str) -> list[Part]:
        scheme = address[:8].partition(":")[0].lower()
        if scheme == "data":
            return self._read_bytes(decode_data_url(address, max_bytes=self.config.max_bytes))
        if scheme not in ("http", "https"):
            raise ObservationError(
                f"{address[:80]!r} is no address of a picture; expected data:, http: or https:. "
                "Give a file as pathlib.Path."
            )
        self.url = self.url or address
        if not self.config.allow_urls:
            return [
                self._part(ImageValue(url=self.url, alt=self.alt), "not loaded: reading.allow_urls is off")
            ]
        from sensorium.observations.urls import fetch

        return self._read_bytes(fetch(address, self.config))

    def _read_bytes(self, data: bytes) -> list[Part]:
        if len(data) > self.config.max_bytes:
            raise ObservationError(
                f"The picture file is too large; at most {self.config.max_bytes:,} bytes are read."
            )
        if _SVG_START.match(data[:4096].removeprefix(b"\xef\xbb\xbf")):
            return [self._svg(data)]
        require("PIL", extra="observe", purpose="reading pictures")
        from sensorium.observations import pixels

        with pixels.silence():
            picture = pixels.open_picture(data, max_pixels=self.config.max_pixels)
            picture, damage = pixels.decode(picture, data, max_pixels=self.config.max_pixels)
            return self._finish(picture, data, damage)

    def _read_picture(self, picture: "Image.Image") -> list[Part]:
        from sensorium.observations import pixels

        with pixels.silence():
            pixels.check_size(picture, self.config.max_pixels)
            picture, damage = pixels.decode(picture, b"", max_pixels=self.config.max_pixels)
            # A copy is the frame that the caller chose, and leaves the caller's picture where it is.
            return self._finish(picture.copy(), None, damage)

    def _read_array(self, array: Any) -> list[Part]:
        from sensorium.observations import pixels

        picture, notes = pixels.array_picture(array, max_pixels=self.config.max_pixels)
        (part,) = self._finish(picture, None, None)
        return [part.model_copy(update={"notes": notes + part.notes})]

    def _finish(self, picture: "Image.Image", data: bytes | None, damage: str | None) -> list[Part]:
        """Parts of a decoded picture, and of further frames behind it."""
        notes = (damage,) if damage else ()
        is_several = not damage and picture.format != "MPO" and bool(getattr(picture, "is_animated", False))
        # A photo's second picture (MPO) is a preview or a depth map: the first one is the photo.
        original = None if damage or is_several else data
        first = self._picture_part(picture, original, notes)
        if not is_several:
            return [first]
        count = _frame_count(picture, self.config.max_pixels)
        place = "the first of several pictures" if count is None else f"picture 1 of {count}"
        parts = [first.model_copy(update={"notes": (f"{place} in the file", *first.notes)})]
        last = (count or 1) - 1
        frames = sorted({round(i * last / (MAX_FRAMES - 1)) for i in range(MAX_FRAMES)})
        for frame in frames[1:]:
            try:
                picture.seek(frame)
                picture.load()
            except Exception:  # the file ends here
                break
            note = f"picture {frame + 1} of {count} in the file"
            parts.append(self._picture_part(picture, None, (note,), suffix=f"/frame-{frame}"))
        return parts

    def _picture_part(
        self, picture: "Image.Image", original: bytes | None, notes: tuple[str, ...], suffix: str = ""
    ) -> Part:
        from sensorium.observations import pixels

        standard = pixels.standardise(picture)
        mime = _KEPT_MIMES.get(picture.format or "")
        sha256 = pixels.pixel_hash(standard.picture)
        if original is not None and mime is not None and not standard.is_changed:
            data = original
        else:
            is_photo = picture.format in ("JPEG", "MPO")
            data = pixels.encode(standard.picture, sha256, as_jpeg=is_photo)
            mime = "image/jpeg" if is_photo else "image/png"
        value = ImageValue(
            data=data,
            mime=mime,  # type: ignore[arg-type]  # one of the three
            width=standard.picture.width,
            height=standard.picture.height,
            url=None if suffix else self.url,
            sha256=sha256,
            alt=self.alt,
        )
        return self._part(value, *notes, *standard.notes, suffix=suffix)

    def _svg(self, data: bytes) -> Part:
        source = decode(data).text
        found = _SVG_WORDS.findall(source[:_SVG_SEARCHED_CHARS])
        words = [" ".join((text or comment).split()) for text, comment in found]
        known = "; ".join(dict.fromkeys(word for word in [self.alt, *words] if word)) or "none"
        if len(known) > _SVG_WORDS_CHARS:
            known = known[:_SVG_WORDS_CHARS] + " ..."
        lines = [f"SVG drawing, {len(data):,} bytes of source. Words in it: {known}"]
        notes = ["a vector drawing, told in words"]
        if len(source) <= _SVG_SOURCE_CHARS:
            lines.append(source)
            notes = ["a vector drawing, shown as its source"]
        return self._part(TextValue(text="\n".join(lines)), *notes, modality=Modality.TEXT)


def _frame_count(picture: "Image.Image", max_pixels: int) -> int | None:
    """Number of pictures in the file; None when they are too many or too large to look at.

    Frames of an animation build on each other: to see the last one, all are decoded. `max_pixels` limits one
    frame (a later one may be larger than the first), and four times as many all of them together.
    """
    limit = min(MAX_COUNTED_FRAMES, 4 * max_pixels // (picture.width * picture.height))
    if picture.format in ("WEBP", "PNG"):  # its header tells
        count = int(getattr(picture, "n_frames", 1))
        return count if count <= limit else None
    count, left = 1, 4 * max_pixels
    while count <= limit:
        try:
            picture.seek(count)
        except Exception:  # the end, or damage: what comes before can be shown
            break
        left -= picture.width * picture.height
        if picture.width * picture.height > max_pixels or left < 0:
            return None
        count += 1
    return count if count <= limit else None
