"""The arena as a `Backend`: checks the wishes, owns the arrays, calls the compiled loops."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError
from sensorium.envs.embodied.arena.camera import draw_worlds, make_camera
from sensorium.envs.embodied.arena.config import CHANNELS, COLORS, SHAPES, ArenaOptions
from sensorium.envs.embodied.arena.language import NUM_WORDINGS, sentences, speech_table
from sensorium.envs.embodied.arena.layout import reset_worlds
from sensorium.envs.embodied.arena.motion import step_worlds
from sensorium.envs.embodied.arena.sensing import action_spec, sensor_specs
from sensorium.envs.embodied.arena.sharing import WorldThreads
from sensorium.envs.embodied.arena.sound import hear_worlds, make_ears
from sensorium.envs.embodied.arena.state import CONTROL_HZ, empty_state, make_rules
from sensorium.envs.embodied.arena.top_down import draw_map
from sensorium.envs.embodied.arena.waveform import synthesise_worlds
from sensorium.envs.embodied.base import BackendStep, Reading, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig

_DISCRETE_COMMANDS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])


class ArenaBackend:
    """N rooms; see `Backend` for the methods.

    Args:
        config: Task, sensors and actions.
        options: The arena's own settings.
        num_envs: How many worlds.

    Raises:
        MissingDependencyError: `speech` was asked for and the synthesiser is not installed.
    """

    control_hz = CONTROL_HZ

    def __init__(self, config: EmbodiedEnvConfig, options: ArenaOptions, num_envs: int) -> None:
        self.num_envs = num_envs
        self.options = options
        self.rules = make_rules(config.task, options, NUM_WORDINGS)
        self.state = empty_state(num_envs, self.rules)
        self.sensors: Mapping[str, SensorSpec] = sensor_specs(config)
        self.action = action_spec(config.action_space, options)
        self._task = config.task
        self._waveform = config.waveform
        self._size = config.image_size
        self._camera = make_camera(config.image_size)
        self._ears = make_ears()
        self._texts = np.array(sentences(config.task), dtype=object)
        self._speech: NDArray[np.float32] | None = None
        if "speech" in self.sensors:
            self._speech = speech_table(config.task, options.voices, options.rate_wpm, config.waveform)
        self._threads = WorldThreads(options.num_threads)

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Start a new episode in each world where `mask` is True; `seeds[i]` alone decides world i.

        Raises:
            EnvError: A room is too small for what must stand in it.
        """
        unfurnished = reset_worlds(self.state, self.rules, seeds, mask) if mask.any() else 0
        if unfurnished:
            raise EnvError(
                f"{unfurnished} rooms of {self.rules.size_m:g} m had no place for {self.rules.num_objects} "
                f"objects and {self.rules.num_walls} walls. Raise the backend option room_size_m, or lower "
                f"num_objects or num_walls."
            )

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Advance the active worlds by one control step."""
        reward = np.zeros(self.num_envs, np.float32)
        ended = np.zeros((self.num_envs, 2), np.bool_)
        step_worlds(self.state, self.rules, self._commands(discrete, continuous), active, reward, ended)
        failed = np.zeros(self.num_envs, np.bool_)
        bumped = active & ~ended[:, 0] & (self.state.body[:, 2] > 0)  # choosing an object is no accident
        return BackendStep(reward, ended[:, 0].copy(), ended[:, 1].copy(), failed, bumped)

    def _commands(
        self, discrete: NDArray[np.int64] | None, continuous: NDArray[np.float32] | None
    ) -> NDArray[np.float64]:
        """Forward, turn and interact of every world, (N, 3), whatever the kind of action."""
        if continuous is None:
            return _DISCRETE_COMMANDS[discrete]
        commands = np.zeros((self.num_envs, 3))
        commands[:, : continuous.shape[1]] = continuous
        if discrete is not None:
            interacts = discrete == 1
            commands[interacts] = 0.0
            commands[:, 2] = interacts
        return commands

    def observe(self) -> Mapping[str, Reading]:
        """Read every sensor in every world."""
        seen = self._look() if {"rgb", "depth"} & self.sensors.keys() else {}
        readers = {
            "speech": self._listen,
            "env_sound": self._hear,
            "instruction": self._read,
            "proprio": self._feel,
        }
        return {name: seen[name] if name in seen else readers[name]() for name in self.sensors}

    def _look(self) -> dict[str, Reading]:
        rgb = np.empty((self.num_envs, self._size * self._size * 3), np.uint8)
        depth = np.empty((self.num_envs, self._size * self._size), np.float32)
        self._threads.run(self.num_envs, draw_worlds, self.state, self.rules, self._camera, rgb, depth)
        size = (self.num_envs, self._size, self._size, -1)
        return {"rgb": rgb.reshape(size), "depth": depth.reshape(size)}

    def _hear(self) -> Reading:
        shape = self.sensors["env_sound"].space.shape or ()
        heard = np.empty((self.num_envs, *shape), np.float32)
        hear = synthesise_worlds if self._waveform else hear_worlds
        self._threads.run(self.num_envs, hear, self.state, self.rules, self._ears, heard)
        return heard

    def _listen(self) -> Reading:
        assert self._speech is not None
        spoken: Reading = self._speech[self._sentence("speech"), self.state.voice]
        return spoken

    def _read(self) -> Reading:
        texts: Reading = self._texts[self._sentence("instruction")].tolist()
        return texts

    def _feel(self) -> Reading:
        return self.state.body.copy()

    def _sentence(self, channel: str) -> NDArray[np.int64]:
        """Index of what is said in every world over a channel."""
        worlds = np.arange(self.num_envs)
        state = self.state
        index = state.wording.copy()
        if self._task != "arena/listen":
            color, shape = state.color[worlds, state.target], state.shape[worlds, state.target]
            index = (index * len(COLORS) + color) * len(SHAPES) + shape
        mute = (state.channel >= 0) & (state.channel != CHANNELS.index(channel))
        index[mute] = len(self._texts) - 1
        return index

    def render(self, world: int) -> NDArray[np.uint8]:
        """Map of one world seen from above, (H, W, 3) RGB; the target is ringed in black."""
        return draw_map(self.state, self.rules, world)

    def describe(self, world: int) -> Mapping[str, Any]:
        """Ground truth of one world."""
        state = self.state
        items = range(self.rules.num_objects)
        channel = int(state.channel[world])
        return {
            "task": self._task,
            "room_size_m": self.rules.size_m,
            "cell_m": self.rules.cell_m,
            "walls": state.walls[world, 1:-1, 1:-1].tolist(),
            "agent": {
                "position_m": state.pose[world, :2].tolist(),
                "heading_rad": float(state.pose[world, 2]),
            },
            "objects": [
                {
                    "color": COLORS[state.color[world, item]],
                    "shape": SHAPES[state.shape[world, item]],
                    "position_m": state.objects[world, item].tolist(),
                    "sounds": bool(state.sounding[world, item]),
                }
                for item in items
            ],
            "target": int(state.target[world]),
            "distance_m": float(state.distance[world]),
            "channel": CHANNELS[channel] if channel >= 0 else None,
            "instruction": str(self._texts[self._sentence("speech")[world]]),
            "voice": self.options.voices[int(state.voice[world])],
            "rate_wpm": self.options.rate_wpm,
        }

    def close(self) -> None:
        """Stop the threads; may be called twice."""
        self._threads.close()
