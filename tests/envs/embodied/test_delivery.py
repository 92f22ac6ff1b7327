"""A backend that does not deliver what it declares is told so at its first reading, or its first step."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from cue_agents import ALL_SENSORS, cue_env_config

from sensorium.core import EnvError
from sensorium.envs.embodied import BackendStep, MultiModalVectorEnv
from sensorium.envs.embodied.base import Reading

pytestmark = pytest.mark.usefixtures("cue_backend")

NUM_ENVS = 3


def without(name: str) -> Callable[[Mapping[str, Reading]], Mapping[str, Reading]]:
    return lambda readings: {key: reading for key, reading in readings.items() if key != name}


def changed(
    name: str, change: Callable[[Any], Any]
) -> Callable[[Mapping[str, Reading]], Mapping[str, Reading]]:
    return lambda readings: {**readings, name: change(readings[name])}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            without("proprio"),
            r"declares a sensor 'proprio' that observe\(\) does not deliver; it delivers .*rgb",
        ),
        (changed("proprio", lambda x: x[:, :1]), r"'proprio' with shape \(3, 1\).*shape \(3, 2\)"),
        (changed("proprio", lambda x: x.astype(np.float64)), "dtype float64.*dtype float32"),
        (changed("rgb", lambda x: x[0]), r"'rgb' with shape"),
        (changed("depth", lambda x: x.tolist()), "delivers a list for 'depth'"),
        (
            changed("instruction", lambda x: x[:1]),
            "delivers 1 texts for 'instruction'; expected one for each of 3",
        ),
    ],
)
def test_the_first_readings_are_compared_with_their_spaces(
    change: Callable[[Mapping[str, Reading]], Mapping[str, Reading]],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = MultiModalVectorEnv(cue_env_config(ALL_SENSORS), NUM_ENVS)
    observe = env.worlds.backend.observe
    monkeypatch.setattr(env.worlds.backend, "observe", lambda: change(observe()))
    with pytest.raises(EnvError, match=says):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("reward", lambda x: x[:, None], r"'reward' as \(3, 1\), float32; expected.*\(3,\), numbers"),
        ("reward", lambda x: x.tolist(), "'reward' as list"),
        ("terminated", lambda x: x.astype(np.int64), "'terminated' as .*int64; expected.*bools"),
        ("failed", lambda x: x.any(), "'failed'"),
    ],
)
def test_the_first_outcome_is_checked(
    part: str, change: Callable[[Any], Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = MultiModalVectorEnv(cue_env_config(("rgb",)), NUM_ENVS)
    env.reset(seed=0)
    step = env.worlds.backend.step

    def broken(*args: Any) -> BackendStep:
        outcome = step(*args)
        return outcome._replace(**{part: change(getattr(outcome, part))})

    monkeypatch.setattr(env.worlds.backend, "step", broken)
    with pytest.raises(EnvError, match=says):
        env.step(np.zeros(NUM_ENVS, np.int64))
