"""The task of `doom_task` as a bare gymnasium environment, for the peers.

It does less than their own ViZDoom environments: no variables, no info, no wrappers. The picture is shrunk
by taking the nearest pixel, as Sample Factory does; ours takes means, which is dearer.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import vizdoom
from doom_task import DoomTask
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
NUM_ACTIONS = 4
WIDTH, HEIGHT = 160, 120


class DoomWorld(gymnasium.Env[Picture, int]):
    """One ViZDoom engine with the scenario `basic`.

    Args:
        task: Sizes and limits.
        seed: Decides the episodes; worlds beside each other should differ in it.
    """

    def __init__(self, task: DoomTask, seed: int) -> None:
        side = task.image_size
        self.observation_space = gymnasium.spaces.Box(0, 255, (side, side, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)
        self._task, self._steps = task, 0
        centres = (np.arange(side) + 0.5) / side
        rows, columns = (centres * HEIGHT).astype(np.intp), (centres * WIDTH).astype(np.intp)
        self._pixels = rows[:, None] * WIDTH + columns
        self._black = np.zeros((side, side, 3), np.uint8)
        self._buttons = np.eye(NUM_ACTIONS, NUM_ACTIONS - 1, k=-1).tolist()  # nothing, or one of three
        self._folder = tempfile.TemporaryDirectory(prefix="doom-world-")
        before = os.getcwd()
        os.chdir(self._folder.name)  # the engine leaves files where it starts
        try:
            self._game = _start(Path(self._folder.name), seed)
        finally:
            os.chdir(before)

    def _look(self) -> Picture:
        pixels = self._game.get_state().screen_buffer.reshape(-1, 3)
        picture: Picture = pixels[self._pixels]
        return picture

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Start an episode."""
        if seed is not None:
            self._game.set_seed(seed)
        self._game.new_episode()
        self._steps = 0
        return self._look(), {}

    def step(self, action: int) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        """Hold a button for `frame_skip` tics."""
        reward = float(self._game.make_action(self._buttons[int(action)], self._task.frame_skip))
        self._steps += 1
        terminated = bool(self._game.is_episode_finished())
        picture = self._black if terminated else self._look()
        return picture, reward, terminated, self._steps >= self._task.max_episode_steps, {}

    def close(self) -> None:
        """Stop the engine."""
        self._game.close()


def _start(folder: Path, seed: int) -> Any:
    scenarios = Path(vizdoom.scenarios_path)
    game = vizdoom.DoomGame()
    game.load_config(str(scenarios / "basic.cfg"))
    game.set_doom_scenario_path(str(scenarios / "basic.wad"))
    game.set_doom_config_path(str(folder / "engine.ini"))
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_window_visible(False)
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_depth_buffer_enabled(False)
    game.set_audio_buffer_enabled(False)
    game.set_episode_timeout(0)  # the episode is truncated here
    game.set_seed(seed)
    game.init()
    return game
