"""What the camera shows, checked against geometry."""

import numpy as np
import pytest

from sensorium.envs.embodied.arena.camera import MAX_DEPTH_M, PALETTE
from sensorium.envs.embodied.arena.config import COLORS, SHAPES
from sensorium.envs.embodied.arena.expert import classify_colors
from sensorium.envs.embodied.arena.tasks import build
from sensorium.envs.embodied.config import EmbodiedEnvConfig

FAR = [[0.5, 0.5], [5.5, 0.5], [0.5, 5.5]]
BALL = SHAPES.index("ball")


def room(**options):
    config = EmbodiedEnvConfig(
        task="arena/find", visual_obs=("rgb", "depth"), backend_options={"num_walls": 1} | options
    )
    backend = build(config, 1)
    backend.reset(np.zeros(1, np.uint64), np.ones(1, np.bool_))
    backend.state.walls[0, 1:-1, 1:-1] = 0
    backend.state.shape[0] = BALL
    return backend


def look(backend, pose, objects):
    backend.state.pose[0] = pose
    backend.state.objects[0] = objects
    readings = backend.observe()
    return readings["rgb"][0], readings["depth"][0, ..., 0]


@pytest.mark.parametrize("color", range(len(COLORS)))
def test_object_ahead_has_its_colour_and_depth(color):
    backend = room()
    backend.state.color[0] = [color, 0, 0]
    rgb, depth = look(backend, (1.0, 3.0, 0.0), [[3.0, 3.0], *FAR[1:]])
    pixel = rgb[26, 24]  # a little below the horizon, in the middle
    assert depth[26, 24] == pytest.approx(2.0 - 0.3, abs=0.03)  # front of a ball of 0.3 m
    shades = pixel / PALETTE[color]
    assert np.ptp(shades) < 0.05
    assert shades.mean() > 0.7
    assert classify_colors(rgb[None])[0, 26, 24] == color
    assert classify_colors(rgb[None])[0, 26, 40] == -1


def test_colours_are_told_from_walls_everywhere():
    backend = room()
    rng = np.random.default_rng(0)
    for _ in range(20):
        pose = (rng.uniform(0.5, 5.5), rng.uniform(0.5, 5.5), rng.uniform(-3, 3))
        rgb, _ = look(backend, pose, [[-50.0, -50.0]] * 3)
        assert (classify_colors(rgb[None]) == -1).all()


def test_left_of_the_agent_is_left_in_the_picture():
    backend = room()
    backend.state.color[0] = [0, 1, 2]
    rgb, _ = look(backend, (1.0, 3.0, 0.0), [[3.0, 4.0], [3.0, 2.0], [0.2, 3.0]])
    columns = {color: np.nonzero(classify_colors(rgb[None])[0] == color)[1] for color in (0, 1, 2)}
    assert columns[0].mean() == pytest.approx(24 * (1 - 0.5) - 0.5, abs=1.0)
    assert columns[1].mean() == pytest.approx(24 * (1 + 0.5) - 0.5, abs=1.0)
    assert columns[2].size == 0  # behind the agent


def test_nearer_objects_hide_farther_ones_whatever_their_order():
    for near, far in ((0, 1), (1, 0)):
        backend = room()
        backend.state.color[0] = [0, 2, 4]
        objects = [[0.5, 0.5], [0.5, 0.5], [0.3, 5.5]]
        objects[near], objects[far] = [2.5, 3.0], [4.0, 3.0]
        rgb, _ = look(backend, (1.0, 3.0, 0.0), objects)
        seen = classify_colors(rgb[None])[0]
        assert (seen == [0, 2][near]).sum() > 30
        assert (seen == [0, 2][far]).sum() == 0


def test_walls_hide_objects():
    backend = room()
    backend.state.color[0] = [0, 1, 2]
    backend.state.walls[0, 3, 3] = 1  # the cell from (2, 2) to (3, 3)
    rgb, depth = look(backend, (1.0, 2.5, 0.0), [[4.5, 2.5], [0.3, 0.3], [0.3, 5.5]])
    assert (classify_colors(rgb[None]) >= 0).sum() == 0
    assert depth[24, 24] == pytest.approx(1.0)


@pytest.mark.parametrize("degrees", [0, 30, 90, 135, -60])
def test_wall_depth_is_exact(degrees):
    backend = room()
    x, y, heading = 2.2, 3.7, np.radians(degrees)
    _, depth = look(backend, (x, y, heading), [[-50.0, -50.0]] * 3)
    for column in range(48):
        angle = heading - np.arctan((column + 0.5 - 24) / 24)
        along = np.array([np.cos(angle), np.sin(angle)])
        reach = np.where(along > 0, (6.0 - np.array([x, y])) / along, -np.array([x, y]) / along).min()
        assert depth[24, column] == pytest.approx(reach * np.cos(angle - heading), abs=1e-5)


def test_shapes_differ_in_outline():
    backend = room()
    backend.state.color[0] = [0, 1, 2]
    outlines = {}
    for kind, name in enumerate(SHAPES):
        backend.state.shape[0] = kind
        rgb, _ = look(backend, (1.0, 3.0, 0.0), [[2.2, 3.0], [0.3, 0.3], [0.3, 5.5]])
        mask = classify_colors(rgb[None])[0] == 0
        outlines[name] = mask
    widths = {name: mask.sum(axis=1)[mask.any(axis=1)] for name, mask in outlines.items()}
    assert widths["box"].min() == widths["box"].max()
    assert widths["cone"][0] < widths["cone"][-1]
    assert widths["ball"][0] < widths["ball"].max() > widths["ball"][-1]
    assert len(widths["pillar"]) > len(widths["cone"]) > len(widths["ball"]) > len(widths["box"])


def test_pictures_have_the_size_and_depth_range_asked_for():
    config = EmbodiedEnvConfig(
        task="arena/find",
        visual_obs=("depth",),
        image_size=20,
        backend_options={"room_size_m": 12.0, "num_threads": 1},
    )
    backend = build(config, 4)
    backend.reset(np.arange(4, dtype=np.uint64), np.ones(4, np.bool_))
    readings = backend.observe()
    assert list(readings) == ["depth"]
    assert readings["depth"].shape == (4, 20, 20, 1)
    assert readings["depth"].min() > 0.0
    assert readings["depth"].max() <= MAX_DEPTH_M
