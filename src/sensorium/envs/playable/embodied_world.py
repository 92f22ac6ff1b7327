"""A task of `envs.embodied` as a world that is played."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError, Modality
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.gym import MultiModalGym
from sensorium.envs.embodied.registry import find_task
from sensorium.envs.playable.actions import tool_of_spec
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.sensing import depth_picture, picture, rate_of, sound, sound_in_words
from sensorium.envs.playable.world import Moment
from sensorium.observations import Source

_INSTRUCTION_WEIGHT = 3.0


class EmbodiedWorld:
    """One world of an embodied task; see `World`.

    Args:
        config: Names the task, its senses and its actions.

    Raises:
        ConfigError: The task cannot give a sensor or action space; lists those it can.
        MissingDependencyError: What simulates it is not installed.
    """

    def __init__(self, config: PlayableConfig) -> None:
        self._config = config
        settings = embodied_config(config)
        self._gym = MultiModalGym(**dict(settings))
        backend = self._gym.worlds.backend
        self._specs = backend.sensors
        unknown = sorted(set(config.outages) - set(self._specs))
        if unknown:
            self._gym.close()
            raise EnvError(f"outages names {', '.join(unknown)}; the sensors are {', '.join(self._specs)}.")
        self.actions = tool_of_spec(backend.action, config.max_repeat)
        self.max_steps: int | None = settings.max_episode_steps
        self._num_steps = 0
        self._message = ""
        self._observation: dict[str, Any] = {}
        self._sounds: list[NDArray[np.float32]] = []

    def reset(self, seed: int) -> Moment:
        """Begin an episode."""
        observation, _ = self._gym.reset(seed=seed)
        self._num_steps = 0
        self._message = str(observation.get("notifications", ""))
        self._sounds.clear()
        self._perceive(observation)
        return Moment()

    def step(self, action: Any) -> Moment:
        """Act for one control step.

        Raises:
            EnvError: The engine broke.
        """
        observation, reward, terminated, truncated, info = self._gym.step(action)
        if info["status"] == "error":
            raise EnvError(f"The engine of {self._config.task} broke; the episode has no outcome.")
        self._num_steps += 1
        done = terminated or truncated
        success = float(info["status"] == "success") if done else None
        self._perceive(observation)
        return Moment(reward, terminated, truncated, success, self._event(observation, info))

    def look(self) -> dict[str, Any]:
        """What every sensor delivers; of those that deliver nothing, the names."""
        state: dict[str, Any] = {}
        missing = []
        for name, spec in self._specs.items():
            failed = self._num_steps >= self._config.outages.get(name, self._num_steps + 1)
            if failed or not int(self._observation["present"][name]):
                missing.append(name)
            else:
                state |= self._shown(name, spec, self._observation[name])
        if missing:
            state["missing"] = f"no reading from: {', '.join(missing)}"
        self._sounds.clear()
        return state

    def close(self) -> None:
        """Free the backend."""
        self._gym.close()

    def _event(self, observation: dict[str, Any], info: dict[str, Any]) -> str:
        told = str(observation.get("notifications", ""))
        is_new, self._message = bool(told) and told != self._message, told
        if is_new:
            return f"a message: {told}"
        return "bumped into something or was hurt" if info["violated"] else ""

    def _perceive(self, observation: dict[str, Any]) -> None:
        """Keep what was perceived last, and all that was heard since somebody looked."""
        self._observation = observation
        if "env_sound" in self._specs:
            self._sounds.append(np.asarray(observation["env_sound"]))

    def _shown(self, name: str, spec: Any, reading: Any) -> dict[str, Any]:
        match spec.modality:
            case Modality.IMAGE:
                return {name: picture(reading)}
            case Modality.DEPTH:
                return depth_picture(reading, _farthest(spec))
            case Modality.AUDIO:
                rate_hz = rate_of(spec)
                if name == "env_sound":
                    reading = np.concatenate(self._sounds, axis=-1)
                if name == "env_sound" and self._config.env_sound == "words":
                    return {name: sound_in_words(reading, rate_hz)}
                return {name: sound(reading, rate_hz)}
            case Modality.TEXT:
                text = str(reading)
                return {name: Source(text, importance=_INSTRUCTION_WEIGHT)} if text else {}
            case _:
                values = np.asarray(reading, np.float64).ravel().tolist()
                names = spec.labels or tuple(f"value_{i}" for i in range(len(values)))
                rounded = {label: round(value, 3) for label, value in zip(names, values, strict=True)}
                return {name: Source(rounded, modality=Modality.PROPRIO)}


def embodied_config(config: PlayableConfig) -> EmbodiedEnvConfig:
    """The settings of the embodied environment that is played."""
    return EmbodiedEnvConfig(
        task=config.task,
        visual_obs=config.visual_obs,
        audio_obs=config.audio_obs,
        text_obs=config.text_obs,
        proprio=config.proprio,
        action_space=config.action_space,
        max_episode_steps=config.max_env_steps or find_task(config.task).default_max_steps,
        image_size=config.image_size,
        waveform=bool(config.audio_obs),
        backend_options=config.backend_options,
    )


def _farthest(spec: Any) -> float:
    highest = float(np.max(spec.space.high))
    return highest if np.isfinite(highest) else 10.0
