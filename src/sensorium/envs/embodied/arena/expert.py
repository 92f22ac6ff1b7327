"""Scripted experts that act on sensor readings alone; they show which senses a task needs.

An expert knows the camera, the colours, the sentences and how things sound. It never sees the world itself.
"""

import functools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.arena.camera import PALETTE
from sensorium.envs.embodied.arena.config import COLORS, SHAPES, VOICES
from sensorium.envs.embodied.arena.hearing import locate_source
from sensorium.envs.embodied.arena.language import speech_table
from sensorium.envs.embodied.arena.navigator import Memory, advance, empty_memory, look, to_map, walk_to
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.registry import find_task
from sensorium.envs.embodied.worlds import Worlds

_CHROMA = PALETTE / PALETTE.sum(axis=1, keepdims=True)
_CHROMA_TOLERANCE = 0.035
_GREY_BRIGHTNESS = (170.0, 362.0)  # sum of r, g, b: between shadow and ceiling
_OBJECT_DEPTH_M = 0.25  # from an object's surface to its middle


class ArenaExpert:
    """Finds out which object is meant, looks for it, and walks there round obstacles.

    Args:
        task: Task name.
        num_worlds: How many worlds it acts in; one episode each.
        image_size: Height and width of the pictures.
        guess: What to do when no sense tells which object is meant: take the first object that is seen, or
            (False) choose none, which a wrong choice's penalty can make the better policy.
    """

    def __init__(self, task: str, num_worlds: int, *, image_size: int = 48, guess: bool = True) -> None:
        self._task = task
        self._guess = guess
        self._memory: Memory = empty_memory(num_worlds, image_size)
        self._goal = np.full((num_worlds, 2), np.nan)
        self._color = np.full(num_worlds, -1)
        self._searched = np.zeros(num_worlds, np.int64)
        self._first = True

    def act(self, readings: Mapping[str, Any], active: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose discrete actions, (N,), from the readings; only `active` worlds are thought about."""
        if self._first:
            self._color = self._named_color(readings)
            self._first = False
        else:
            advance(self._memory, readings["proprio"])
        look(self._memory, readings["depth"])
        told = self._color >= 0
        if self._task != "arena/find":
            place = np.full((len(told), 2), np.nan)
            place[active] = locate_source(readings["env_sound"][active])
            heard = to_map(self._memory, place)
            sounds = ~np.isnan(heard[:, 0]) & ~told
            self._remember(heard, sounds)
            told |= sounds
        mask = self._visible(readings["rgb"], ~told if self._guess else np.zeros_like(told))
        place = _place(mask, readings["depth"])
        seen = ~np.isnan(place[:, 0])
        self._remember(to_map(self._memory, place), seen)
        goal = self._search()
        goal[~active] = np.nan
        return walk_to(self._memory, goal, math.radians(15.0))

    def _remember(self, place: NDArray[np.float64], where: NDArray[np.bool_]) -> None:
        """Blend new estimates of the goal with the old ones: a goal that jumps makes the way jump."""
        known = ~np.isnan(self._goal[:, :1])
        blended = np.where(known, 0.6 * self._goal + 0.4 * place, place)
        self._goal[where] = blended[where]

    def _named_color(self, readings: Mapping[str, Any]) -> NDArray[np.int64]:
        """Index of the colour that text or speech names, or -1."""
        num_worlds = len(self._goal)
        color = np.full(num_worlds, -1)
        for world, text in enumerate(readings.get("instruction", [])):
            words = set(re.findall(r"\w+", text)) & set(COLORS)
            color[world] = COLORS.index(words.pop()) if words else -1
        if "speech" in readings and self._task != "arena/listen":
            heard = _recognise(self._task, readings["speech"])
            color = np.where(color < 0, heard, color)
        return color

    def _visible(self, rgb: NDArray[np.uint8], guessing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(N, H, W) pixels of the object that is meant; a guesser takes a colour on first sight."""
        colors = classify_colors(rgb)
        for world in np.flatnonzero(guessing & (self._color < 0)):
            counts = np.bincount(colors[world].ravel() + 1, minlength=len(COLORS) + 1)[1:]
            if counts.max() >= 2:
                self._color[world] = int(counts.argmax())
        wanted = self._color[:, None, None]
        visible: NDArray[np.bool_] = (colors == wanted) & (wanted >= 0)
        return visible

    def _search(self) -> NDArray[np.float64]:
        """The goal; where there is none yet and a full turn showed nothing, a step to another viewpoint."""
        lost = np.isnan(self._goal[:, 0]) & (self._color >= 0)
        self._searched = np.where(lost, self._searched + 1, 0)
        goal = self._goal.copy()
        moving = lost & (self._searched % 34 >= 24)
        angle = 2.4 * (self._searched // 34)
        goal[moving] = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)[moving]
        return goal


def classify_colors(rgb: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Tell objects from walls by colour.

    Args:
        rgb: (N, H, W, 3).

    Returns:
        (N, H, W) index into COLORS, -1 where nothing has such a colour.
    """
    bits = rgb >> 2
    index = (bits[..., 0].astype(np.int32) << 12) | (bits[..., 1].astype(np.int32) << 6) | bits[..., 2]
    colors: NDArray[np.int64] = _color_table()[index]
    return colors


@functools.cache
def _color_table() -> NDArray[np.int64]:
    """Colour index of every rgb value in steps of four, (64 ** 3,)."""
    levels = np.arange(64, dtype=np.float32) * 4 + 2
    rgb = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)
    total = rgb.sum(axis=1)
    gaps = np.abs(rgb[:, None] / total[:, None, None] - _CHROMA).max(axis=2)
    grey = COLORS.index("grey")
    dim = (total > _GREY_BRIGHTNESS[0]) & (total < _GREY_BRIGHTNESS[1])
    gaps[:, grey] = np.where(dim, gaps[:, grey] * 2.0, np.inf)
    best: NDArray[np.int64] = gaps.argmin(axis=1)
    return np.where((gaps.min(axis=1) < _CHROMA_TOLERANCE) & (total > 60), best, -1)


def _place(mask: NDArray[np.bool_], depth: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N, 2) metres ahead and to the left of the nearest masked thing's middle; NaN where there is none."""
    size = mask.shape[1]
    place = np.full((len(mask), 2), np.nan)
    for world in np.flatnonzero(mask.sum(axis=(1, 2)) >= 2):
        gaps = depth[world, ..., 0][mask[world]]
        near = gaps < gaps.min() + 2 * _OBJECT_DEPTH_M
        columns = np.nonzero(mask[world])[1][near]
        ahead = float(np.median(gaps[near])) + _OBJECT_DEPTH_M
        place[world] = ahead, -ahead * (columns.mean() + 0.5 - size / 2) / (size / 2)
    return place


def _recognise(task: str, speech: NDArray[np.float32]) -> NDArray[np.int64]:
    """Index of the colour in the nearest sentence of the table, -1 for silence."""
    table = speech_table(task, VOICES, 170, False)
    flat = table.reshape(len(table), len(VOICES), -1)[:-1]
    known, num_colors, num_shapes = flat.reshape(-1, flat.shape[-1]), len(COLORS), len(SHAPES)
    heard = speech.reshape(len(speech), -1)
    gaps = (known**2).sum(axis=1) - 2.0 * heard @ known.T
    sentence = gaps.argmin(axis=1) // len(VOICES)
    silent = np.ptp(heard, axis=1) < 1.0
    return np.where(silent, -1, sentence // num_shapes % num_colors)


def run_expert(
    task: str, *, blank: tuple[str, ...] = (), episodes: int = 200, guess: bool = True, first_seed: int = 0
) -> NDArray[np.bool_]:
    """Let an expert act for one episode per world.

    Args:
        task: Task name.
        blank: Sensors whose readings are replaced: zeros, silence for sounds, empty text.
        episodes: How many.
        guess: See `ArenaExpert`.
        first_seed: Seed of the first world.

    Returns:
        (episodes,) whether each was solved.
    """
    config = EmbodiedEnvConfig(
        task=task,
        visual_obs=("rgb", "depth"),
        audio_obs=("speech", "env_sound"),
        text_obs=("instruction",),
        proprio=True,
    )
    worlds = Worlds(config, episodes)
    worlds.seed(np.arange(episodes, dtype=np.uint64) + np.uint64(first_seed))
    active = np.ones(episodes, np.bool_)
    worlds.reset(active)
    expert = ArenaExpert(task, episodes, guess=guess)
    solved = np.zeros(episodes, np.bool_)
    for _ in range(find_task(task).default_max_steps):
        readings = worlds.observe(active)
        for name in blank:
            reading = readings[name]
            readings[name] = [""] * episodes if isinstance(reading, list) else np.zeros_like(reading)
        outcome = worlds.step(expert.act(readings, active), active)
        solved |= active & (outcome.status == "success")
        active = active & ~outcome.terminated
        if not active.any():
            break
    worlds.close()
    return solved
