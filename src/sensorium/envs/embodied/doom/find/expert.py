"""A scripted expert that reads the instruction and knows where everything stands, but not what is meant."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom.find.paths import WalkingDistance
from sensorium.envs.embodied.doom.find.room import Room
from sensorium.envs.embodied.registry import find_task
from sensorium.envs.embodied.worlds import Worlds

_FORWARD, _LEFT, _RIGHT, _FORWARD_LEFT, _FORWARD_RIGHT = (
    "move_forward",
    "turn_left",
    "turn_right",
    "move_forward+turn_left",
    "move_forward+turn_right",
)
_STRAIGHT_RAD = math.radians(8.0)
_CURVE_RAD = math.radians(25.0)
_LOOK_AHEAD_NODES = 3
_BERTH_UNITS = 40  # its own momentum carries a walker aside


class FindExpert:
    """Walks to the object that the instruction names; where none is named, to the nearest.

    One expert plays one episode of one world.

    Args:
        truth: What `describe` says at the start of the episode.
        instruction: What the agent reads; may be empty.
    """

    def __init__(self, truth: Mapping[str, Any], instruction: str) -> None:
        places = tuple((x, y) for x, y in (item["position"] for item in truth["objects"]))
        named = [index for index, item in enumerate(truth["objects"]) if instruction.endswith(item["kind"])]
        x, y = truth["position"][:2]
        gaps = [math.hypot(x - a, y - b) for a, b in places]
        room = Room(truth["room_cells"], tuple((c, r) for c, r in truth["walls"]), (0, 0, 0), places)
        self._goal = places[named[0] if named else gaps.index(min(gaps))]
        self._way = WalkingDistance(room, places.index(self._goal), berth_units=_BERTH_UNITS)

    def act(self, truth: Mapping[str, Any]) -> str:
        """Name of the discrete action for what `describe` says now."""
        x, y = truth["position"][:2]
        goal = self._goal
        if math.hypot(goal[0] - x, goal[1] - y) > 80.0:
            goal = self._way.next_place(x, y, _LOOK_AHEAD_NODES)
        bearing = math.atan2(goal[1] - y, goal[0] - x) - math.radians(truth["angle"])
        bearing = (bearing + math.pi) % (2.0 * math.pi) - math.pi
        if abs(bearing) < _STRAIGHT_RAD:
            return _FORWARD
        if abs(bearing) < _CURVE_RAD:
            return _FORWARD_LEFT if bearing > 0 else _FORWARD_RIGHT
        return _LEFT if bearing > 0 else _RIGHT


def run_expert(
    *,
    blank: bool = False,
    episodes: int = 60,
    first_seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> NDArray[np.bool_]:
    """Let an expert act for one episode per seed, one after the other in the same world.

    Args:
        blank: Whether the instruction is withheld.
        episodes: How many.
        first_seed: Seed of the first episode.
        options: Backend options; see `FindOptions`.

    Returns:
        (episodes,) whether each was solved.
    """
    config = EmbodiedEnvConfig(
        task="doom/find", visual_obs=(), text_obs=("instruction",), backend_options=dict(options or {})
    )
    worlds = Worlds(config, 1)
    everyone = np.ones(1, np.bool_)
    solved = np.zeros(episodes, np.bool_)
    options_by_name = worlds.action.option_names
    try:
        for episode in range(episodes):
            worlds.seed(np.array([first_seed + episode], np.uint64))
            worlds.reset(everyone)
            instruction = "" if blank else worlds.observe(everyone)["instruction"][0]
            truth = worlds.backend.describe(0)
            expert = FindExpert(truth, instruction)
            for _ in range(find_task(config.task).default_max_steps):
                action = options_by_name.index(expert.act(truth))
                outcome = worlds.step(np.array([action]), everyone)
                if outcome.terminated[0]:
                    solved[episode] = outcome.status[0] == "success"
                    break
                truth = worlds.backend.describe(0)
    finally:
        worlds.close()
    return solved
