"""What an agent that saw one state would be sent for the next: ``sensorium observe OLD NEW --delta``."""

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from sensorium.cli.observe_input import name_of, read_files
from sensorium.cli.observe_print import clean
from sensorium.observations.base import Observation, Part
from sensorium.representations.delta.base import PartDelta
from sensorium.representations.delta.observation import diff
from sensorium.representations.delta.pairing import pair_parts
from sensorium.representations.delta.render import render_delta
from sensorium.representations.history import History

if TYPE_CHECKING:
    from sensorium.representations.config import BudgetConfig
    from sensorium.representations.pipeline import ObservationPipeline, Trace

ACTION = "(the observed state changed)"
"""Stands in the history for what the agent did between the two states."""
_ACTION_TOKENS = 64
"""For the action in the history, twice, and the marks of its messages."""
_NO_LIMIT = 1_000_000_000
_MAX_LINES = 400
"""Lines of one change that are printed."""


class PartChange(NamedTuple):
    """How one part changed, as an agent reads it."""

    part_id: str
    bytes: int
    """Of the lossless change as JSON."""
    text: str


class StateChange(NamedTuple):
    """What is new in an observation."""

    changed: tuple[PartChange, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    """Parts that are the same, though they may have moved."""
    delta_bytes: int
    """Of the lossless change as JSON."""
    full_bytes: int
    """Of the whole new state as JSON."""

    def summary(self) -> dict[str, Any]:
        """The figures and changes, for ``--json``."""
        return {
            "bytes": self.delta_bytes,
            "full_bytes": self.full_bytes,
            "changed": [one._asdict() for one in self.changed],
            "added": list(self.added),
            "removed": list(self.removed),
            "unchanged": self.unchanged,
        }


def trace_delta(
    pipeline: "ObservationPipeline", old_name: str, new_name: str, task: str
) -> "tuple[Trace, StateChange]":
    """Show the whole old state to an agent, then the new one within the pipeline's budget.

    Both are read under the name of the new one, so that a part is the same in both by its place in the file.
    The old state stays in the agent's context; the budget is raised by what it takes there.

    Raises:
        ObservationError: One of the files cannot be read, or the instruction does not fit the budget.
    """
    name, config = name_of(new_name), pipeline.config.reading
    old = read_files([old_name], config, name=name)
    new = read_files([new_name], config, name=name)
    whole = {"max_tokens": _NO_LIMIT, "context_window": None, "reserve": 0.0}
    with contextlib.closing(_with(pipeline, whole)) as roomy:
        first = roomy.trace(old, task=task)
    history = History().after(ACTION, first.representation, observation=first.observation)
    raised = _raised(pipeline.config.observation, first.representation.num_tokens)
    with contextlib.closing(_with(pipeline, raised)) as beside:
        return beside.trace(new, task=task, history=history), state_change(old, new)


def _with(pipeline: "ObservationPipeline", budget: dict[str, Any]) -> "ObservationPipeline":
    from sensorium.representations.pipeline import ObservationPipeline

    return ObservationPipeline(pipeline.config.updated({"observation": budget}), counter=pipeline.counter)


def _raised(budget: "BudgetConfig", num_tokens: int) -> dict[str, Any]:
    """The budget with room for an old state beside it; the new state may take as much as before."""
    window = budget.window + num_tokens + _ACTION_TOKENS
    return {
        "max_tokens": budget.max_tokens + num_tokens + _ACTION_TOKENS,
        "context_window": window,
        "reserve": max(0.0, 1.0 - (budget.state_limit + 0.5) / window),
    }


def state_change(old: Observation, new: Observation) -> StateChange:
    """Compare two observations of the same thing."""
    delta = diff(old, new)
    places = pair_parts(old.parts, new.parts)
    before = {new.parts[j].id: old.parts[i] for j, i in places.items()}
    changed = tuple(
        PartChange(
            change.part_id, change.num_bytes, _told(change, before[change.part_id], new[change.part_id])
        )
        for change in delta.changes
    )
    return StateChange(
        changed=changed,
        added=tuple(added.part.id for added in delta.added),
        removed=delta.removed,
        unchanged=len(new) - len(changed) - len(delta.added),
        delta_bytes=delta.num_bytes,
        full_bytes=len(new.model_dump_json().encode()),
    )


def print_change(console: Console, change: StateChange, sent_tokens: int, full_tokens: int) -> None:
    """Print figures and the changes themselves."""
    share = change.delta_bytes / max(change.full_bytes, 1)
    console.print(
        Text(
            f"change {change.delta_bytes:,} of {change.full_bytes:,} bytes ({100 * share:.1f} %), "
            f"sent {sent_tokens:,} of {full_tokens:,} tokens "
            f"({100 * sent_tokens / max(full_tokens, 1):.1f} %)",
            style="bold",
        )
    )
    console.print(
        Text(
            f"parts {len(change.changed):,} changed, {len(change.added):,} added, "
            f"{len(change.removed):,} removed, {change.unchanged:,} unchanged"
        )
    )
    for sign, style, names in (("+", "green", change.added), ("-", "red", change.removed)):
        for name in names[:_MAX_LINES]:
            console.print(Text(f"{sign} {clean(name)}", style=style), soft_wrap=True)
        if len(names) > _MAX_LINES:
            console.print(Text(f"{sign} and {len(names) - _MAX_LINES:,} more", style=style))
    for one in change.changed:
        console.print(Text(f"~ {clean(one.part_id)} ({one.bytes:,} bytes)", style="bold"), soft_wrap=True)
        console.print(_coloured(one.text), soft_wrap=True)


def _told(change: PartDelta, old: Part, new: Part) -> str:
    """A change as an agent reads it."""
    document = render_delta(change, old, new)
    return document.separator.join(document.texts)


def _coloured(text: str) -> Text:
    shown = Text()
    lines = text.split("\n")
    if len(lines) > _MAX_LINES:
        more = f"... {len(lines) - _MAX_LINES:,} more lines; --json shows all"
        lines = [*lines[:_MAX_LINES], more]
    for i, line in enumerate(map(clean, lines)):
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        shown.append("\n" * (i > 0))
        shown.append(line, style=style)
    return shown
