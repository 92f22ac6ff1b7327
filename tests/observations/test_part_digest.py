from typing import Any

import pytest

from sensorium.core import Modality
from sensorium.observations.base import Part
from sensorium.observations.values import ArrayValue, AudioValue, ImageValue, StructuredValue, TextValue


def digest(value: Any, **changes: Any) -> str:
    return Part(**({"id": "a", "modality": Modality.IMAGE, "value": value} | changes)).digest


def test_only_content_counts() -> None:
    value = ImageValue(data=b"\x00\xff" * 100, width=10, height=20)
    same = ImageValue(data=b"\x00\xff" * 100, width=10, height=20)
    assert digest(value) == digest(same, id="b", importance=3.0, timestamp_s=1.0, notes=("x",))
    assert len(digest(value)) == 32


@pytest.mark.parametrize(
    "other",
    [
        ImageValue(data=b"abd", width=10),
        ImageValue(data=b"abc", width=11),
        ImageValue(data=b"", width=10),
        ImageValue(width=10),
        ImageValue(data=b"abc", width=10, mime="image/webp"),
        AudioValue(data=b"abc", rate_hz=10, channels=1, duration_s=1.0),
        ArrayValue(dtype="uint8", shape=(3,), data=b"abc"),
        StructuredValue(data="abc"),
        TextValue(text="abc"),
    ],
)
def test_every_difference_counts(other: Any) -> None:
    assert digest(other) != digest(ImageValue(data=b"abc", width=10))


def test_text_of_any_kind_has_a_digest() -> None:
    assert digest(StructuredValue(data={"data": "x"})) != digest(StructuredValue(data={"data": "y"}))
