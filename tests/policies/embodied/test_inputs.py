"""What sensors of any backend become for a policy, and which ones it cannot read."""

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import DTypeLike

from sensorium.core import Modality, PolicyError
from sensorium.envs.embodied import SensorSpec
from sensorium.policies.embodied.inputs import sensor_inputs
from sensorium.representations.tensors import SensorInput


def box(*shape: int, dtype: DTypeLike = np.float32, low: float = 0, high: float = 255) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)  # type: ignore[arg-type]


def described(modality: Modality, space: spaces.Space, *, per_episode: bool = False) -> SensorInput:
    spec = SensorSpec(name="probe", modality=modality, space=space, rate_hz=10.0, per_episode=per_episode)
    return sensor_inputs({"probe": spec}, None)[0]


@pytest.mark.parametrize(
    ("modality", "space", "dtype"),
    [
        (Modality.IMAGE, box(8, 8, 3, dtype=np.uint8), "uint8"),
        (Modality.IMAGE, box(8, 8, 3, dtype=np.int64), "uint8"),
        (Modality.IMAGE, box(8, 8, 1, dtype=np.int32, high=4000), "float32"),
        (Modality.IMAGE, box(8, 8, 3, dtype=np.float64, high=1), "float32"),
        (Modality.DEPTH, box(8, 8, 1, dtype=np.float64), "float32"),
        (Modality.DEPTH, box(8, 8, 1, dtype=np.uint8), "float32"),
        (Modality.AUDIO, box(2, 4, 8, dtype=np.float64), "float32"),
        (Modality.PROPRIO, box(4, dtype=np.float64), "float32"),
        (Modality.PROPRIO, box(4, dtype=np.int64), "float32"),
        (Modality.PROPRIO, spaces.MultiBinary(4), "float32"),
    ],
)
def test_a_policy_reads_bytes_of_pixels_and_float32(
    modality: Modality, space: spaces.Space, dtype: str
) -> None:
    assert described(modality, space).dtype == dtype


@pytest.mark.parametrize(
    ("modality", "space", "says"),
    [
        (Modality.IMAGE, box(3, 8, 8), r"\(3, 8, 8\).*channels seem to come first.*moveaxis"),
        (Modality.IMAGE, box(8, 8), r"\(8, 8\).*\(height, width, channels\)"),
        (Modality.DEPTH, box(1, 8, 8), "channels seem to come first"),
        (Modality.DEPTH, box(8, 8), r"\(height, width, 1\)"),
        (Modality.PROPRIO, box(2, 3), r"\(dim,\)"),
        (Modality.PROPRIO, spaces.Discrete(7), r"shape \(\).*\(dim,\)"),
        (Modality.AUDIO, box(16000), r"\(frames, mels\).*waveform"),
    ],
)
def test_a_layout_that_no_encoder_reads_is_refused(
    modality: Modality, space: spaces.Space, says: str
) -> None:
    with pytest.raises(PolicyError, match=f"'probe'.*{says}"):
        described(modality, space)


def test_a_picture_of_a_whole_episode_is_read_as_any_other() -> None:
    goal = described(Modality.IMAGE, box(8, 8, 3, dtype=np.uint8), per_episode=True)
    assert (goal.tabled, goal.dtype) == (False, "uint8")
    assert described(Modality.AUDIO, box(4, 8), per_episode=True).tabled
