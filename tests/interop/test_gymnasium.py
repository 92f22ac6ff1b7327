import asyncio
import threading
import warnings

import numpy as np
import pytest

from sensorium.core import ConfigError, EnvError
from sensorium.envs import EpisodeError

gymnasium = pytest.importorskip("gymnasium")
from sensorium.interop.gymnasium import AnyText, TextGym, read_action  # noqa: E402


@pytest.fixture
def pictures():
    env = TextGym("picture_env:Pictures", num_tasks=5, image_size=24)
    yield env
    env.close()


def test_it_passes_the_checker_of_gymnasium(pictures):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check_env(pictures, skip_render_check=True)


def test_an_episode(pictures):
    observation, info = pictures.reset(seed=3, options={"task_id": "train-1"})
    assert "What do you see?" in observation["text"]
    assert observation["has_image"] == 1
    assert observation["image"].shape == (24, 24, 3)
    assert observation["image"][12, 12, 2] > 150
    assert info["tools"][0]["function"]["name"] == "look"
    assert "data:image/" in str(info["messages"])
    observation, reward, *ends, info = pictures.step('[{"name": "look"}, {"name": "look", "arguments": 3}]')
    assert (reward, ends) == (0.0, [False, False])
    assert [one["failure"] for one in info["results"]] == [None, "invalid_arguments"]
    assert pictures.observation_space.contains(observation)
    answer = '{"name": "answer", "arguments": {"text": "the-hidden-answer-train-1"}}'
    observation, reward, *ends, info = pictures.step(answer)
    assert (reward, ends, info["status"]) == (1.0, [True, False], "success")
    with pytest.raises(EpisodeError, match="over"):
        pictures.step(answer)


def test_a_broken_tool_is_an_error_and_no_reward(pictures):
    pictures.reset(seed=0)
    pictures.step('{"name": "crash"}')
    with pytest.raises(EpisodeError, match="tool_crashed"):
        pictures.step('{"name": "answer", "arguments": {"text": "x"}}')


def test_seeds_draw_tasks_and_options_name_them(pictures):
    drawn = [pictures.reset(seed=seed)[1]["task_id"] for seed in (0, 1, 2, 3, 0)]
    assert drawn[0] == drawn[4]
    assert len(set(drawn)) > 1
    assert pictures.reset(options={"task_index": 4})[1]["task_id"] == "train-4"
    with pytest.raises(EnvError, match="There is no task 5"):
        pictures.reset(options={"task_index": 5})
    with pytest.raises(ConfigError):
        pictures.reset(options={"task_id": "nothing"})


def test_within_a_running_event_loop_and_no_thread_is_left():
    async def play():
        env = TextGym("lookup", num_tasks=2)
        with pytest.raises(EnvError, match="reset"):
            env.step("x")
        env.reset(seed=0)
        *_, info = env.step("Seven, I think.")
        env.close()
        env.close()
        return info

    before = set(threading.enumerate())
    assert "No tool was called" in str(asyncio.run(play())["messages"])
    left = set(threading.enumerate()) - before
    for one in left:
        one.join(10.0)
    assert not [one.name for one in left if one.is_alive()]


def test_actions_and_texts():
    assert read_action('{"name": "a", "arguments": {"x": 1}}').calls[0].arguments == {"x": 1}
    assert read_action('{"name": "a", "arguments": "no"}').calls[0].arguments == "no"
    for text in ("", "hi", "[]", "3", '{"name": 3}', "[" * 5000):
        assert read_action(text).text == text
        assert not read_action(text).calls
    space = AnyText(5)
    assert space.contains("ümläu")
    assert not space.contains("too long")
    assert not space.contains(3)
    space.seed(0)
    first = [space.sample() for _ in range(5)]
    space.seed(0)
    assert [space.sample() for _ in range(5)] == first
    assert isinstance(first[0], str)
    assert np.ndim(first) == 1
