"""What an agent meets: an episode that opens, answers actions and is judged, here or behind a server."""

from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from sensorium.core import EnvError, EpisodeStatus
from sensorium.envs.base import Action, Record, Task, ToolResult
from sensorium.llm.messages import Message

Stage = Literal["admission", "seed", "agent", "verification", "cleanup"]
"""Where an episode failed."""


class Failure(Record):
    """Why an episode has no reward."""

    kind: str
    """One word of the vocabulary in `sensorium.rollouts.failures`."""
    reason: str
    """For people."""
    stage: Stage = "agent"
    terminal: bool = False
    """Trying again would fail again."""


class EpisodeError(EnvError):
    """An episode cannot go on; `failure` says why and where.

    Args:
        failure: Why and where.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return f"{self.failure.reason} ({self.failure.kind}, {self.failure.stage})"


class View(Record):
    """What the agent is shown."""

    messages: tuple[Message, ...]
    replaces: bool
    """True: these messages are the whole prompt, everything before is dropped. False: they are appended to
    the conversation, after the agent's action."""
    num_tokens: int
    """Of the messages, as the pipeline counts."""
    account: dict[str, Any] = Field(default_factory=dict)
    """What of the state was kept and dropped: `representations.Account` as JSON."""
    state_key: str = ""
    """Hash of the raw state and the answers of tools, before anything is shortened: equal in equal states,
    however the agent came there."""
    state_from: int = 0
    """Where in the content of the last message the state begins."""


class Opening(Record):
    """The beginning of an episode."""

    view: View
    tools: tuple[dict[str, Any], ...]
    """In the chat-completions form."""


class Turn(Record):
    """What came of an action."""

    view: View | None
    """None once the episode is over."""
    results: tuple[ToolResult, ...] = ()
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    reward_components: dict[str, float] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class Verdict(Record):
    """How an episode ended."""

    status: EpisodeStatus
    reward: float | None
    """Sum of the rewards of its steps; None when it failed: then it counts nowhere."""
    reward_components: dict[str, float] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    num_steps: int = 0
    failure: Failure | None = None


@runtime_checkable
class Episode(Protocol):
    """One run of a task, as its agent meets it.

    Beginning and closing twice is harmless; an action sent again under the same number is not done again.
    """

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin.

        Raises:
            EpisodeError: The environment cannot be set up, or another task was begun before.
        """
        ...

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act.

        Args:
            action: What the agent does.
            step_id: Number of the step, from 0. The last one may be repeated: its answer is given again.

        Raises:
            EpisodeError: It is not the number of the next or the last step, the episode is over or broke.
        """
        ...

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended.

        Args:
            answer: What the agent said last; an environment that judges plain answers is given it when the
                episode is not over.
        """
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...
