"""Which sensors and actions an agent of the arena has, as specifications."""

import string

import gymnasium
import numpy as np

from sensorium.core import ActionKind, Modality
from sensorium.envs.embodied.arena.camera import MAX_DEPTH_M
from sensorium.envs.embodied.arena.config import ArenaOptions
from sensorium.envs.embodied.arena.language import SPEECH_FRAME_RATE_HZ, SPEECH_FRAMES, SPEECH_MELS, sentences
from sensorium.envs.embodied.arena.sound import FRAMES_PER_STEP, SOUND_MELS, SOUND_SAMPLE_RATE_HZ
from sensorium.envs.embodied.arena.state import CONTROL_HZ
from sensorium.envs.embodied.base import ActionSpec, SensorSpec
from sensorium.envs.embodied.config import EmbodiedEnvConfig

_PROPRIO = ("forward_speed", "turn_rate", "bumped", "interacted")
_LOG_MEL_RANGE = (-20.0, 10.0)
_Box = gymnasium.spaces.Box


def sensor_specs(config: EmbodiedEnvConfig) -> dict[str, SensorSpec]:
    """Specify the sensors that were asked for, in canonical order."""
    return {name: _sensor_spec(name, config) for name in config.sensor_names}


def _sensor_spec(name: str, config: EmbodiedEnvConfig) -> SensorSpec:
    size = config.image_size
    if name == "rgb":
        space: gymnasium.Space[object] = _Box(0, 255, (size, size, 3), np.uint8)
        return SensorSpec(
            name=name, modality=Modality.IMAGE, space=space, rate_hz=CONTROL_HZ, unit="8-bit RGB"
        )
    if name == "depth":
        unit = f"metres along the viewing axis, 0 to {MAX_DEPTH_M:g}"
        space = _Box(0.0, MAX_DEPTH_M, (size, size, 1), np.float32)
        return SensorSpec(
            name=name, modality=Modality.DEPTH, space=space, rate_hz=CONTROL_HZ, unit=unit, normalise=True
        )
    if name in ("speech", "env_sound"):
        return _sound_spec(name, config.waveform)
    if name == "instruction":
        longest = max(len(sentence) for sentence in sentences(config.task))
        space = gymnasium.spaces.Text(longest, min_length=0, charset=string.ascii_lowercase + " ")
        return SensorSpec(
            name=name,
            modality=Modality.TEXT,
            space=space,
            rate_hz=CONTROL_HZ,
            unit="English",
            per_episode=True,
        )
    space = _Box(-10.0, 10.0, (len(_PROPRIO),), np.float32)
    return SensorSpec(
        name=name,
        modality=Modality.PROPRIO,
        space=space,
        rate_hz=CONTROL_HZ,
        unit="m/s, rad/s, 0 or 1, 0 or 1",
        normalise=True,
        labels=_PROPRIO,
    )


def _sound_spec(name: str, waveform: bool) -> SensorSpec:
    spoken = name == "speech"
    if waveform:
        seconds = SPEECH_FRAMES / SPEECH_FRAME_RATE_HZ if spoken else 1.0 / CONTROL_HZ
        samples = round(seconds * SOUND_SAMPLE_RATE_HZ)
        space = _Box(-1.0, 1.0, (samples,) if spoken else (2, samples), np.float32)
        unit = f"samples at {SOUND_SAMPLE_RATE_HZ} Hz, -1 to 1" + ("" if spoken else "; left, right")
    else:
        shape = (SPEECH_FRAMES, SPEECH_MELS) if spoken else (2, FRAMES_PER_STEP, SOUND_MELS)
        space = _Box(*_LOG_MEL_RANGE, shape, np.float32)
        unit = "ln of mel power, 40 frames per second" + ("" if spoken else "; left, right")
    return SensorSpec(
        name=name,
        modality=Modality.AUDIO,
        space=space,
        rate_hz=CONTROL_HZ,
        unit=unit,
        per_episode=spoken,
        normalise=not waveform,
    )


def action_spec(kind: ActionKind, options: ArenaOptions) -> ActionSpec:
    """Specify what an action is made of.

    `discrete`: a step forward, a turn to either side, or interact. `continuous`: forward and turn (left is
    positive), and with `require_interact` a third parameter that means interact above 0.5. `hybrid`: the
    option `move` with those two parameters, or `interact`, which uses none.
    """
    if kind is ActionKind.DISCRETE:
        return ActionSpec(kind=kind, option_names=("forward", "turn_left", "turn_right", "interact"))
    if kind is ActionKind.CONTINUOUS:
        interact = ("interact",) if options.require_interact else ()
        return ActionSpec(kind=kind, continuous_names=("forward", "turn", *interact))
    return ActionSpec(
        kind=kind,
        option_names=("move", "interact"),
        continuous_names=("forward", "turn"),
        parameter_mask=np.array([[True, True], [False, False]]),
    )
