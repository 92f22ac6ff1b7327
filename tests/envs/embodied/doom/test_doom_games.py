"""The engine itself: what is sensed, that episodes are reproducible, and that acting has its effect."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sensorium.core import ActionKind
from sensorium.envs.embodied.base import Backend, Reading
from sensorium.envs.embodied.config import SENSOR_ORDER, EmbodiedEnvConfig
from sensorium.envs.embodied.doom.scenarios import SCENARIOS
from sensorium.envs.embodied.registry import build_backend

pytestmark = pytest.mark.doom
pytest.importorskip("vizdoom")

ALL_SENSORS: dict[str, Any] = {
    "visual_obs": ("rgb", "depth"),
    "audio_obs": ("speech", "env_sound"),
    "text_obs": ("instruction", "notifications"),
    "proprio": True,
}
QUICK = ("basic", "deadly_corridor", "take_cover")


@contextmanager
def running(
    task: str, num_envs: int = 1, *, options: Mapping[str, Any] | None = None, **config: Any
) -> Iterator[Backend]:
    backend = build_backend(
        EmbodiedEnvConfig(task=task, backend_options={"in_process": True} | dict(options or {}), **config),
        num_envs,
    )
    try:
        yield backend
    finally:
        backend.close()


def seeds(*values: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def everyone(backend: Backend) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.ones(backend.num_envs, np.bool_)


def as_bytes(reading: Reading, world: int) -> bytes:
    return reading[world].encode() if isinstance(reading, list) else reading[world].tobytes()


def play(backend: Backend, world: int, steps: int) -> list[tuple[bytes, ...]]:
    """All that one world senses, with new episodes when one ends or gets long; the other worlds differ."""
    rng = np.random.default_rng(5)
    episode = 0
    start = np.arange(backend.num_envs, dtype=np.uint64) + np.uint64(100)
    start[world] = 7
    backend.reset(start, everyone(backend))
    record = []
    for step in range(steps):
        action = np.full(backend.num_envs, rng.integers(backend.action.num_options))
        outcome = backend.step(action, None, everyone(backend))
        assert not outcome.failed.any()
        readings = backend.observe()
        sensed = (as_bytes(readings[name], world) for name in readings)
        record.append((*sensed, outcome.reward[world].tobytes()))
        ended = outcome.terminated | (step % 70 == 69)
        if ended.any():
            episode += int(ended[world])
            again = start + np.uint64(1000 * episode)
            backend.reset(again, ended)
    assert episode > 0
    return record


@pytest.mark.parametrize("waveform", [False, True])
def test_readings_fit_their_spaces(waveform: bool) -> None:
    with running("doom/basic", 2, waveform=waveform, **ALL_SENSORS) as backend:
        assert tuple(backend.sensors) == SENSOR_ORDER
        backend.reset(seeds(1, 2), everyone(backend))
        for _ in range(3):
            readings = backend.observe()
            for name, spec in backend.sensors.items():
                reading = readings[name]
                assert len(reading) == 2
                for world in range(2):
                    assert spec.space.contains(reading[world]), name
                if isinstance(spec.space, spaces.Box):
                    assert isinstance(reading, np.ndarray)
                    assert reading.dtype == spec.space.dtype
            backend.step(np.array([3, 1]), None, everyone(backend))
        readings = backend.observe()
        assert isinstance(readings["depth"], np.ndarray)
        assert 5.0 < readings["depth"].max() < 20.0
        sound = readings["env_sound"]
        assert isinstance(sound, np.ndarray)
        assert sound[0].std() > 2 * sound[1].std() or sound[0].max() > sound[1].max()  # it fires
        proprio = dict(
            zip(backend.sensors["proprio"].labels, np.asarray(readings["proprio"])[0], strict=True)
        )
        assert proprio["health"] == 1.0
        assert proprio["ammo"] == pytest.approx(49 / 50)


@pytest.mark.parametrize("task", ["doom/deadly_corridor", "doom/find"])
def test_same_seed_same_bytes_in_process_and_in_workers(task: str) -> None:
    with running(task, **ALL_SENSORS) as backend:
        alone = play(backend, 0, 200)
        again = play(backend, 0, 200)
    workers = {"in_process": False, "num_workers": 2}
    with running(task, 3, options=workers, **ALL_SENSORS) as backend:
        among_others = play(backend, 2, 200)
    assert alone == again
    assert alone == among_others


def test_sound_of_one_episode_does_not_reach_into_the_next() -> None:
    with running("doom/deadly_corridor", audio_obs=("env_sound",), waveform=True) as backend:
        starts = []
        for noisy_steps in (0, 3, 5):  # the corridor is loudest from the third step on
            backend.reset(seeds(1), everyone(backend))
            for _ in range(noisy_steps):
                backend.step(np.array([3]), None, everyone(backend))
            loudest = np.abs(np.asarray(backend.observe()["env_sound"])).max()
            assert (loudest > 0.1) == (noisy_steps > 0)
            backend.reset(seeds(7), everyone(backend))
            sounds = [as_bytes(backend.observe()["env_sound"], 0)]
            for _ in range(10):
                backend.step(np.array([0]), None, everyone(backend))
                sounds.append(as_bytes(backend.observe()["env_sound"], 0))
            starts.append(sounds)
        assert starts[0] == starts[1] == starts[2]


def test_other_seed_other_episode() -> None:
    with running("doom/basic", 3) as backend:
        backend.reset(seeds(1, 2, 1 + 2**32), everyone(backend))
        rgb = np.asarray(backend.observe()["rgb"])
        assert not (rgb[0] == rgb[1]).all()
        assert not (rgb[0] == rgb[2]).all()


def test_only_active_worlds_advance_and_rows_of_others_are_zero() -> None:
    with running("doom/basic", 2) as backend:
        backend.reset(seeds(1, 2), everyone(backend))
        before = backend.describe(1)
        outcome = backend.step(np.array([1, 1]), None, np.array([True, False]))
        assert outcome.reward.tolist() == [-4.0, 0.0]
        assert backend.describe(1) == before
        assert backend.describe(0)["position"][1] > 0


@pytest.mark.parametrize("kind", list(ActionKind))
def test_scripted_marksman_kills_the_monster(kind: ActionKind) -> None:
    with running("doom/basic", action_space=kind, options={"objects": True}) as backend:
        backend.reset(seeds(11), everyone(backend))
        total, outcome = 0.0, None
        for _ in range(75):
            truth = backend.describe(0)
            monster = next(o for o in truth["objects"] if o["name"] == "Cacodemon")
            off = monster["position"][1] - truth["position"][1]  # positive: to the left
            aimed = abs(off) < 15
            option = {
                ActionKind.DISCRETE: 3 if aimed else (1 if off > 0 else 2),
                ActionKind.HYBRID: int(aimed),
            }
            strafe = 0.0 if aimed else float(np.clip(-off / 40, -1, 1))
            parameters = [strafe, 1.0 if aimed else -1.0] if kind is ActionKind.CONTINUOUS else [strafe]
            outcome = backend.step(
                None if kind is ActionKind.CONTINUOUS else np.array([option[kind]]),
                None if kind is ActionKind.DISCRETE else np.array([parameters], np.float32),
                everyone(backend),
            )
            total += float(outcome.reward[0])
            if outcome.terminated[0]:
                break
        assert outcome is not None
        assert outcome.terminated[0]
        assert outcome.success[0]
        assert total > 50


def test_terminal_reading_repeats_the_last_and_the_dead_do_not_succeed() -> None:
    with running("doom/take_cover") as backend:
        backend.reset(seeds(3), everyone(backend))
        for _ in range(525):
            before = np.asarray(backend.observe()["rgb"])
            outcome = backend.step(np.array([0]), None, everyone(backend))
            if outcome.terminated[0]:
                break
            assert outcome.success[0]  # alive so far: a success if the step limit came now
        assert outcome.terminated[0]
        assert not outcome.success[0]
        assert before.any()
        np.testing.assert_array_equal(np.asarray(backend.observe()["rgb"]), before)


def test_message_names_the_target_once() -> None:
    with running("doom/basic_notifications", text_obs=("notifications",)) as backend:
        backend.reset(seeds(3), everyone(backend))
        heard = []
        for _ in range(5):
            backend.step(np.array([0]), None, everyone(backend))
            heard += [text for text in backend.observe()["notifications"] if text]
        assert len(heard) == 1
        assert heard[0].startswith("Shoot: ")


def test_stereo_tells_where_the_invisible_monster_is() -> None:
    with running(
        "doom/basic_audio", 8, audio_obs=("env_sound",), options={"objects": True}, waveform=True
    ) as backend:
        backend.reset(np.arange(8, dtype=np.uint64), everyone(backend))
        backend.step(np.zeros(8, np.int64), None, everyone(backend))
        energy = np.square(np.asarray(backend.observe()["env_sound"])).sum(axis=-1)
        louder_left = energy[:, 0] - energy[:, 1]
        for world in range(8):
            truth = backend.describe(world)
            monster = next(o for o in truth["objects"] if o["name"] == "Cacodemon")
            off = monster["position"][1] - truth["position"][1]
            if abs(off) > 40:
                assert np.sign(louder_left[world]) == np.sign(off), world


def test_render_shows_the_engines_own_picture() -> None:
    with running(
        "doom/basic", 2, text_obs=("instruction",), visual_obs=(), options={"resolution": "320x240"}
    ) as backend:
        backend.reset(seeds(1, 2), everyone(backend))
        picture = backend.render(1)
        assert picture.shape == (240, 320, 3)
        assert picture.std() > 10


def test_no_files_are_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("here", "temporary"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for in_process in (True, False):
        with running("doom/basic", options={"in_process": in_process}) as backend:
            backend.reset(seeds(1), everyone(backend))
        backend.close()
    assert Path.cwd() == tmp_path / "here"
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "temporary"]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SCENARIOS]
)
def test_every_scenario_runs_with_every_kind_of_action(name: str) -> None:
    rng = np.random.default_rng(0)
    for kind in ActionKind:
        with running(f"doom/{name}", action_space=kind, proprio=True) as backend:
            spec = backend.action
            backend.reset(seeds(1), everyone(backend))
            for _ in range(5):
                outcome = backend.step(
                    rng.integers(spec.num_options, size=1) if spec.num_options else None,
                    rng.uniform(-1, 1, (1, spec.continuous_dim)).astype(np.float32)
                    if spec.continuous_dim
                    else None,
                    everyone(backend),
                )
                assert np.isfinite(outcome.reward).all()
                if outcome.terminated[0]:
                    break
            assert np.isfinite(np.asarray(backend.observe()["proprio"])).all()
