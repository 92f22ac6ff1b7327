"""What a model reads, and features, survive JSON with numbers that JSON has no form for."""

import math

import numpy as np
import pytest

from sensorium.features.extractors.base import Features
from sensorium.llm.messages import AudioBlock, Message, OtherBlock, TextBlock
from sensorium.representations.base import Account, Representation

ODD = {"~": "nan", "x": [math.nan, -math.inf, 10**400, "NaN", None]}


def test_messages_survive() -> None:
    message = Message(
        role="assistant",
        content=(
            TextBlock(text="a", raw=ODD),
            OtherBlock(data=ODD),
            AudioBlock(data="", duration_s=math.inf),
        ),
        tool_calls=(ODD,),
        extra=ODD,
    )
    shown = Representation(messages=(message,), account=Account(entries=(), max_tokens=1, state_limit=1))
    assert repr(Representation.model_validate_json(shown.model_dump_json())) == repr(shown)


@pytest.mark.parametrize("vector", [None, np.array([1.5, math.nan, math.inf, -0.0], dtype=np.float32)])
def test_features_survive(vector: np.ndarray | None) -> None:
    found = Features(part_id="x", extractor="e", version="1", vector=vector, data=ODD, seconds=math.inf)
    again = Features.model_validate_json(found.model_dump_json())
    assert repr(again) == repr(found)
    assert (again.vector is None) == (vector is None)
    if again.vector is not None:
        assert again.vector.dtype == np.float32
