"""The base of environments that are acted on by tools."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.core import EnvError
from sensorium.core.seeding import derive_seed
from sensorium.envs.base import Action, Step, StepInfo, Task, ToolCall, ToolResult
from sensorium.envs.tools import ToolBox
from sensorium.llm.messages import TextBlock


class ToolEnv(ABC):
    """An environment whose methods are tools.

        class Guess(ToolEnv):
            async def _reset(self, task, seed):
                self.number = task.hidden["number"]

            async def _observe(self):
                return None                                # nothing to see beside the answers of tools

            @tool()
            async def guess(self, number: int) -> str:
                \"\"\"Guess the number, between 1 and 10.\"\"\"
                if number == self.number:
                    self.finish(1.0)
                    return "Right."
                return "Wrong."

    Calls of one action run one after another, in their order; what comes after the one that ended the episode
    is not run.
    """

    def __init__(self) -> None:
        self._box = ToolBox.of(self)
        self._reward = 0.0
        self._components: dict[str, float] = {}
        self._metrics: dict[str, float] = {}
        self._terminated = False
        self._task: Task | None = None

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools that may be called, in the chat-completions form."""
        return self._box.schemas

    @property
    def task(self) -> Task:
        """The task of this episode.

        Raises:
            EnvError: No episode was begun.
        """
        if self._task is None:
            raise EnvError(f"{type(self).__name__} has no episode; call reset(task) first.")
        return self._task

    async def reset(self, task: Task, *, seed: int | None = None) -> Any:
        """Begin an episode; see `Env.reset`."""
        self._task = task
        self._reward, self._components, self._metrics, self._terminated = 0.0, {}, {}, False
        await self._reset(task, derive_seed(task.seed, task.id) if seed is None else seed)
        return await self._observe()

    async def step(self, action: Action) -> Step:
        """Run the calls of an action; see `Env.step`.

        Raises:
            EnvError: No episode was begun, or it is over.
        """
        if self._terminated:
            raise EnvError(f"The episode of task {self.task.id} is over; call reset(task) for another.")
        self._reward, self._components = 0.0, {}
        notes: tuple[str, ...] = ()
        if not action.calls:
            note = await self._said(action.text)
            notes = (note,) if note else ()
        results = [await self._result(call) for call in action.calls]
        info = StepInfo(
            results=tuple(results),
            notes=notes,
            reward_components=dict(self._components),
            metrics=dict(self._metrics),
        )
        observation = None if self._terminated else await self._observe()
        return Step(observation, self._reward, self._terminated, False, info)

    async def _result(self, call: ToolCall) -> ToolResult:
        if self._terminated:  # by a call before it
            content = (TextBlock(text="not run: the episode was over"),)
            return ToolResult(call_id=call.id, name=call.name, content=content, failure="not_run")
        return await self._box.call(call)

    async def close(self) -> None:
        """Give everything back; see `Env.close`."""
        await self._close()

    def give(self, reward: float, component: str = "task", **metrics: float) -> None:
        """Add to the reward of the present step.

        Args:
            reward: Any finite number.
            component: Which term of the reward it belongs to.
            **metrics: Of the episode; later values replace earlier ones.
        """
        self._reward += reward
        self._components[component] = self._components.get(component, 0.0) + reward
        self._metrics.update(metrics)

    def finish(self, reward: float = 0.0, component: str = "task", **metrics: float) -> None:
        """End the episode with this step; `success` is 1 for a reward of at least 1 unless it is given."""
        self.give(reward, component, **{"success": float(reward >= 1.0)} | metrics)
        self._terminated = True

    @abstractmethod
    async def _reset(self, task: Task, seed: int) -> None:
        """Set up the episode."""

    @abstractmethod
    async def _observe(self) -> Any:
        """The raw state; None when there is nothing beside the answers of tools."""

    async def _said(self, text: str) -> str:
        """Answer an action that calls no tool."""
        return f"No tool was called. Call one of: {', '.join(self._box.names)}."

    async def _close(self) -> None:
        """Give everything back; called at any time and again."""
        return None
