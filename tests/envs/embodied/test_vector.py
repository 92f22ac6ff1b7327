from typing import Any

import numpy as np
import pytest
from cue_agents import ALL_SENSORS, KINDS, cue_env_config
from numpy.typing import NDArray

from sensorium.core import ActionKind, ConfigError
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv

pytestmark = pytest.mark.usefixtures("cue_backend")


def make(num_envs: int = 4, **options: Any) -> MultiModalVectorEnv:
    return MultiModalVectorEnv(cue_env_config(("rgb", "instruction"), **options), num_envs)


def cues(env: MultiModalVectorEnv) -> NDArray[np.int64]:
    return np.array([env.worlds.backend.describe(i)["cue"] for i in range(env.num_envs)])


@pytest.mark.parametrize("kind", KINDS)
def test_observations_and_actions_are_in_their_spaces(kind: ActionKind) -> None:
    env = MultiModalVectorEnv(cue_env_config(ALL_SENSORS, kind), 3)
    observation, _ = env.reset(seed=1)
    env.action_space.seed(0)
    for _ in range(6):
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert reward.shape == terminated.shape == truncated.shape == info["status"].shape == (3,)


def test_the_step_after_an_end_resets_and_ignores_the_action() -> None:
    env = make(length=2)
    first, _ = env.reset(seed=0)
    shown, seeds = cues(env), env.worlds.episode_seeds.copy()
    right, wrong = shown, (shown + 1) % 3
    env.step(right)
    last, reward, terminated, _, info = env.step(right)
    assert terminated.all()
    assert info["status"].tolist() == ["success"] * 4
    assert info["episode_return"].tolist() == [2.0] * 4
    assert info["episode_length"].tolist() == [2] * 4
    assert (info["episode_seed"] == seeds).all()
    assert last["instruction"] == first["instruction"]  # still the old episode
    after, reward, terminated, truncated, info = env.step(wrong)
    assert reward.tolist() == [0.0] * 4
    assert not terminated.any()
    assert not truncated.any()
    assert info["status"].tolist() == ["running"] * 4
    assert info["episode_return"].tolist() == [0.0] * 4
    assert info["episode_length"].tolist() == [0] * 4
    assert (info["episode_seed"] != seeds).all()
    assert after["timestamp_s"]["instruction"].tolist() == [0.0] * 4
    _, reward, _, _, _ = env.step(cues(env))
    assert reward.tolist() == [1.0] * 4  # the ignored action did no harm


def test_worlds_end_independently() -> None:
    env = make(length=3, break_at=1)
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(cues(env))
    assert truncated.tolist() == [True, False, False, False]
    assert not terminated.any()
    _, _, _, _, info = env.step(cues(env))
    assert info["episode_length"].tolist() == [0, 2, 2, 2]
    _, _, terminated, _, info = env.step(cues(env))
    assert info["episode_length"].tolist() == [1, 3, 3, 3]
    assert terminated.tolist() == [False, True, True, True]


def test_a_broken_world_is_an_error_without_reward() -> None:
    env = make(length=3, break_at=2)
    env.reset(seed=0)
    env.step(cues(env))
    _, reward, terminated, truncated, info = env.step(cues(env))
    assert info["status"].tolist() == ["error", "running", "running", "running"]
    assert reward.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert truncated.tolist() == [True, False, False, False]
    assert not terminated.any()
    _, _, _, _, info = env.step(cues(env))
    assert info["status"][0] == "running"  # it was started again


def test_the_step_limit_truncates() -> None:
    config = cue_env_config(length=50).model_copy(update={"max_episode_steps": 3})
    env = MultiModalVectorEnv(config, 2)
    env.reset(seed=0)
    for _ in range(2):
        _, _, terminated, truncated, _ = env.step(np.zeros(2, np.int64))
        assert not (terminated | truncated).any()
    _, _, terminated, truncated, info = env.step(np.zeros(2, np.int64))
    assert truncated.all()
    assert not terminated.any()
    assert info["status"].tolist() == ["truncated"] * 2


def test_an_end_at_the_step_limit_is_an_end() -> None:
    config = cue_env_config(length=3).model_copy(update={"max_episode_steps": 3})
    env = MultiModalVectorEnv(config, 2)
    env.reset(seed=0)
    for _ in range(3):
        _, _, terminated, truncated, info = env.step((cues(env) + 1) % 3)
    assert terminated.all()
    assert not truncated.any()
    assert info["status"].tolist() == ["failure"] * 2


@pytest.mark.parametrize("task", ["cue/match", "arena/find"])
def test_a_world_does_not_depend_on_how_many_there_are(task: str) -> None:
    """World 2 of 3 is world 0 of 1 with the same seed, byte for byte, over several episodes."""
    config = EmbodiedEnvConfig(
        task=task,
        visual_obs=("rgb", "depth"),
        audio_obs=("env_sound",),
        text_obs=("instruction",),
        action_space=ActionKind.DISCRETE,
        image_size=16,
        max_episode_steps=7,
    )
    many, one = MultiModalVectorEnv(config, 3), MultiModalVectorEnv(config, 1)
    a, _ = many.reset(seed=5)
    b, _ = one.reset(seed=7)
    rng = np.random.default_rng(0)
    for _ in range(20):
        for name in ("rgb", "depth", "env_sound"):
            assert a[name][2].tobytes() == b[name][0].tobytes()
        assert a["instruction"][2] == b["instruction"][0]
        action = rng.integers(many.single_action_space.n, size=3)  # type: ignore[attr-defined]
        a, ra, ta, ua, ia = many.step(action)
        b, rb, tb, ub, ib = one.step(action[2:])
        assert (ra[2], ta[2], ua[2]) == (rb[0], tb[0], ub[0])
        assert ia["episode_seed"][2] == ib["episode_seed"][0]
        assert ia["status"][2] == ib["status"][0]
    many.close()
    one.close()


def test_seeds_in_a_list_and_unseeded_resets() -> None:
    env, other = make(3), make(3)
    _, a = env.reset(seed=[4, 9, 6])
    _, b = other.reset(seed=4)
    assert a["episode_seed"][0] == b["episode_seed"][0]
    assert a["episode_seed"][2] == b["episode_seed"][2]
    assert a["episode_seed"][1] != b["episode_seed"][1]
    _, c = env.reset()
    assert (c["episode_seed"] != a["episode_seed"]).all()
    fresh, again = make(3), make(3)
    assert (fresh.reset()[1]["episode_seed"] != again.reset()[1]["episode_seed"]).all()
    with pytest.raises(ConfigError, match="got 2 seeds for 3 worlds"):
        env.reset(seed=[1, 2])


def test_slow_sensors_hold_their_reading() -> None:
    """rgb at 10/3 Hz in a 10 Hz world whose picture changes: first step shown, then nothing."""
    config = cue_env_config(("rgb", "depth"), first_step_only=True, length=7)
    env = MultiModalVectorEnv(config.model_copy(update={"sensor_rates_hz": {"rgb": 10 / 3}}), 2)
    first, _ = env.reset(seed=0)
    stamps, changed = [], []
    for _ in range(7):
        observation, *_ = env.step(np.zeros(2, np.int64))
        stamps.append(float(observation["timestamp_s"]["rgb"][0]))
        changed.append(bool((observation["rgb"] != first["rgb"]).any()))
        assert (observation["depth"] != first["depth"]).any()
    np.testing.assert_allclose(stamps, [0, 0, 0.3, 0.3, 0.3, 0.6, 0.6], atol=1e-6)
    assert changed == [False, False, True, True, True, True, True]
    np.testing.assert_allclose(observation["timestamp_s"]["depth"], 0.7, atol=1e-6)


def test_a_slow_sensor_is_read_anew_when_its_world_restarts() -> None:
    config = cue_env_config(("rgb",), length=5, break_at=1)
    env = MultiModalVectorEnv(config.model_copy(update={"sensor_rates_hz": {"rgb": 1.0}}), 2)
    first, _ = env.reset(seed=0)
    env.step(cues(env))
    second, *_ = env.step(cues(env))  # world 0 restarts, world 1 goes on
    assert (second["rgb"][0] != first["rgb"][0]).any()
    assert (second["rgb"][1] == first["rgb"][1]).all()
    assert second["timestamp_s"]["rgb"].tolist() == [0.0, 0.0]


def test_an_episode_constant_is_as_old_as_the_episode() -> None:
    env = make(length=5)
    env.reset(seed=0)
    for _ in range(3):
        observation, *_ = env.step(np.zeros(4, np.int64))
    assert observation["timestamp_s"]["instruction"].tolist() == [0.0] * 4
    np.testing.assert_allclose(observation["timestamp_s"]["rgb"], 0.3)


@pytest.mark.parametrize("option", [-1, 3])
def test_a_wrong_option_lists_those_there_are(option: int) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"cue/match has 3 options: red, green, blue"):
        env.step(np.array([0, 1, option, 2]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_action_that_is_not_finite_names_its_worlds(bad: float) -> None:
    env = MultiModalVectorEnv(cue_env_config(kind=ActionKind.CONTINUOUS), 3)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"not finite in worlds \[1\]"):
        env.step(np.array([[0.0], [bad], [0.0]], np.float32))


def test_continuous_actions_are_clipped() -> None:
    env = MultiModalVectorEnv(cue_env_config(kind=ActionKind.CONTINUOUS, num_cues=2), 3)
    env.reset(seed=0)
    level = 2.0 * cues(env)[:, None] - 1.0
    _, reward, *_ = env.step((level * 100).astype(np.float32))
    assert reward.tolist() == [1.0] * 3


def test_render_gives_a_picture_per_world() -> None:
    env = MultiModalVectorEnv(cue_env_config(), 2, render_mode="rgb_array")
    env.reset(seed=0)
    pictures = env.render()
    assert pictures is not None
    assert [p.shape for p in pictures] == [(32, 32, 3)] * 2
    assert make().render() is None


def test_readings_are_not_overwritten_by_the_next_step() -> None:
    env = MultiModalVectorEnv(cue_env_config(("rgb",), first_step_only=True), 2)
    first, _ = env.reset(seed=0)
    kept, present = first["rgb"].copy(), first["timestamp_s"]["rgb"].copy()
    env.step(np.zeros(2, np.int64))
    np.testing.assert_array_equal(first["rgb"], kept)
    np.testing.assert_array_equal(first["timestamp_s"]["rgb"], present)
