"""A world behind one tool: act, and see what comes of it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sensorium.core import EnvError, Modality
from sensorium.envs.base import Action, Step, Task
from sensorium.envs.playable.config import PlayableConfig
from sensorium.envs.playable.world import Moment, World
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import Tool, ToolBox
from sensorium.observations import Source

_CALL_TIMEOUT_S = 60.0
ResultT = TypeVar("ResultT")


class PlayableEnv(ToolEnv):
    """Plays one world.

    The world lives in a thread of its own: engines and renderers are slow, and some of them insist on being
    called from the thread that made them.

    Args:
        config: What is rewarded.
        build: Makes the world; slow, called at the first reset.
    """

    def __init__(self, config: PlayableConfig, build: Callable[[], World]) -> None:
        super().__init__()
        self._config, self._build = config, build
        self._world: World | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._num_env_steps = 0
        self._return = 0.0
        self._cut = False

    async def step(self, action: Action) -> Step:
        """Act; see `Env.step`."""
        step = await super().step(action)
        return step._replace(terminated=False, truncated=True) if self._cut else step

    async def _reset(self, task: Task, seed: int) -> None:
        """Begin; the seed of the task decides, so that all who play it play the same world."""
        meant = task.data.get("task", self._config.task)
        if meant != self._config.task:
            raise EnvError(
                f"The task {task.id} is one of {meant}; this environment plays {self._config.task}."
            )
        self._num_env_steps, self._return, self._cut = 0, 0.0, False
        world_seed = int(task.data.get("seed", seed)) % 2**63
        await self._run(self._begin, world_seed)

    async def _observe(self) -> Any:
        return await self._run(self._looked)

    async def _close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        world, self._world = self._world, None
        try:
            if world is not None:
                await asyncio.get_running_loop().run_in_executor(thread, world.close)
        finally:
            thread.shutdown(wait=False)

    async def _act(self, **arguments: Any) -> str:
        repeat = int(arguments.get("repeat", 1))
        world = self._open()
        moments = await self._run(self._play, world.actions.decode(arguments), repeat)
        last = moments[-1]
        reward = sum(moment.reward for moment in moments)
        self._num_env_steps += len(moments)
        self._return += reward
        self._reward_for(reward, last)
        told = [f"done {len(moments)} of {repeat} times" if repeat > 1 else "done"]
        if last.event and not (last.terminated or last.truncated):
            told.append(last.event)
        if last.terminated or last.truncated:
            told.append("the episode is over")
        else:
            limit = f" of {world.max_steps}" if world.max_steps else ""
            told.append(f"step {self._num_env_steps}{limit}")
        return "; ".join(told)

    def _reward_for(self, reward: float, last: Moment) -> None:
        """Give what the step is worth, and end the episode when the world did."""
        own = self._config.reward == "env"
        known = {"env_return": self._return, "env_steps": float(self._num_env_steps)}
        done = last.terminated or last.truncated
        if own:
            self.give(reward, "env", **known)
        else:
            self.give(float(last.success or 0.0) if done else 0.0, "success", **known)
        if done:
            success = float(last.success or 0.0)
            self._cut = last.truncated and not last.terminated and success < 1.0
            self.finish(0.0, "env" if own else "success", success=success)

    def _begin(self, seed: int) -> None:
        if self._world is None:
            self._world = self._build()
            actions = self._world.actions
            act = Tool("act", actions.about, actions.model, self._act, _CALL_TIMEOUT_S)
            self._box = ToolBox([act])
        self._world.reset(seed)

    def _looked(self) -> Any:
        state = self._open().look()
        return {
            name: Source(raw, modality=Modality.TEXT) if isinstance(raw, str) else raw
            for name, raw in state.items()
        }

    def _play(self, action: Any, repeat: int) -> list[Moment]:
        """Act up to `repeat` times, until the episode ends or something happens."""
        world, moments = self._open(), list[Moment]()
        while len(moments) < repeat:
            moments.append(world.step(action))
            last = moments[-1]
            if last.terminated or last.truncated or last.event:
                break
        return moments

    def _open(self) -> World:
        if self._world is None:
            raise EnvError("The world is not there; call reset(task) first.")
        return self._world

    async def _run(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        """Run in the thread of the world."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sensorium-world")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
