import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from sensorium.core import ActionKind, ConfigError, EnvError
from sensorium.envs.embodied import MultiModalGym, MultiModalVectorEnv, register_envs

ALL_SENSES: dict[str, Any] = {
    "visual_obs": ["rgb", "depth"],
    "audio_obs": ["speech", "env_sound"],
    "text_obs": ["instruction"],
    "proprio": True,
}


@pytest.mark.parametrize("kind", list(ActionKind))
@pytest.mark.parametrize("task", ["arena/find", "cue/match"])
def test_gymnasium_checker_passes(task: str, kind: ActionKind, cue_backend: None) -> None:
    register_envs()
    name = f"sensorium/{task.replace('/', '-')}-v0"
    env = gymnasium.make(
        name, **ALL_SENSES, action_space=kind, render_mode="rgb_array", image_size=16
    ).unwrapped
    assert isinstance(env, MultiModalGym)
    with warnings.catch_warnings():
        # Times have no upper bound, and levels of the cue backend none at all: the checker finds that odd.
        warnings.filterwarnings(
            "ignore", message=".*A Box observation space (max|min)imum value is -?infinity.*"
        )
        check_env(env)
    env.close()
    env.close()  # twice is harmless


def test_the_constructor_reads_like_the_documentation() -> None:
    env = MultiModalGym(
        "arena/find",
        visual_obs=["rgb", "depth"],
        audio_obs=["speech", "env_sound"],
        text_obs=["instruction"],
        proprio=True,
        action_space="hybrid",
        max_episode_steps=500,
        num_envs=3,
    )
    assert isinstance(env, MultiModalVectorEnv)
    observation, info = env.reset(seed=0)
    assert observation["rgb"].shape == (3, 48, 48, 3)
    assert set(observation["present"]) == set(observation["timestamp_s"]) == set(env.worlds.sensors)
    assert info["status"].tolist() == ["running"] * 3
    env.close()


def test_one_world_without_num_envs(cue_backend: None) -> None:
    env = MultiModalGym("cue/match")
    assert isinstance(env, MultiModalGym)
    assert env.config.max_episode_steps == 100  # the task's own limit
    assert MultiModalGym("cue/match", max_episode_steps=3).config.max_episode_steps == 3


def test_gymnasium_make() -> None:
    register_envs()
    register_envs()  # harmless when repeated
    env = gymnasium.make("sensorium/arena-find-v0", visual_obs=["rgb"], image_size=16)
    observation, _ = env.reset(seed=3)
    assert env.observation_space.contains(observation)
    assert isinstance(env.unwrapped, MultiModalGym)
    env.close()


def test_gymnasium_make_vec_is_native() -> None:
    register_envs()
    env = gymnasium.make_vec("sensorium/arena-find-v0", num_envs=4, visual_obs=["depth"], image_size=16)
    assert isinstance(env.unwrapped, MultiModalVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observation, _ = env.reset(seed=3)
    assert observation["depth"].shape == (4, 16, 16, 1)
    assert env.observation_space.contains(observation)
    env.step(env.action_space.sample())
    env.close()


def test_every_task_is_registered() -> None:
    register_envs()
    for name in ("arena-find", "arena-listen", "arena-senses", "doom-basic"):
        assert f"sensorium/{name}-v0" in gymnasium.registry


def test_seed_decides_the_episodes(cue_backend: None) -> None:
    def first_episodes(seed: int | None, env: MultiModalGym) -> list[int]:
        seeds = [env.reset(seed=seed)[1]["episode_seed"]]
        return seeds + [env.reset()[1]["episode_seed"] for _ in range(2)]

    env, other = MultiModalGym("cue/match"), MultiModalGym("cue/match")
    a = first_episodes(5, env)
    assert len(set(a)) == 3
    assert first_episodes(5, env) == a  # whatever ran before
    assert first_episodes(5, other) == a
    assert first_episodes(6, other) != a


def test_an_episode_ends_with_its_status(cue_backend: None) -> None:
    env = MultiModalGym("cue/match", backend_options={"length": 2})
    env.reset(seed=0)
    cue = env.worlds.backend.describe(0)["cue"]
    _, reward, terminated, truncated, info = env.step(cue)
    assert (reward, terminated, truncated, info["status"]) == (1.0, False, False, "running")
    _, reward, terminated, truncated, info = env.step(cue)
    assert (reward, terminated, truncated, info["status"]) == (1.0, True, False, "success")
    with pytest.raises(EnvError, match=r"without a running episode\. Call reset\(\) first"):
        env.step(cue)


def test_step_before_reset(cue_backend: None) -> None:
    with pytest.raises(EnvError, match="reset"):
        MultiModalGym("cue/match").step(0)


def test_render_only_when_asked(cue_backend: None) -> None:
    silent, shown = MultiModalGym("cue/match"), MultiModalGym("cue/match", render_mode="rgb_array")
    for env in (silent, shown):
        env.reset(seed=0)
    assert silent.render() is None
    picture = shown.render()
    assert picture is not None
    assert picture.shape == (32, 32, 3)
    assert picture.dtype == np.uint8


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"task": "arena/fnd"}, r"Unknown task 'arena/fnd'\. Did you mean 'arena/find'"),
        ({"task": "arna/find"}, r"Unknown task 'arna/find'\. Did you mean 'arena/find'"),
        ({"visual_obs": ["rgbd"]}, r"no sensor 'rgbd' in visual_obs; it offers rgb, depth"),
        ({"visual_obs": ["speech"]}, r"'speech' belongs in audio_obs"),
        ({"visual_obs": ["rgb", "rgb"]}, r"visual_obs names a sensor twice: rgb, rgb"),
        ({"visual_obs": []}, r"needs a sense.*rgb, depth, speech, env_sound, instruction, proprio"),
        ({"text_obs": ["notifications"]}, r"no sensor 'notifications' in text_obs; it offers instruction"),
        ({"action_space": "fly"}, r"'discrete', 'continuous' or 'hybrid'"),
        ({"sensor_rates_hz": {"depth": 5}}, r"sets 'depth', which is not among the sensors: rgb"),
        ({"sensor_rates_hz": {"rgb": 11}}, r"is 11.0; cue/match reads sensors at most at 10 Hz"),
        ({"sensor_rates_hz": {"rgb": 0}}, r"Choose a rate above 0"),
        ({"sensor_rates_hz": {"rgb": float("nan")}}, r"Choose a rate above 0"),
        ({"backend_options": {"lenght": 3}}, r"Unknown setting 'lenght'\. Did you mean 'length'"),
        ({"image_sise": 48}, r"Unknown setting 'image_sise'\. Did you mean 'image_size'"),
        ({"max_episode_steps": 0}, r"max_episode_steps.*found 0"),
        ({"num_envs": 0}, r"num_envs must be at least 1, found 0"),
    ],
)
def test_errors_list_what_there_is(settings: dict[str, Any], says: str, cue_backend: None) -> None:
    with pytest.raises(ConfigError, match=says):
        MultiModalGym(**({"task": "cue/match"} | settings))
