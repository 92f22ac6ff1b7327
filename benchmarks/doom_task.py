"""What Sensorium, Sample Factory and RLlib are all asked to do, as plain numbers.

Only the standard library is imported here: the peers run in environments of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DoomTask:
    """PPO with an LSTM on ViZDoom's `basic` scenario, from rgb alone; four options to act."""

    frame_skip: int = 4
    """Engine tics per step. A step is counted once, not once per tic."""
    image_size: int = 48
    """Height and width to which the engine's 160x120 picture is shrunk."""
    max_episode_steps: int = 75
    num_envs: int = 16
    num_steps: int = 32
    """Steps per world and rollout; also the length of the sequences that the LSTM is trained on."""
    num_epochs: int = 4
    num_minibatches: int = 4
    lr: float = 1e-6
    """So low that policies stay random: a new episode costs as much as ten steps, and a side that learned
    faster to end them would have more to do."""
    patch_size: int = 4
    channels: tuple[int, int] = (24, 48)
    """Of the patch layer, and of the layer that merges 2x2 neighbours."""
    embed_dim: int = 64
    """Width of a picture's summary."""
    hidden_dim: int = 128
    """Width of the MLP after it, of the LSTM and of the heads."""
    processes: int = 2
    """Processes that step worlds, where a side has such processes."""
    seed: int = 0

    @property
    def batch_size(self) -> int:
        """Samples of a minibatch."""
        return self.num_envs * self.num_steps // self.num_minibatches

    def as_json(self) -> dict[str, Any]:
        """Settings of a measurement."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "DoomTask":
        """What `as_json` returned, after a journey as JSON."""
        return cls(**(dict(values) | {"channels": tuple(values["channels"])}))

    def as_text(self) -> str:
        """For an environment variable."""
        return json.dumps(self.as_json())

    @classmethod
    def from_text(cls, text: str) -> "DoomTask":
        """What `as_text` returned."""
        return cls.from_json(json.loads(text))
