"""One running game: start it, seed it, act in it, and write what is perceived into arrays."""

import contextlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import require
from sensorium.envs.embodied.doom.find.referee import Referee
from sensorium.envs.embodied.doom.images import Shrinker
from sensorium.envs.embodied.doom.messages import clean_notifications
from sensorium.envs.embodied.doom.scenarios import SCENARIOS, SuccessRule
from sensorium.envs.embodied.doom.settings import NOTIFICATION_BYTES, GameSettings
from sensorium.envs.embodied.doom.sound import StepSound

_VARIABLES = (
    "HEALTH",
    "ARMOR",
    "SELECTED_WEAPON_AMMO",
    "SELECTED_WEAPON",
    "ATTACK_READY",
    "VELOCITY_X",
    "VELOCITY_Y",
    "ANGLE",
)


class StepResult(NamedTuple):
    """What one step did."""

    reward: float
    terminated: bool
    success: bool


class Game:
    """A ViZDoom engine (a process of its own, which this object drives) with one world in it.

    An episode is decided by its seed and the actions alone: same seed, same actions, same bytes, whether the
    engine is fresh or has played before.

    Args:
        settings: Scenario, sensors and sizes.
        readings: Sensor name -> the row of this world, which `reset` and `step` overwrite in place. After
            the step that ends an episode the engine has nothing to show: the rows keep the last reading
            (but in `doom/find`, where the engine goes on).
        folder: Where the engine may leave files.
        name: Tells this game's files from those of others in the folder.
    """

    def __init__(
        self, settings: GameSettings, readings: Mapping[str, NDArray[Any]], folder: Path, name: str
    ) -> None:
        self._settings = settings
        self._readings = readings
        self._scenario = SCENARIOS[settings.scenario]
        self._shrinker = Shrinker(settings.resolution, settings.image_size)
        self._sound = StepSound(settings)
        self._angle = math.nan
        vizdoom = require("vizdoom", extra="doom", purpose="the doom backend")
        self._variable = vizdoom.GameVariable
        self._game = vizdoom.DoomGame()
        self._referee = None if settings.find is None else Referee(settings.find)
        if self._referee is None:
            _load_scenario(vizdoom, self._game, settings.scenario)
        else:
            self._referee.configure(self._game, folder / f"{name}.wad")
        _configure(vizdoom, self._game, settings)
        self._game.set_doom_config_path(str(folder / f"{name}.ini"))
        with _surroundings(folder):
            self._game.init()
        self._state = self._game.get_state()

    @property
    def engine_id(self) -> str:
        """Name by which the engine's own shared memory is known to the system."""
        return str(self._game.get_instance_id())

    def reset(self, seed: int) -> None:
        """Start the episode that `seed` (64 bits, folded to the engine's 32) decides."""
        self._game.set_seed((seed ^ (seed >> 32)) & 0xFFFFFFFF)
        if self._referee is not None:
            self._referee.furnish(self._game, seed)
        self._game.new_episode()
        self._angle = math.nan
        self._read()

    def step(self, buttons: list[float]) -> StepResult:
        """Hold the buttons for `frame_skip` tics."""
        reward = float(self._game.make_action(buttons, self._settings.frame_skip))
        finished = bool(self._game.is_episode_finished())
        if not finished:
            self._read()
        if self._referee is not None:
            return StepResult(*self._referee.judge(*self._place()))
        return StepResult(reward, finished, self._succeeded(finished))

    def _place(self) -> tuple[float, float]:
        """Where the player is, in map units."""
        read, variable = self._game.get_game_variable, self._variable
        return read(variable.POSITION_X), read(variable.POSITION_Y)

    def _succeeded(self, finished: bool) -> bool:
        rule = self._scenario.rule
        if rule is SuccessRule.KILLS:
            return bool(self._game.get_game_variable(self._variable.KILLCOUNT) >= self._scenario.kills)
        if rule is SuccessRule.EXIT:
            return finished and not self._game.is_player_dead()
        return not finished

    def _read(self) -> None:
        self._state = state = self._game.get_state()
        readings = self._readings
        if "rgb" in readings:
            self._shrinker.rgb(state.screen_buffer, readings["rgb"])
        if "depth" in readings:
            self._shrinker.depth(state.depth_buffer, readings["depth"])
        if "env_sound" in readings:
            self._sound.read(state.audio_buffer, readings["env_sound"])
        if "proprio" in readings:
            self._read_body(state.game_variables.tolist(), readings["proprio"])
        if "notifications" in readings:
            text = clean_notifications(state.notifications_buffer, NOTIFICATION_BYTES).encode("ascii")
            row = readings["notifications"]
            row[: len(text)] = memoryview(text)
            row[len(text) :] = 0

    def _read_body(self, variables: list[float], out: NDArray[np.float32]) -> None:
        health, armour, ammo, weapon, ready, velocity_x, velocity_y, angle = variables
        turned = 0.0 if math.isnan(self._angle) else (self._angle - angle + 180.0) % 360.0 - 180.0
        self._angle = angle
        sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
        out[:] = (
            health / 100.0,
            armour / 100.0,
            max(ammo, 0.0) / 50.0,  # the engine says -1 for no weapon
            max(weapon, 0.0),
            ready,
            (velocity_x * cosine + velocity_y * sine) / 10.0,
            (velocity_x * sine - velocity_y * cosine) / 10.0,
            turned / (10.0 * self._settings.frame_skip),
            sine,
            cosine,
        )

    def picture(self) -> NDArray[np.uint8]:
        """The engine's last picture, (height, width, 3) RGB."""
        picture: NDArray[np.uint8] = self._state.screen_buffer
        return picture

    def describe(self) -> dict[str, Any]:
        """Ground truth: where the player is (map units, degrees), how it fares, objects if enabled."""
        variable, read = self._variable, self._game.get_game_variable
        truth: dict[str, Any] = {
            "position": [read(variable.POSITION_X), read(variable.POSITION_Y), read(variable.POSITION_Z)],
            "angle": read(variable.ANGLE),
            "health": read(variable.HEALTH),
            "kills": read(variable.KILLCOUNT),
        }
        if self._referee is not None:
            truth |= self._referee.describe()
        elif self._settings.objects:
            truth["objects"] = [
                {"name": o.name, "position": [o.position_x, o.position_y, o.position_z], "angle": o.angle}
                for o in self._state.objects
            ]
        return truth

    def close(self) -> None:
        """Stop the engine; may be called twice."""
        self._game.close()


def _load_scenario(vizdoom: Any, game: Any, name: str) -> None:
    """Map, rewards and weapons of a scenario that ships with ViZDoom."""
    scenarios = Path(vizdoom.scenarios_path)
    game.load_config(str(scenarios / f"{name}.cfg"))
    game.set_doom_scenario_path(str(scenarios / f"{name}.wad"))


def _configure(vizdoom: Any, game: Any, settings: GameSettings) -> None:
    """Set what is the same for every scenario, or depends on the settings."""
    width, height = settings.resolution
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_window_visible(False)
    game.set_screen_resolution(getattr(vizdoom.ScreenResolution, f"RES_{width}X{height}"))
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_depth_buffer_enabled("depth" in settings.sensors)
    game.set_objects_info_enabled(settings.objects)
    game.set_available_buttons([getattr(vizdoom.Button, name) for name in settings.buttons])
    game.set_available_game_variables([getattr(vizdoom.GameVariable, name) for name in _VARIABLES])
    game.set_notifications_buffer_enabled("notifications" in settings.sensors)
    game.set_notifications_buffer_size(settings.frame_skip)
    game.set_audio_buffer_enabled("env_sound" in settings.sensors)
    if "env_sound" in settings.sensors:
        game.set_audio_sampling_rate(getattr(vizdoom.SamplingRate, f"SR_{settings.sample_rate_hz}"))
        game.set_audio_buffer_size(settings.frame_skip + 1)
        game.add_game_args("+snd_efx 0")  # with sound effects on, OpenAL aborts the engine
    game.set_episode_timeout(0)  # the environment truncates; a limit here would look like the task's own end


@contextlib.contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """What the engine inherits when it starts: the folder it writes into, and OpenAL's settings.

    OpenAL's limiter remembers the sound before: its look-ahead and its slow release carry the end of one
    episode into the next, which then is not decided by its seed alone. 6 dB less volume takes its place.
    """
    openal = folder / "openal.conf"
    openal.write_text("[general]\noutput-limiter = false\ndither = false\nvolume-adjust = -6\n")
    folder_before, openal_before = os.getcwd(), os.environ.get("ALSOFT_CONF")
    os.environ["ALSOFT_CONF"] = str(openal)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(folder_before)
        del os.environ["ALSOFT_CONF"]
        if openal_before is not None:
            os.environ["ALSOFT_CONF"] = openal_before
