"""Frames of any camera, as a film shows them."""

import numpy as np
import pytest
from gymnasium import spaces

from sensorium.core import Modality
from sensorium.envs.embodied import SensorSpec
from sensorium.evals.record import colour_frames


def camera(space: spaces.Box) -> SensorSpec:
    return SensorSpec(name="rgb", modality=Modality.IMAGE, space=space, rate_hz=10.0)


@pytest.mark.parametrize(("channels", "expected"), [(1, [7, 7, 7]), (2, [7, 7, 7]), (4, [7, 8, 9])])
def test_every_number_of_channels_has_colours(channels: int, expected: list[int]) -> None:
    frames = np.zeros((2, 4, 4, channels), np.uint8) + np.arange(7, 7 + channels, dtype=np.uint8)
    shown = colour_frames(frames, camera(spaces.Box(0, 255, (4, 4, channels), np.uint8)))
    assert (shown.shape, shown.dtype) == ((2, 4, 4, 3), np.uint8)
    assert shown[1, 2, 3].tolist() == expected


def test_other_numbers_are_scaled_from_the_range_of_the_sensor() -> None:
    frames = np.array([-1.0, 0.0, 1.0, 5.0, np.nan], np.float64).reshape(1, 5, 1, 1)
    shown = colour_frames(frames, camera(spaces.Box(-1, 1, (5, 1, 1), np.float64)))
    assert shown[0, :, 0, 0].tolist() == [0, 128, 255, 255, 0]


def test_without_a_range_the_frames_give_it() -> None:
    frames = np.array([2.0, 3.0, 4.0], np.float32).reshape(1, 3, 1, 1)
    shown = colour_frames(frames, camera(spaces.Box(-np.inf, np.inf, (3, 1, 1), np.float32)))
    assert shown[0, :, 0, 0].tolist() == [0, 128, 255]
