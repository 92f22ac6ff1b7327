"""How much `MultiModalGym` costs on top of the engine: the same game with it, and with bare ViZDoom.

Both sides play the same episodes with the same actions. The engine draws 160x120 rgb and depth and mixes
22,050 Hz stereo for both; four tics are one step. The bare loop only fetches the engine's arrays (which are
already copies); ours also shrinks pictures to 48x48, turns depth into metres and samples into [-1, 1],
keeps time, and hands out arrays of its own.
"""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import Result, speed

from sensorium.core import derive_seed, parse_config
from sensorium.envs.embodied import EmbodiedEnvConfig, MultiModalGym, MultiModalVectorEnv

TASK, SCENARIO = "doom/basic", "basic"
SENSES: dict[str, Any] = {"visual_obs": ["rgb", "depth"], "audio_obs": ["env_sound"]}
FRAME_SKIP = 4
EPISODE_STEPS = 75
NUM_ACTIONS = 4
SEED = 0
CHECKED_STEPS = 200
"""Steps of the first world whose rewards are added up, to see that both sides play the same game."""


def _options(**more: Any) -> dict[str, Any]:
    return {"frame_skip": FRAME_SKIP, "resolution": "160x120", "sample_rate_hz": 22050, **more}


def _actions(world: int) -> list[int]:
    """The choices of one world, which repeat after 10,000 steps."""
    return np.random.default_rng(SEED + world).integers(NUM_ACTIONS, size=10_000).tolist()  # type: ignore[no-any-return]


class _Checksum:
    def __init__(self) -> None:
        self.steps, self.total = 0, 0.0

    def add(self, reward: float) -> None:
        if self.steps < CHECKED_STEPS:
            self.steps, self.total = self.steps + 1, self.total + reward


def ours_single(*, waveform: bool, seconds: float) -> Result:
    """One `MultiModalGym` with the engine in this process."""
    options = _options(in_process=True)
    env = MultiModalGym(
        TASK, **SENSES, waveform=waveform, max_episode_steps=EPISODE_STEPS, backend_options=options
    )
    actions, check, count = _actions(0), _Checksum(), 0
    env.reset(seed=SEED)

    def step() -> int:
        nonlocal count
        _, reward, terminated, truncated, _ = env.step(actions[count % len(actions)])
        count += 1
        check.add(reward)
        if terminated or truncated:
            env.reset()
        return 1

    result = speed(step, seconds=seconds, warm_up=50, fewest=CHECKED_STEPS)
    env.close()
    return result | {"reward_of_first_steps": check.total}


def ours_workers(*, waveform: bool, seconds: float, processes: int, worlds: int) -> Result:
    """A vector of `worlds` worlds in `processes` worker processes, which step together."""
    values = {
        "task": TASK,
        **SENSES,
        "waveform": waveform,
        "max_episode_steps": EPISODE_STEPS,
        "backend_options": _options(num_workers=processes),
    }
    env = MultiModalVectorEnv(parse_config(EmbodiedEnvConfig, values), worlds)
    actions = np.array([_actions(world) for world in range(worlds)])
    counts, ended = np.zeros(worlds, np.int64), np.zeros(worlds, np.bool_)
    every, check = np.arange(worlds), _Checksum()
    env.reset(seed=SEED)

    def step() -> int:
        nonlocal ended
        playing = ~ended  # the others are being reset, which is no step
        _, reward, terminated, truncated, _ = env.step(actions[every, counts % actions.shape[1]])
        if playing[0]:
            check.add(float(reward[0]))
        counts[playing] += 1
        ended = terminated | truncated
        return int(playing.sum())

    result = speed(step, seconds=seconds, warm_up=50, fewest=CHECKED_STEPS)
    env.close()
    return result | {"reward_of_first_steps": check.total}


class _RawWorld:
    """One bare ViZDoom game, set up as the backend sets up its own."""

    def __init__(self, world: int, folder: Path) -> None:
        self._actions, self._world = _actions(world), world
        self._count = self._episode = self._length = 0
        self.check = _Checksum()
        self._game = _raw_game(folder / f"raw{world}.ini")
        self._buttons = np.eye(NUM_ACTIONS, NUM_ACTIONS - 1, k=-1).tolist()  # nothing, or one of three
        self._reset()

    def _reset(self) -> None:
        seed = derive_seed(SEED + self._world, "episode", self._episode)
        self._game.set_seed((seed ^ (seed >> 32)) & 0xFFFFFFFF)
        self._game.new_episode()
        self._episode, self._length = self._episode + 1, 0
        self._read()

    def _read(self) -> tuple[Any, Any, Any]:
        state = self._game.get_state()
        return state.screen_buffer, state.depth_buffer, state.audio_buffer

    def step(self) -> int:
        """Act once and fetch what there is to perceive."""
        action = self._actions[self._count % len(self._actions)]
        self.check.add(self._game.make_action(self._buttons[action], FRAME_SKIP))
        self._count, self._length = self._count + 1, self._length + 1
        if self._game.is_episode_finished() or self._length == EPISODE_STEPS:
            self._reset()
        else:
            self._read()
        return 1

    def close(self) -> None:
        """Stop the engine."""
        self._game.close()


def _raw_game(ini: Path) -> Any:
    import vizdoom

    openal = ini.with_suffix(".openal")  # the backend's settings, so that the engines do equal work
    openal.write_text("[general]\noutput-limiter = false\ndither = false\nvolume-adjust = -6\n")
    os.environ["ALSOFT_CONF"] = str(openal)
    scenarios = Path(vizdoom.scenarios_path)
    game = vizdoom.DoomGame()
    game.load_config(str(scenarios / f"{SCENARIO}.cfg"))
    game.set_doom_scenario_path(str(scenarios / f"{SCENARIO}.wad"))
    game.set_doom_config_path(str(ini))
    game.set_window_visible(False)
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_depth_buffer_enabled(True)
    game.set_audio_buffer_enabled(True)
    game.set_audio_sampling_rate(vizdoom.SamplingRate.SR_22050)
    game.set_audio_buffer_size(FRAME_SKIP)
    game.add_game_args("+snd_efx 0")
    game.set_episode_timeout(0)
    game.init()
    return game


def raw_single(*, seconds: float) -> Result:
    """One bare game in this process."""
    with tempfile.TemporaryDirectory() as folder:
        world = _RawWorld(0, Path(folder))
        result = speed(world.step, seconds=seconds, warm_up=50, fewest=CHECKED_STEPS)
        world.close()
    return result | {"reward_of_first_steps": world.check.total}


def raw_processes(*, seconds: float, processes: int, worlds: int) -> Result:
    """`worlds` bare games in `processes` processes, each on its own; their speeds are added."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    children = [
        context.Process(
            target=_raw_process, args=(barrier, results, list(range(first, worlds, processes)), seconds)
        )
        for first in range(processes)
    ]
    for child in children:
        child.start()
    found: list[Result] = []
    while len(found) < processes:
        if not results.empty():
            found.append(results.get())
        elif any(child.exitcode for child in children):
            raise RuntimeError("A process with a bare engine failed.")
        else:
            time.sleep(0.05)
    for child in children:
        child.join()
    reward = next(r["reward_of_first_steps"] for r in found if r["worlds"][0] == 0)
    return {"rate": sum(r["rate"] for r in found), "reward_of_first_steps": reward, "processes": found}


def _raw_process(barrier: Any, results: Any, worlds: list[int], seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        games = [_RawWorld(world, Path(folder)) for world in worlds]
        barrier.wait()
        result = speed(
            lambda: sum(game.step() for game in games), seconds=seconds, warm_up=50, fewest=CHECKED_STEPS
        )
        for game in games:
            game.close()
        os.chdir("/")
    results.put(result | {"reward_of_first_steps": games[0].check.total, "worlds": worlds})
