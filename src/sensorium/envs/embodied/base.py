"""What a backend must offer: N worlds that are reset, stepped and read in one call each.

A backend simulates; it knows nothing of Gymnasium, seeds of episodes, time limits or sensor rates.
`vector.MultiModalVectorEnv` adds those, once, for every backend.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sensorium.core import ActionKind, Modality

Reading = NDArray[Any] | list[str]
"""One sensor's readings in all worlds: an array (N, ...) or, for text, a list of N strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorSpec:
    """What one sensor of one world delivers."""

    name: str
    """Sensor key in the observation, e.g. ``"rgb"``."""
    modality: Modality
    space: gymnasium.Space[Any]
    """Space of one reading of one world, e.g. ``Box(0, 255, (48, 48, 3), uint8)``."""
    rate_hz: float
    """Readings per simulated second; at most the backend's `control_hz`."""
    unit: str = ""
    """Unit and range of a value, for people, e.g. ``"metres, 0 to 20"``."""
    per_episode: bool = False
    """True when the reading does not change within an episode (an instruction, read or spoken)."""
    normalise: bool = False
    """True when a running mean/std filter helps: vectors, depth, spectrograms; never uint8 images or text."""
    labels: tuple[str, ...] = ()
    """Name of each entry of a vector reading, e.g. ``("speed", "turn_rate")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """What one action of one world is made of, whichever kind the user chose."""

    kind: ActionKind
    option_names: tuple[str, ...] = ()
    """Names of the discrete options; empty for `continuous`."""
    continuous_names: tuple[str, ...] = ()
    """Names of the continuous parameters, each in [-1, 1]; empty for `discrete`."""
    parameter_mask: NDArray[np.bool_] | None = None
    """Hybrid only, (options, parameters): which parameters each option uses. None: all of them."""

    @property
    def num_options(self) -> int:
        """Number of discrete options."""
        return len(self.option_names)

    @property
    def continuous_dim(self) -> int:
        """Number of continuous parameters."""
        return len(self.continuous_names)

    def space(self) -> gymnasium.Space[Any]:
        """Gymnasium space of one world's action: Discrete, Box in [-1, 1], or a Dict of both."""
        discrete: gymnasium.Space[Any] = gymnasium.spaces.Discrete(max(self.num_options, 1))
        continuous = gymnasium.spaces.Box(-1.0, 1.0, (self.continuous_dim,), np.float32)
        if self.kind is ActionKind.DISCRETE:
            return discrete
        if self.kind is ActionKind.CONTINUOUS:
            return continuous
        return gymnasium.spaces.Dict({"continuous": continuous, "discrete": discrete})


class BackendStep(NamedTuple):
    """What one step did, per world; rows of worlds that were not active are zero / False."""

    reward: NDArray[np.float32]
    """(N,), in the task's own unit."""
    terminated: NDArray[np.bool_]
    """(N,), the task itself ended."""
    success: NDArray[np.bool_]
    """(N,), read where an episode ends: the task was solved."""
    failed: NDArray[np.bool_]
    """(N,), the world broke (worker died): the episode has no outcome and must be reset."""
    violated: NDArray[np.bool_] | None = None
    """(N,), this step was unsafe (a collision, damage taken); None: the task knows no such thing."""
    truncated: NDArray[np.bool_] | None = None
    """(N,), the world cut the episode short by itself: no failure, and not the task's end either, so that
    what would have followed counts by its value. None: it never does; the step limit is not its own."""


@runtime_checkable
class Backend(Protocol):
    """N worlds of one task. Rows of every array are worlds."""

    num_envs: int
    control_hz: float
    """Steps per simulated second."""
    sensors: Mapping[str, SensorSpec]
    """The sensors that were asked for, in canonical order."""
    action: ActionSpec

    def reset(self, seeds: NDArray[np.uint64], mask: NDArray[np.bool_]) -> None:
        """Start a new episode in each world where `mask` is True; `seeds[i]` alone decides world i.

        A backend may put it off until the next `step` or reading, to let other worlds act meanwhile.
        """
        ...

    def step(
        self,
        discrete: NDArray[np.int64] | None,
        continuous: NDArray[np.float32] | None,
        active: NDArray[np.bool_],
    ) -> BackendStep:
        """Advance the active worlds by one control step; the others stay untouched.

        Args:
            discrete: (N,) option index, for `discrete` and `hybrid`; None otherwise.
            continuous: (N, C) in [-1, 1], already clipped, for `continuous` and `hybrid`; None otherwise.
            active: (N,) which worlds advance.
        """
        ...

    def observe(self) -> Mapping[str, Reading]:
        """Read every sensor in every world now. The caller may keep the arrays: they are fresh copies.

        Per-episode sensors too: their value since the last reset of that world.
        """
        ...

    def render(self, world: int) -> NDArray[np.uint8]:
        """Picture of one world for people, (H, W, 3) RGB; may show what the agent cannot see."""
        ...

    def describe(self, world: int) -> Mapping[str, Any]:
        """Ground truth of one world for reports and experts (object positions, target); JSON-friendly.

        `instruction`, `voice` and `rate_wpm`, where given, let a report show and play what was said.
        """
        ...

    def close(self) -> None:
        """Free processes and files; may be called twice."""
        ...
