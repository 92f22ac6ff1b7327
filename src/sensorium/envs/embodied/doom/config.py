"""Settings that only the `doom` backend has."""

from typing import Literal

from pydantic import Field

from sensorium.core import Config

ENGINE_TICS_PER_S = 35
"""The engine advances 35 times per simulated second."""

RESOLUTIONS: dict[str, tuple[int, int]] = {
    "160x120": (160, 120),
    "200x150": (200, 150),
    "256x192": (256, 192),
    "320x240": (320, 240),
    "400x300": (400, 300),
    "512x384": (512, 384),
    "640x480": (640, 480),
    "800x600": (800, 600),
}
"""Engine resolutions with the game's own 4:3 picture: name -> (width, height) in pixels."""


class DoomOptions(Config):
    """How the engine runs; given as `backend_options` of the environment's config."""

    frame_skip: int = Field(default=4, ge=1, le=35)
    """Engine tics (1/35 s) per step; the action is held, rewards are summed."""
    resolution: (
        Literal["160x120", "200x150", "256x192", "320x240", "400x300", "512x384", "640x480", "800x600"] | None
    ) = None
    """What the engine draws before it is shrunk to `image_size`. None: the smallest that is not smaller
    than `image_size` in either direction; 160x120 is by far the fastest."""
    sample_rate_hz: Literal[11025, 22050, 44100] = 22050
    """Sample rate of `env_sound`; the engine is about 12 % faster at 11025 and 20 % slower at 44100."""
    n_mels: int = Field(default=16, ge=1, le=128)
    """Mel channels of `env_sound`."""
    voices: tuple[str, ...] = Field(default=("en-us",), min_length=1)
    """Voices of `speech`; each episode's seed picks one."""
    rate_wpm: int = Field(default=160, ge=80, le=450)
    """Words per minute of `speech`."""
    objects: bool = False
    """Whether `describe` lists every object of the map (for experts); costs 5 to 25 % of the speed."""
    num_workers: int | None = Field(default=None, ge=1)
    """Worker processes. None: one per available core, but no more than worlds."""
    in_process: bool = False
    """Run the games inside this process: for debugging. An engine crash then ends this process."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds that a worker may take for one request before it is killed and restarted."""
    max_failures: int = Field(default=3, ge=1)
    """Failures of one worker in a row after which the run stops with an EnvError."""


def pick_resolution(options: DoomOptions, image_size: int) -> tuple[int, int]:
    """Return the engine's (width, height) for square images of `image_size` pixels."""
    if options.resolution is not None:
        return RESOLUTIONS[options.resolution]
    fitting = (size for size in RESOLUTIONS.values() if min(size) >= image_size)
    return next(fitting, RESOLUTIONS["800x600"])
