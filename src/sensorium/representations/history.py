"""What an agent did and was shown before: plain records that survive a trip through JSON."""

from collections.abc import Sequence

from pydantic import Field

from sensorium.llm.messages import AnyBlock, Message, TextBlock, text_message
from sensorium.observations.base import Observation, Part
from sensorium.representations.base import Level, Record, Representation


class Shown(Record):
    """That a part was shown without loss: whole, or as changes of what had been shown whole."""

    digest: str
    """Of the content shown."""
    keyframe: int
    """Step at which it was last shown whole; the agent can follow the changes only if it still sees that."""
    deltas: int = 0
    """Changes sent since then."""
    changed: int | None = None
    """Step at which the last of them was sent; None without any."""

    @property
    def step(self) -> int:
        """Step since which the agent has known this content."""
        return self.keyframe if self.changed is None else self.changed


class PastStep(Record):
    """One step that is over."""

    action: str
    """What the agent did, in words or as the call of a tool."""
    outcome: str = ""
    """What came of it, one line."""
    reward: float | None = None
    state: tuple[AnyBlock, ...] = ()
    """What was shown of the state before the action."""


class History(Record):
    """Earlier steps of an episode."""

    steps: tuple[PastStep, ...] = ()
    """Oldest first."""
    shown: dict[str, Shown] = Field(default_factory=dict)
    """Part id -> how the agent last saw it without loss."""
    met: dict[str, str] = Field(default_factory=dict)
    """Part id -> digest of what the agent met last in any form, be it a line that names it."""
    base: dict[str, Part] = Field(default_factory=dict)
    """Those parts as they were then, to tell changes from; empty when `after` was not given observations."""

    def after(
        self,
        action: str,
        shown: Representation,
        *,
        observation: Observation | None = None,
        outcome: str = "",
        reward: float | None = None,
        keep_state: bool = True,
    ) -> "History":
        """The history once the agent has acted on a representation; this one is left as it is.

        Args:
            action: What it did.
            shown: What it had read.
            observation: What `shown` was made from (``pipeline.trace(...).observation``). Without it later
                representations cannot say what changed.
            outcome: What came of it, in a few words.
            reward: Of the step.
            keep_state: Whether what was shown stays known, for prompts that show earlier steps again.
        """
        number = len(self.steps)
        seen, met, base = dict(self.shown), dict(self.met), dict(self.base)
        for entry in shown.account.entries:
            if entry.level is not Level.DROPPED:
                met[entry.part_id] = entry.digest
            before = seen.get(entry.part_id)
            if entry.level is Level.FULL:
                seen[entry.part_id] = Shown(digest=entry.digest, keyframe=number)
            elif entry.level is Level.DELTA and before is not None and entry.retained >= 1.0:
                if before.digest != entry.digest:
                    update = {"digest": entry.digest, "deltas": before.deltas + 1, "changed": number}
                    seen[entry.part_id] = before.model_copy(update=update)
            else:
                continue
            if observation is not None and entry.part_id in observation:
                base[entry.part_id] = observation[entry.part_id]
        state = shown.state if keep_state else ()
        step = PastStep(action=action, outcome=outcome, reward=reward, state=state)
        return History(steps=(*self.steps, step), shown=seen, met=met, base=base)


def previous_actions(history: History, count: int, max_chars: int = 600) -> list[str]:
    """The last `count` actions, a line each, numbered from the first step of the episode on."""
    steps = list(enumerate(history.steps, start=1))[-count:] if count else []
    lines = []
    for number, step in steps:
        outcome = f" -> {one_line(step.outcome, max_chars)}" if step.outcome else ""
        reward = f" (reward {step.reward:g})" if step.reward is not None else ""
        lines.append(f"{number}. {one_line(step.action, max_chars)}{outcome}{reward}")
    return lines


def one_line(text: str, limit: int) -> str:
    """Text without line ends, its middle left out when it has more than `limit` characters."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    half = (limit - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"


def earlier_turns(steps: Sequence[PastStep]) -> list[Message]:
    """Earlier states and actions as alternating messages of user and assistant."""
    turns: list[Message] = []
    for step in steps:
        turns.append(Message(role="user", content=step.state or (TextBlock(text="(state not recorded)"),)))
        outcome = f"\n-> {step.outcome}" if step.outcome else ""
        turns.append(text_message("assistant", step.action + outcome))
    return turns
