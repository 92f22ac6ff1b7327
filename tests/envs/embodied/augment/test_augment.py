"""What the augmentations do to perception, and that an episode's seed alone decides it."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sensorium.core import ConfigError, Modality, parse_config
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalGym, MultiModalVectorEnv, SensorSpec
from sensorium.envs.embodied.augment import (
    AugmentConfig,
    ColorJitter,
    ModalDropout,
    RandomTimeWarp,
)
from sensorium.envs.embodied.augment.augmenter import Augmenter
from sensorium.envs.embodied.augment.color_jitter import JitterState, jitter, no_jitter
from sensorium.envs.embodied.augment.time_warp import TimeWarp

SENSORS = ("rgb", "depth", "speech", "env_sound", "instruction", "proprio")


def env_with(num_envs: int = 8, **augment: Any) -> MultiModalVectorEnv:
    values = {
        "task": "arena/find",
        "visual_obs": ("rgb", "depth"),
        "audio_obs": ("speech", "env_sound"),
        "text_obs": ("instruction",),
        "proprio": True,
        "max_episode_steps": 12,
        "augment": augment,
    }
    return MultiModalVectorEnv(parse_config(EmbodiedEnvConfig, values), num_envs)


def run(env: MultiModalVectorEnv, steps: int, seed: int = 3) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    seen = [env.reset(seed=seed)[0]]
    choices = rng.integers(0, 3, (steps, 64))
    seen += [env.step(choices[t, : env.num_envs])[0] for t in range(steps)]
    env.close()
    return seen


def present(observation: dict[str, Any]) -> np.ndarray:
    return np.array([observation["present"][name] for name in SENSORS])


def test_arguments_by_position() -> None:
    assert ModalDropout(0.1) == ModalDropout(p=0.1)
    assert RandomTimeWarp(0.2) == RandomTimeWarp(sigma=0.2)
    assert ColorJitter(0.4, 0.3, 0.2) == ColorJitter(brightness=0.4, contrast=0.3, saturation=0.2)
    with pytest.raises(TypeError, match="brightness, contrast, saturation, hue"):
        ColorJitter(0.1, 0.1, 0.1, 0.1, 0.1)
    env = MultiModalGym("arena/find", augment=AugmentConfig(modal_dropout=ModalDropout(0.3)))
    assert env.config.augment.modal_dropout == ModalDropout(0.3)
    env.close()


def test_nothing_configured_changes_nothing() -> None:
    for plain, augmented in zip(run(env_with(), 14), run(env_with(color_jitter=None), 14), strict=True):
        assert plain["rgb"].tobytes() == augmented["rgb"].tobytes()
        assert present(plain).all()


def test_dropout_is_per_episode_and_leaves_one_sense() -> None:
    seen = run(env_with(64, modal_dropout={"p": 0.5}), 11)
    masks = np.stack([present(o) for o in seen[:9]])
    assert (masks[0].sum(0) >= 1).all()
    share = 1 - masks[0].mean()
    assert 0.4 < share < 0.55  # 384 draws of 0.5, and redraws where all were absent
    changed = (masks[1:] != masks[:1]).any(axis=(0, 1))
    assert changed.mean() < 0.5  # only in worlds whose episode ended meanwhile


def test_dropout_of_some_sensors_only() -> None:
    seen = run(env_with(32, modal_dropout={"p": 0.9, "only": ["depth"]}), 3)
    absent = 1 - present(seen[0]).mean(1)
    assert absent[SENSORS.index("depth")] > 0.7
    assert absent.sum() == absent[SENSORS.index("depth")]
    with pytest.raises(ConfigError, match=r"modal_dropout.only.*'dept'.*depth"):
        env_with(modal_dropout={"p": 0.5, "only": ["dept"]})


def test_outage_begins_and_ends() -> None:
    seen = run(env_with(64, outage={"p": 0.5, "latest_onset_steps": 4, "min_steps": 2, "max_steps": 3}), 9)
    masks = np.stack([present(o) for o in seen])  # (time, sensors, worlds)
    assert masks.sum(1).min() >= 1
    gone = masks == 0
    assert 0.3 < gone.any(0).mean() < 0.65
    lengths = gone[:, :, :].sum(0)[gone.any(0)]
    assert lengths.max() <= 6  # two episodes at most within ten observations
    assert np.median(lengths) in (2, 3)


def test_outage_for_good_needs_no_end() -> None:
    seen = run(env_with(16, outage={"p": 0.9, "latest_onset_steps": 0, "max_steps": None}), 2)
    assert (present(seen[0]) == present(seen[1])).mean() > 0.9
    assert (present(seen[0]).sum(0) >= 1).all()
    with pytest.raises(ConfigError, match=r"max_steps \(3\) is less than min_steps \(5\)"):
        env_with(outage={"min_steps": 5, "max_steps": 3})


@pytest.mark.parametrize(
    "augment",
    [
        {"modal_dropout": {"p": 0.3}},
        {"outage": {"p": 0.5, "latest_onset_steps": 5}},
        {"time_warp": {"sigma": 0.5}},
        {"color_jitter": {}},
    ],
)
def test_a_world_does_not_depend_on_the_others(augment: dict[str, Any]) -> None:
    few, many = run(env_with(2, **augment), 30), run(env_with(5, **augment), 30)
    for a, b in zip(few, many, strict=True):
        for name in ("rgb", "depth", "env_sound"):
            assert a[name].tobytes() == b[name][:2].tobytes()
        for name in SENSORS:
            assert (a["present"][name] == b["present"][name][:2]).all()
            assert (a["timestamp_s"][name] == b["timestamp_s"][name][:2]).all()


def test_one_augmentation_leaves_the_draws_of_another_alone() -> None:
    alone = run(env_with(8, modal_dropout={"p": 0.4}), 5)
    both = run(env_with(8, modal_dropout={"p": 0.4}, color_jitter={}), 5)
    assert all((present(a) == present(b)).all() for a, b in zip(alone, both, strict=True))


def test_time_warp_is_causal_truthful_and_bounded() -> None:
    warped = run(env_with(16, time_warp={"sigma": 0.8, "max_lag_steps": 3, "knot_steps": 2}), 11)
    plain = run(env_with(16), 11)
    late = 0
    for t, observation in enumerate(warped):
        for name in ("rgb", "depth", "env_sound", "proprio"):
            stamps = observation["timestamp_s"][name]
            now = plain[t]["timestamp_s"][name]
            age = np.rint((now - stamps) * 10).astype(int)  # ten steps make a second
            assert age.min() >= 0
            assert age.max() <= 3
            late += int((age > 0).sum())
            for world in range(16):
                shown = plain[t - age[world]][name][world]
                assert observation[name][world].tobytes() == shown.tobytes()
        assert observation["speech"].tobytes() == plain[t]["speech"].tobytes()
        assert observation["instruction"] == plain[t]["instruction"]
    assert late > 50


def test_time_warp_by_hand() -> None:
    warp = TimeWarp(RandomTimeWarp(0.2, max_lag_steps=2, knot_steps=100), ("x",), 1, 100)
    warp._knots[:] = 0.5  # the clock runs at half speed: lag 0, 0.5, 1, 1.5, 2, 2
    shown = []
    for t in range(6):
        observation = {"x": np.array([[t]]), "timestamp_s": {"x": np.array([float(t)], np.float32)}}
        warp(observation, np.array([t]))
        shown.append((int(observation["x"][0, 0]), float(observation["timestamp_s"]["x"][0])))
    assert shown == [(0, 0.0), (1, 1.0), (1, 1.0), (2, 2.0), (2, 2.0), (3, 3.0)]


def test_color_jitter_by_hand() -> None:
    frames = np.array([[[[100, 50, 200]], [[20, 20, 20]]]], np.uint8)  # (1, 2, 1, 3)
    luma = 0.299 * 100 + 0.587 * 50 + 0.114 * 200  # 82.05
    mean = (luma + 20) / 2
    order = np.array([[0, 1, 2, 3]])
    bright = jitter(frames, JitterState(np.array([[1.5, 1, 1, 0]], np.float32), order))
    assert bright[0, :, 0].tolist() == [[150, 75, 255], [30, 30, 30]]
    contrast = jitter(frames, JitterState(np.array([[1, 0.5, 1, 0]], np.float32), order))
    assert contrast[0, 0, 0].tolist() == [round(mean + (x - mean) * 0.5) for x in (100, 50, 200)]
    grey = jitter(frames, JitterState(np.array([[1, 1, 0, 0]], np.float32), order))
    assert grey[0, 0, 0].tolist() == [82, 82, 82]
    assert (jitter(frames, no_jitter(1)) == frames).all()
    turned = jitter(frames, JitterState(np.array([[1, 1, 1, 0.5]], np.float32), order))
    assert turned[0, 1, 0].tolist() == pytest.approx([20, 20, 20], abs=1)  # grey has no hue
    assert turned[0, 0, 0, 1] > turned[0, 0, 0, 0]  # purple became green


def test_jitter_holds_for_an_episode_and_spares_depth() -> None:
    plain = run(env_with(8), 6)
    env = env_with(8, color_jitter={})
    env.reset(seed=3)
    drawn = JitterState(*(part.copy() for part in env.worlds.augmenter._jitter))
    env.close()
    jittered = run(env_with(8, color_jitter={}), 6)
    same_episode = np.ones(8, np.bool_)
    for t, (a, b) in enumerate(zip(jittered, plain, strict=True)):
        assert a["depth"].tobytes() == b["depth"].tobytes()
        same_episode &= b["timestamp_s"]["rgb"] == np.float32(t / 10)
        assert (a["rgb"] == jitter(b["rgb"], drawn))[same_episode].all()
    assert same_episode.any()
    assert len({row.tobytes() for row in drawn.factors}) == 8


def test_impossible_augmentations_are_refused() -> None:
    with pytest.raises(ConfigError, match="names its goal by colour"):
        env_with(color_jitter={"hue": 0.1})
    values = {
        "task": "arena/listen",
        "visual_obs": (),
        "audio_obs": ("env_sound",),
        "augment": {"color_jitter": {}},
    }
    with pytest.raises(ConfigError, match="needs the sensor rgb"):
        MultiModalVectorEnv(parse_config(EmbodiedEnvConfig, values), 1)
    with pytest.raises(ConfigError, match=r"augment\.modal_dropout\.p"):
        env_with(modal_dropout={"p": 1.0})


def test_pictures_without_colours_are_not_jittered() -> None:
    def sensor(name: str, *shape: int, dtype: Any = np.uint8, high: float = 255) -> SensorSpec:
        space = spaces.Box(0, high, shape, dtype)
        return SensorSpec(name=name, modality=Modality.IMAGE, space=space, rate_hz=10.0)

    plain = (
        sensor("labels", 4, 4, 1, dtype=np.int32, high=40),
        sensor("grey", 4, 4, 1),
        sensor("four", 4, 4, 4),
        sensor("shares", 4, 4, 3, dtype=np.float32, high=1),
    )
    config = AugmentConfig(color_jitter=ColorJitter())
    with pytest.raises(ConfigError, match=r"whole numbers from 0 to 255"):
        Augmenter(config, {spec.name: spec for spec in plain}, 1, 10)
    sensors = {spec.name: spec for spec in (*plain, sensor("left", 4, 4, 3))}
    augmenter = Augmenter(config, sensors, 1, 10)
    augmenter.begin(np.ones(1, np.bool_), np.array([1], np.uint64))
    before = {
        name: np.full((1, *(spec.space.shape or ())), 100, spec.space.dtype) for name, spec in sensors.items()
    }
    observation: dict[str, Any] = {**before, "present": {}}
    augmenter(observation, np.zeros(1, np.int64))
    assert [name for name in sensors if (observation[name] != before[name]).any()] == ["left"]


def test_stages_limit_the_senses_of_an_episode() -> None:
    env = env_with(64)
    allowed = np.zeros((2, len(SENSORS)), np.bool_)
    allowed[0, 0] = True
    allowed[1] = True
    env.worlds.augmenter.set_stages(allowed, np.array([0.25, 0.75]))
    observation, _ = env.reset(seed=0)
    stage = env.worlds.augmenter.stage.copy()
    env.close()
    assert present(observation)[:, stage == 0].sum(0).tolist() == [1] * int((stage == 0).sum())
    assert present(observation)[:, stage == 1].all()
    assert 0.1 < (stage == 0).mean() < 0.4


def test_combinations_are_drawn_uniformly() -> None:
    sets = [["rgb", "instruction"], ["depth", "speech"], list(SENSORS)]
    seen = run(env_with(64, combinations=sets), 1)
    masks = present(seen[0]).T
    found = [sum(bool((row == [name in s for name in SENSORS]).all()) for row in masks) for s in sets]
    assert sum(found) == 64
    assert min(found) > 10
    with pytest.raises(ConfigError, match=r"combinations\[1\].*'rbg'.*rgb"):
        env_with(combinations=[["rgb"], ["rbg"]])
    with pytest.raises(ConfigError, match=r"combinations\[0\] is empty"):
        env_with(combinations=[[]])
