"""Who solves grid worlds: a search over what may happen, and BabyAI's own player for its instructions."""

import contextlib
import io
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sensorium.core import ConfigError, parse_config, require
from sensorium.envs.base import Action, Task
from sensorium.envs.definition import Expert
from sensorium.envs.grid.config import GridConfig
from sensorium.envs.grid.world import ACTION_NUMBERS, GridWorld

_AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""MiniGrid's direction -> step in x and y."""
_MAX_STATES = 200_000
Place = tuple[int, int]


def grid_expert(task: Task) -> Expert:
    """Find the way in a copy of the world, and then go it.

    Args:
        task: With what is hidden.

    Raises:
        ConfigError: No way was found, or the world has things that are not understood.
    """
    config = parse_config(GridConfig, task.hidden["config"])
    world = GridWorld(config)
    try:
        world.reset(int(task.data["seed"]))
        plan = _bot_plan(world) if hasattr(world.grid_env, "instrs") else _way(world, config.offered)
    finally:
        world.close()
    if plan is None or not set(plan) <= set(config.offered):
        raise ConfigError(
            f"There is no scripted solution for {config.task} with the actions {', '.join(config.offered)}. "
            "There is one for worlds with a goal behind walls, lava, doors and keys, and for BabyAI."
        )
    return _replay(plan)


def _replay(plan: Sequence[str]) -> Expert:
    for name in plan:
        step = yield Action.call("act", action=name)
        if step.terminated or step.truncated:
            return


def _bot_plan(world: GridWorld) -> list[str] | None:
    """What BabyAI's player does (Chevalier-Boisvert et al. 2019, arXiv:1810.08272); None: it is at a loss."""
    player = require("minigrid.utils.baby_ai_bot", extra="grid", purpose="solving tasks of BabyAI")
    names = {number: name for name, number in ACTION_NUMBERS.items()}
    bot, plan = player.BabyAIBot(world.grid_env), list[str]()
    action: Any = None
    with contextlib.redirect_stdout(io.StringIO()):
        while True:
            try:
                action = bot.replan(action)
            except Exception:  # it asserts, or fails in other ways, where it does not know a task
                return None
            plan.append(names[int(action)])
            outcome = world.step(plan[-1])
            if outcome.is_over or outcome.is_cut:
                return plan if outcome.is_solved else None


class _State(NamedTuple):
    place: Place
    facing: int
    key: Place | None
    """Where the key lay that is carried."""
    opened: frozenset[Place]
    """Doors."""
    taken: frozenset[Place]
    """Keys that do not lie where they lay."""


def _way(world: GridWorld, offered: Sequence[str]) -> list[str] | None:
    """The shortest way to the goal, breadth first; None: there is none, or it is too long to find."""
    env = world.grid_env
    grid = env.grid
    x, y = map(int, env.agent_pos)
    first = _State((x, y), int(env.agent_dir), None, frozenset(), frozenset())
    came: dict[_State, tuple[_State, str] | None] = {first: None}
    waiting = deque([first])
    while waiting and len(came) < _MAX_STATES:
        state = waiting.popleft()
        thing = grid.get(*state.place)
        if thing is not None and thing.type == "goal":
            return _traced(came, state)
        for name, after in _moves(grid, state):
            if name in offered and after not in came:
                came[after] = (state, name)
                waiting.append(after)
    return None


def _moves(grid: Any, state: _State) -> Iterator[tuple[str, _State]]:
    """What can be done, and what comes of it."""
    yield "left", state._replace(facing=(state.facing - 1) % 4)
    yield "right", state._replace(facing=(state.facing + 1) % 4)
    step = _AHEAD[state.facing]
    front = state.place[0] + step[0], state.place[1] + step[1]
    if not (0 <= front[0] < grid.width and 0 <= front[1] < grid.height):
        return  # a door in the outer wall
    thing: Any = None if front in state.taken else grid.get(*front)
    kind: str = "" if thing is None else thing.type
    if kind == "door" and not (thing.is_open or front in state.opened):
        has_key = state.key is not None and grid.get(*state.key).color == thing.color
        if has_key or not thing.is_locked:
            yield "toggle", state._replace(opened=state.opened | {front})
    elif kind in ("", "floor", "goal", "door"):
        yield "forward", state._replace(place=front)
    elif kind == "key" and state.key is None:
        yield "pickup", state._replace(key=front, taken=state.taken | {front})


def _traced(came: dict[_State, tuple[_State, str] | None], state: _State) -> list[str]:
    plan: list[str] = []
    while (step := came[state]) is not None:
        state, name = step
        plan.append(name)
    return plan[::-1]
