import asyncio
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sensorium.core import ConfigError, EnvError, EpisodeStatus
from sensorium.envs import Action, find_env
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.gym_world import GymWorld
from sensorium.envs.playable.sensing import depth_picture, sound_in_words
from sensorium.llm.messages import ImageBlock
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.env_session import EnvSession

DEFINITION = find_env("embodied")
PIPELINE = ObservationPipeline()


async def play(actions, config, task=None, **limits):
    task = task or DEFINITION.tasks(config, count=1)[0]
    episode = EnvSession(DEFINITION.make(config), PIPELINE, EpisodeConfig(**limits), system=DEFINITION.system)
    try:
        opening = await episode.start(task)
        turns = []
        for number, action in enumerate(actions):
            turns.append(await episode.act(action, number))
            if turns[-1].done:
                break
        return opening, turns, await episode.verdict()
    finally:
        await episode.close()


def run(actions, task=None, **settings):
    return asyncio.run(play(actions, PlayableConfig(**settings), task))


def act(**arguments):
    return Action.call("act", **arguments)


async def solve(config, task):
    env = DEFINITION.make(config)
    try:
        await env.reset(task)
        expert, total = DEFINITION.expert(task), 0.0
        action = next(expert)
        while True:
            step = await env.step(action)
            total += step.reward
            action = expert.send(step)
    except StopIteration:
        return total, step
    finally:
        await env.close()


@pytest.mark.parametrize("kind", ["discrete", "continuous", "hybrid"])
def test_the_scripted_player_solves_the_arena_and_doing_nothing_earns_nothing(kind):
    config = PlayableConfig(action_space=kind, image_size=32)
    for task in DEFINITION.tasks(config, count=6, split="test"):
        reward, step = asyncio.run(solve(config, task))
        assert (reward, step.terminated, step.info.metrics["success"]) == (1.0, True, 1.0)
    _, (turn,), verdict = asyncio.run(play([Action()], config))
    assert (turn.reward, verdict.reward, verdict.status) == (0.0, 0.0, EpisodeStatus.FAILURE)


def test_the_way_round_walls_is_found():
    config = PlayableConfig(task="arena/listen", audio_obs=("env_sound",), image_size=32)
    tasks = DEFINITION.tasks(config, count=4)
    assert [asyncio.run(solve(config, task))[0] for task in tasks] == [1.0] * 4


def test_the_reward_of_the_world_itself_can_be_had():
    config = PlayableConfig(reward="env", image_size=32)
    task = DEFINITION.task(config, "train-0-0")
    reward, step = asyncio.run(solve(config, task))
    assert reward == pytest.approx(step.info.metrics["env_return"])
    assert reward != 1.0


def test_every_sense_is_shown_and_what_was_spoken_is_not_written():
    opening, _, _ = run(
        [],
        visual_obs=("rgb", "depth"),
        audio_obs=("speech", "env_sound"),
        text_obs=(),
        proprio=True,
        image_size=64,
    )
    prompt = opening.view.messages[-1]
    pictures = [block for block in prompt.content if isinstance(block, ImageBlock)]
    assert [(p.width, p.height) for p in pictures] == [(64, 64), (64, 64)]
    for words in ("black is 0 m, white is 10 m", "sound, 2 s", "strongest at", "forward_speed = 0"):
        assert words in prompt.text
    colors = ("red", "green", "blue", "yellow", "purple", "grey")
    assert not any(color in prompt.text for color in colors)
    written, _, _ = run([], image_size=64)
    assert any(color in written.view.messages[-1].text for color in colors)


def test_a_sense_may_fail_in_the_middle():
    _, turns, _ = run([act(action="turn_left")] * 2, image_size=32, outages={"rgb": 2})
    shown = [any(isinstance(b, ImageBlock) for b in turn.view.messages[-1].content) for turn in turns]
    assert shown == [True, False]
    assert "no reading from: rgb" in turns[1].view.messages[-1].text


def test_an_episode_that_runs_out_of_steps_is_truncated():
    _, turns, verdict = run([act(action="turn_left", repeat=8)] * 3, image_size=32, max_env_steps=10)
    assert (turns[0].truncated, turns[1].truncated, turns[1].terminated) == (False, True, False)
    assert "done 2 of 8 times; the episode is over" in turns[1].results[0].text
    assert (verdict.status, verdict.reward) == (EpisodeStatus.TRUNCATED, 0.0)


def test_repeating_stops_at_a_wall():
    _, turns, _ = run(
        [act(action="forward", repeat=8)] * 4, image_size=32, backend_options={"num_objects": 1}
    )
    texts = [turn.results[0].text for turn in turns]
    assert any("bumped into something" in text and "8 of 8" not in text for text in texts) or turns[-1].done


def test_the_same_task_is_the_same_world_whatever_the_seed_of_the_run():
    async def first(seed):
        config = PlayableConfig(image_size=32)
        env = DEFINITION.make(config)
        try:
            state = await env.reset(DEFINITION.task(config, "train-0-3"), seed=seed)
            return state["rgb"].raw.copy()
        finally:
            await env.close()
            await env.close()

    one, other = asyncio.run(first(1)), asyncio.run(first(2))
    assert np.array_equal(one, other)


def test_frozen_lake_is_crossed():
    way = [act(action="right", repeat=2), act(action="down", repeat=3), act(action="right")]
    config = PlayableConfig(task="FrozenLake-v1", env_options={"is_slippery": False}, render="text")
    opening, turns, verdict = asyncio.run(play(way, config))
    assert "[S]FFF" in opening.view.messages[-1].text
    assert "HF[F]G" in turns[1].view.messages[-1].text
    assert (verdict.status, verdict.reward, verdict.metrics["success"]) == (EpisodeStatus.SUCCESS, 1.0, 1.0)


def test_a_blocked_step_is_not_repeated():
    config = PlayableConfig(task="FrozenLake-v1", env_options={"is_slippery": False}, render="none")
    _, (turn,), _ = asyncio.run(play([act(action="left", repeat=8)], config))
    assert "done 1 of 8 times; nothing changed" in turn.results[0].text


def test_cart_pole_is_drawn_and_falls():
    config = PlayableConfig(task="CartPole-v1")
    opening, turns, verdict = asyncio.run(play([act(action="push_left", repeat=8)] * 9, config))
    prompt = opening.view.messages[-1]
    assert "goal is to balance the pole" in prompt.text
    assert "pole_angle_rad" in prompt.text
    assert sum(isinstance(block, ImageBlock) for block in prompt.content) == 1
    assert turns[-1].terminated
    assert verdict.reward == verdict.metrics["env_steps"] > 5
    assert verdict.status is EpisodeStatus.FAILURE


def test_blackjack_is_played_to_the_end():
    config = PlayableConfig(task="Blackjack-v1", render="none")
    opening, turns, verdict = asyncio.run(play([act(action="stick")], config))
    assert "sum_of_your_cards" in opening.view.messages[-1].text
    assert turns[-1].terminated
    assert verdict.reward in (-1.0, 0.0, 1.0)
    assert verdict.metrics["success"] == float(verdict.reward > 0)


def test_minigrid_is_told_in_words_and_solved():
    pytest.importorskip("minigrid")
    config = PlayableConfig(task="MiniGrid-Empty-5x5-v0")
    way = [act(action="forward", repeat=2), act(action="right"), act(action="forward", repeat=2)]
    opening, turns, verdict = asyncio.run(play(way, config))
    text = opening.view.messages[-1].text
    assert "get to the green goal square" in text
    assert "green goal" in text
    assert "facing right" in text
    assert turns[-1].terminated
    assert verdict.status is EpisodeStatus.SUCCESS
    assert 0.9 < verdict.reward < 1.0


class Odd(gymnasium.Env):
    """A strange one.

    ## Description
    Say the word. It is [hidden](http://nowhere) well.

    ## Rewards
    Unknown.
    """

    observation_space = spaces.Dict(
        {"numbers": spaces.Box(0.0, 1.0, (3, 3), np.float32), "n": spaces.Discrete(3)}
    )
    action_space = spaces.Dict({"say": spaces.Text(8, charset="abc"), "how": spaces.MultiDiscrete([2, 2])})
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None, breaks=False, gives=0.0):
        self.render_mode, self.breaks, self.gives = render_mode, breaks, gives

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def _observe(self):
        return {"numbers": self.np_random.random((3, 3)).astype(np.float32), "n": 1}

    def step(self, action):
        if self.breaks:
            raise RuntimeError("secret detail")
        return self._observe(), self.gives, action["say"] == "abc", False, {"success": True}

    def render(self):
        raise RuntimeError("no screen")


@pytest.fixture
def odd():
    gymnasium.register("Odd-v0", entry_point=Odd)
    yield "Odd-v0"
    gymnasium.registry.pop("Odd-v0")


def test_a_foreign_environment_with_nested_spaces_and_a_broken_renderer(odd):
    say = act(say="abc", how_0=1, how_1=0)
    opening, turns, verdict = asyncio.run(play([say], PlayableConfig(task=odd)))
    text = opening.view.messages[-1].text
    assert "A strange one. Say the word. It is hidden well." in text
    assert "Unknown" not in text
    assert turns[0].terminated
    assert verdict.status is EpisodeStatus.SUCCESS
    with pytest.raises(ConfigError, match="cannot be drawn"):
        GymWorld(PlayableConfig(task=odd, render="picture"))


def test_an_environment_that_breaks_has_no_reward(odd):
    say = act(say="a", how_0=1, how_1=0)
    config = PlayableConfig(task=odd, env_options={"breaks": True})
    _, turns, verdict = asyncio.run(play([say], config))
    assert verdict.reward is None
    assert verdict.failure.kind == "tool_crashed"
    assert "secret" not in turns[0].model_dump_json()
    config = PlayableConfig(task=odd, env_options={"gives": float("nan")})
    _, _, verdict = asyncio.run(play([say], config))
    assert verdict.reward is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"task": "arena/fnd"}, "no task 'arena/fnd'"),
        ({"task": "NoSuchThing-v0"}, "no task"),
        ({"task": "no_such_module:Thing-v0"}, "no task"),
        ({"task": "arena/find", "visual_obs": ("radar",)}, "radar"),
        ({"task": "arena/find", "text_obs": ("notifications",)}, "notifications"),
    ],
)
def test_what_does_not_exist_is_said_before_anything_runs(settings, said):
    with pytest.raises(ConfigError, match=said):
        DEFINITION.tasks(PlayableConfig(**settings), count=1)


def test_tasks_of_another_world_and_wrong_settings_are_refused():
    config = PlayableConfig(image_size=32)
    other = DEFINITION.tasks(PlayableConfig(task="arena/listen"), count=1)[0]
    with pytest.raises(EnvError, match="arena/listen"):
        asyncio.run(play([], config, other))
    with pytest.raises(EnvError, match="smell"):
        asyncio.run(play([], PlayableConfig(outages={"smell": 2})))
    with pytest.raises(EnvError, match="cannot be made"):
        asyncio.run(play([], PlayableConfig(task="CartPole-v1", env_options={"wind": 3})))
    with pytest.raises(ConfigError, match="no scripted solution"):
        DEFINITION.expert(DEFINITION.tasks(PlayableConfig(task="CartPole-v1"), count=1)[0])
    with pytest.raises(ConfigError, match="no task"):
        DEFINITION.task(config, "dev-0-1")


def test_splits_share_no_world():
    config = PlayableConfig()
    seeds = {
        split: {t.seed for t in DEFINITION.tasks(config, split=split, count=200)}
        for split in ("train", "test")
    }
    assert not seeds["train"] & seeds["test"]
    assert all(len(some) == 200 for some in seeds.values())
    assert max(max(some) for some in seeds.values()) < 2**31


def test_sound_and_depth_in_words():
    t = np.arange(1600) / 16000
    tone = np.sin(2 * np.pi * 440 * t)
    assert sound_in_words(np.stack([0.5 * tone, 0.05 * tone]).astype(np.float32), 16000) == (
        "loud sound from the left: -9 dB left and -29 dB right, strongest at 440 Hz"
    )
    assert sound_in_words(np.zeros((2, 100), np.float32), 16000) == "silence"
    depth = np.full((9, 9, 1), 5.0, np.float32)
    depth[4, 8] = 2.0
    shown = depth_picture(depth, 10.0)
    assert shown["depth"].raw[0, 0].tolist() == [128, 128, 128]
    assert shown["depth_scale"].endswith("5.0 m on the left, 5.0 m ahead, 2.0 m on the right.")


def test_playing_loads_no_torch():
    script = (
        "import asyncio, sys\n"
        "from sensorium.envs import find_env, Action\n"
        "d = find_env('embodied')\n"
        "async def play(task):\n"
        "    c = d.config_type(task=task, image_size=32); env = d.make(c)\n"
        "    await env.reset(d.tasks(c, count=1)[0]); await env.step(Action()); await env.close()\n"
        "for task in ('arena/find', 'CartPole-v1'): asyncio.run(play(task))\n"
        "assert not {'torch', 'pandas', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_worlds_that_draw_with_pygame_are_closed_while_others_draw():
    pytest.importorskip("pygame")
    config = PlayableConfig(task="Blackjack-v1")
    tasks = DEFINITION.tasks(config, count=6)

    async def play(task):
        env = DEFINITION.make(config)
        await env.reset(task)
        for _ in range(3):
            step = await env.step(Action.call("act", action="stick"))
            if step.terminated:
                break
        await env.close()
        return step.terminated

    async def run():
        return await asyncio.wait_for(asyncio.gather(*map(play, tasks * 3)), 60)

    assert all(asyncio.run(run()))
