"""Are the tasks of an environment solvable, and is nothing earned by doing nothing?"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sensorium.envs.base import Action, Env, Task
from sensorium.envs.definition import EnvDefinition

_MAX_STEPS = 500
"""Of a scripted solution; one that is longer has lost its way."""


class Attempt(NamedTuple):
    """One task, played by its scripted solution and by somebody who does nothing."""

    task_id: str
    reward: float
    """Of the solution."""
    idle_reward: float
    """Of an episode in which nothing is done."""
    num_steps: int
    """Of the solution."""
    wall_s: float
    """Seconds of both."""
    problem: str = ""
    """What went wrong; empty when nothing did."""

    @property
    def is_valid(self) -> bool:
        """Whether the solution earns at least 1 and idleness at most 0."""
        return not self.problem and self.reward >= 1.0 and self.idle_reward <= 0.0


async def validate_tasks(
    definition: EnvDefinition[Any],
    config: Any,
    tasks: Sequence[Task],
    *,
    concurrency: int = 1,
    timeout_s: float = 300.0,
    told: Callable[[Attempt], None] = lambda attempt: None,
) -> list[Attempt]:
    """Play every task twice: by its scripted solution, and by doing nothing.

    Args:
        definition: The environment.
        config: Its settings.
        tasks: With what is hidden.
        concurrency: Tasks at a time.
        timeout_s: Of one task.
        told: Called after each task.

    Returns:
        In the order of the tasks. Nothing is raised for a task that fails.
    """
    slots = asyncio.Semaphore(concurrency)

    async def one(task: Task) -> Attempt:
        async with slots:
            attempt = await _attempt(definition, config, task, timeout_s)
        told(attempt)
        return attempt

    return list(await asyncio.gather(*(one(task) for task in tasks)))


async def solve(definition: EnvDefinition[Any], env: Env, task: Task) -> tuple[float, int]:
    """Play a task by its scripted solution.

    Args:
        definition: Has the solution.
        env: Not begun; it is left open.
        task: With what is hidden.

    Returns:
        Sum of rewards, and number of steps.

    Raises:
        EnvError: The environment broke.
        RuntimeError: The solution does not end, or acts after the end.
    """
    await env.reset(task)
    expert = definition.expert(task)
    total, num_steps, done = 0.0, 0, False
    try:
        action = next(expert)
        while True:
            if done:
                raise RuntimeError("the solution acts after the end of the episode")
            if num_steps >= _MAX_STEPS:
                raise RuntimeError(f"the solution takes over {_MAX_STEPS} steps")
            step = await env.step(action)
            total, num_steps = total + step.reward, num_steps + 1
            done = step.terminated or step.truncated
            action = expert.send(step)
    except StopIteration:
        return total, num_steps
    finally:
        expert.close()


async def _attempt(definition: EnvDefinition[Any], config: Any, task: Task, timeout_s: float) -> Attempt:
    started = time.monotonic()
    reward = idle_reward = 0.0
    num_steps, problem = 0, ""
    try:
        async with asyncio.timeout(timeout_s):
            env = definition.make(config)
            try:
                reward, num_steps = await solve(definition, env, task)
            finally:
                await env.close()
            env = definition.make(config)
            try:
                await env.reset(task)
                idle_reward = (await env.step(Action())).reward
            finally:
                await env.close()
    except TimeoutError:
        problem = f"took longer than {timeout_s:g} s"
    except Exception as error:  # a broken task must not hide the others
        problem = f"{type(error).__name__}: {error}"
    return Attempt(task.id, reward, idle_reward, num_steps, time.monotonic() - started, problem)
