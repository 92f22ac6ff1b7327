"""An agent runs one episode."""

import asyncio
import time
from typing import Any

from sensorium.core import EpisodeStatus, ModelError, derive_seed
from sensorium.envs.base import Task
from sensorium.envs.episode import Episode, EpisodeError, Failure, Turn, Verdict, View
from sensorium.llm.base import ContextLengthError, RequestRefusedError
from sensorium.policies.chat_agent import ChatAgent
from sensorium.rollouts.trajectory import Trajectory, TrajectoryStep


async def run_episode(
    agent: ChatAgent, episode: Episode, task: Task, *, seed: int | None = None, timeout_s: float = 1800.0
) -> Trajectory:
    """Run an episode from its opening to its verdict; it is closed whatever happens.

    Failures do not raise: they are in the verdict, with what was done before them.

    Args:
        agent: Decides.
        episode: Where it acts; not begun yet.
        task: The problem.
        seed: With the number of the step, of the model's sampling; the environment's is the task's own.
        timeout_s: Of the whole episode.
    """
    run = _Run(agent, episode, task, seed)
    started = time.monotonic()
    failure: Failure | None = None
    try:
        async with asyncio.timeout(timeout_s) as limit:
            await run.steps()
            verdict = await episode.verdict()
    except TimeoutError as error:
        said = f"the episode took longer than {timeout_s:g} s" if limit.expired() else repr(error)
        failure = Failure(kind="agent_timeout", reason=said, stage="agent")
    except EpisodeError as error:
        failure = error.failure
    except ContextLengthError as error:
        failure = Failure(kind="context_overflow", reason=str(error), stage="agent", terminal=True)
    except ModelError as error:
        wrong = isinstance(error, RequestRefusedError)
        failure = Failure(kind="model_failed", reason=str(error), stage="agent", terminal=wrong)
    finally:
        await episode.close()
    if failure is not None:
        verdict = Verdict(status=EpisodeStatus.ERROR, reward=None, num_steps=len(run.done), failure=failure)
    return Trajectory(
        task=task.public(),
        seed=seed,
        steps=tuple(run.done),
        tools=run.tools,
        verdict=verdict,
        wall_s=time.monotonic() - started,
    )


class _Run:
    def __init__(self, agent: ChatAgent, episode: Episode, task: Task, seed: int | None) -> None:
        self._agent, self._episode, self._task, self._seed = agent, episode, task, seed
        self.done: list[TrajectoryStep] = []
        self.tools: tuple[dict[str, Any], ...] = ()

    async def steps(self) -> None:
        opening = await self._episode.start(self._task)
        self.tools = opening.tools
        conversation = self._agent.begin(opening.tools)
        view: View | None = opening.view
        number = 0
        while view is not None:
            began = time.monotonic()
            seed = None if self._seed is None else derive_seed(self._seed, self._task.id, number) % 2**31
            decision = await conversation.act(view, seed=seed)
            decided = time.monotonic()
            turn: Turn = await self._episode.act(decision.action, number)
            self.done.append(
                TrajectoryStep(
                    prompt=decision.prompt,
                    completion=decision.completion,
                    results=turn.results,
                    reward=turn.reward,
                    terminated=turn.terminated,
                    truncated=turn.truncated,
                    reward_components=turn.reward_components,
                    num_tokens=view.num_tokens,
                    account=view.account,
                    state_key=view.state_key,
                    state_from=view.state_from,
                    model_s=decided - began,
                    env_s=time.monotonic() - decided,
                )
            )
            view, number = turn.view, number + 1
