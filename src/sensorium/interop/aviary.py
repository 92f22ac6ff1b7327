"""Environments and task datasets of Aviary (``fhaviary``) as environments of ours."""

import asyncio
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from sensorium.core import Config, ConfigError, EnvError, unknown_name
from sensorium.envs.base import Action, Env, Step, StepInfo, Task, ToolCall, ToolResult
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.interop.arguments import problem_of
from sensorium.llm.embedded_pictures import content
from sensorium.llm.messages import AnyBlock, ImageBlock, Message, TextBlock
from sensorium.observations import Source

__all__ = ["Aviary", "AviaryConfig", "AviaryEnv"]

_STATE_KEY = "is_env_state"
_INSTALL = "Install it with: pip install fhaviary"
_INSTRUCTION = "Do what the environment asks of you; it is said under `request`."
_NO_TOOL, _TOOL_RAISED = "Invalid tool call:", "Encountered exception during tool call"


class AviaryEnv:
    """One environment of Aviary; an `Env`.

    Messages of its reset are the request, which stays in sight; a message that holds its present state
    (`EnvStateMessage`, or `info["is_env_state"]`) is the state, the last one until another comes; answers of
    its tools are results; what else it says is a note, with its pictures beside the state.

    Args:
        make: Makes the environment of a task (or takes the only one there is); may be slow.

    Example:
        >>> env = AviaryEnv(lambda task: DummyEnv(task=task.instruction))  # doctest: +SKIP
    """

    def __init__(self, make: Callable[[Task], Any]) -> None:
        self._make = make
        self._env: Any = None
        self._tools: list[dict[str, Any]] = []
        self._request: dict[str, Source] = {}
        self._state: dict[str, Source] = {}
        self._return = 0.0
        self._over = False

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools in the chat-completions form; known after `reset`."""
        return self._tools

    async def reset(self, task: Task, *, seed: int | None = None) -> Any:
        """Begin an episode; see `Env.reset`. Aviary has no seeds: the environment's own chance decides."""
        await self.close()
        self._return, self._over = 0.0, False
        self._env = await asyncio.to_thread(self._make, task)
        messages, tools = await self._env.reset()
        self._tools = [_tool(one) for one in tools]
        held = [one for one in messages if is_state(one)]
        self._request = _sources("request", [_read(one) for one in messages if not is_state(one)])
        self._state = _sources("state", [_read(one) for one in held])
        return self._observed({})

    async def step(self, action: Action) -> Step:
        """Act; see `Env.step`.

        Raises:
            EnvError: No episode was begun, or it is over.
        """
        if self._env is None or self._over:
            raise EnvError("The episode is over, or none was begun; call reset(task) first.")
        refused = {call.id: said for call in action.calls if (said := self._refusal(call)) is not None}
        calls = [call for call in action.calls if call.id not in refused]
        messages: Sequence[Any] = ()
        reward, done, truncated = 0.0, False, False
        if calls or not action.calls:
            messages, reward, done, truncated = await self._env.step(_request_message(action.text, calls))
        reward = float(reward)
        self._return += reward
        self._over = bool(done or truncated)
        return self._answered(
            action, refused, messages, Step(None, reward, bool(done), bool(truncated), StepInfo())
        )

    async def close(self) -> None:
        """Close the environment; see `Env.close`."""
        env, self._env = self._env, None
        if env is not None:
            await env.close()

    def _answered(
        self, action: Action, refused: Mapping[str, ToolResult], messages: Sequence[Any], step: Step
    ) -> Step:
        names = {call.id: call.name for call in action.calls}
        results, notes, shown, held = dict(refused), list[str](), list[Message](), list[Message]()
        for one in messages:
            read = _read(one)
            id = read.tool_call_id
            if id is not None and id in names and id not in results:
                results[id] = _result(id, names[id], read)
            elif is_state(one):
                held.append(read)
            else:
                notes += [read.text] if read.text else []
                shown.append(read)
        if held:
            self._state = _sources("state", held)
        pictures = {
            name: one for name, one in _sources("message", shown).items() if isinstance(one.raw, bytes)
        }
        info = StepInfo(
            results=tuple(results[call.id] for call in action.calls if call.id in results),
            notes=tuple(notes),
            reward_components={"env": step.reward},
            metrics={"env_return": self._return},
        )
        observation = None if self._over else self._observed(pictures)
        return step._replace(observation=observation, info=info)

    def _observed(self, more: Mapping[str, Source]) -> Any:
        return {**self._request, **self._state, **more} or None

    def _refusal(self, call: ToolCall) -> ToolResult | None:
        """An answer to what an Aviary tool would raise about: the model's mistake, and no accident."""
        schemas = {one["function"]["name"]: one["function"]["parameters"] for one in self._tools}
        if call.name not in schemas and not isinstance(call.arguments, str):
            return None
        said = problem_of(schemas.get(call.name), call.arguments)
        if not said:
            return None
        content = (TextBlock(text=f"{call.name}: {said}"),)
        return ToolResult(call_id=call.id, name=call.name, content=content, failure="invalid_arguments")


class AviaryConfig(Config):
    """Which task dataset is played."""

    dataset: str
    """A name of Aviary's registry (``gsm8k``), or ``package.module:Class``; with
    ``aviary.env_client:TaskDatasetClient`` and ``kwargs: {server_url: ...}`` the environments of a server."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the dataset."""
    split_kwargs: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Split -> more arguments. Without them a dataset has the one split ``train``."""
    instruction: str = _INSTRUCTION
    """What the agent is told before the environment speaks."""


class Aviary(EnvDefinition[AviaryConfig]):
    """A task dataset of Aviary; ``aviary`` in a YAML."""

    name = "aviary"
    summary = "the environments of a task dataset of Aviary"
    config_type = AviaryConfig
    splits: ClassVar[tuple[str, ...]] = ("train", "eval", "test")

    def __init__(self) -> None:
        self._datasets: dict[tuple[str, str], Any] = {}

    def make(self, config: AviaryConfig) -> Env:
        """A new environment; the one of its task is made at the reset.

        Raises:
            ConfigError: Aviary is not installed.
        """
        if importlib.util.find_spec("aviary") is None:
            raise ConfigError(f"Aviary is not installed here. {_INSTALL}")

        def make(task: Task) -> Any:
            split, number = self._place(task.id)
            dataset = self._dataset(config, split)
            if _length(dataset) is None:
                return dataset.get_new_env()
            return dataset.get_new_env_by_idx(number)

        return AviaryEnv(make)

    def tasks(
        self, config: AviaryConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split in the order of the dataset; of one without end, `count` draws of its own."""
        length = _length(self._dataset(config, split))
        return [self._task(config, split, n) for n in range(count if length is None else min(count, length))]

    def task(self, config: AviaryConfig, task_id: str) -> Task:
        """The task with this id, e.g. ``train-17``."""
        split, number = self._place(task_id)
        length = _length(self._dataset(config, split))
        if length is not None and number >= length:
            raise ConfigError(f"{config.dataset} has {length} tasks of the split {split}, none is {task_id}.")
        return self._task(config, split, number)

    def expert(self, task: Task) -> Expert:
        """Aviary has no scripted solutions.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError("Aviary's environments come without scripted solutions.")

    def _task(self, config: AviaryConfig, split: str, number: int) -> Task:
        return Task(
            id=f"{split}-{number}",
            env=self.name,
            instruction=config.instruction,
            data={"dataset": config.dataset, "split": split, "index": number},
        )

    def _place(self, task_id: str) -> tuple[str, int]:
        split, _, number = task_id.rpartition("-")
        if split not in self.splits or not number.isdecimal():
            raise ConfigError(f"aviary has no task {task_id!r}. Expected an id like train-17.")
        return split, int(number)

    def _dataset(self, config: AviaryConfig, split: str) -> Any:
        if split != "train" and split not in config.split_kwargs:
            raise ConfigError(f"{config.dataset} has no split {split!r}; name its arguments in split_kwargs.")
        key = (config.digest(), split)
        if key not in self._datasets:
            kwargs = {**config.kwargs, **config.split_kwargs.get(split, {})}
            self._datasets[key] = _make_dataset(config.dataset, kwargs)
        return self._datasets[key]


def is_state(message: Any) -> bool:
    """Whether a message of Aviary holds the present state of its environment."""
    info = getattr(message, "info", None)
    marked = isinstance(info, Mapping) and bool(info.get(_STATE_KEY))
    return marked or any(kind.__name__ == "EnvStateMessage" for kind in type(message).__mro__)


def _make_dataset(name: str, kwargs: Mapping[str, Any]) -> Any:
    try:
        env = importlib.import_module("aviary.env")
    except ImportError as error:
        raise ConfigError(f"Aviary is not installed here ({error}). {_INSTALL}") from error
    module, colon, attribute = name.partition(":")
    if not colon and name not in env.TASK_DATASET_REGISTRY:
        raise unknown_name("task dataset of Aviary", name, env.TASK_DATASET_REGISTRY)
    try:
        if not colon:
            return env.TaskDataset.from_name(name, **kwargs)
        return getattr(importlib.import_module(module), attribute)(**kwargs)
    except Exception as error:  # foreign code: whatever it raises
        raise ConfigError(f"The task dataset {name} cannot be made: {error!r}.") from error


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:
        return None


def _tool(tool: Any) -> dict[str, Any]:
    found: dict[str, Any] = tool.model_dump(mode="json", exclude_none=True, by_alias=True)
    found["function"].setdefault("parameters", {"type": "object", "properties": {}})
    return found


def _request_message(text: str, calls: Sequence[ToolCall]) -> Any:
    tools = importlib.import_module("aviary.tools")
    if not calls:
        return importlib.import_module("aviary.message").Message(role="assistant", content=text)
    made = [
        tools.ToolCall(id=one.id, function=tools.ToolCallFunction(name=one.name, arguments=one.arguments))
        for one in calls
    ]
    return tools.ToolRequestMessage(content=text or None, tool_calls=made)


def _read(message: Any) -> Message:
    """A message of Aviary as one of ours: several blocks are JSON in its text there."""
    content = message.content
    if getattr(message, "is_multimodal", False):
        content = json.loads(content)
    known: dict[str, Any] = {"role": message.role, "content": content}
    if known["role"] == "function":
        known["role"] = "tool"
    for key in ("name", "tool_call_id"):
        if getattr(message, key, None):
            known[key] = getattr(message, key)
    return Message.from_chat(known)


def _result(id: str, name: str, message: Message) -> ToolResult:
    content: tuple[AnyBlock, ...] = message.content or (TextBlock(text="done"),)
    failure: Any = None
    if message.text.startswith(_NO_TOOL):
        failure = "unknown_tool"
    elif message.text.startswith(_TOOL_RAISED):
        failure = "refused"
    return ToolResult(call_id=id, name=name, content=content, failure=failure)


def _sources(name: str, messages: Sequence[Message]) -> dict[str, Source]:
    blocks = [block for message in messages for block in message.content]
    blocks = [block for block in blocks if not isinstance(block, TextBlock) or block.text]
    named = {}
    for number, block in enumerate(blocks):
        named[name if len(blocks) == 1 else f"{name}-{number + 1}"] = _source(block)
    return named


def _source(block: AnyBlock) -> Source:
    if isinstance(block, TextBlock):
        return Source(block.text)
    if isinstance(block, ImageBlock):
        if block.url.startswith("data:"):
            return Source(content(block.url) or "a picture that cannot be read")
        return Source(f"picture at {block.url}", url=block.url)
    return Source(block.model_dump(mode="json"))
