"""From observations of an environment to readings of sensors: square pictures, texts, one vector."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image

from sensorium.core import EnvError
from sensorium.envs.embodied.gymnasium_env.senses import CHANNELS, WRAPPER_HINT, Part

# Pillow shrinks RGBA with its alpha multiplied in, which is wrong for four grey frames: CMYK has none.
_MODES = {1: "L", 3: "RGB", 4: "CMYK"}

_MAX_TEXT_CHARS = 4096


def value_of(observation: Any, part: Part, task: str) -> Any:
    """The value of one leaf of an observation.

    Raises:
        EnvError: The observation is not nested as its space is; names the part.
    """
    value = observation
    for key in part.path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError) as error:
            raise EnvError(
                f"{task} observed nothing for {part.name!r}, which its observation space has "
                f"({type(error).__name__}: {error})."
            ) from error
    return value


def square(picture: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Squeeze the whole of a picture into a square: each pixel is the mean of those it stands for.

    Args:
        picture: (height, width, channels), 1, 3 or 4 channels.
        size: Height and width of the result, (size, size, channels); larger than the picture repeats pixels.
    """
    return _resized(picture, size, size)


def fitted(picture: NDArray[np.uint8], longest: int) -> NDArray[np.uint8]:
    """Shrink a picture until neither side is longer than `longest` pixels; the aspect stays.

    Args:
        picture: (height, width, channels), 1, 3 or 4 channels.
        longest: Pixels; a picture that fits is copied.
    """
    height, width = picture.shape[:2]
    scale = min(1.0, longest / max(height, width))
    return _resized(picture, max(1, round(height * scale)), max(1, round(width * scale))).copy()


def _resized(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    if picture.shape[:2] == (height, width):
        return picture
    flat = picture[..., 0] if picture.shape[2] == 1 else picture
    image = Image.fromarray(np.ascontiguousarray(flat)) if flat.ndim == 2 else _colour(flat)
    small = np.asarray(image.resize((width, height), Image.Resampling.BOX), np.uint8)
    return small.reshape(height, width, picture.shape[2])


def _colour(pixels: NDArray[np.uint8]) -> Image.Image:
    height, width, channels = pixels.shape
    return Image.frombytes(_MODES[channels], (width, height), np.ascontiguousarray(pixels).tobytes())


class PictureReader:
    """Reads one picture of an observation.

    Args:
        part: A leaf whose space `senses.is_picture` knows.
        task: Name for messages.
        size: Height and width of a reading.
    """

    def __init__(self, part: Part, task: str, size: int) -> None:
        self._part = part
        self._task = task
        self._size = size
        self._shape = tuple(part.space.shape or ())
        self._grey = len(self._shape) == 2
        self._channels_first = not self._grey and self._shape[2] not in CHANNELS
        channels = 1 if self._grey else self._shape[0 if self._channels_first else 2]
        self.space = spaces.Box(0, 255, (size, size, channels), np.uint8)
        """Space of a reading, (size, size, channels)."""

    def __call__(self, observation: Any) -> NDArray[np.uint8]:
        """The picture, (size, size, channels).

        Raises:
            EnvError: It is not what its space says.
        """
        pixels = np.asarray(value_of(observation, self._part, self._task))
        if pixels.shape != self._shape or pixels.dtype.kind not in "iu":
            raise EnvError(
                f"{self._task} observed {self._part.name!r} as {pixels.dtype} of shape {pixels.shape}; its "
                f"space promises uint8 of shape {self._shape}. {WRAPPER_HINT}."
            )
        picture = pixels.astype(np.uint8, copy=False)
        if self._grey:
            picture = picture[..., None]
        elif self._channels_first:
            picture = np.moveaxis(picture, 0, 2)
        return square(picture, self._size)


class TextReader:
    """Reads one text of an observation.

    Args:
        part: A leaf whose space `senses.is_text` knows.
        task: Name for messages.
    """

    def __init__(self, part: Part, task: str) -> None:
        self._part = part
        self._task = task
        own = part.space
        self.space = (
            own
            if isinstance(own, spaces.Text)
            else spaces.Text(_MAX_TEXT_CHARS, min_length=0, charset=frozenset(string.printable))
        )
        """Space of a reading; a wide one where the environment's own is not `spaces.Text`."""

    def __call__(self, observation: Any) -> str:
        """The text.

        Raises:
            EnvError: It is no text.
        """
        text = value_of(observation, self._part, self._task)
        if not isinstance(text, str):
            raise EnvError(
                f"{self._task} observed a {type(text).__name__} for {self._part.name!r}; its space promises "
                f"a text. {WRAPPER_HINT}."
            )
        return str(text)


class NumbersReader:
    """Reads all numbers of an observation as one vector: boxes flattened, choices one-hot.

    Args:
        parts: Leaves whose spaces are Box, Discrete, MultiDiscrete or MultiBinary.
        task: Name for messages.
    """

    def __init__(self, parts: Sequence[Part], task: str) -> None:
        self._parts = parts
        self._task = task
        sizes = [int(spaces.flatdim(part.space)) for part in parts]
        self.labels = tuple(
            part.name if part.space.shape == () and size == 1 else f"{part.name}[{i}]"
            for part, size in zip(parts, sizes, strict=True)
            for i in range(size)
        )
        """Name of each entry, ``key[i]``."""
        bounds = [_bounds(part.space) for part in parts]
        low, high = (np.concatenate(side) for side in zip(*bounds, strict=True))
        self.space = spaces.Box(low, high, dtype=np.float32)
        """Space of a reading, (dim,) float32."""

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """The vector, (dim,).

        Raises:
            EnvError: A value is not in its space's shape or range, or not finite; names the part.
        """
        rows = [self._row(part, value_of(observation, part, self._task)) for part in self._parts]
        vector = np.concatenate(rows)
        if not np.isfinite(vector).all():
            wrong = [label for label, ok in zip(self.labels, np.isfinite(vector), strict=True) if not ok]
            raise EnvError(
                f"{self._task} observed a number that is not finite (in float32) in {', '.join(wrong[:8])}. "
                f"A policy cannot learn from it. {WRAPPER_HINT}."
            )
        return vector

    def _row(self, part: Part, value: Any) -> NDArray[np.float32]:
        space = part.space
        numbers = np.asarray(value)
        if numbers.shape != (space.shape or ()) or numbers.dtype.kind not in "biuf":
            raise EnvError(
                f"{self._task} observed {part.name!r} as {numbers.dtype} of shape {numbers.shape}; its space "
                f"is {space}. {WRAPPER_HINT}."
            )
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            return self._one_hot(part, numbers)
        with np.errstate(over="ignore"):  # becomes infinite, which is told
            return numbers.astype(np.float32).reshape(-1)

    def _one_hot(self, part: Part, chosen: NDArray[Any]) -> NDArray[np.float32]:
        options, start = _options(part.space)
        indices = chosen.reshape(-1).astype(np.int64) - start
        if ((indices < 0) | (indices >= options)).any():
            raise EnvError(
                f"{self._task} observed {chosen.tolist()} for {part.name!r}, which is not in {part.space}."
            )
        row = np.zeros(int(options.sum()), np.float32)
        row[np.cumsum(options) - options + indices] = 1.0
        return row


def _options(space: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of options and first option of each choice."""
    if isinstance(space, spaces.Discrete):
        return np.array([space.n], np.int64), np.array([space.start], np.int64)
    return space.nvec.reshape(-1).astype(np.int64), space.start.reshape(-1).astype(np.int64)


def _bounds(space: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of each entry; rounded outwards, so that every value stays inside."""
    if not isinstance(space, spaces.Box):
        size = int(spaces.flatdim(space))
        return np.zeros(size, np.float32), np.ones(size, np.float32)
    with np.errstate(over="ignore"):
        low, high = (side.reshape(-1).astype(np.float32) for side in (space.low, space.high))
    low = np.where(low > space.low.reshape(-1), np.nextafter(low, np.float32(-np.inf)), low)
    high = np.where(high < space.high.reshape(-1), np.nextafter(high, np.float32(np.inf)), high)
    return low.astype(np.float32), high.astype(np.float32)


def frame_of(drawn: Any, task: str) -> NDArray[np.uint8]:
    """What `render` returned as a picture, (height, width, 3).

    Raises:
        EnvError: It is no picture.
    """
    if isinstance(drawn, np.ndarray) and drawn.ndim == 3 and drawn.dtype == np.uint8:
        if drawn.shape[2] == 1:
            return np.repeat(drawn, 3, axis=2)
        if drawn.shape[2] in CHANNELS:
            return drawn[..., :3]
    what = f"{drawn.dtype} of shape {drawn.shape}" if isinstance(drawn, np.ndarray) else type(drawn).__name__
    raise EnvError(
        f"render() of {task} returned {what}; a picture is expected, uint8 of shape (height, width, 3)."
    )
