import asyncio

import pytest

from sensorium.core import ConfigError, EnvError, EpisodeStatus
from sensorium.envs import Action, find_env
from sensorium.envs.grid.config import GridConfig
from sensorium.envs.grid.view import as_picture, in_symbols, in_words
from sensorium.envs.grid.world import GridWorld
from sensorium.envs.validation import validate_tasks
from sensorium.llm.messages import ImageBlock
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.env_session import EnvSession

pytest.importorskip("minigrid")
DEFINITION = find_env("grid")


def said(*words):
    return [Action(text=word) for word in words]


async def play(actions, config, task_id="train-0-0"):
    """Views and verdict of an episode."""
    episode = EnvSession(DEFINITION.make(config), ObservationPipeline(), system="")
    try:
        views = [(await episode.start(DEFINITION.task(config, task_id))).view]
        turns = []
        for number, action in enumerate(actions):
            turns.append(await episode.act(action, number))
            views.append(turns[-1].view)
        return views, turns, await episode.verdict()
    finally:
        await episode.close()


def text(view):
    return view.messages[-1].text


@pytest.fixture
def room():
    """5 by 5 with its walls; the agent looks right from the upper left corner, the goal is opposite."""
    world = GridWorld(GridConfig(task="MiniGrid-Empty-5x5-v0", view_size=5))
    world.reset(0)
    yield world.grid_env
    world.close()


@pytest.fixture
def furnished(room):
    """A locked door ahead, a key to the right, lava between; the agent carries a ball."""
    from minigrid.core.world_object import Ball, Door, Key, Lava

    room.grid.set(2, 1, Door("blue", is_locked=True))
    room.grid.set(1, 2, Key("yellow"))
    room.grid.set(2, 2, Lava())
    room.carrying = Ball("red")
    return room


def test_words_say_how_far_one_can_walk_and_where_things_are(room):
    assert in_words(room) == "free: 0 left, 2 ahead, 2 right\ngreen goal: 2 right, 2 ahead"
    room.step(1)
    assert in_words(room) == "free: 2 left, 2 ahead, 0 right\ngreen goal: 2 left, 2 ahead"
    room.step(1)
    assert in_words(room) == "free: 2 left, 0 ahead, 0 right", "the goal is behind"


def test_words_name_the_nearest_things_first(furnished):
    assert in_words(furnished).splitlines() == [
        "free: 0 left, 0 ahead, 0 right",
        "locked blue door: 1 ahead",
        "yellow key: 1 right",
        "lava: 1 right, 1 ahead",
        "green goal: 2 right, 2 ahead",
        "carrying: red ball",
    ]


def test_symbols_are_a_map_and_what_its_letters_stand_for(furnished):
    assert in_symbols(furnished).splitlines() == [
        "#####",
        "#####",
        "##..G",
        "##a~.",
        "##^b.",
        "a: locked blue door",
        "b: yellow key",
        "carrying: red ball",
    ]


def test_a_picture_has_the_size_of_the_field_of_view(room):
    assert as_picture(room).shape == (5 * 16, 5 * 16, 3)


@pytest.mark.parametrize(
    ("word", "does"),
    [("forward", True), ("f", True), (' "F". ', True), ("", False), ("d", False), ("go forward", False)],
)
def test_a_bare_word_or_an_unambiguous_beginning_acts(word, does):
    views, _, verdict = asyncio.run(play(said(word), GridConfig(task="MiniGrid-Empty-8x8-v0")))
    assert ("Nothing was done. Answer with one of: left, right" in text(views[1])) != does
    assert ("free: 0 left, 4 ahead" in text(views[1])) == does
    assert verdict.num_steps == 1


def test_the_tool_does_the_same_as_the_word():
    config = GridConfig(task="MiniGrid-Empty-8x8-v0")
    by_word, _, _ = asyncio.run(play(said("right"), config))
    by_tool, (turn,), _ = asyncio.run(play([Action.call("act", action="right")], config))
    assert turn.results[0].text == "done"
    assert "free: 3 left, 5 ahead, 0 right" in text(by_word[1])
    assert "free: 3 left, 5 ahead, 0 right" in text(by_tool[1])


def test_equal_states_have_equal_keys_however_the_agent_came_there():
    """Who has turned round sees what there was at the beginning."""
    views, _, _ = asyncio.run(play(said(*["left"] * 4), GridConfig()))
    assert views[4].state_key == views[0].state_key
    assert len({view.state_key for view in views}) == 4


def test_only_what_is_offered_can_be_done_and_the_tool_may_be_left_out():
    async def tools(config):
        env = DEFINITION.make(config)
        try:
            await env.reset(DEFINITION.task(config, "train-0-0"))
            return list(env.tools)
        finally:
            await env.close()

    config = GridConfig(actions=("left", "forward"))
    (act,) = asyncio.run(tools(config))
    assert act["function"]["parameters"]["properties"]["action"]["enum"] == ["left", "forward"]
    assert asyncio.run(tools(config.model_copy(update={"tool": False}))) == []
    views, _, _ = asyncio.run(play(said("right"), config))
    assert "Answer with one of: left, forward." in text(views[1])


def test_reaching_the_goal_earns_1_lava_and_the_limit_of_steps_nothing():
    there = ["forward"] * 2 + ["right"] + ["forward"] * 2
    _, turns, verdict = asyncio.run(play(said(*there), GridConfig(task="MiniGrid-Empty-5x5-v0")))
    assert [turn.reward for turn in turns] == [0, 0, 0, 0, 1]
    assert (verdict.status, verdict.metrics["success"]) == (EpisodeStatus.SUCCESS, 1.0)

    config = GridConfig(task="MiniGrid-Empty-5x5-v0", max_steps=3)
    _, turns, verdict = asyncio.run(play(said(*there[:3]), config))
    assert (verdict.status, verdict.reward, turns[-1].truncated) == (EpisodeStatus.TRUNCATED, 0.0, True)

    into_lava = said("right", "forward", "left", *["forward"] * 3)
    _, turns, verdict = asyncio.run(
        play(into_lava[:5], GridConfig(task="MiniGrid-LavaGapS5-v0"), "train-0-2")
    )
    assert verdict.reward == 0.0


def test_what_is_shown_is_chosen():
    config = GridConfig(task="MiniGrid-Empty-5x5-v0", show=("symbols", "picture"), view_size=5)
    (view,), _, _ = asyncio.run(play([], config))
    assert "##..G\n##...\n##^.." in text(view)
    assert "free:" not in text(view)
    (picture,) = [block for block in view.messages[-1].content if isinstance(block, ImageBlock)]
    assert (picture.width, picture.height) == (80, 80)


def test_tasks_are_the_same_worlds_for_everybody_and_splits_share_none():
    config = GridConfig(task="BabyAI-GoToLocal-v0")
    train, test = (DEFINITION.tasks(config, split=split, count=5) for split in ("train", "test"))
    assert DEFINITION.task(config, train[3].id) == train[3]
    assert not {task.seed for task in train} & {task.seed for task in test}
    assert len({task.instruction for task in train}) > 1, "what is to be done is part of the task"
    one, other = (asyncio.run(play([], config, train[3].id))[0] for _ in range(2))
    assert text(one[0]) == text(other[0])


@pytest.mark.parametrize(
    "task",
    [
        "MiniGrid-Empty-Random-6x6-v0",
        "MiniGrid-FourRooms-v0",
        "MiniGrid-DoorKey-6x6-v0",
        "MiniGrid-LavaCrossingS9N1-v0",
        "MiniGrid-MultiRoom-N2-S4-v0",
        "BabyAI-GoToLocal-v0",
        "BabyAI-UnlockPickup-v0",
    ],
)
def test_scripted_solutions_earn_1_and_doing_nothing_0(task):
    config = GridConfig(task=task)
    attempts = asyncio.run(validate_tasks(DEFINITION, config, DEFINITION.tasks(config, count=10)))
    assert [one.problem for one in attempts if not one.is_valid] == []


def test_the_solution_is_the_shortest_with_what_can_be_done():
    """From the corner to the opposite one of a room of 3 by 3: two steps, a turn, two steps."""
    for actions, num_steps in (((), 5), (("right", "forward"), 5), (("left", "forward"), 7)):
        config = GridConfig(task="MiniGrid-Empty-5x5-v0", actions=actions)
        (attempt,) = asyncio.run(validate_tasks(DEFINITION, config, DEFINITION.tasks(config, count=1)))
        assert (attempt.is_valid, attempt.num_steps) == (True, num_steps)


def test_what_has_no_solution_says_so():
    for settings in (
        {"task": "MiniGrid-Unlock-v0"},
        {"task": "MiniGrid-GoToDoor-5x5-v0"},  # its doors are in the outer wall
        {"task": "BabyAI-KeyInBox-v0"},
        {"actions": ("left", "right")},
    ):
        config = GridConfig(**settings)
        with pytest.raises(ConfigError, match="no scripted solution"):
            DEFINITION.expert(DEFINITION.task(config, "train-0-0"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "CartPole-v1"}, "`embodied` plays any Gymnasium environment"),
        ({"task": "MiniGrid-Emty-5x5-v0"}, "Cannot make the grid world"),
        ({"env_options": {"size": "large"}}, "Cannot make the grid world"),
    ],
)
def test_what_cannot_be_made_is_told(settings, message):
    with pytest.raises(ConfigError, match=message):
        DEFINITION.tasks(GridConfig(**settings), count=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"view_size": 4}, "odd number"), ({"show": ("words", "words")}, "twice"), ({"show": ()}, "at least 1")],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GridConfig(**settings)


def test_ids_and_splits_that_do_not_exist_are_told():
    for task_id in ("exam-0-1", "train-0", "train-0-x"):
        with pytest.raises(ConfigError, match="Expected an id like train-0-17"):
            DEFINITION.task(GridConfig(), task_id)
    with pytest.raises(ConfigError, match="no split 'exam'"):
        DEFINITION.tasks(GridConfig(), split="exam")


def test_tasks_of_another_world_are_refused():
    async def mixed():
        env = DEFINITION.make(GridConfig())
        await env.reset(DEFINITION.task(GridConfig(task="MiniGrid-FourRooms-v0"), "train-0-0"))

    with pytest.raises(EnvError, match="is one of MiniGrid-FourRooms-v0"):
        asyncio.run(mixed())
