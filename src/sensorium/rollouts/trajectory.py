"""The record of one episode: every prompt, answer and reward."""

import hashlib
from typing import Any

from pydantic import Field

from sensorium.envs.base import Record, Task, ToolResult
from sensorium.envs.episode import Verdict
from sensorium.llm.base import Completion
from sensorium.llm.messages import Message


class TrajectoryStep(Record):
    """One step."""

    prompt: tuple[Message, ...]
    """What the model read."""
    completion: Completion
    """What it answered, with token ids and log-probabilities where they were asked for."""
    results: tuple[ToolResult, ...] = ()
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    reward_components: dict[str, float] = Field(default_factory=dict)
    num_tokens: int = 0
    """Of the view, as the pipeline counts."""
    account: dict[str, Any] = Field(default_factory=dict)
    """What of the state was kept and dropped."""
    state_key: str = ""
    """Equal in equal states, however the agent came there (`View.state_key`)."""
    state_from: int = 0
    """Where in the content of the prompt's last message the state begins."""
    model_s: float = 0.0
    """Seconds that the model took."""
    env_s: float = 0.0
    """Seconds that the environment took."""

    @property
    def digest(self) -> str:
        """Hash of the prompt."""
        text = "\n".join(message.model_dump_json() for message in self.prompt)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Trajectory(Record):
    """One episode."""

    task: Task
    """Without what is hidden."""
    seed: int | None = None
    steps: tuple[TrajectoryStep, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    verdict: Verdict
    wall_s: float = 0.0
    """Seconds from begin to end."""
