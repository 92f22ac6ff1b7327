"""Which world is played, through which senses, and what is rewarded."""

from typing import Any, Literal

from pydantic import Field

from sensorium.core import ActionKind, Config


class PlayableConfig(Config):
    """Which world is played, through which senses, and what is rewarded."""

    task: str = "arena/find"
    """``backend/task`` of `sensorium envs`, e.g. ``arena/find`` or ``doom/basic``; or the id of any Gymnasium
    environment, e.g. ``MiniGrid-DoorKey-5x5-v0``, ``FrozenLake-v1`` or ``my_package:MyEnv-v0``."""
    visual_obs: tuple[str, ...] = ("rgb",)
    """Of an embodied task: `rgb`, `depth`."""
    audio_obs: tuple[str, ...] = ()
    """Of an embodied task: `speech`, `env_sound`."""
    text_obs: tuple[str, ...] = ("instruction",)
    """Of an embodied task: `instruction`, `notifications`."""
    proprio: bool = False
    """Of an embodied task: whether the agent feels its own body."""
    action_space: ActionKind = ActionKind.DISCRETE
    """Of an embodied task: `discrete`, `continuous` or `hybrid`."""
    image_size: int = Field(default=192, ge=32, le=512)
    """Of an embodied task: height and width of pictures, pixels."""
    env_sound: Literal["words", "audio"] = "words"
    """Surroundings as words (how loud left and right, which frequencies), or as a sound that the observation
    pipeline describes or passes on. Speech is always a sound."""
    outages: dict[str, int] = Field(default_factory=dict)
    """Of an embodied task: sensor -> number of the step from which it delivers nothing more."""
    backend_options: dict[str, Any] = Field(default_factory=dict)
    """Of an embodied task: settings that only its backend has."""
    env_options: dict[str, Any] = Field(default_factory=dict)
    """Of a Gymnasium environment: arguments of `gymnasium.make`, e.g. ``{"is_slippery": false}``."""
    render: Literal["auto", "picture", "text", "none"] = "auto"
    """Of a Gymnasium environment: what is drawn for people and shown beside the observation. ``auto`` takes a
    picture where the observation has none itself, or else text."""
    action_names: tuple[str, ...] = ()
    """Of a Gymnasium environment: names of its discrete actions, where it tells none."""
    instruction: str = ""
    """What the agent is asked; found in the description of the task when empty."""
    max_env_steps: int | None = Field(default=None, ge=1)
    """Steps of the world after which an episode is cut off; its own limit when None."""
    max_repeat: int = Field(default=8, ge=1, le=64)
    """How often one call may repeat an action at most."""
    reward: Literal["auto", "env", "success"] = "auto"
    """``env`` passes on what the world gives, ``success`` gives 1 for solving the task. ``auto`` is `success`
    for embodied tasks, whose own rewards are shaped for networks, and `env` for Gymnasium environments."""
