"""Pictures for tests: a photo-like one, a chart-like one, and their encodings."""

import io
import warnings
from typing import Any

import numpy as np
from PIL import Image, ImageDraw


def photo(width: int = 320, height: int = 240, seed: int = 0) -> Image.Image:
    """Soft shapes with fine grain: many colours, hard for PNG, different for every seed."""
    random = np.random.default_rng(seed)
    coarse = random.uniform(0, 255, (6, 8, 3)).astype(np.uint8)
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    grain = random.normal(0, 8, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(smooth) + grain, 0, 255).astype(np.uint8))


def chart(width: int = 320, height: int = 240) -> Image.Image:
    """Lines and boxes on white: few colours."""
    picture = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(picture)
    draw.line([(20, 10), (20, height - 20), (width - 10, height - 20)], fill="black", width=2)
    for i in range(8):
        left = 30 + i * (width - 50) // 8
        draw.rectangle([left, height - 30 - i * 20, left + 12, height - 22], fill=(200, 30 * i, 40))
    draw.text((width // 2, 12), "errors per hour", fill="black")
    return picture


def encoded(picture: Image.Image, form: str = "PNG", **settings: Any) -> bytes:
    """The picture as a file."""
    buffer = io.BytesIO()
    picture.save(buffer, form, **settings)
    return buffer.getvalue()


def decoded(data: bytes | None) -> np.ndarray:
    """(H, W, 3) uint8 of a file."""
    assert data is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged EXIF says nothing about the pixels
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
