"""What is played: a world that is reset and stepped, and says in raw states what can be perceived."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from sensorium.envs.playable.actions import ActionTool


class Moment(NamedTuple):
    """What came of a reset or a step."""

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: float | None = None
    """In [0, 1], where the world tells how it went."""
    event: str = ""
    """What a player wants to know before going on, e.g. ``bumped into something``; repeating stops."""


@runtime_checkable
class World(Protocol):
    """One world. All methods are called from one thread."""

    actions: ActionTool
    """How it is acted on."""
    max_steps: int | None
    """Steps of an episode; None when there is no limit."""

    def reset(self, seed: int) -> Moment:
        """Begin an episode."""
        ...

    def step(self, action: Any) -> Moment:
        """Act once; `action` as `ActionTool.decode` made it."""
        ...

    def look(self) -> Mapping[str, Any]:
        """Name -> raw state, as `observations.read` takes it: what can be perceived now."""
        ...

    def close(self) -> None:
        """Give everything back; may be called twice."""
        ...
