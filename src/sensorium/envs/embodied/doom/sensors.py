"""What each sensor of the `doom` backend delivers."""

import string
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from sensorium.core import Modality
from sensorium.envs.embodied.base import SensorSpec
from sensorium.envs.embodied.doom.images import MAX_DEPTH_M
from sensorium.envs.embodied.doom.instructions import Instructions
from sensorium.envs.embodied.doom.settings import (
    NOTIFICATION_BYTES,
    PROPRIO_LABELS,
    PROPRIO_UNIT,
    GameSettings,
)

_CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " "


def sensor_specs(
    names: Sequence[str], settings: GameSettings, instructions: Instructions, control_hz: float
) -> dict[str, SensorSpec]:
    """Describe the sensors that were asked for, in the order given.

    - `rgb`: the engine's whole 4:3 picture squeezed into a square (see `Shrinker`).
    - `depth`: distance along the view direction in metres. The engine gives 8 bits of 0.23 m each; walls
      stop at 14 m where it draws 160x120, and further away at higher resolutions. One's own weapon is at 0.
    - `env_sound`: the engine's stereo mix during the step, left ear first: one log-mel frame per tic, whose
      window reaches back into the tic before, or the samples.
    - `speech`, `instruction`: what to do, said and written; the same for the whole episode.
    - `notifications`: messages that appeared during the step; usually empty.
    - `proprio`: the body, see `PROPRIO_LABELS`.

    The step that ends an episode has no picture and no sound of its own: the reading before is repeated (but
    in `doom/find`, where the engine goes on).
    """
    size = settings.image_size
    loudness = spaces.Box(-1.0, 1.0, settings.sound_shape, np.float32)
    mel_frames = spaces.Box(-np.inf, np.inf, settings.sound_shape, np.float32)
    lowest, highest = (-1.0, 1.0) if settings.waveform else (-np.inf, np.inf)
    log_unit = "natural logarithm of mel power, -18.4 (silence) to about 0 (full scale)"
    every = {
        "rgb": SensorSpec(
            name="rgb",
            modality=Modality.IMAGE,
            space=spaces.Box(0, 255, (size, size, 3), np.uint8),
            rate_hz=control_hz,
            unit="0 to 255",
        ),
        "depth": SensorSpec(
            name="depth",
            modality=Modality.DEPTH,
            space=spaces.Box(0.0, MAX_DEPTH_M, (size, size, 1), np.float32),
            rate_hz=control_hz,
            unit=f"metres, 0 to {MAX_DEPTH_M:.1f}",
            normalise=True,
        ),
        "speech": SensorSpec(
            name="speech",
            modality=Modality.AUDIO,
            space=spaces.Box(lowest, highest, instructions.speech_shape, np.float32),
            rate_hz=control_hz,
            unit="16 kHz samples, -1 to 1" if settings.waveform else log_unit,
            per_episode=True,
            normalise=not settings.waveform,
        ),
        "env_sound": SensorSpec(
            name="env_sound",
            modality=Modality.AUDIO,
            space=loudness if settings.waveform else mel_frames,
            rate_hz=control_hz,
            unit=f"{settings.sample_rate_hz} Hz samples, -1 to 1" if settings.waveform else log_unit,
            normalise=not settings.waveform,
        ),
        "instruction": SensorSpec(
            name="instruction",
            modality=Modality.TEXT,
            space=spaces.Text(max(map(len, instructions.sentences)), charset=_CHARACTERS),
            rate_hz=control_hz,
            per_episode=True,
        ),
        "notifications": SensorSpec(
            name="notifications",
            modality=Modality.TEXT,
            space=spaces.Text(NOTIFICATION_BYTES, min_length=0, charset=_CHARACTERS + "\n"),
            rate_hz=control_hz,
        ),
        "proprio": SensorSpec(
            name="proprio",
            modality=Modality.PROPRIO,
            space=spaces.Box(-np.inf, np.inf, (len(PROPRIO_LABELS),), np.float32),
            rate_hz=control_hz,
            unit=PROPRIO_UNIT,
            normalise=True,
            labels=PROPRIO_LABELS,
        ),
    }
    return {name: every[name] for name in names}
