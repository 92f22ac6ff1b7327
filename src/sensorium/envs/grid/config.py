"""Which grid world, how it is shown, and what the agent can do."""

from typing import Any, Literal

from pydantic import Field, model_validator

from sensorium.core import Config

ActionName = Literal["left", "right", "forward", "pickup", "drop", "toggle", "done"]
"""Names of MiniGrid's actions, in the order of their numbers."""
View = Literal["words", "symbols", "picture"]


class GridConfig(Config):
    """Which grid world, how it is shown, and what the agent can do."""

    task: str = "MiniGrid-Empty-Random-6x6-v0"
    """Id of any environment of MiniGrid or BabyAI, e.g. ``MiniGrid-DoorKey-8x8-v0`` or
    ``BabyAI-GoToLocal-v0``."""
    env_options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of `gymnasium.make`, e.g. ``{"size": 8}``."""
    show: tuple[View, ...] = Field(default=("words",), min_length=1)
    """``words``: how far one can walk, and where things are; ``symbols``: a map of what is seen, a character
    a cell; ``picture``: the same as a picture."""
    view_size: int = Field(default=7, ge=3, le=31)
    """Width and depth of what is seen, cells, an odd number; the agent stands in the middle of the nearest
    row."""
    actions: tuple[ActionName, ...] = ()
    """What the agent can do; everything when empty."""
    tool: bool = True
    """Whether the tool `act` is offered; the bare name of an action does without it."""
    max_steps: int | None = Field(default=None, ge=1)
    """Actions after which an episode is cut off; the environment's own limit when None."""

    @property
    def offered(self) -> tuple[ActionName, ...]:
        """Actions that the agent can take."""
        return self.actions or ("left", "right", "forward", "pickup", "drop", "toggle", "done")

    @model_validator(mode="after")
    def _fits(self) -> "GridConfig":
        if self.view_size % 2 == 0:
            raise ValueError(
                f"view_size is {self.view_size}. Expected an odd number: the agent is in the middle"
            )
        for name in ("show", "actions"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"{name} names something twice: {', '.join(values)}")
        return self
