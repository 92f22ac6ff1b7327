"""Recording one episode: what was seen, heard and done, for the report's film strip."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.analysis import Film, FilmNotes
from sensorium.core import ActionKind, EpisodeStatus
from sensorium.envs.embodied import ActionSpec, MultiModalVectorEnv, SensorSpec
from sensorium.evals.episodes import Player
from sensorium.features.speech import utterance
from sensorium.trainers.build import Agent

MAX_FILM_STEPS = 200


def record_episode(agent: Agent, env: MultiModalVectorEnv, *, seed: int) -> Film:
    """Play one episode in world 0 and keep every step, at most `MAX_FILM_STEPS`.

    The other worlds, if any, play along and are not recorded.
    """
    player = Player(agent, env)
    observation = player.reset(seed)
    frames: list[dict[str, Any]] = []
    actions: list[str] = []
    rewards: list[float] = []
    values: list[float] = []
    times_s: list[float] = []
    status = EpisodeStatus.RUNNING
    while status is EpisodeStatus.RUNNING and len(frames) < MAX_FILM_STEPS:
        row = {name: observation[name][0] for name in env.worlds.sensors}
        frames.append(row | {"map": env.worlds.backend.render(0)})
        times_s.append(float(env.worlds.step_count[0] / env.worlds.backend.control_hz))
        action, value, reward, _, info = player.step()
        actions.append(action_in_words(action, env.worlds.action))
        rewards.append(float(reward[0]))
        values.append(float(value[0]))
        status = EpisodeStatus(str(info["status"][0]))
        observation = player.observation
    first, truth = frames[0], env.worlds.backend.describe(0)
    notifications = tuple(str(f["notifications"]) for f in frames) if "notifications" in first else None
    notes = FilmNotes(
        sensors=tuple(env.worlds.sensors),
        instruction=first.get("instruction") or truth.get("instruction"),
        notifications=notifications,
        actions=tuple(actions),
        rewards=tuple(rewards),
        values=tuple(values),
        timestamps_s=tuple(times_s),
        outcome=status.value,
    )
    stacked: dict[str, Any] = {
        name: np.stack([f[name] for f in frames]) for name in ("rgb", "depth", "map") if name in first
    }
    if "rgb" in stacked:
        stacked["rgb"] = colour_frames(stacked["rgb"], env.worlds.sensors["rgb"])
    if "env_sound" in first and first["env_sound"].ndim == 3:
        stacked["env_sound"] = np.stack([f["env_sound"] for f in frames])
    speech = first.get("speech")
    if speech is not None and speech.ndim == 2:
        stacked["speech"] = speech
        if {"instruction", "voice", "rate_wpm"} <= truth.keys():
            spoken = utterance(truth["instruction"], voice=truth["voice"], rate_wpm=truth["rate_wpm"])
            stacked["speech_waveform"] = spoken.waveform
    return Film(notes=notes, **stacked)


def colour_frames(frames: NDArray[Any], spec: SensorSpec) -> NDArray[np.uint8]:
    """Frames of any camera as people look at them: three channels, 0 to 255.

    One channel is shown in grey; of more than three the first three are shown. Numbers other than bytes are
    scaled from the range of the sensor, or of the frames where it has no end.

    Args:
        frames: (steps, height, width, channels), any number of channels and any dtype.
        spec: The sensor that they come from.
    """
    channels = frames.shape[-1]
    coloured = frames[..., :3] if channels >= 3 else np.repeat(frames[..., :1], 3, axis=-1)
    if frames.dtype == np.uint8:
        return np.ascontiguousarray(coloured)
    space = spec.space
    low, high = -np.inf, np.inf
    if isinstance(space, spaces.Box):
        low, high = float(space.low.min()), float(space.high.max())
    finite = coloured[np.isfinite(coloured)].astype(np.float64)
    if not np.isfinite([low, high]).all():
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    shares = (np.nan_to_num(coloured.astype(np.float64), nan=low) - low) / max(high - low, 1e-12)
    return (shares.clip(0.0, 1.0) * 255).round().astype(np.uint8)


def action_in_words(action: Any, spec: ActionSpec) -> str:
    """World 0's action for people, e.g. ``"move (forward 0.81, turn -0.10)"``."""
    discrete = action["discrete"] if spec.kind is ActionKind.HYBRID else action
    continuous = action["continuous"] if spec.kind is ActionKind.HYBRID else action
    option = (
        "" if spec.kind is ActionKind.CONTINUOUS else spec.option_names[int(discrete[0])].replace("_", " ")
    )
    if spec.kind is ActionKind.DISCRETE:
        return option
    used = np.ones(spec.continuous_dim, np.bool_)
    if spec.parameter_mask is not None and spec.kind is ActionKind.HYBRID:
        used = spec.parameter_mask[int(discrete[0])]
    parameters = ", ".join(
        f"{name.replace('_', ' ')} {np.clip(value, -1, 1):+.2f}"
        for name, value, counts in zip(spec.continuous_names, continuous[0], used, strict=True)
        if counts
    )
    return f"{option} ({parameters})" if option and parameters else option or parameters
