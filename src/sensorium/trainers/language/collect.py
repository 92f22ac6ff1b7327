"""Collecting: groups of episodes of one task, many at a time, with the model that is trained."""

import asyncio
import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from sensorium.algorithms.group_advantages import no_signal
from sensorium.algorithms.state_groups import equal_states
from sensorium.core import TrainingError, derive_seed, parse_config
from sensorium.envs import Task, find_env
from sensorium.llm.local import LocalChatModel
from sensorium.policies.chat_agent import AgentConfig, ChatAgent
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.episode import run_episode
from sensorium.rollouts.trajectory import Trajectory
from sensorium.trainers.language.config import LanguageRunConfig


class Collected(NamedTuple):
    """Episodes for one update."""

    trajectories: list[Trajectory]
    """Without those that failed."""
    outcomes: list[float]
    """Rewards of all episodes that did not fail, before groups were left out."""
    num_failed: int
    """Episodes that failed for a reason beside the agent, new tries included."""
    num_rounds: int
    num_left_out: int
    """Groups that were all alike and were replaced."""
    cursor: int
    """Where the sampler of tasks stood afterwards."""


class Collector:
    """Plays tasks of one environment.

    Args:
        config: The run.
        model: Decides; its weights may change between calls.
    """

    def __init__(self, config: LanguageRunConfig, model: LocalChatModel) -> None:
        self.config = config
        self.definition = find_env(config.env)
        self.settings = parse_config(self.definition.config_type, config.env_settings)
        self.pipeline = ObservationPipeline(config.observation)
        self._model = model
        self._agents: dict[float, ChatAgent] = {}
        self._system = self.definition.system if config.system is None else config.system

    def tasks(self, split: str, count: int) -> Sequence[Task]:
        """Tasks of a split.

        Raises:
            TrainingError: There are none.
        """
        tasks = self.definition.tasks(self.settings, split=split, count=count, seed=self.config.seed)
        if not tasks:
            raise TrainingError(f"{self.definition.name} has no tasks in the split {split!r}.")
        return tasks

    async def collect(self, sampler: "TaskSampler", update: int) -> Collected:
        """Play groups for one update; groups without signal are replaced as `dynamic_sampling` says.

        Args:
            sampler: Gives tasks; it moves on.
            update: Number of the update, for seeds.

        Raises:
            TrainingError: Groups are missing after the last round and `on_exhausted` is `error`, or every
                episode failed.
        """
        algo, wanted = self.config.algo, self.config.algo.tasks_per_update
        kept: list[Trajectory] = []
        outcomes: list[float] = []
        failed = left_out = rounds = 0
        limits = algo.dynamic_sampling
        missing = wanted
        while missing and rounds < (limits.max_rounds if limits else 1):
            played, reasons = await self._groups(sampler.take(missing), update, rounds)
            failed, rounds = failed + len(reasons), rounds + 1
            if not played:
                raise TrainingError(
                    f"All {missing * algo.group_size} episodes of update {update} failed, after "
                    f"{len(reasons)} tries. The last reason: {reasons[-1]}"
                )
            outcomes += [float(t.verdict.reward or 0.0) for t in played]
            good = played if limits is None else _with_signal(played)
            kept += good
            left_out += len({t.task.id for t in played}) - len({t.task.id for t in good})
            missing = wanted - len({t.task.id for t in kept})
        if limits is not None and missing:
            match limits.on_exhausted:
                case "error":
                    raise TrainingError(
                        f"After {rounds} rounds {missing} of {wanted} groups are missing: the others are all "
                        "solved or all failed. Choose harder or easier tasks, or on_exhausted: keep or skip."
                    )
                case "skip":
                    kept = []
        return Collected(kept, outcomes, failed, rounds, left_out, sampler.cursor)

    async def play(self, task: Task, *, seed: int, temperature: float) -> Trajectory:
        """One episode."""
        env = self.definition.make(self.settings)
        session = EnvSession(env, self.pipeline, self.config.episode, system=self._system)
        return await run_episode(self._agent(temperature), session, task, seed=seed)

    def _agent(self, temperature: float) -> ChatAgent:
        """Who acts at a temperature, in any number of episodes."""
        if temperature not in self._agents:
            asked = self.config.agent
            settings = AgentConfig(
                temperature=temperature,
                max_tokens=asked.max_tokens,
                offer_tools=asked.offer_tools,
                examples=self.config.examples,
                extra={"logprobs": True, "return_token_ids": True, "top_p": 1.0, "top_k": 0}
                | ({} if asked.response_format is None else {"response_format": asked.response_format}),
            )
            self._agents[temperature] = ChatAgent(self._model, settings)
        return self._agents[temperature]

    async def _groups(
        self, tasks: Sequence[Task], update: int, number: int
    ) -> tuple[list[Trajectory], list[str]]:
        """Groups of all tasks, in order, and why tries failed."""
        slots = asyncio.Semaphore(self.config.concurrency)
        reasons: list[str] = []

        async def one(task: Task, member: int) -> Trajectory | None:
            for attempt in range(self.config.algo.max_retries + 1):
                seed = derive_seed(self.config.seed, "rollout", update, number, task.id, member, attempt)
                async with slots:
                    made = await self.play(task, seed=seed, temperature=self.config.agent.temperature)
                if made.verdict.failure is None:
                    return made
                reasons.append(made.verdict.failure.reason)
                if made.verdict.failure.terminal:
                    break
            return None

        members = range(self.config.algo.group_size)
        played = await asyncio.gather(*(one(task, member) for task in tasks for member in members))
        return [trajectory for trajectory in played if trajectory is not None], reasons

    def evaluate(self) -> list[Trajectory]:
        """Play every task of the evaluation once; failed ones are among the result."""
        return asyncio.run(self._evaluate())

    async def _evaluate(self) -> list[Trajectory]:
        wanted, slots = self.config.evaluation, asyncio.Semaphore(self.config.concurrency)

        async def one(task: Task) -> Trajectory:
            async with slots:
                seed = derive_seed(self.config.seed, "evaluation", task.id)
                return await self.play(task, seed=seed, temperature=wanted.temperature)

        return list(await asyncio.gather(*(one(task) for task in self._evaluation_tasks)))

    @functools.cached_property
    def _evaluation_tasks(self) -> Sequence[Task]:
        return self.tasks(self.config.evaluation.split, self.config.evaluation.tasks)


class TaskSampler:
    """Gives tasks in an order that a seed decides, each once before any comes again.

    Args:
        tasks: At least one.
        seed: Of the order.
        cursor: How many were given already.
    """

    def __init__(self, tasks: Sequence[Task], seed: int, cursor: int = 0) -> None:
        self._tasks, self._seed, self.cursor = tasks, seed, cursor

    def take(self, count: int) -> list[Task]:
        """The next tasks; within one call no task comes twice unless there are too few."""
        taken = [self._at(self.cursor + place) for place in range(count)]
        self.cursor += count
        return taken

    def _at(self, position: int) -> Task:
        lap, place = divmod(position, len(self._tasks))
        return self._tasks[_order(derive_seed(self._seed, "tasks", lap), len(self._tasks))[place]]


@functools.lru_cache(maxsize=4)
def _order(seed: int, count: int) -> list[int]:
    """A random order of so many."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()


def _with_signal(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Those whose group is not all alike, by the outcome of the task alone."""
    rewards = torch.tensor([float(t.verdict.reward or 0.0) for t in trajectories])
    groups = equal_states([(t.task.env, t.task.id) for t in trajectories])
    silent = no_signal(rewards, groups)
    return [t for t, is_silent in zip(trajectories, silent.tolist(), strict=True) if not is_silent]
