"""Whether a backend delivers what it declares: asked of its first readings and its first step.

A backend that somebody is writing should fail at once and in words, not inside a network.
"""

from collections.abc import Mapping

import numpy as np

from sensorium.core import EnvError
from sensorium.envs.embodied.base import BackendStep, Reading, SensorSpec


def check_readings(
    readings: Mapping[str, Reading], sensors: Mapping[str, SensorSpec], task: str, num_envs: int
) -> None:
    """Compare readings with the spaces of their sensors; values are not looked at.

    Raises:
        EnvError: A sensor is missing, or its reading has another shape or dtype than its space.
    """
    for name, spec in sensors.items():
        if name not in readings:
            delivered = ", ".join(sorted(readings)) or "nothing"
            raise EnvError(
                f"The backend of {task} declares a sensor {name!r} that observe() does not deliver; it "
                f"delivers {delivered}."
            )
        reading, shape = readings[name], spec.space.shape
        if shape is None:  # texts
            if len(reading) != num_envs:
                raise EnvError(
                    f"observe() of {task} delivers {len(reading)} texts for {name!r}; expected one for each "
                    f"of {num_envs} worlds."
                )
            continue
        expected = f"an array of shape {(num_envs, *shape)} and dtype {np.dtype(spec.space.dtype)}"
        if not isinstance(reading, np.ndarray):
            raise EnvError(
                f"observe() of {task} delivers a {type(reading).__name__} for {name!r}; expected {expected}."
            )
        if reading.shape != (num_envs, *shape) or reading.dtype != spec.space.dtype:
            raise EnvError(
                f"observe() of {task} delivers {name!r} with shape {reading.shape} and dtype "
                f"{reading.dtype}; its space asks for {expected}. Change one of them."
            )


def check_outcome(outcome: BackendStep, task: str, num_envs: int) -> None:
    """Check shapes and dtypes of a step's outcome; integers in the place of truth values count wrongly.

    Raises:
        EnvError: A part has the wrong shape, or a dtype that it must not have.
    """
    for part, value in outcome._asdict().items():
        if part in ("violated", "truncated") and value is None:
            continue
        kinds, wanted = ("fiu", "numbers") if part == "reward" else ("b", "bools")
        if not isinstance(value, np.ndarray) or value.shape != (num_envs,) or value.dtype.kind not in kinds:
            found = getattr(value, "shape", type(value).__name__), getattr(value, "dtype", "no dtype")
            raise EnvError(
                f"step() of {task} returns {part!r} as {found[0]}, {found[1]}; expected a NumPy array of "
                f"shape ({num_envs},), {wanted}."
            )
