"""A grid world behind one tool, or behind bare words."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, create_model
from pydantic.config import ConfigDict

from sensorium.core import EnvError, Modality
from sensorium.envs.base import Action, Step, Task
from sensorium.envs.grid.config import GridConfig
from sensorium.envs.grid.view import as_picture, in_symbols, in_words
from sensorium.envs.grid.world import GridWorld
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import Tool, ToolBox
from sensorium.observations import Source

_VIEWS: Mapping[str, tuple[Callable[[Any], Any], Modality]] = {
    "words": (in_words, Modality.TEXT),
    "symbols": (in_symbols, Modality.TEXT),
    "picture": (as_picture, Modality.IMAGE),
}
_DECORATION = " \t\n\"'`.!"


class GridEnv(ToolEnv):
    """One world of MiniGrid; solving the task earns 1, everything else nothing.

    What an action brought is seen, not told: equal states look equal, however the agent came there.

    Args:
        config: Which world, what is shown, and what can be done.
    """

    def __init__(self, config: GridConfig) -> None:
        super().__init__()
        self._config = config
        self._world: GridWorld | None = None
        self._is_cut = False
        names: Any = Literal.__getitem__(config.offered)
        fields: dict[str, Any] = {"action": (Annotated[names, Field(description="What to do.")], ...)}
        arguments = create_model("act", __config__=ConfigDict(extra="forbid"), **fields)
        act = Tool("act", "Act once.", arguments, self._act)
        self._box = ToolBox([act] if config.tool else [])

    async def step(self, action: Action) -> Step:
        """Act; see `Env.step`."""
        step = await super().step(action)
        return step._replace(terminated=False, truncated=True) if self._is_cut else step

    async def _reset(self, task: Task, seed: int) -> None:
        """Begin; the seed of the task decides, so that all who play it play the same world."""
        if task.data["task"] != self._config.task:
            raise EnvError(
                f"The task {task.id} is one of {task.data['task']}; this environment plays "
                f"{self._config.task}."
            )
        self._is_cut = False
        if self._world is None:
            self._world = GridWorld(self._config)
        self._world.reset(int(task.data["seed"]))

    async def _observe(self) -> Any:
        grid_env = self._open().grid_env
        state = {}
        for name in self._config.show:
            look, modality = _VIEWS[name]
            state["view" if name == "words" else name] = Source(look(grid_env), modality=modality)
        return state

    async def _said(self, text: str) -> str:
        """A bare word is an action, too; so is the beginning of one that begins no other."""
        word = text.strip(_DECORATION).lower()
        offered = self._config.offered
        meant = [name for name in offered if word and name.startswith(word)]
        if word in offered:
            meant = [word]
        if len(meant) != 1:
            return f"Nothing was done. Answer with one of: {', '.join(offered)}."
        self._take(meant[0])
        return ""

    async def _act(self, action: str) -> str:
        self._take(action)
        return "done"

    async def _close(self) -> None:
        world, self._world = self._world, None
        if world is not None:
            world.close()

    def _take(self, action: str) -> None:
        outcome = self._open().step(action)
        if outcome.is_over or outcome.is_cut:
            self._is_cut = outcome.is_cut
            self.finish(float(outcome.is_solved))

    def _open(self) -> GridWorld:
        if self._world is None:
            raise EnvError("There is no grid world; call reset(task) first.")
        return self._world
