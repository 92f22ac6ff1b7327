import json
from typing import Any

import numpy as np
import pytest
from cue_agents import KINDS
from numpy.typing import NDArray

from sensorium.core import ActionKind
from sensorium.envs.embodied import Backend, EmbodiedEnvConfig
from sensorium.envs.embodied.registry import build_backend, find_task

pytestmark = pytest.mark.usefixtures("cue_backend")

TASKS = ("cue/match", "arena/find", "arena/listen", "arena/senses")
NUM_ENVS = 4
EVERYONE = np.ones(NUM_ENVS, np.bool_)
SEEDS = np.array([11, 12, 13, 14], np.uint64)


def make(task: str, kind: ActionKind = ActionKind.DISCRETE) -> Backend:
    spec = find_task(task)
    config = EmbodiedEnvConfig(
        task=task,
        visual_obs=spec.visual_obs,
        audio_obs=spec.audio_obs,
        text_obs=spec.text_obs,
        proprio=spec.proprio,
        action_space=kind,
        image_size=16,
    )
    backend = build_backend(config, NUM_ENVS)
    backend.reset(SEEDS, EVERYONE)
    return backend


def actions(backend: Backend, rng: np.random.Generator) -> tuple[Any, Any]:
    kind, spec = backend.action.kind, backend.action
    discrete = None if kind is ActionKind.CONTINUOUS else rng.integers(spec.num_options, size=NUM_ENVS)
    shape = (NUM_ENVS, spec.continuous_dim)
    continuous = None if kind is ActionKind.DISCRETE else rng.uniform(-1, 1, shape).astype(np.float32)
    return discrete, continuous


def rows(backend: Backend, worlds: NDArray[np.bool_]) -> list[bytes]:
    """Everything that is perceived in some worlds."""
    found = []
    for name, reading in sorted(backend.observe().items()):
        for world in np.flatnonzero(worlds):
            one: Any = reading[world]
            found.append(
                name.encode() + (one.encode() if isinstance(one, str) else np.asarray(one).tobytes())
            )
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_readings_are_in_their_spaces_and_steps_have_a_row_per_world(task: str, kind: ActionKind) -> None:
    backend, rng = make(task, kind), np.random.default_rng(0)
    assert isinstance(backend, Backend)
    assert tuple(backend.sensors) == find_task(task).sensors  # canonical order
    for _ in range(3):
        for name, reading in backend.observe().items():
            assert len(reading) == NUM_ENVS
            for one in reading:
                assert backend.sensors[name].space.contains(one), name
        step = backend.step(*actions(backend, rng), EVERYONE)
        *required, violated, truncated = step
        assert [x.dtype for x in required] == [np.float32, np.bool_, np.bool_, np.bool_]
        optional = [x for x in (violated, truncated) if x is not None]
        assert all(x.shape == (NUM_ENVS,) for x in [*required, *optional])
        assert all(x.dtype == np.bool_ for x in optional)
        assert not (step.success & step.failed).any()
    backend.close()
    backend.close()  # twice is harmless


@pytest.mark.parametrize("task", TASKS)
def test_worlds_that_are_not_active_stand_still(task: str) -> None:
    backend, rng = make(task), np.random.default_rng(0)
    active = np.array([True, False, True, False])
    before = rows(backend, ~active)
    for _ in range(2):
        step = backend.step(*actions(backend, rng), active)
        assert (step.reward[~active] == 0).all()
        assert not (step.terminated | step.success | step.failed)[~active].any()
    assert rows(backend, ~active) == before
    backend.close()


@pytest.mark.parametrize("task", TASKS)
def test_a_reset_touches_its_worlds_only_and_its_seed_decides(task: str) -> None:
    backend, rng = make(task), np.random.default_rng(0)
    start = rows(backend, EVERYONE)
    backend.step(*actions(backend, rng), EVERYONE)
    mask = np.array([False, True, True, False])
    others = rows(backend, ~mask)
    backend.reset(SEEDS, mask)
    assert rows(backend, ~mask) == others
    again = make(task)
    assert rows(again, EVERYONE) == start
    assert rows(backend, mask) == rows(again, mask)
    backend.close()
    again.close()


@pytest.mark.parametrize("task", TASKS)
def test_readings_are_fresh_copies(task: str) -> None:
    backend = make(task)
    before = rows(backend, EVERYONE)
    for reading in backend.observe().values():
        if isinstance(reading, np.ndarray):
            reading.fill(0)
    assert rows(backend, EVERYONE) == before
    backend.close()


@pytest.mark.parametrize("task", TASKS)
def test_per_episode_readings_stay_the_same(task: str) -> None:
    backend, rng = make(task), np.random.default_rng(0)
    constant = [name for name, spec in backend.sensors.items() if spec.per_episode]
    assert constant
    first = backend.observe()
    backend.step(*actions(backend, rng), EVERYONE)
    then = backend.observe()
    for name in constant:
        np.testing.assert_array_equal(np.asarray(first[name]), np.asarray(then[name]))
    backend.close()


@pytest.mark.parametrize("task", TASKS)
def test_pictures_and_truth_are_for_people(task: str) -> None:
    backend = make(task)
    picture = backend.render(0)
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert json.loads(json.dumps(backend.describe(0)))
    backend.close()
