"""What an environment for a language model's agent is: tasks, actions, what comes back.

Environments with tensors as observations are in `envs.embodied`; they are `gymnasium.Env`s.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from sensorium.llm.messages import AnyBlock, Message, TextBlock

ToolFailure = Literal["unknown_tool", "invalid_arguments", "refused", "timeout", "crashed", "not_run"]
"""Why a call brought no result: there is no such tool; the arguments do not fit it; the tool said no; it took
too long; it broke (the environment's fault); an earlier call ended the episode."""


class Record(BaseModel):
    """An immutable piece of data that survives a trip through JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Task(Record):
    """One serialisable problem."""

    id: str = Field(min_length=1)
    """Unique within its environment; `EnvDefinition.task` makes the same task of it again."""
    env: str = Field(min_length=1)
    """Name of the environment."""
    instruction: str
    """What the agent is asked."""
    seed: int = 0
    """Of everything random in the episode."""
    data: dict[str, Any] = Field(default_factory=dict)
    """What the environment is set up from, as JSON; the agent may see it."""
    hidden: dict[str, Any] = Field(default_factory=dict)
    """Answers and tests, as JSON; they stay with the environment."""

    def public(self) -> "Task":
        """The task without what is hidden."""
        return self.model_copy(update={"hidden": {}})


class ToolCall(Record):
    """A call that the agent made."""

    id: str
    """Its answer carries the same one."""
    name: str
    arguments: dict[str, Any] | str
    """Text when it is no JSON object: the tool's answer says so."""

    @classmethod
    def from_chat(cls, call: Mapping[str, Any]) -> "ToolCall":
        """Read a call of a chat-completions message."""
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        return cls(
            id=str(call.get("id") or ""),
            name=str(function.get("name") or ""),
            arguments=_arguments(function.get("arguments")),
        )

    def chat(self) -> dict[str, Any]:
        """The call in the form of the chat-completions API."""
        text = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": text}}


class Action(Record):
    """What an agent does in one step: what it says, and the tools it calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()

    @classmethod
    def call(cls, name: str, /, **arguments: Any) -> "Action":
        """One call of one tool.

        Example:
            >>> Action.call("edit_cell", cell="a1", source="1 + 1").calls[0].name
            'edit_cell'
        """
        return cls(calls=(ToolCall(id=f"call_{name}", name=name, arguments=arguments),))

    @classmethod
    def from_message(cls, message: Message) -> "Action":
        """The action in a model's answer; calls without an id get one."""
        calls = [ToolCall.from_chat(call) for call in message.tool_calls]
        taken: set[str] = set()
        unique = []
        for number, call in enumerate(calls):
            name = call.id or f"call_{number}"
            while name in taken:
                name = f"{name}_{number}"
            taken.add(name)
            unique.append(call if call.id == name else call.model_copy(update={"id": name}))
        return cls(text=message.text, calls=tuple(unique))

    def message(self) -> Message:
        """The action as an assistant's message."""
        content = (TextBlock(text=self.text),) if self.text else ()
        return Message(role="assistant", content=content, tool_calls=tuple(c.chat() for c in self.calls))

    def describe(self) -> str:
        """The action in words, for a line in the list of previous actions."""
        shown = [self.text] if self.text else []
        for call in self.calls:
            arguments = call.arguments
            text = (
                arguments
                if isinstance(arguments, str)
                else ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
            )
            shown.append(f"{call.name}({text})")
        return " ".join(shown) or "(nothing)"


class ToolResult(Record):
    """What a call brought."""

    call_id: str
    name: str
    content: tuple[AnyBlock, ...]
    failure: ToolFailure | None = None
    wall_s: float = 0.0
    """Seconds that it took."""

    @property
    def text(self) -> str:
        """Its text blocks."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    def message(self) -> Message:
        """The result as a tool's message."""
        return Message(role="tool", content=self.content, tool_call_id=self.call_id)


class StepInfo(Record):
    """What is known of a step beside its reward."""

    results: tuple[ToolResult, ...] = ()
    """One for each call, in their order."""
    notes: tuple[str, ...] = ()
    """Said to the agent where no tool answered."""
    reward_components: dict[str, float] = Field(default_factory=dict)
    """Terms of the reward."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """Of the episode so far; ``success`` in [0, 1] where the environment tells it."""


class Step(NamedTuple):
    """Unpacks like Gymnasium's five values."""

    observation: Any
    """The raw state, of any kind that `sensorium.observations.read` reads; None when there is none."""
    reward: float
    terminated: bool
    """The task is over."""
    truncated: bool
    """The episode was cut off; the task might have gone on."""
    info: StepInfo


@runtime_checkable
class Env(Protocol):
    """One episode at a time for one agent; asynchronous."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools that may be called, in the chat-completions form; known after `reset`."""
        ...

    async def reset(self, task: Task, *, seed: int | None = None) -> Any:
        """Begin an episode.

        Returns:
            The raw state, as in `Step.observation`.

        Raises:
            EnvError: The environment cannot be set up.
        """
        ...

    async def step(self, action: Action) -> Step:
        """Act.

        Raises:
            EnvError: The environment broke; the episode has no reward.
        """
        ...

    async def close(self) -> None:
        """Give everything back; may be called at any time and again."""
        ...


def _arguments(value: Any) -> dict[str, Any] | str:
    if isinstance(value, Mapping):
        return dict(value)
    if value is None or value == "":
        return {}
    try:
        parsed = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return str(value)
    return parsed if isinstance(parsed, dict) else str(value)
