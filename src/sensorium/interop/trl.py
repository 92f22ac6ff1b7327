"""Environments of ours for TRL's `GRPOTrainer`, by its `environment_factory`.

    with TrlEnvironments("lookup", config={"num_items": 3}) as environments:
        trainer = GRPOTrainer(
            model="Qwen/Qwen3-0.6B",
            reward_funcs=verdict_reward,
            train_dataset=environments.dataset(),
            environment_factory=environments,
            args=GRPOConfig(num_generations=8, max_completion_length=1024),
        )
        trainer.train()

TRL makes a tool of every public method, and closes nothing. Here an environment's methods are `reset` and the
tools that it declares, no more; it is given back when its episode is judged, and all are with the end of the
`with` block, also when training failed.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from sensorium.core import ConfigError, EnvError, EpisodeStatus, parse_config, require
from sensorium.envs.base import Action, ToolCall
from sensorium.envs.episode import EpisodeError, Failure, Turn, Verdict
from sensorium.interop.loop_thread import LoopThread
from sensorium.interop.played import Played, PlayedConfig
from sensorium.interop.tool_methods import method_of
from sensorium.llm.embedded_pictures import picture
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, TextBlock
from sensorium.rollouts.env_session import EnvSession

__all__ = ["TrlConfig", "TrlEnvironments", "verdict_reward"]

Content = str | list[dict[str, Any]]
"""Text, or blocks of text and pictures as TRL passes them to a processor."""
_OVER = "The episode is over; nothing was done."


class TrlConfig(PlayedConfig):
    """Which tasks TRL plays."""

    pictures: Literal["show", "name"] = "show"
    """``name`` puts a line in the place of a picture, for models that see none. Sounds always get a line: TRL
    knows none."""
    max_retries: int = Field(default=2, ge=0)
    """New tries of an environment that cannot be set up; then the episode has failed and has no reward."""
    max_failures: int = Field(default=32, ge=1)
    """With so many failed episodes in a row something is broken: training stops with the reason."""


class TrlEnvironments:
    """Makes the environments of one run; it is TRL's ``environment_factory``.

    With several kinds, give TRL a mapping of names to factories, and concatenate what `dataset` makes with
    their names.

    Args:
        environment: Its name, or ``package.module:Definition``.
        **settings: Of `TrlConfig`, e.g. ``num_tasks=64``.

    Raises:
        ConfigError: There is no such environment, or settings do not fit.
    """

    def __init__(self, environment: str, **settings: Any) -> None:
        self.config = parse_config(TrlConfig, {"environment": environment, **settings})
        self.played = Played(self.config)
        self._loop = LoopThread("trl-environments")
        self._lock = threading.Lock()
        self._made: list[TrlEnvironment] = []
        self._failures: list[Failure] = []
        self._kind: type[TrlEnvironment] | None = None

    def __call__(self) -> "TrlEnvironment":
        """A new environment; nothing is begun before its `reset`.

        Raises:
            EpisodeError: The environment cannot be begun, so that its tools are unknown.
            ConfigError: A tool cannot become a method.
        """
        with self._lock:
            if self._kind is None:
                self._kind = _kind_of(self.played)
            made = self._kind(self)
            self._made.append(made)
        return made

    @property
    def num_open(self) -> int:
        """Episodes that hold an environment at present."""
        return sum(one.is_open for one in self._made)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Of the last episodes, as many as failed without one between them that did not."""
        return tuple(self._failures)

    def _judged(self, verdict: Verdict) -> None:
        if verdict.failure is None:
            self._failures.clear()
        else:
            self._failures.append(verdict.failure)

    def rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """Rows for TRL, one per task: ``task_id``, and a ``prompt`` to which `reset` adds what is shown.

        Args:
            name: Where several kinds of environments are mixed, that of this one.
        """
        system = [{"role": "system", "content": self.played.system}] if self.played.system else []
        more = {} if name is None else {"environment": name}
        return [
            {"prompt": [*system, {"role": "user", "content": ""}], "task_id": task.id} | more
            for task in self.played.tasks
        ]

    def dataset(self, name: str | None = None) -> Any:
        """`rows` as a `datasets.Dataset`.

        Raises:
            MissingDependencyError: datasets is not installed; it comes with trl.
        """
        datasets = require("datasets", extra="trl", purpose="training under TRL")
        return datasets.Dataset.from_list(self.rows(name))

    def close(self) -> None:
        """Give all environments back; may be called again."""
        for one in self._made:
            one._end()
        self._loop.close()

    def __enter__(self) -> "TrlEnvironments":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TrlEnvironment:
    """An episode after another, as one of TRL's environments; subclasses have the tools as methods.

    Args:
        owner: Who made it.
    """

    tool_names: ClassVar[tuple[str, ...]] = ()
    """What the model may call."""

    def __init__(self, owner: TrlEnvironments) -> None:
        self._owner = owner
        self._session: EnvSession | None = None
        self._verdict: Verdict | None = None

    @property
    def is_open(self) -> bool:
        """Whether it holds an environment."""
        return self._session is not None

    def reset(self, task_id: str | None = None, **row: Any) -> Content:
        """Begin an episode.

        Args:
            task_id: Of the row.
            **row: Its other columns, which are not needed.

        Returns:
            What the agent is shown first; where the environment cannot be set up, that it is so: the episode
            has failed and will have no reward.

        Raises:
            ConfigError: The row has no task id, or there is no such task.
        """
        self._end()
        if task_id is None:
            raise ConfigError("The dataset has no column task_id. Use the one that dataset() makes.")
        task, failure = self._owner.played.task(task_id), None
        self._verdict = None
        for _ in range(self._owner.config.max_retries + 1):
            session = self._session = self._owner.played.session()
            try:
                opening = self._owner._loop.run(session.start(task))
            except EpisodeError as error:
                self._end()
                failure = error.failure
                if failure.terminal:
                    break
            else:
                shown = [block for m in opening.view.messages if m.role != "system" for block in m.content]
                return self._content(shown)
        assert failure is not None
        self._conclude(Verdict(status=EpisodeStatus.ERROR, reward=None, failure=failure))
        return f"The environment could not be set up: {failure.reason}"

    def _call(self, name: str, arguments: dict[str, Any]) -> Content:
        """Call a tool; what comes back is its answer and, where there is one, the new state."""
        session = self._session
        if session is None or session.done:
            return _OVER
        call = ToolCall(id=f"call_{session.num_steps}", name=name, arguments=arguments)
        try:
            turn = self._owner._loop.run(session.act(Action(calls=(call,)), session.num_steps))
        except EpisodeError as error:
            return error.failure.reason
        return self._content(_shown(turn))

    def _judge(self, answer: str) -> Verdict:
        """How the episode ended; the environment is given back."""
        session = self._session
        if session is not None:
            try:
                verdict = self._owner._loop.run(session.verdict(answer))
            except EpisodeError:  # it broke on the answer, and knows
                verdict = self._owner._loop.run(session.verdict())
            self._conclude(verdict)
            self._end()
        if self._verdict is None:
            failure = Failure(kind="session_lost", reason="No episode was begun.", terminal=True)
            return Verdict(status=EpisodeStatus.ERROR, reward=None, failure=failure)
        return self._verdict

    def _conclude(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self._owner._judged(verdict)

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._owner._loop.run(session.close())

    def _content(self, blocks: Sequence[AnyBlock]) -> Content:
        made: list[dict[str, Any]] = []
        for block in blocks:
            if isinstance(block, ImageBlock) and self._owner.config.pictures == "show":
                made.append({"type": "image", "image": _picture(block)})
            elif made and "text" in made[-1]:
                made[-1] = {"type": "text", "text": f"{made[-1]['text']}\n{_words(block)}"}
            else:
                made.append({"type": "text", "text": _words(block)})
        if all("text" in block for block in made):
            return made[0]["text"] if made else ""
        return made


def verdict_reward(
    environments: Sequence[TrlEnvironment],
    completions: Sequence[Any],
    log_metric: Callable[[str, float], None] | None = None,
    **columns: Any,
) -> list[float | None]:
    """TRL's reward function: what each episode earned.

    What the model said last, without calling a tool, is its plain answer. An episode that failed for a reason
    beside the agent is None: TRL leaves it out of the group's baseline, and its advantage is 0.

    Args:
        environments: Of the batch, all made by `TrlEnvironments`.
        completions: Their conversations.
        log_metric: TRL's; told the mean of every metric and reward component of the episodes.
        **columns: Whatever else TRL knows, not needed.

    Raises:
        EnvError: `TrlConfig.max_failures` episodes in a row failed.
    """
    pairs = zip(environments, completions, strict=True)
    verdicts = [environment._judge(_answer(said)) for environment, said in pairs]
    for environment in environments:
        failures, limit = environment._owner.failures, environment._owner.config.max_failures
        if len(failures) >= limit:
            raise EnvError(
                f"{len(failures)} episodes in a row failed; the last because: {failures[-1].reason} Mend the "
                "environment, or raise max_failures."
            )
    if log_metric is not None:
        log_metric("env/failed_episodes", float(sum(one.failure is not None for one in verdicts)))
        for name, value in _means(verdicts).items():
            log_metric(f"env/{name}", value)
    return [verdict.reward for verdict in verdicts]


def _kind_of(played: Played) -> type[TrlEnvironment]:
    """A class with one public method for each tool."""
    members: dict[str, Any] = {}
    names = []
    for tool in played.tools():
        name = tool["function"]["name"]
        is_free = not hasattr(TrlEnvironment, name) and name != "get_reward"  # TRL's own meaning
        is_plain = name.isidentifier() and not name.startswith("_") and is_free
        members[name if is_plain else f"tool_{name}"] = method_of(tool, TrlEnvironment._call)
        names.append(name)
    title = "".join(part.title() for part in played.definition.name.split("_")) + "Environment"
    members |= {"tool_names": tuple(names), "__doc__": f"{played.definition.summary}."}
    return type(title, (TrlEnvironment,), members)


def _shown(turn: Turn) -> list[AnyBlock]:
    if turn.view is None:  # the episode is over
        return [block for result in turn.results for block in result.content]
    return [block for message in turn.view.messages for block in message.content]


def _words(block: AnyBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ImageBlock():
            return f"[picture of {block.width} x {block.height} pixels]"
        case AudioBlock():
            return f"[sound of {block.duration_s:.1f} s]"
    return f"[{block.data.get('type', 'something')} that cannot be shown]"


def _picture(block: ImageBlock) -> Any:
    """A `PIL.Image.Image`.

    Raises:
        EnvError: It is not embedded, or no picture.
    """
    if not block.url.startswith("data:"):
        raise EnvError(f"The picture {block.url[:100]} is not embedded; TRL takes only those that are.")
    try:
        return picture(block.url)
    except ValueError as error:
        raise EnvError(f"A picture of the environment cannot be read: {error}.") from error


def _answer(completion: Any) -> str:
    """What was said last, when no tool was called with it."""
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return ""
    content = last.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def _means(verdicts: Sequence[Verdict]) -> Mapping[str, float]:
    """Metrics and reward components, each over the episodes that have it and did not fail."""
    found: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.failure is None:
            told = {f"reward/{name}": value for name, value in verdict.reward_components.items()}
            for name, value in (verdict.metrics | told | {"steps": float(verdict.num_steps)}).items():
                found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}
