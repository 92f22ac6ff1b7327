"""Runs one room inside a game: furnishes it before an episode, and judges every step."""

import math
from pathlib import Path
from typing import Any

from sensorium.envs.embodied.doom.find.bytecode import MAX_OBJECTS, MAX_WALL_VARIABLES
from sensorium.envs.embodied.doom.find.config import CELL_UNITS, UNITS_PER_M, FindOptions
from sensorium.envs.embodied.doom.find.kinds import KINDS
from sensorium.envs.embodied.doom.find.paths import WalkingDistance
from sensorium.envs.embodied.doom.find.room import (
    ATTEMPTS,
    TOUCH_UNITS,
    Meaning,
    Room,
    draw_meaning,
    draw_room,
    no_room,
)
from sensorium.envs.embodied.doom.find.wad import MAP_NAME, build_wad, cell_tag

START_TICS = 4
"""Tics that pass before the first reading: by then the script has furnished the room."""


class Referee:
    """Knows what stands where and which object is meant; the engine knows neither.

    Args:
        options: The room and its rewards.
    """

    def __init__(self, options: FindOptions) -> None:
        self._options = options
        self._kind_numbers = {name: number for number, name in enumerate(KINDS, start=1)}
        self._meaning: Meaning
        self._room: Room
        self._way: WalkingDistance
        self._distance = 0.0

    def configure(self, game: Any, wad: Path) -> None:
        """Set up a ViZDoom game that has not started, and write the map that it will load."""
        wad.write_bytes(build_wad(self._options.room_cells))
        game.set_doom_scenario_path(str(wad))
        game.set_doom_map(MAP_NAME)
        game.set_episode_start_time(START_TICS)
        game.set_render_hud(False)
        game.set_render_weapon(False)
        game.set_render_crosshair(False)
        game.set_render_decals(False)
        game.set_render_particles(False)

    def furnish(self, game: Any, seed: int) -> None:
        """Draw the room that `seed` decides and tell the engine, which builds it at its next new episode.

        Raises:
            EnvError: The room is too small for what must stand in it.
        """
        self._meaning = draw_meaning(seed, self._options)
        for attempt in range(ATTEMPTS):
            room = draw_room(seed, self._options, attempt)
            if room is not None:
                self._room, self._way = room, WalkingDistance(room, self._meaning.target)
                self._distance = self._way.units(*room.start[:2])
                if math.isfinite(self._distance):
                    break
        else:
            raise no_room(self._options)
        commands = [f"set {name} {value}" for name, value in self._variables().items()]
        for first in range(0, len(commands), 4):  # a message to the engine holds 128 bytes
            game.send_game_command(";".join(commands[first : first + 4]))

    def _variables(self) -> dict[str, int]:
        """The console variables that the script in the map reads; see `bytecode`."""
        room, meaning = self._room, self._meaning
        x, y, heading = room.start
        variables = {"sns_player": heading << 20 | x << 10 | y}
        for index in range(MAX_OBJECTS):
            thing = speaker = 0
            if index < len(room.places):
                number = self._kind_numbers[self._options.kinds[meaning.kinds[index]]]
                place = room.places[index][0] << 10 | room.places[index][1]
                thing = number << 20 | place
                speaker = self._speaker(index, number) << 20 | place
            variables[f"sns_object{index}"] = thing
            variables[f"sns_speaker{index}"] = speaker if speaker >> 20 else 0
        tags = [cell_tag(column, row, room.cells) for column, row in room.walls]
        tags += [0] * (3 * MAX_WALL_VARIABLES - len(tags))
        for index in range(MAX_WALL_VARIABLES):
            low, middle, high = tags[3 * index : 3 * index + 3]
            variables[f"sns_walls{index}"] = high << 20 | middle << 10 | low
        return variables

    def _speaker(self, index: int, kind_number: int) -> int:
        """Number of the speaker that stands where an object does; 0 for none. See `speaker_classes`."""
        sounding = self._options.sounding
        if sounding == "none" or (sounding != "all" and index != self._meaning.target):
            return 0
        return kind_number + (len(KINDS) if sounding == "hidden" else 0)

    def judge(self, x: float, y: float) -> tuple[float, bool, bool]:
        """Judge the step that led the player to a place.

        Returns:
            Reward, whether an object was touched, and whether it was the right one.
        """
        options = self._options
        before, after = self._distance, self._way.units(x, y)
        if math.isfinite(after):
            self._distance = after
        reward = options.shaping * (before - self._distance) / UNITS_PER_M - options.step_cost
        gaps = [max(abs(x - a), abs(y - b)) for a, b in self._room.places]
        nearest = min(gaps)
        if nearest > TOUCH_UNITS:
            return reward, False, False
        right = gaps.index(nearest) == self._meaning.target
        return reward + (options.success_reward if right else -options.wrong_penalty), True, right

    def describe(self) -> dict[str, Any]:
        """Ground truth of the episode in map units, JSON-friendly."""
        return {
            "objects": [
                {"kind": self._options.kinds[kind], "position": list(place)}
                for kind, place in zip(self._meaning.kinds, self._room.places, strict=True)
            ],
            "target": self._meaning.target,
            "distance_m": self._distance / UNITS_PER_M,
            "room_cells": self._room.cells,
            "cell_units": CELL_UNITS,
            "walls": [list(cell) for cell in self._room.walls],
        }
