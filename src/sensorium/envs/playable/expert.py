"""Who solves the arena: a player with a map, let loose in a copy of the world."""

import itertools

from sensorium.core import ActionKind, ConfigError, parse_config
from sensorium.envs.base import Action, Task
from sensorium.envs.definition import Expert
from sensorium.envs.embodied.arena.config import ArenaOptions
from sensorium.envs.embodied.registry import find_task
from sensorium.envs.playable.config import PlayableConfig

_COMMANDS = {"forward": (1.0, 0.0), "turn_left": (0.0, 1.0), "turn_right": (0.0, -1.0)}


def arena_expert(task: Task) -> Expert:
    """Play a task of the arena.

    It finds the way in a copy of the world, and then goes it.

    Args:
        task: With what is hidden.

    Raises:
        ConfigError: It is no task of the arena, or an object must be chosen by `interact`.
    """
    config = parse_config(PlayableConfig, task.hidden["config"])
    if not config.task.startswith("arena/") or config.backend_options.get("require_interact"):
        raise ConfigError(
            f"There is no scripted solution for {config.task}; there is one for arena/find, arena/listen and "
            "arena/senses without require_interact."
        )
    return _replay(config, _plan(config, int(task.data["seed"])))


def _replay(config: PlayableConfig, plan: list[str]) -> Expert:
    place = 0
    while place < len(plan):
        name = plan[place]
        times = sum(1 for _ in itertools.takewhile(name.__eq__, plan[place:]))
        step = yield _call(config, name, min(times, config.max_repeat))
        if step.terminated or step.truncated:
            return
        place = int(step.info.metrics["env_steps"])


def _call(config: PlayableConfig, name: str, times: int) -> Action:
    repeat = {"repeat": times} if config.max_repeat > 1 else {}
    if config.action_space is ActionKind.DISCRETE:
        return Action.call("act", action=name, **repeat)
    forward, turn = _COMMANDS[name]
    moving = {"action": "move"} if config.action_space is ActionKind.HYBRID else {}
    return Action.call("act", **moving, forward=forward, turn=turn, **repeat)


def _plan(config: PlayableConfig, seed: int) -> list[str]:
    """Names of the discrete actions that lead to the target."""
    from sensorium.envs.embodied.gym import MultiModalGym
    from sensorium.envs.playable.truth_player import TruthPlayer

    copy = MultiModalGym(
        config.task,
        visual_obs=(),
        proprio=True,
        max_episode_steps=config.max_env_steps or find_task(config.task).default_max_steps,
        backend_options=config.backend_options,
    )
    backend, plan = copy.worlds.backend, list[str]()
    try:
        copy.reset(seed=seed)
        options = parse_config(ArenaOptions, config.backend_options)
        player = TruthPlayer(backend.describe(0), options.turn_deg, options.forward_m)
        done = False
        while not done:
            plan.append(player.act(backend.describe(0)))
            _, _, terminated, truncated, _ = copy.step(backend.action.option_names.index(plan[-1]))
            done = terminated or truncated
    finally:
        copy.close()
    return plan
