"""Draws pages with Pillow and the fonts that come with matplotlib."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import MissingDependencyError, require
from sensorium.envs.visual_qa.documents.model import BoxItem, FontName, Page, RuleItem, TextItem

_FILES: dict[FontName, str] = {
    "sans": "DejaVuSans.ttf",
    "bold": "DejaVuSans-Bold.ttf",
    "serif": "DejaVuSerif.ttf",
    "mono": "DejaVuSansMono.ttf",
}
_ANCHORS = {"left": "la", "right": "ra", "center": "ma"}


def draw_page(page: Page) -> NDArray[np.uint8]:
    """The picture of a page.

    Returns:
        (height, width, 3) uint8.

    Raises:
        MissingDependencyError: Pillow or the fonts of matplotlib are not installed.
    """
    require("PIL", extra="observe", purpose="drawing documents")
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (page.width, page.height), page.paper)
    draw = ImageDraw.Draw(picture)
    for item in page.items:
        match item:
            case TextItem():
                font = _font(item.font, item.size)
                draw.text((item.x, item.y), item.text, item.color, font=font, anchor=_ANCHORS[item.align])
            case RuleItem():
                draw.line((item.x, item.y, item.to_x, item.to_y), item.color, item.width)
            case BoxItem():
                _draw_box(draw, item)
    return np.asarray(picture).copy()


def _draw_box(draw: Any, item: BoxItem) -> None:
    right, low = item.x + item.width, item.y + item.height
    draw.rectangle((item.x, item.y, right, low), fill=item.fill, outline=item.outline, width=2)
    if item.ticked:
        inset = 4
        draw.line((item.x + inset, item.y + inset, right - inset, low - inset), "#1b1b1b", 3)
        draw.line((item.x + inset, low - inset, right - inset, item.y + inset), "#1b1b1b", 3)


@functools.cache
def _font(name: FontName, size: int) -> Any:
    from PIL import ImageFont

    path = font_folder() / _FILES[name]
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


@functools.cache
def font_folder() -> Path:
    """Where the fonts are; matplotlib itself is not loaded.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    found = importlib.util.find_spec("matplotlib")
    if found is None or not found.submodule_search_locations:
        raise MissingDependencyError(
            "Drawing documents needs the fonts that come with matplotlib. "
            "Install it with: pip install 'sensorium[observe]'"
        )
    return Path(next(iter(found.submodule_search_locations))) / "mpl-data" / "fonts" / "ttf"
