"""World-steps per second of the `arena` on one core, and of a grid world that is often used in its place."""

from typing import Any

import numpy as np
from timing import Result, speed

from sensorium.core import parse_config
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalVectorEnv
from sensorium.envs.embodied.registry import build_backend

SEED = 0


def _config() -> EmbodiedEnvConfig:
    values: dict[str, Any] = {
        "task": "arena/find",
        "visual_obs": ("rgb", "depth"),
        "audio_obs": ("env_sound",),
        "image_size": 48,
        "max_episode_steps": 100,
        "backend_options": {"num_threads": 1},
    }
    return parse_config(EmbodiedEnvConfig, values)


def _actions(num_envs: int, num_options: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Random choices for 64 steps."""
    return np.random.default_rng(SEED).integers(num_options, size=(64, num_envs))


def _per_core(result: Result) -> Result:
    return result | {"rate_per_cpu_second": result["steps"] / result["cpu_s"]}


def vector_env(*, num_envs: int, seconds: float) -> Result:
    """`MultiModalVectorEnv.step`: everything that training sees. Steps that reset a world are not counted."""
    env = MultiModalVectorEnv(_config(), num_envs)
    actions, count = _actions(num_envs, env.worlds.action.num_options), 0
    ended = np.zeros(num_envs, np.bool_)
    env.reset(seed=SEED)

    def step() -> int:
        nonlocal count, ended
        playing = num_envs - int(ended.sum())
        _, _, terminated, truncated, _ = env.step(actions[count % len(actions)])
        count, ended = count + 1, terminated | truncated
        return playing

    result = speed(step, seconds=seconds, warm_up=20)
    env.close()
    return _per_core(result)


def bare_backend(*, num_envs: int, seconds: float) -> Result:
    """The simulator alone: `step`, `observe`, and `reset` of the worlds that ended."""
    backend = build_backend(_config(), num_envs)
    actions, count = _actions(num_envs, backend.action.num_options), 0
    seeds, everyone = np.arange(num_envs, dtype=np.uint64), np.ones(num_envs, np.bool_)
    age = np.zeros(num_envs, np.int64)
    backend.reset(seeds, everyone)

    def step() -> int:
        nonlocal count, age, seeds
        outcome = backend.step(actions[count % len(actions)], None, everyone)
        age += 1
        ended = outcome.terminated | (age >= 100)
        seeds = np.where(ended, seeds + np.uint64(num_envs), seeds)
        backend.reset(seeds, ended)
        age[ended] = 0
        backend.observe()
        count += 1
        return num_envs

    result = speed(step, seconds=seconds, warm_up=20)
    backend.close()
    return _per_core(result)


def minigrid_loop(*, seconds: float) -> Result:
    """BabyAI's GoToLocal with its first-person rgb picture (56x56), one world, as users run it."""
    import gymnasium
    from minigrid.wrappers import RGBImgPartialObsWrapper

    env = RGBImgPartialObsWrapper(gymnasium.make("BabyAI-GoToLocal-v0"))  # type: ignore[no-untyped-call]
    actions, count = _actions(1, 7).ravel().tolist(), 0
    env.reset(seed=SEED)

    def step() -> int:
        nonlocal count
        _, _, terminated, truncated, _ = env.step(actions[count % len(actions)])
        count += 1
        if terminated or truncated:
            env.reset()
        return 1

    result = speed(step, seconds=seconds, warm_up=20)
    env.close()
    return _per_core(result)
