"""One episode: an environment, and what its agent is shown of it."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sensorium.core import EpisodeStatus, ObservationError, SensoriumError
from sensorium.envs.base import Action, Env, Step, StepInfo, Task, ToolResult
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict, View
from sensorium.llm.base import count_messages
from sensorium.llm.messages import Message, TextBlock
from sensorium.observations import Observation, Part, read
from sensorium.observations.values import TextValue
from sensorium.representations import ObservationPipeline, Session, fetch_tool
from sensorium.representations.references import TOOL_NAME
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.results import answer_messages, result_parts

_log = logging.getLogger(__name__)
_OUTCOME_CHARS = 300
_SHORT_CHARS = 2_000
"""Text that is read and represented in about a millisecond."""
_CONVERSATIONS: WeakKeyDictionary[ObservationPipeline, dict[int, ObservationPipeline]] = WeakKeyDictionary()
"""Pipeline -> what `_for_conversation` makes of it, by the most steps: episodes are many, settings few."""
ResultT = TypeVar("ResultT")


class EnvSession:
    """Runs one episode of an environment, and shows it through an observation pipeline.

    It is an `Episode`: the same in the process of the agent as behind a server, so both see the same prompts.
    With ``context_management.drop_full_history`` (the default) every view is a whole prompt: instruction,
    last actions, answers of tools, present state. Without it a view is what is appended to the conversation.

    Args:
        env: Used by this episode alone; closed with it.
        pipeline: Shared by any number of episodes.
        config: Limits.
        system: A system prompt.
    """

    def __init__(
        self,
        env: Env,
        pipeline: ObservationPipeline,
        config: EpisodeConfig | None = None,
        *,
        system: str = "",
    ) -> None:
        self._env, self._system = env, system
        self._config = config or EpisodeConfig()
        self._replaces = pipeline.config.context_management.drop_full_history
        self._budget = pipeline.config.observation
        self._extracts = bool(pipeline.config.features.extractors)
        self._pipeline = pipeline if self._replaces else _for_conversation(pipeline, self._config.max_steps)
        self._lock = asyncio.Lock()
        self._task: Task | None = None
        self._session: Session | None = None
        self._opening: Opening | None = None
        self._raw: Any = None
        self._last: tuple[int, Turn] | None = None
        self._status = EpisodeStatus.RUNNING
        self._failure: Failure | None = None
        self._closed = False
        self._reward = 0.0
        self._components: dict[str, float] = {}
        self._metrics: dict[str, float] = {}
        self._num_steps = 0

    @property
    def num_steps(self) -> int:
        """Actions so far."""
        return self._num_steps

    @property
    def done(self) -> bool:
        """Whether the episode is over: ended, failed or closed."""
        return self._status is not EpisodeStatus.RUNNING or self._closed

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin; see `Episode.start`."""
        async with self._lock:
            if self._opening is not None:
                if self._task != task:
                    raise self._refused("session_conflict", f"The episode is one of {self._task_id}.", "seed")
                return self._opening
            if self._closed:
                raise self._refused("session_lost", "The episode was closed.", "seed")
            self._task = task
            reset = self._env.reset(task, seed=seed)
            self._raw = await self._guarded(reset, self._config.reset_timeout_s, "seed")
            self._session = Session(self._pipeline, task.instruction, system=self._system, keep_states=False)
            view = await self._view((), (), first=True)
            tools = [dict(one) for one in self._env.tools]
            if self._config.fetch_tool:
                tools.append(fetch_tool())
            self._opening = Opening(view=view, tools=tuple(tools))
            return self._opening

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act; see `Episode.act`."""
        async with self._lock:
            if self._last is not None and step_id == self._last[0]:
                return self._last[1]
            self._check(step_id)
            turn = await self._act(action)
            self._last = (step_id, turn)
            return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended; see `Episode.verdict`."""
        async with self._lock:
            if answer and not self.done and self._session is not None:
                await self._act(Action(text=answer))
            status = self._status
            if status is EpisodeStatus.RUNNING:  # the agent stopped before the task was over
                status = EpisodeStatus.FAILURE
            failed = self._failure is not None
            return Verdict(
                status=EpisodeStatus.ERROR if failed else status,
                reward=None if failed else self._reward,
                reward_components=self._components,
                metrics=self._metrics,
                num_steps=self._num_steps,
                failure=self._failure,
            )

    async def close(self) -> None:
        """Close the environment; an error while closing is logged and costs nobody anything."""
        if self._closed:
            return
        self._closed = True
        try:
            async with asyncio.timeout(self._config.close_timeout_s):
                await self._env.close()
        except Exception:
            _log.exception("closing the environment of %s failed", self._task_id)

    async def _act(self, action: Action) -> Turn:
        assert self._session is not None
        fetched = {c.id: self._fetch(c.id, c.arguments) for c in action.calls if self._is_fetch(c.name)}
        others = tuple(call for call in action.calls if call.id not in fetched)
        if others or not action.calls:
            asked = action.model_copy(update={"calls": others}) if fetched else action
            step = await self._guarded(self._env.step(asked), self._config.step_timeout_s, "agent")
        else:
            step = Step(self._raw, 0.0, False, False, StepInfo(metrics=self._metrics))
        info, by_id = step.info, {result.call_id: result for result in step.info.results} | fetched
        results = tuple(by_id[call.id] for call in action.calls if call.id in by_id)
        self._record(action, step, results)
        view = None
        if not self.done:
            self._raw = step.observation
            view = await self._view(results, info.notes, first=False)
        return Turn(
            view=view,
            results=results,
            reward=step.reward,
            terminated=step.terminated,
            truncated=self._status is EpisodeStatus.TRUNCATED,
            reward_components=info.reward_components,
            metrics=info.metrics,
        )

    def _record(self, action: Action, step: Step, results: tuple[ToolResult, ...]) -> None:
        assert self._session is not None
        self._num_steps += 1
        self._reward += step.reward
        for name, value in step.info.reward_components.items():
            self._components[name] = self._components.get(name, 0.0) + value
        self._metrics = {**self._metrics, **step.info.metrics}
        crashed = [result.name for result in results if result.failure == "crashed"]
        if crashed and self._failure is None:
            reason = f"The tool {crashed[0]} broke; what the episode earned does not count."
            self._failure = Failure(kind="tool_crashed", reason=reason, stage="agent")
        if step.terminated:
            solved = self._metrics.get("success", self._reward) >= 1.0
            self._status = EpisodeStatus.SUCCESS if solved else EpisodeStatus.FAILURE
        elif step.truncated or self._num_steps >= self._config.max_steps:
            self._status = EpisodeStatus.TRUNCATED
        outcome = " | ".join(result.text[:_OUTCOME_CHARS] for result in results) or " ".join(step.info.notes)
        self._session.acted(action.describe(), outcome=outcome, reward=step.reward or None)

    async def _view(self, results: tuple[ToolResult, ...], notes: tuple[str, ...], *, first: bool) -> View:
        session = self._session
        assert session is not None
        parts = result_parts(results, notes)
        is_quick = not self._extracts and _is_short(self._raw, parts)
        state = Observation() if self._raw is None else await _apart(read, self._raw, is_quick=is_quick)
        key = _state_key((*parts, *state.parts))
        answers: tuple[Message, ...] = ()
        if self._replaces or first:
            state = Observation(parts=(*parts, *state.parts))
        else:
            limit = self._config.max_result_tokens
            answers, long = answer_messages(results, notes, self._pipeline.counter, limit)
            state = Observation(parts=(*long, *state.parts))
        try:
            shown = await _apart(session.observe, state, is_quick=is_quick)
        except ObservationError as error:
            raise self._fail("observation_too_large", str(error), "agent") from error
        messages = shown.messages
        if not (self._replaces or first):
            blocks = tuple(b for b in shown.state if not isinstance(b, TextBlock) or b.text)
            messages = (*answers, Message(role="user", content=blocks)) if state.parts and blocks else answers
        return View(
            messages=messages,
            replaces=self._replaces or first,
            num_tokens=count_messages(self._pipeline.counter, messages),
            account=shown.account.model_dump(mode="json") | {"max_tokens": self._budget.max_tokens},
            state_key=key,
            state_from=shown.state_from if self._replaces or first else 0,
        )

    def _is_fetch(self, name: str) -> bool:
        return self._config.fetch_tool and name == TOOL_NAME

    def _fetch(self, call_id: str, arguments: dict[str, Any] | str) -> ToolResult:
        assert self._session is not None
        content = self._session.fetch(arguments if isinstance(arguments, dict) else {})
        return ToolResult(call_id=call_id, name=TOOL_NAME, content=content)

    async def _guarded(self, doing: Awaitable[ResultT], limit_s: float, stage: Stage) -> ResultT:
        """Await the environment; whatever it raises ends the episode with a reason."""
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await doing
        except TimeoutError as error:
            if limit.expired():
                reason = f"The environment took longer than {limit_s:g} s."
                raise self._fail("env_timeout", reason, stage) from error
            raise self._fail("env_crashed", f"The environment broke: {error!r}.", stage) from error
        except asyncio.CancelledError:
            self._fail("cancelled", "The episode was cancelled.", stage)
            raise
        except EpisodeError as error:
            self._failure, self._status = error.failure, EpisodeStatus.ERROR
            raise
        except SensoriumError as error:
            raise self._fail("env_crashed", str(error), stage) from error
        except Exception as error:
            _log.exception("the environment of %s broke", self._task_id)
            raise self._fail(
                "env_crashed", f"The environment broke: {type(error).__name__}.", stage
            ) from error

    def _check(self, step_id: int) -> None:
        if self._session is None:
            raise self._refused("session_lost", "No episode was begun; start(task) comes first.", "agent")
        if self._failure is not None and self._status is EpisodeStatus.ERROR:
            raise EpisodeError(self._failure)
        if self.done:
            raise self._refused("episode_over", f"The episode is over ({self._status}).", "agent")
        if step_id != self._num_steps:
            said = f"Step {step_id} was sent, but {self._num_steps} comes next."
            raise self._refused("step_out_of_order", said, "agent")

    def _fail(self, kind: str, reason: str, stage: Stage) -> EpisodeError:
        self._failure = Failure(kind=kind, reason=reason, stage=stage)
        self._status = EpisodeStatus.ERROR
        return EpisodeError(self._failure)

    @staticmethod
    def _refused(kind: str, reason: str, stage: Stage) -> EpisodeError:
        """An error of the caller, which leaves the episode as it is."""
        return EpisodeError(Failure(kind=kind, reason=reason, stage=stage, terminal=True))

    @property
    def _task_id(self) -> str:
        return self._task.id if self._task is not None else "no task"


async def _apart(work: Callable[[Any], ResultT], given: Any, *, is_quick: bool) -> ResultT:
    """Read or represent a state: in a thread, so that others go on, unless to ask one takes longer."""
    return work(given) if is_quick else await asyncio.to_thread(work, given)


def _is_short(raw: Any, parts: Sequence[Part]) -> bool:
    """Whether a raw state and parts beside it are a little text."""
    texts = [part.value.text for part in parts if isinstance(part.value, TextValue)]
    if len(texts) < len(parts) or not (raw is None or isinstance(raw, str)):
        return False
    return len(raw or "") + sum(map(len, texts)) <= _SHORT_CHARS


def _for_conversation(pipeline: ObservationPipeline, max_steps: int) -> ObservationPipeline:
    """A pipeline that counts all earlier states as seen: the agent keeps them, whatever they cost."""
    known = _CONVERSATIONS.setdefault(pipeline, {})
    if max_steps not in known:
        limit = pipeline.config.observation.state_limit
        window = limit * (max_steps + 2)
        budget = {"max_tokens": window, "context_window": window, "reserve": 1.0 - limit / window}
        known[max_steps] = pipeline.with_settings({"observation": budget})
    return known[max_steps]


def _state_key(parts: tuple[Part, ...]) -> str:
    known = "\n".join(f"{part.id} {part.digest}" for part in parts)
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:32]
