"""A policy that is a language model: it reads messages and answers with tool calls."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.base import Action
from sensorium.envs.episode import View
from sensorium.llm.base import ChatModel, Completion
from sensorium.llm.messages import Message, text_message


class Example(Config):
    """A question and its answer, shown before the conversation as if they had been said."""

    asked: str
    """As the user says it."""
    answered: str
    """Word for word as the model is to write it, calls of tools included."""


class AgentConfig(Config):
    """How the model is asked."""

    temperature: float | None = Field(default=None, ge=0.0)
    """None leaves it to the endpoint."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    max_tokens: int | None = Field(default=1024, ge=1)
    """Of one answer."""
    tool_choice: Literal["auto", "required", "none"] | None = None
    """None leaves it to the endpoint."""
    offer_tools: bool = True
    """Whether the model is told of the tools; without them it answers in words alone."""
    examples: tuple[Example, ...] = ()
    """Shown before every conversation, after the system prompt. They are not counted in the budget of the
    observation."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further settings under the endpoint's own names."""

    def sampling(self) -> dict[str, Any]:
        """Everything that is set, under the names of the chat-completions API."""
        named = self.model_dump(include={"temperature", "top_p", "max_tokens", "tool_choice"})
        return {name: value for name, value in named.items() if value is not None} | self.extra


class Decision(NamedTuple):
    """What the agent decided, and on what it was based."""

    action: Action
    prompt: tuple[Message, ...]
    completion: Completion


class ChatAgent:
    """Asks a chat model what to do; shared by any number of episodes.

    Args:
        model: Answers messages.
        config: How it is asked.
    """

    def __init__(self, model: ChatModel, config: AgentConfig | None = None) -> None:
        self.model = model
        self.config = config or AgentConfig()
        self.sampling = self.config.sampling()
        """What every answer is asked for with."""

    def begin(self, tools: Sequence[Mapping[str, Any]]) -> "Conversation":
        """A new episode.

        Args:
            tools: In the chat-completions form.
        """
        return Conversation(self, tools)


class Conversation:
    """What an agent remembers of one episode."""

    def __init__(self, agent: ChatAgent, tools: Sequence[Mapping[str, Any]]) -> None:
        self._agent, self._tools = agent, tools if agent.config.offer_tools else ()
        self._messages: tuple[Message, ...] = ()

    async def act(self, view: View, *, seed: int | None = None) -> Decision:
        """Decide.

        Args:
            view: What there is to see now; it replaces what was known, or is added to it.
            seed: Of the sampling.

        Raises:
            ContextLengthError: The conversation does not fit the model.
            ModelError: The model could not be asked.
        """
        prompt = self._begun(view.messages) if view.replaces else (*self._messages, *view.messages)
        sampling = dict(self._agent.sampling)
        if seed is not None:
            sampling["seed"] = seed
        if not self._tools:
            sampling.pop("tool_choice", None)
        completion = await self._agent.model.complete(prompt, self._tools or None, **sampling)
        action = Action.from_message(completion.message)
        self._messages = (*prompt, with_ids_of(action, completion.message))
        return Decision(action, prompt, completion)

    def _begun(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """A whole prompt, with the examples between the system prompt and the rest."""
        rest = tuple(itertools.dropwhile(lambda message: message.role in ("system", "developer"), messages))
        shown: list[Message] = []
        for example in self._agent.config.examples:
            shown += (text_message("user", example.asked), text_message("assistant", example.answered))
        return (*messages[: len(messages) - len(rest)], *shown, *rest)


def with_ids_of(action: Action, message: Message) -> Message:
    """An answer with the ids that the action has given its calls, so that their results find them."""
    if not message.tool_calls:
        return message
    calls = tuple(
        {**call, "id": known.id} for call, known in zip(message.tool_calls, action.calls, strict=True)
    )
    return message.model_copy(update={"tool_calls": calls})
