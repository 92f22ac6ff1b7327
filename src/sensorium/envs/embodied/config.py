"""How a user describes an embodied environment."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from sensorium.core import ActionKind, Config
from sensorium.envs.embodied.augment.config import AugmentConfig

SENSOR_ORDER = ("rgb", "depth", "speech", "env_sound", "instruction", "notifications", "proprio")
"""Canonical order of sensors, in observations, run names and reports."""

CLIENT_SETTINGS = frozenset(
    {"visual_obs", "audio_obs", "text_obs", "proprio", "action_space", "sensor_rates_hz"}
    | {"image_size", "waveform", "max_episode_steps"}
)
"""What a client of a server may choose. The task and the options of its engine are the server's."""


class EmbodiedEnvConfig(Config):
    """One task, the senses to perceive it with, and the way to act."""

    task: str
    """Task name, `backend/task`, e.g. ``arena/find`` or ``doom/basic``; `sensorium envs` lists them.
    ``gym/ID`` is any environment of Gymnasium."""
    visual_obs: tuple[str, ...] = ("rgb",)
    """Visual sensors: `rgb`, `depth`."""
    audio_obs: tuple[str, ...] = ()
    """Sound sensors: `speech` (the instruction, spoken), `env_sound` (what the world sounds like)."""
    text_obs: tuple[str, ...] = ()
    """Text sensors: `instruction`, and where a backend has them `notifications`."""
    proprio: bool = False
    """Whether the agent feels its own body."""
    action_space: ActionKind = ActionKind.DISCRETE
    """`discrete`, `continuous` or `hybrid` (one discrete option with continuous parameters)."""
    max_episode_steps: int = Field(default=500, ge=1)
    """Steps after which an episode is truncated."""
    sensor_rates_hz: dict[str, float] = Field(default_factory=dict)
    """Slower rates than the backend's own, per sensor; between readings the last one is held."""
    image_size: int = Field(default=48, ge=8, le=512)
    """Height and width of rgb and depth, in pixels."""
    waveform: bool = False
    """Whether sounds come as waveforms instead of log-mel frames."""
    backend_options: dict[str, Any] = Field(default_factory=dict)
    """Settings that only this backend has; an unknown one is an error that lists those it has."""
    server: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """Address of a resources server (`sensorium serve`) that simulates the worlds: one whose environment is
    `embodied` with the same task and `backend_options`. None: this process does."""
    augment: AugmentConfig = AugmentConfig()
    """Random changes to what is perceived. Training applies them; `sensorium eval` and the figures of a
    finished run never do."""

    def outdated(self, changes: Mapping[str, Any]) -> frozenset[str]:
        """Settings of a backend go with it: a task of another one starts without them."""
        backend = self.task.partition("/")[0]
        moved = str(changes.get("task", self.task)).partition("/")[0] != backend
        return frozenset({"backend_options"}) if moved else super().outdated(changes)

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """Every sensor asked for, in canonical order."""
        asked = {*self.visual_obs, *self.audio_obs, *self.text_obs} | ({"proprio"} if self.proprio else set())
        return tuple(name for name in SENSOR_ORDER if name in asked) + tuple(
            sorted(asked - set(SENSOR_ORDER))
        )
