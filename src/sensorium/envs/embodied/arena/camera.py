"""First-person rgb and depth of N worlds by casting one ray per column.

The field of view is 90 degrees, so that the focal length is half the picture's width. Depth is measured
along the viewing axis, as a z-buffer holds it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.geometry import wall_distance
from sensorium.envs.embodied.arena.state import Rules, State
from sensorium.envs.embodied.compiled import compiled

MAX_DEPTH_M = 10.0
"""Depth readings are clipped here."""
CAMERA_HEIGHT_M = 0.5
WALL_HEIGHT_M = 1.8

PALETTE: NDArray[np.float32] = np.array(
    [[225, 35, 35], [30, 190, 50], [40, 80, 235], [245, 220, 40], [165, 50, 215], [112, 114, 118]], np.float32
)
"""Colours of objects, in the order of COLORS."""

_WALL_R, _WALL_G, _WALL_B = 206.0, 190.0, 164.0
_FLOOR_RGB = np.array([92.0, 80.0, 68.0], np.float32)
_CEILING_RGB = np.array([214.0, 222.0, 228.0], np.float32)
_SKIRTING_M = 0.12
_PANEL_M = 0.5
_NEAREST_M = 0.05
_BALL, _BOX, _CONE, _PILLAR = 0, 1, 2, 3
_HALF_WIDTH_M = np.array([0.30, 0.28, 0.34, 0.18])
_HEIGHT_M = np.array([0.60, 0.46, 0.85, 1.30])


class Camera(NamedTuple):
    """A picture of an empty, endless room: the ground on which walls and objects are drawn."""

    size: int
    """Height and width in pixels."""
    rgb: NDArray[np.uint8]
    """(H * W * 3,)."""
    depth: NDArray[np.float32]
    """(H * W,) metres."""


View = tuple[float, float, float, float]
"""Position x, y of the camera and its direction as a unit vector x, y."""

Picture = tuple[NDArray[np.uint8], NDArray[np.float32]]
"""One world's rgb (H * W * 3,) and depth (H * W,)."""


def make_camera(size: int) -> Camera:
    """Prepare floor and ceiling of a square picture of `size` pixels."""
    rows = np.arange(size) + 0.5 - size / 2
    drop = np.where(rows > 0, CAMERA_HEIGHT_M, WALL_HEIGHT_M - CAMERA_HEIGHT_M)
    depth = np.minimum(drop * (size / 2) / np.maximum(np.abs(rows), 1e-6), MAX_DEPTH_M)
    tint = np.where(rows[:, None] > 0, _FLOOR_RGB, _CEILING_RGB)
    shade = 1.0 / (1.0 + 0.06 * depth)
    rgb = np.broadcast_to((tint * shade[:, None])[:, None], (size, size, 3))
    grown = np.broadcast_to(depth[:, None], (size, size)).astype(np.float32)
    return Camera(size, rgb.astype(np.uint8).ravel(), grown.ravel())


@compiled
def draw_worlds(
    state: State,
    rules: Rules,
    camera: Camera,
    rgb: NDArray[np.uint8],
    depth: NDArray[np.float32],
    first: int,
    last: int,
) -> None:
    """Draw worlds `first` to `last` (excluded).

    Args:
        state: The worlds.
        rules: What they share.
        camera: Prepared by `make_camera`.
        rgb: (N, H * W * 3) filled in.
        depth: (N, H * W) filled in, metres along the viewing axis, up to MAX_DEPTH_M.
        first: First world.
        last: World after the last.
    """
    for world in range(first, last):
        picture = (rgb[world], depth[world])
        _copy_bytes(camera.rgb, picture[0])
        _copy_floats(camera.depth, picture[1])
        heading = state.pose[world, 2]
        view = (state.pose[world, 0], state.pose[world, 1], math.cos(heading), math.sin(heading))
        _draw_walls(state.walls[world], rules.cell_m, view, camera.size, picture)
        for item in range(rules.num_objects):
            _draw_object(state, (world, item), view, camera.size, picture)


@compiled
def _copy_bytes(source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    for index in range(source.size):
        target[index] = source[index]


@compiled
def _copy_floats(source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
    for index in range(source.size):
        target[index] = source[index]


@compiled
def _draw_walls(walls: NDArray[np.uint8], cell_m: float, view: View, size: int, picture: Picture) -> None:
    """Draw the wall that each column's ray meets: panels half a metre wide over a dark skirting board."""
    rgb, depth = picture
    x, y, ahead_x, ahead_y = view
    focal = size / 2
    for column in range(size):
        right = (column + 0.5 - focal) / focal
        ray = (ahead_x + right * ahead_y, ahead_y - right * ahead_x)
        z, side = wall_distance(walls, cell_m, x, y, ray)
        along = y + z * ray[1] if side == 0 else x + z * ray[0]
        z = min(max(z, 1e-3), MAX_DEPTH_M)
        shade = (1.0 if side == 0 else 0.86) / (1.0 + 0.09 * z)
        if int(along / _PANEL_M) % 2 == 0:
            shade *= 0.9
        per_metre = focal / z
        top = max(math.ceil(focal - (WALL_HEIGHT_M - CAMERA_HEIGHT_M) * per_metre - 0.5), 0)
        foot = min(math.ceil(focal + CAMERA_HEIGHT_M * per_metre - 0.5), size)
        skirting = min(math.ceil(focal + (CAMERA_HEIGHT_M - _SKIRTING_M) * per_metre - 0.5), size)
        red, green, blue = np.uint8(_WALL_R * shade), np.uint8(_WALL_G * shade), np.uint8(_WALL_B * shade)
        z32 = np.float32(z)
        for row in range(top, foot):
            if row == skirting:
                red, green, blue = red >> 1, green >> 1, blue >> 1
            pixel = row * size + column
            rgb[3 * pixel] = red
            rgb[3 * pixel + 1] = green
            rgb[3 * pixel + 2] = blue
            depth[pixel] = z32


@compiled
def _half_width(shape: int, height: float) -> float:
    """Half the width of a shape at a height above the floor; negative where it is not."""
    if height < 0.0 or height > _HEIGHT_M[shape]:
        return -1.0
    if shape == _BALL:
        rise = height - _HALF_WIDTH_M[_BALL]
        return math.sqrt(max(_HALF_WIDTH_M[_BALL] ** 2 - rise * rise, 0.0))
    if shape == _CONE:
        return float(_HALF_WIDTH_M[_CONE] * (1.0 - height / _HEIGHT_M[_CONE]))
    return float(_HALF_WIDTH_M[shape])


@compiled
def _draw_object(state: State, which: tuple[int, int], view: View, size: int, picture: Picture) -> None:
    """Draw the part of an object that nothing nearer hides; round shapes bulge towards the camera."""
    rgb, depth = picture
    focal = size / 2
    shape = state.shape[which]
    dx, dy = state.objects[which[0], which[1], 0] - view[0], state.objects[which[0], which[1], 1] - view[1]
    z, right = dx * view[2] + dy * view[3], dx * view[3] - dy * view[2]
    if z < _NEAREST_M or z >= MAX_DEPTH_M or abs(right) > z + _HALF_WIDTH_M[shape]:
        return
    scale = z / focal
    top = max(math.ceil(focal - (_HEIGHT_M[shape] - CAMERA_HEIGHT_M) / scale - 0.5), 0)
    foot = min(math.ceil(focal + CAMERA_HEIGHT_M / scale - 0.5), size)
    color = PALETTE[state.color[which]]
    for row in range(top, foot):
        half = _half_width(shape, CAMERA_HEIGHT_M + (focal - (row + 0.5)) * scale)
        if half <= 0.0:
            continue
        first = max(math.ceil(focal + (right - half) / scale - 0.5), 0)
        last = min(math.ceil(focal + (right + half) / scale - 0.5), size)
        for column in range(first, last):
            offset = ((column + 0.5) - focal) * scale - right
            bulge = math.sqrt(max(half * half - offset * offset, 0.0)) if shape != _BOX else half
            surface = np.float32(max(z - bulge, _NEAREST_M))
            pixel = row * size + column
            if surface < depth[pixel]:
                shade = (0.72 + 0.28 * bulge / half) / (1.0 + 0.05 * surface)
                depth[pixel] = surface
                rgb[3 * pixel] = np.uint8(color[0] * shade)
                rgb[3 * pixel + 1] = np.uint8(color[1] * shade)
                rgb[3 * pixel + 2] = np.uint8(color[2] * shade)
