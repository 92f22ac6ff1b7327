"""What plain containers are: a notebook, a conversation, records, named files or raw states."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.kinds import kind_of_name
from sensorium.observations.source import Source

_LIBRARIES = ("pandas", "polars", "PIL", "torch", "jax", "jaxlib", "pyarrow", "tensorflow")
_LOOKED_AT = 1_000
_NESTING = 4
_PICTURE_NAMES = (
    "rgb",
    "image",
    "img",
    "frame",
    "screen",
    "screenshot",
    "picture",
    "photo",
    "gray",
    "pixels",
)
_CHANNELS = (3, 4)


def is_notebook(raw: Any) -> bool:
    """Whether a mapping is a notebook of any version."""
    if not isinstance(raw, Mapping):
        return False
    cells = raw.get("cells")
    if "nbformat" in raw and (isinstance(cells, list) or isinstance(raw.get("worksheets"), list)):
        return True
    first = cells[0] if isinstance(cells, list) and cells else None
    return isinstance(first, Mapping) and "cell_type" in first


def is_conversation(raw: Any) -> bool:
    """Whether it is a list of chat messages, or an object that holds one."""
    if isinstance(raw, Mapping):
        if "messages" not in raw and "role" not in raw:
            return False
    elif not raw or not isinstance(raw[0], Mapping) or "role" not in raw[0]:
        return False
    from sensorium.observations.messages import looks_like_messages

    return looks_like_messages(raw)


def is_records(raw: Sequence[Any]) -> bool:
    """Whether a list holds flat objects with much the same keys: the rows of a table."""
    if len(raw) < 2 or not all(isinstance(record, Mapping) and record for record in raw[:_LOOKED_AT]):
        return False
    first = raw[0].keys()
    for record in raw[:_LOOKED_AT]:
        keys = record.keys()
        if len(first & keys) * 2 < len(first | keys):
            return False
        if not all(value is None or isinstance(value, str | int | float) for value in record.values()):
            return False
    return all(isinstance(key, str) for key in first)


def has_file_names(raw: Mapping[Any, Any]) -> bool:
    """Whether all keys are names of files of known kinds and all values their texts."""
    return bool(raw) and all(
        isinstance(key, str) and isinstance(value, str) and "." in key and kind_of_name(key) is not None
        for key, value in list(raw.items())[:_LOOKED_AT]
    )


def is_perceivable(value: Any, nesting: int = 0) -> bool:
    """Whether a value in a container is a raw state of its own, or contains one."""
    if isinstance(value, str | int | float) or value is None:
        return False
    if isinstance(
        value, bytes | bytearray | memoryview | PurePath | Part | Observation | Source | BaseException
    ):
        return True
    if isinstance(value, Mapping):
        if is_notebook(value) or is_conversation(value):
            return True
        inner = list(value.values())[:_LOOKED_AT] if nesting < _NESTING else []
        return any(is_perceivable(one, nesting + 1) for one in inner)
    if isinstance(value, list | tuple):
        if is_conversation(value):
            return True
        inner = list(value[:_LOOKED_AT]) if nesting < _NESTING else []
        return any(is_perceivable(one, nesting + 1) for one in inner)
    if type(value).__module__.partition(".")[0] in _LIBRARIES:
        return True
    try:
        return hasattr(value, "__array__") and bool(getattr(value, "ndim", 0))
    except Exception:  # a stranger's object whose attributes raise
        return False


def modality_of_array(array: Any, name: str) -> Modality:
    """What an array with at least one dimension shows.

    8-bit arrays of 3 or 4 channels, last or first, are pictures, and so are 8-bit arrays whose name says so;
    two-dimensional ones whose name ends with ``depth`` are depth pictures; all others are arrays.
    """
    shape, dtype = tuple(array.shape), str(array.dtype).rpartition(".")[2]
    last = name.rsplit("/", 1)[-1].lower()
    if last.endswith(("depth", "depth_m", "depth_mm", "depthmap", "depth_map")):
        flat = [size for size in shape if size != 1]
        if len(flat) == 2:
            return Modality.DEPTH
    says_picture = any(word in last for word in _PICTURE_NAMES)
    is_picture = dtype == "uint8" and len(shape) == 3 and min(shape) > 0
    if is_picture and (shape[2] in _CHANNELS or (shape[0] in _CHANNELS and says_picture)):
        return Modality.IMAGE
    if says_picture and len(shape) in (2, 3) and min(shape[:2]) >= 2:
        is_level = dtype in ("uint8", "bool") or dtype.startswith("float")
        if is_level and (len(shape) == 2 or shape[2] in (1, *_CHANNELS) or shape[0] in (1, *_CHANNELS)):
            return Modality.IMAGE
    if last == "proprio":
        return Modality.PROPRIO if len(shape) == 1 else Modality.TABLE
    return Modality.TABLE
