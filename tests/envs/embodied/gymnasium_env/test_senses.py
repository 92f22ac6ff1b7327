"""What observation spaces become: pictures, texts and one vector."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from odd_gym import ID, register_odd

from sensorium.core import ConfigError, EnvError, Modality
from sensorium.envs.embodied import MultiModalGym, find_task
from sensorium.envs.embodied.gymnasium_env.readings import NumbersReader, PictureReader, square
from sensorium.envs.embodied.gymnasium_env.senses import Part, senses_of_space

TASK, DRAWN = f"gym/{ID}", f"gym/{ID.replace('Odd', 'DrawnOdd')}"
PIXELS = spaces.Box(0, 255, (20, 30, 3), np.uint8)


@pytest.fixture(autouse=True)
def odd() -> None:
    register_odd()


def odd_env(task: str = TASK, *, senses: dict[str, Any] | None = None, **kwargs: Any) -> MultiModalGym:
    asked = {"visual_obs": [], "proprio": True} | (senses or {})
    env = MultiModalGym(task, backend_options={"kwargs": kwargs}, **asked)
    assert isinstance(env, MultiModalGym)
    return env


def offered(space: spaces.Space[Any], *, can_render: bool = False) -> tuple[Any, Any, Any]:
    senses = senses_of_space(space, "gym/X", can_render=can_render)
    return senses.visual_obs, tuple(senses.texts), [part.name for part in senses.numbers]


def test_bare_spaces() -> None:
    assert offered(PIXELS) == (("rgb",), (), [])
    assert offered(spaces.Text(5)) == ((), ("instruction",), [])
    assert offered(spaces.Discrete(3)) == ((), (), ["obs"])
    assert offered(spaces.Discrete(3), can_render=True) == (("rgb",), (), ["obs"])
    assert offered(PIXELS, can_render=True)[0] == ("rgb",)


def test_nested_keys_are_joined_and_lone_senses_have_their_usual_name_too() -> None:
    space = spaces.Dict(
        {
            "eye": spaces.Dict({"left": PIXELS}),
            "task": spaces.Text(5),
            "arm": spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.Discrete(2)]),
        }
    )
    assert offered(space, can_render=True) == (
        ("rgb", "eye_left"),
        ("instruction", "task"),
        ["arm_0", "arm_1"],
    )


def test_several_pictures_keep_their_keys() -> None:
    both = spaces.Dict({"left": PIXELS, "right": PIXELS})
    assert offered(both, can_render=True)[0] == ("left", "right")  # and nothing is rendered
    assert offered(spaces.Tuple([PIXELS, spaces.Discrete(2)]))[0] == ("rgb", "obs_0")


@pytest.mark.parametrize(
    ("shape", "is_picture"),
    [
        ((8, 9, 1), True),
        ((8, 9, 4), True),
        ((3, 8, 9), True),
        ((4, 84, 84), True),
        ((84, 84), True),
        ((8, 9, 2), False),
        ((9, 9), False),
        ((128,), False),
        ((4, 8, 9, 3), False),
    ],
)
def test_pictures_are_known_by_shape_and_dtype(shape: tuple[int, ...], is_picture: bool) -> None:
    assert bool(offered(spaces.Box(0, 255, shape, np.uint8))[0]) is is_picture
    assert not offered(spaces.Box(0.0, 1.0, shape, np.float32))[0]


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (
            spaces.Dict({"a": spaces.Sequence(spaces.Discrete(2))}),
            r"'a' of gym/X is a Sequence.*ObservationWra",
        ),
        (spaces.Graph(spaces.Discrete(2), None), r"'obs' of gym/X is a Graph space.*--env\.backend_options"),
        (spaces.Dict({"proprio": PIXELS}), r"\['proprio'\].*has a meaning of its own here.*Rename"),
        (
            spaces.Dict({"a_b": PIXELS, "a": spaces.Dict({"b": PIXELS})}),
            r"sensor 'a_b': that is another sensor's name",
        ),
        (spaces.Discrete(20_000), "one of 20000 options, more than the 10000"),
    ],
)
def test_what_cannot_be_perceived_is_named(space: spaces.Space[Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        senses_of_space(space, "gym/X", can_render=False)


def test_numbers_become_one_labelled_vector() -> None:
    parts = [
        Part(("a",), "a", spaces.Box(-2.0, 2.0, (2, 2), np.float64)),
        Part(("b",), "b", spaces.Discrete(3, start=-1)),
        Part(("c",), "c", spaces.MultiDiscrete([2, 3], start=[0, 5])),
        Part(("d",), "d", spaces.MultiBinary(2)),
        Part(("e",), "e", spaces.Box(0, 9, (), np.int64)),
    ]
    read = NumbersReader(parts, "gym/X")
    value = {
        "a": np.arange(4.0).reshape(2, 2) / 2,
        "b": np.int64(1),
        "c": np.array([1, 5]),
        "d": np.array([0, 1], np.int8),
        "e": 7,
    }
    row = read(value)
    assert row.dtype == np.float32
    assert row.tolist() == [0, 0.5, 1, 1.5, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 7]
    assert read.labels[:5] == ("a[0]", "a[1]", "a[2]", "a[3]", "b[0]")
    assert read.labels[-1] == "e"
    assert read.space.contains(row)
    assert read.space.low.tolist() == [-2] * 4 + [0] * 11


def test_bounds_are_rounded_outwards() -> None:
    low, high = -0.1, 16777217.0  # float32 has neither
    read = NumbersReader([Part((), "obs", spaces.Box(low, high, (1,), np.float64))], "gym/X")
    assert read.space.low[0] <= low
    assert read.space.high[0] >= high
    with np.errstate(over="ignore"):
        read = NumbersReader([Part((), "obs", spaces.Box(-1e300, 1e300, (1,), np.float64))], "gym/X")
    assert np.isinf(read.space.high[0])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"x": [0.0, np.nan], "n": 0}, r"not finite .*in x\[1\].*ObservationWrapper"),
        ({"x": [0.0, 1e300], "n": 0}, r"not finite \(in float32\) in x\[1\]"),
        ({"x": [0.0], "n": 0}, r"'x' as float64 of shape \(1,\); its space is Box"),
        ({"x": [0.0, 0.0], "n": 2}, r"observed 2 for 'n', which is not in Discrete\(2\)"),
        ({"x": [0.0, 0.0], "n": -1}, r"observed -1 for 'n'"),
        ({"x": [0.0, 0.0], "n": "0"}, r"'n' as <U1"),
        ({"x": [0.0, 0.0]}, r"observed nothing for 'n'"),
    ],
)
def test_numbers_that_are_not_what_the_space_says(value: Any, says: str) -> None:
    parts = [
        Part(("x",), "x", spaces.Box(-1e300, 1e300, (2,), np.float64)),
        Part(("n",), "n", spaces.Discrete(2)),
    ]
    with pytest.raises(EnvError, match=says):
        NumbersReader(parts, "gym/X")(value)


def test_pictures_are_averaged_over_the_whole_field_of_view() -> None:
    picture = np.zeros((4, 8, 3), np.uint8)
    picture[:2, :4, 0], picture[2:, 4:, 1] = 200, 100
    picture[0, 0, 2] = 80
    small = square(picture, 2)
    assert small.tolist() == [[[200, 0, 10], [0, 0, 0]], [[0, 0, 0], [0, 100, 0]]]
    assert square(picture, 16)[::4, ::2].tolist() == picture.tolist()  # larger: pixels are repeated


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_first_is_channels_last(channels: int) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (channels, 20, 30), np.uint8)
    first = PictureReader(Part((), "obs", spaces.Box(0, 255, frames.shape, np.uint8)), "gym/X", 10)
    last_shape = (20, 30, channels)
    last = PictureReader(Part((), "obs", spaces.Box(0, 255, last_shape, np.uint8)), "gym/X", 10)
    assert first.space.shape == (10, 10, channels)
    small = first(frames)
    np.testing.assert_array_equal(small, last(np.moveaxis(frames, 0, 2)))
    means = frames.reshape(channels, 10, 2, 10, 3).mean((2, 4))
    assert (
        np.abs(np.moveaxis(small, 2, 0) - means).max() <= 1.0
    )  # rounded along each axis, each channel by itself


def test_a_picture_of_another_kind_is_told() -> None:
    read = PictureReader(Part(("eye",), "eye", PIXELS), "gym/X", 8)
    with pytest.raises(EnvError, match=r"'eye' as float64 of shape \(20, 30, 3\); its space promises uint8"):
        read({"eye": np.zeros((20, 30, 3))})


def test_every_sense_at_once() -> None:
    space = spaces.Dict({"eye": PIXELS, "goal": spaces.Text(6), "speed": spaces.Box(-1, 1, (2,))})
    senses = {"visual_obs": ["rgb", "eye"], "text_obs": ["instruction", "goal"], "image_size": 10}
    env = odd_env(senses=senses, observation_space=space)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    np.testing.assert_array_equal(observation["rgb"], observation["eye"])
    assert observation["instruction"] == observation["goal"]
    assert [spec.modality for spec in env.worlds.sensors.values()] == [
        Modality.IMAGE,
        Modality.TEXT,
        Modality.PROPRIO,
        Modality.IMAGE,
        Modality.TEXT,
    ]
    assert env.worlds.sensors["proprio"].labels == ("speed[0]", "speed[1]")
    assert env.worlds.backend.describe(0)["instruction"] == observation["goal"]
    assert env.worlds.backend.render(0).shape == (10, 10, 3)  # what it observes, as it cannot draw
    env.close()


def test_a_state_can_be_rendered_as_another_sense() -> None:
    env = odd_env(DRAWN, senses={"visual_obs": ["rgb"], "image_size": 8})
    observation, _ = env.reset(seed=0)
    assert observation["rgb"][:, :4].reshape(-1, 3).tolist() == [[255, 0, 0]] * 32
    assert observation["rgb"][:, 4:].reshape(-1, 3).tolist() == [[0, 0, 255]] * 32
    assert env.worlds.backend.control_hz == 20.0
    assert env.worlds.backend.render(0).shape == (40, 60, 3)
    env.close()


def test_an_environment_without_any_picture() -> None:
    with pytest.raises(
        ConfigError,
        match=r"no sensor 'rgb' in visual_obs; it offers none there\. Its sensors are proprio; ask for them "
        r"with: --env\.visual_obs \[\] --env\.proprio true",
    ):
        MultiModalGym(TASK)
    env = odd_env()
    env.reset(seed=0)
    assert env.worlds.backend.render(0).shape == (64, 64, 3)  # a film needs some picture
    env.close()


def test_missions_of_minigrid() -> None:
    pytest.importorskip("minigrid")
    task = find_task("gym/minigrid:MiniGrid-GoToDoor-5x5-v0")
    assert (task.visual_obs, task.text_obs) == (("rgb", "image"), ("instruction", "mission"))
    assert task.color_is_label
    assert task.default_max_steps == 100  # its own limit
    env = MultiModalGym(task.name, text_obs=["instruction"], proprio=True)
    observation, _ = env.reset(seed=3)
    assert observation["instruction"].startswith("go to the")
    assert observation["proprio"].sum() == 1.0  # a direction, one-hot
    assert env.worlds.action.option_names[:3] == ("left", "right", "forward")
    env.close()
