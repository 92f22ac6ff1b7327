"""What a game needs to know, and the arrays that it fills: the contract between backend and workers."""

from dataclasses import dataclass

from sensorium.envs.embodied.doom.config import ENGINE_TICS_PER_S
from sensorium.envs.embodied.doom.find.config import FindOptions

PROPRIO_LABELS = (
    "health",
    "armour",
    "ammo",
    "weapon",
    "weapon_ready",
    "speed_forward",
    "speed_right",
    "turn_rate",
    "heading_sin",
    "heading_cos",
)
"""What the body feels; see `PROPRIO_UNIT` for the scales."""

PROPRIO_UNIT = (
    "health and armour in 100 points, ammo in 50 rounds, weapon by slot, speeds in 10 map units per tic, "
    "turn rate in 10 degrees per tic (right is positive), heading from the map's east"
)

NOTIFICATION_BYTES = 256
"""Longest message, in ASCII characters."""

IDLE, STEP, RESET = 0, 1, 2
"""What a world is told to do; values of the array `command`."""

Layout = dict[str, tuple[tuple[int, ...], str]]
"""Array name -> (shape, dtype name)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSettings:
    """Everything that decides how one game runs and what is read from it; picklable."""

    scenario: str
    buttons: tuple[str, ...]
    sensors: frozenset[str]
    image_size: int
    frame_skip: int
    resolution: tuple[int, int]
    """Engine picture (width, height) in pixels."""
    sample_rate_hz: int
    n_mels: int
    waveform: bool
    objects: bool
    find: FindOptions | None = None
    """The room of `doom/find`; None for the scenarios that ship with ViZDoom."""

    @property
    def samples_per_tic(self) -> int:
        """Sound samples per engine tic; every rate that the engine has is a multiple of 35."""
        return self.sample_rate_hz // ENGINE_TICS_PER_S

    @property
    def n_fft(self) -> int:
        """Window of a log-mel frame: the power of two between one and two tics."""
        return 1 << self.samples_per_tic.bit_length()

    @property
    def sound_shape(self) -> tuple[int, ...]:
        """(2, samples) as a waveform, else (2, frames, mels), one frame per tic; left ear first."""
        if self.waveform:
            return (2, self.samples_per_tic * self.frame_skip)
        return (2, self.frame_skip, self.n_mels)

    def layout(self, num_envs: int, num_workers: int) -> Layout:
        """Arrays through which the backend and the workers talk; rows are worlds (of `picture`: workers)."""
        width, height = self.resolution
        size = self.image_size
        sensors: Layout = {
            "rgb": ((num_envs, size, size, 3), "uint8"),
            "depth": ((num_envs, size, size, 1), "float32"),
            "env_sound": ((num_envs, *self.sound_shape), "float32"),
            "notifications": ((num_envs, NOTIFICATION_BYTES), "uint8"),
            "proprio": ((num_envs, len(PROPRIO_LABELS)), "float32"),
        }
        control: Layout = {
            "command": ((num_envs,), "uint8"),
            "seed": ((num_envs,), "uint64"),
            "buttons": ((num_envs, len(self.buttons)), "float64"),
            "reward": ((num_envs,), "float32"),
            "terminated": ((num_envs,), "bool"),
            "success": ((num_envs,), "bool"),
            "picture": ((num_workers, height, width, 3), "uint8"),
        }
        return {name: entry for name, entry in sensors.items() if name in self.sensors} | control
