"""The picture of a part, decoded."""

import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, require
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue

if TYPE_CHECKING:
    from PIL import Image


def has_picture(part: Part) -> bool:
    """Whether the part holds an encoded picture; one of which only a URL is known is none."""
    return isinstance(part.value, ImageValue) and part.value.data is not None


def decode_picture(part: Part, *, max_pixels: int) -> "Image.Image":
    """Decode the picture of a part; transparent areas become white, as a page would show them.

    Args:
        part: One with an `ImageValue`.
        max_pixels: Most pixels that are decoded.

    Returns:
        A PIL image of mode RGB.

    Raises:
        FeatureError: There are no bytes, too many pixels, or the file is broken.
        MissingDependencyError: Pillow is not installed.
    """
    image_module = require("PIL.Image", extra="observe", purpose="looking at pictures")
    value = part.value
    if not isinstance(value, ImageValue) or value.data is None:
        raise FeatureError("there are no bytes of the picture, only its address")
    stream = io.BytesIO(value.data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own limit: ours is checked below
            picture: Image.Image = image_module.open(stream)
            width, height = picture.size
            if width * height > max_pixels:
                raise FeatureError(
                    f"the picture has {width} x {height} pixels, more than the {max_pixels:,} of max_pixels"
                )
            if "transparency" in picture.info or picture.mode in ("RGBA", "LA", "PA"):
                picture = picture.convert("RGBA")
                page = image_module.new("RGBA", picture.size, "white")
                picture = image_module.alpha_composite(page, picture)
            return picture.convert("RGB")
    except FeatureError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything for broken files
        reason = str(error).replace(repr(stream), "the data")
        raise FeatureError(f"the picture cannot be decoded ({type(error).__name__}: {reason})") from error


def pixels(picture: "Image.Image") -> NDArray[np.uint8]:
    """The pixels of a picture of mode RGB, (H, W, 3) uint8, read-only."""
    array: NDArray[np.uint8] = np.asarray(picture)
    return array
