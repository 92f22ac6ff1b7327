"""From what a picture shows to the bytes of its file."""

import functools
import io
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from sensorium.core import require
from sensorium.envs.visual_qa.charts.model import Chart
from sensorium.envs.visual_qa.documents.model import Page
from sensorium.envs.visual_qa.scenes.doom import DoomScene
from sensorium.envs.visual_qa.scenes.model import Scene

Picture = Annotated[Chart | Page | Scene | DoomScene, Field(discriminator="family")]
"""What a picture shows."""
_ADAPTER: TypeAdapter[Picture] = TypeAdapter(Picture)
_ENLARGED = 768  # pixels of the longer side of an enlarged part
_MOST_TIMES = 4.0


def draw(shown: dict[str, Any]) -> bytes:
    """Draw a picture.

    Args:
        shown: A `Picture` as JSON.

    Returns:
        A PNG file that holds pixels and nothing else; the same for the same picture.

    Raises:
        MissingDependencyError: What draws it is not installed.
    """
    return _drawn(_ADAPTER.validate_python(shown))


def enlarge(data: bytes, left: float, top: float, right: float, bottom: float) -> bytes:
    """A part of a picture, enlarged up to four times.

    Args:
        data: PNG file.
        left: Left edge as a share of the width, in [0, 1].
        top: Upper edge as a share of the height, in [0, 1].
        right: Right edge, greater than `left`.
        bottom: Lower edge, greater than `top`.

    Returns:
        A PNG file.
    """
    require("PIL", extra="observe", purpose="enlarging pictures")
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    width, height = picture.size
    x, y = min(int(left * width), width - 1), min(int(top * height), height - 1)
    box = (x, y, max(round(right * width), x + 1), max(round(bottom * height), y + 1))
    part = picture.crop(box)
    times = min(_MOST_TIMES, max(1.0, _ENLARGED / max(part.size)))
    size = (max(1, round(part.width * times)), max(1, round(part.height * times)))
    return _png(part.resize(size, Image.Resampling.LANCZOS))


@functools.lru_cache(maxsize=64)
def _drawn(picture: Picture) -> bytes:
    from PIL import Image

    return _png(Image.fromarray(_pixels(picture)))


def _pixels(picture: Picture) -> NDArray[np.uint8]:
    match picture:
        case Chart():
            from sensorium.envs.visual_qa.charts.drawing import draw_chart

            return draw_chart(picture)
        case Page():
            from sensorium.envs.visual_qa.documents.drawing import draw_page

            return draw_page(picture)
        case Scene():
            from sensorium.envs.visual_qa.scenes.drawing import draw_scene

            return draw_scene(picture)
        case DoomScene():
            from sensorium.envs.visual_qa.scenes.doom import draw_doom

            return draw_doom(picture)


def _png(picture: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=6)
    return file.getvalue()
