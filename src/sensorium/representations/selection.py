"""Which candidate of every subject is shown within a limit, and what is done with tokens that are left."""

from collections.abc import Sequence
from typing import NamedTuple

from sensorium.core.counted import counted
from sensorium.llm.messages import AnyBlock, TextBlock
from sensorium.observations.values import CodeValue, ProblemValue
from sensorium.representations.base import Level
from sensorium.representations.budget import Choice, choose
from sensorium.representations.candidates import NOTHING, candidates, drafted, whole
from sensorium.representations.counting import count_blocks
from sensorium.representations.history import one_line
from sensorium.representations.subjects import Candidate, Context, Subject
from sensorium.representations.weights import Weight

SIZE_POWER = 0.6
"""A subject with n tokens of substance is worth n to this power: more than a short one, not in proportion."""
GUIDE = "(Marks such as [... lines 12-41] and [ref:...] stand for what is left out; fetch_part shows it.)"
GUIDE_LIMIT = 400
"""Limit below which there is no room for the guide and the list of errors."""
MOSTLY = 0.9
"""A summary is made shorter to correct an estimate only if it keeps this share of what it retains."""
MAX_ERRORS = 5
"""Errors named above the state."""
TAIL_TOKENS = 22
"""Of the line that says how many parts are not shown."""


class Picked(NamedTuple):
    """A subject with its candidates and the one that was taken."""

    subject: Subject
    weight: Weight
    options: list[Candidate]
    pick: int
    blocks: tuple[AnyBlock, ...]
    """What shows it."""

    @classmethod
    def of(cls, subject: Subject, weight: Weight, options: list[Candidate], pick: int) -> "Picked":
        """Write the candidate that is taken."""
        return cls(subject, weight, options, pick, options[pick].write())

    @property
    def candidate(self) -> Candidate:
        """What was taken."""
        return self.options[self.pick]


class State(NamedTuple):
    """The observed state as it is sent."""

    picked: list[Picked]
    blocks: tuple[AnyBlock, ...]


class Selection:
    """Chooses and writes the state.

    Args:
        subjects: What there is.
        weights: Of each.
        root: What all ids begin with and headings leave out.
        context: Limits, and what the agent saw before.
    """

    def __init__(
        self, subjects: Sequence[Subject], weights: Sequence[Weight], root: str, context: Context
    ) -> None:
        self._subjects, self._weights, self._root = subjects, _with_twins(subjects, weights), root
        self._context, self._counter = context, context.counter

    def state(self, limit: int, visible_from: int) -> State:
        """The state within `limit` tokens.

        Args:
            limit: Tokens.
            visible_from: First step whose state the agent still has in its context.
        """
        if not self._subjects:
            return State([], ())
        everything = self._whole(limit)
        if everything is not None:
            return everything
        heading = self._heading(limit, is_guided=True)
        room = limit - self._counter.text(heading) - 1
        picked = self._choose(room - min(TAIL_TOKENS, limit // 8), visible_from)
        picked = self._refill(picked, heading, limit)
        if all(p.candidate.level in (Level.FULL, Level.DELTA) for p in picked):
            heading = self._heading(limit, is_guided=False)  # there are no marks to explain
        state = self._written(picked, heading)
        while self._cost(state) > limit:
            if all(p.candidate is NOTHING for p in picked):
                return State(picked, ())  # not even the heading fits
            picked = _one_step_down(picked)
            state = self._written(picked, heading)
        return state

    def _whole(self, limit: int) -> State | None:
        """Everything as it is: there is nothing to choose. None when it does not fit, or was shown before."""
        total, shown = 0, self._context.history.shown
        picked: list[Picked] = []
        for subject, weight in zip(self._subjects, self._weights, strict=True):
            candidate = None if subject.part.id in shown else whole(subject)
            if candidate is None or total + candidate.tokens > limit:
                return None
            total += candidate.tokens
            picked.append(Picked.of(subject, weight, [candidate, NOTHING], 0))
        heading = self._heading(limit, is_guided=False)
        state = self._written(picked, heading)
        # Texts cost no more joined than by themselves, a line end each: mostly there is no need to count.
        fits = total + self._counter.text(heading) + len(picked) <= limit or self._cost(state) <= limit
        return state if fits else None

    def _choose(self, limit: int, visible_from: int) -> list[Picked]:
        room = limit if len(self._subjects) == 1 else None
        context = self._context._replace(visible_from=visible_from)
        options = [candidates(s, context, room) for s in self._subjects]
        choices = []
        for subject, weight, found in zip(self._subjects, self._weights, options, strict=True):
            worth = _worth(subject, weight)
            choices.append([Choice(c.tokens, worth * c.retained) for c in found])
        picks = choose(choices, max(0, limit))
        return [
            Picked.of(s, w, o, p)
            for s, w, o, p in zip(self._subjects, self._weights, options, picks, strict=True)
        ]

    def _refill(self, picked: list[Picked], heading: str, limit: int) -> list[Picked]:
        """Give what is left of the limit to the summaries, the most important first.

        Where estimates were too low and too much is taken, long summaries are made shorter instead.
        """
        order = sorted(
            (at for at, p in enumerate(picked) if _can_grow(p.candidate)),
            key=lambda at: -picked[at].weight.value,
        )
        left = limit - self._cost(self._written(picked, heading)) - 2
        if left < 0:
            order.sort(key=lambda at: -picked[at].candidate.tokens)
        for at in order:
            if 0 <= left < 12:
                break
            p = picked[at]
            now = self._counter.text(_text_of(p.blocks))
            other = _grown(p, now + left)
            if other is None:
                continue
            if other.tokens > now or (left < 0 and other.retained >= MOSTLY * p.candidate.retained):
                left -= other.tokens - now
                picked[at] = Picked.of(p.subject, p.weight, [*p.options, other], len(p.options))
        return picked

    def _cost(self, state: State) -> int:
        return count_blocks(self._counter, state.blocks)

    def _written(self, picked: list[Picked], heading: str) -> State:
        """Parts in the order of their sources under the heading, neighbouring texts joined."""
        blocks: list[AnyBlock] = [TextBlock(text=heading)] if heading else []
        for p in picked:
            blocks += p.blocks
        hidden = sum(len(p.subject.members) for p in picked if p.candidate.level is Level.DROPPED)
        known = [p for p in picked if p.candidate.level is Level.DELTA and p.candidate.tokens == 0]
        same = sum(len(p.subject.members) for p in known)
        if same:
            blocks.append(TextBlock(text=f"[{same} unchanged: see above]"))
        if hidden:
            blocks.append(TextBlock(text=f"[{hidden} more not shown; fetch_part ref: lists them]"))
        return State(picked, _joined(blocks))

    def _heading(self, limit: int, *, is_guided: bool) -> str:
        """What stands above the state: whose it is, a guide to its marks, and the errors in it."""
        if len(self._subjects) == 1 and limit < GUIDE_LIMIT:
            return ""
        lines = ["## Current state" + (f" of {self._root}" if self._root else "")]
        if limit >= GUIDE_LIMIT:
            if is_guided:
                lines.append(GUIDE)
            errors = [s for s in self._subjects if s.part.is_error]
            if len(self._subjects) > 1:
                lines += [f"! {subject.label}: {_fault(subject)}" for subject in errors[:MAX_ERRORS]]
            if len(errors) > MAX_ERRORS:
                lines.append(f"! and {counted(len(errors) - MAX_ERRORS, 'more error')}")
        return "\n".join(lines)


def _with_twins(subjects: Sequence[Subject], weights: Sequence[Weight]) -> list[Weight]:
    """Weights in which a part counts as much as the greatest of those that are shown by naming it."""
    found = list(weights)
    places = {subject.part.id: at for at, subject in enumerate(subjects)}
    for subject, weight in zip(subjects, weights, strict=True):
        at = places.get(subject.twin or "")
        if at is not None and weight.value > found[at].value:
            found[at] = Weight(weight.value, (*weight.why, f"also {subject.label}"))
    return found


def _fault(subject: Subject) -> str:
    """An error in one line."""
    part = subject.part
    if part.stack is not None:
        return one_line(f"{part.stack.type}: {part.stack.message}", 120)
    if isinstance(part.value, ProblemValue):
        return one_line(part.value.what, 120)
    if isinstance(part.value, CodeValue):
        if part.value.faults:
            fault = part.value.faults[0]
            return one_line(f"line {fault.line}: {fault.message}", 120)
        failed = [test.name for test in part.value.tests if test.status in ("failed", "error")]
        return one_line(f"failing tests: {', '.join(failed)}", 120)
    return one_line((part.text or "").rstrip().rsplit("\n", 1)[-1], 120)


def _worth(subject: Subject, weight: Weight) -> float:
    """What it is worth to show all of a subject."""
    tokens = subject.tokens if subject.sheet is None else subject.sheet.substance
    size: float = max(tokens, 1) ** SIZE_POWER
    return (0.001 + weight.value) * size


def _can_grow(candidate: Candidate) -> bool:
    return not candidate.is_fixed and (candidate.kept is not None or candidate.extend is not None)


def _grown(picked: Picked, limit: int) -> Candidate | None:
    """The summary that was picked, as long as the limit allows."""
    sheet = picked.subject.sheet
    assert sheet is not None
    if picked.candidate.extend is not None:
        return picked.candidate.extend(limit)
    draft = sheet.draft_within(limit)
    return None if draft is None else drafted(picked.subject, draft)


def _one_step_down(picked: Sequence[Picked]) -> list[Picked]:
    """Replace the pick that loses least per token by a cheaper one of its subject."""
    best: tuple[float, int, int] | None = None
    for at, p in enumerate(picked):
        now = p.candidate
        for i, other in enumerate(p.options):
            if other.tokens < now.tokens:
                loss = _worth(p.subject, p.weight) * (now.retained - other.retained)
                rate = loss / (now.tokens - other.tokens)
                if best is None or rate < best[0]:
                    best = (rate, at, i)
    if best is None:
        return [Picked.of(p.subject, p.weight, [NOTHING], 0) for p in picked]
    _, at, i = best
    changed = list(picked)
    changed[at] = Picked.of(*picked[at][:3], i)
    return changed


def _text_of(blocks: Sequence[AnyBlock]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _joined(blocks: Sequence[AnyBlock]) -> tuple[AnyBlock, ...]:
    joined: list[AnyBlock] = []
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
            continue
        if texts:
            joined.append(TextBlock(text="\n".join(texts)))
            texts = []
        joined.append(block)
    if texts:
        joined.append(TextBlock(text="\n".join(texts)))
    return tuple(joined)
