"""The `doom` backend: N ViZDoom engines in a few worker processes, behind one step call."""

import json
from collections.abc import Mapping
from ctypes.util import find_library
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import MissingDependencyError, available_cores, require
from sensorium.envs.embodied.base import BackendStep, Reading, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.doom.actions import ActionTable
from sensorium.envs.embodied.doom.config import ENGINE_TICS_PER_S, DoomOptions, pick_resolution
from sensorium.envs.embodied.doom.find.config import FindOptions
from sensorium.envs.embodied.doom.find.kinds import sentences as find_sentences
from sensorium.envs.embodied.doom.find.room import draw_meaning
from sensorium.envs.embodied.doom.instructions import Instructions
from sensorium.envs.embodied.doom.local import LocalGames
from sensorium.envs.embodied.doom.pool import WorkerPool
from sensorium.envs.embodied.doom.scenarios import SCENARIOS
from sensorium.envs.embodied.doom.sensors import sensor_specs
from sensorium.envs.embodied.doom.settings import IDLE, RESET, STEP, GameSettings
from sensorium.envs.embodied.doom.worker import DESCRIBE, PICTURE


class DoomBackend:
    """N worlds of one scenario; implements `Backend`.

    An episode is decided by its seed and the actions alone, byte for byte, whatever `num_envs`, the number of
    workers, and whether they run in this process. A worker that dies or hangs is started again: its worlds
    are `failed` in that step and until they are reset, the others go on.

    Args:
        config: The task, the senses and the way to act, checked against the task.
        options: How the engine runs.
        num_envs: How many worlds.

    Raises:
        MissingDependencyError: ViZDoom is not installed, or `env_sound` was asked for and OpenAL is missing.
        ConfigError: A voice of `speech` does not exist.
        EnvError: The engine did not start.
    """

    def __init__(self, config: EmbodiedEnvConfig, options: DoomOptions, num_envs: int) -> None:
        require("vizdoom", extra="doom", purpose="the doom backend")
        if "env_sound" in config.sensor_names and find_library("openal") is None:
            raise MissingDependencyError(
                "The sensor env_sound of the doom backend needs the system library OpenAL, which was not "
                "found. Install it with: apt-get install libopenal1"
            )
        scenario = SCENARIOS[config.task.partition("/")[2]]
        find = options if isinstance(options, FindOptions) else None
        self.num_envs = num_envs
        self.control_hz = ENGINE_TICS_PER_S / options.frame_skip
        self._task = config.task
        self._rate_wpm = options.rate_wpm
        self._table = ActionTable(scenario, config.action_space)
        self.action = self._table.spec
        self._instructions = Instructions(
            scenario.instructions if find is None else find_sentences(find.kinds),
            options,
            waveform=config.waveform,
            num_envs=num_envs,
            spoken="speech" in config.sensor_names,
            choose=None if find is None else lambda seed: draw_meaning(seed, find).sentence,
        )
        settings = GameSettings(
            scenario=scenario.name,
            buttons=self._table.buttons,
            sensors=frozenset(config.sensor_names),
            image_size=config.image_size,
            frame_skip=options.frame_skip,
            resolution=pick_resolution(options, config.image_size),
            sample_rate_hz=options.sample_rate_hz,
            n_mels=options.n_mels,
            waveform=config.waveform,
            objects=options.objects,
            find=find,
        )
        self.sensors: Mapping[str, SensorSpec] = sensor_specs(
            config.sensor_names, settings, self._instructions, self.control_hz
        )
        self._num_workers = min(num_envs, options.num_workers or available_cores())
        self.games: WorkerPool | LocalGames
        if options.in_process:
            self._num_workers = 1
            self.games = LocalGames(settings, num_envs)
        else:
            self.games = WorkerPool(
                settings,
                num_envs,
                self._num_workers,
                timeout_s=options.timeout_s,
                max_failures=options.max_failures,
            )
        self._seeds = np.zeros(num_envs, np.uint64)
        self._broken = np.ones(num_envs, np.bool_)
        self._starting = np.zeros(num_envs, np.bool_)
        self._nobody = np.zeros(num_envs, np.bool_)

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Start a new episode in each world where `mask` is True; `seeds[i]` alone decides world i.

        The engines begin it with the next call that needs them. Where that is `step`, some worlds begin
        (which takes ten times as long as a step) while others act, and nobody waits twice.
        """
        for world in np.flatnonzero(mask).tolist():
            self._instructions.pick(world, int(seeds[world]))
        self._seeds[mask] = seeds[mask]
        self._starting |= mask

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Advance the active worlds by one control step; see `Backend.step`.

        Raises:
            EnvError: A worker failed `max_failures` times in a row.
        """
        arrays = self.games.arrays
        arrays["buttons"][:] = self._table.press(discrete, continuous)
        # An active world whose episode has not begun yet must begin it before it can act.
        self._begin(self._starting & active)
        moving = active & ~self._broken
        self._run(moving, self._starting)
        self._begin(self._starting)  # those whose worker has just died
        alive = moving & ~self._broken
        return BackendStep(
            reward=np.where(alive, arrays["reward"], np.float32(0.0)),
            terminated=alive & arrays["terminated"],
            success=alive & arrays["success"],
            failed=active & self._broken,
        )

    def _begin(self, worlds: NDArray[np.bool_]) -> None:
        """Begin the episodes of `worlds`; a worker that dies meanwhile is started again and asked again.

        Raises:
            EnvError: A worker failed `max_failures` times in a row.
        """
        while (worlds & self._starting).any():
            self._run(self._nobody, worlds & self._starting)

    def _run(self, moving: NDArray[np.bool_], starting: NDArray[np.bool_]) -> None:
        """Let some worlds act and others begin their episode, and note which were lost."""
        arrays = self.games.arrays
        arrays["seed"][:] = self._seeds
        commands = np.where(moving, STEP, IDLE)
        commands[starting] = RESET
        arrays["command"][:] = commands
        lost = self.games.run()
        begun = starting & ~lost
        self._broken = (self._broken & ~begun) | lost
        self._starting = self._starting & ~begun

    def observe(self) -> Mapping[str, Reading]:
        """Read every sensor in every world; fresh arrays. A failed world keeps its last reading."""
        self._begin(self._starting)
        arrays = self.games.arrays
        readings: dict[str, Reading] = {}
        for name in self.sensors:
            if name == "instruction":
                readings[name] = self._instructions.texts()
            elif name == "speech":
                readings[name] = self._instructions.spoken()
            elif name == "notifications":
                readings[name] = [row.tobytes().rstrip(b"\0").decode("ascii") for row in arrays[name]]
            else:
                readings[name] = arrays[name].copy()
        return readings

    def render(self, world: int) -> NDArray[np.uint8]:
        """The engine's last picture of a world at its own resolution, (height, width, 3) RGB."""
        self._begin(self._starting)
        self.games.ask(PICTURE, world)
        picture: NDArray[np.uint8] = self.games.arrays["picture"][world % self._num_workers].copy()
        return picture

    def describe(self, world: int) -> Mapping[str, Any]:
        """Task, seed, position in map units, angle in degrees, health, kills; objects if enabled."""
        self._begin(self._starting)
        truth: dict[str, Any] = json.loads(self.games.ask(DESCRIBE, world))
        said = self._instructions.describe(world) | {"rate_wpm": self._rate_wpm}
        return {"task": self._task, "seed": int(self._seeds[world])} | said | truth

    def close(self) -> None:
        """End workers and engines and free their memory; may be called twice."""
        self.games.close()
