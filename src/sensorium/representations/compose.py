"""From subjects to messages: instruction, previous actions, the state that fits, and the account."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sensorium.core import ObservationError
from sensorium.core.counted import counted
from sensorium.features.extractors.report import FeatureReport
from sensorium.llm.base import TokenCounter, count_messages
from sensorium.llm.messages import AnyBlock, Message, TextBlock, text_message
from sensorium.observations.values import ImageValue
from sensorium.representations.base import Account, Entry, Level, Representation
from sensorium.representations.candidates import REFERENCE_RETAINED
from sensorium.representations.config import PipelineConfig
from sensorium.representations.counting import count_blocks
from sensorium.representations.history import History, earlier_turns, previous_actions
from sensorium.representations.selection import Picked, Selection, State
from sensorium.representations.subjects import Candidate, Context, Member, Subject
from sensorium.representations.weights import Weight

_SAID = {
    Level.DELTA: "sent as what changed",
    Level.SUMMARY: "summarised",
    Level.THUMBNAIL: "a thumbnail",
    Level.REFERENCE: "a reference",
    Level.DROPPED: "dropped",
}
"""What became of a part that another one is the same as."""


class Prompt(NamedTuple):
    """What is fixed before the state is chosen."""

    opening: tuple[Message, ...]
    """The system prompt, if any."""
    head: tuple[AnyBlock, ...]
    """Instruction and previous actions, in front of the state."""
    instruction_tokens: int
    actions_tokens: int


def compose(
    selection: Selection, prompt: Prompt, context: Context, report: FeatureReport
) -> tuple[Representation, Mapping[str, tuple[AnyBlock, ...]]]:
    """Choose the state, write the messages and account for every part.

    Args:
        selection: Chooses.
        prompt: What is fixed.
        context: Limits, and what the agent saw before.
        report: What the account says of the features.

    Returns:
        The representation, and for every part the blocks that show it.
    """
    config, counter, history = context.config, context.counter, context.history
    budget = config.observation
    fixed = prompt.instruction_tokens + prompt.actions_tokens
    limit = allowed = min(budget.state_limit, budget.max_tokens - fixed)
    visible_from = len(history.steps) if config.context_management.drop_full_history else 0
    while True:
        state = selection.state(limit, visible_from)
        content = (*prompt.head, *state.blocks) or (TextBlock(text=""),)
        message = Message(role="user", content=content)
        now = count_messages(counter, [*prompt.opening, message])
        over = now - fixed - allowed
        if over > 0 and limit > 0:  # texts cost a little more joined to the head than by themselves
            limit = max(0, limit - over)
            continue
        turns, first = _earlier(budget.max_tokens - now, context)
        if first <= visible_from or not _leans_on_hidden(state.picked, history, first):
            break
        visible_from = first  # what a change refers to is not in the context any more: show it again
    earlier = count_messages(counter, turns)
    account = Account(
        entries=tuple(_entries(state, counter)),
        max_tokens=budget.max_tokens,
        state_limit=budget.state_limit,
        instruction_tokens=prompt.instruction_tokens,
        history_tokens=prompt.actions_tokens + earlier,
        state_tokens=now - fixed,
        num_tokens=now + earlier,
        tokenizer=counter.identity,
        notes=report.notes,
        extraction_ms=dict(report.milliseconds),
        cache_hits=report.hits,
        cache_misses=report.misses,
    )
    messages = (*prompt.opening, *turns, message)
    return Representation(messages=messages, account=account, state_from=len(prompt.head)), _shown(state)


def build_prompt(
    task: str, system: str, history: History, config: PipelineConfig, counter: TokenCounter
) -> Prompt:
    """Instruction and as many of the previous actions as the reserve has room for, the last ones first.

    Raises:
        ObservationError: The instruction alone does not fit.
    """
    context, budget = config.context_management, config.observation
    opening = (text_message("system", system),) if system else ()
    opening_tokens = count_messages(counter, opening)

    def cost(blocks: Sequence[AnyBlock]) -> int:
        return opening_tokens + counter.message_overhead + count_blocks(counter, blocks)

    head: list[AnyBlock] = []
    if task and context.keep_original_instruction:
        head.append(TextBlock(text=f"## Task\n{task}"))
    instruction = cost(head)
    if instruction > budget.max_tokens:
        fitting = math.ceil(instruction / budget.reserve) if budget.reserve > 0 else instruction
        raise ObservationError(
            f"The instruction alone takes {instruction:,} tokens; observation.max_tokens is "
            f"{budget.max_tokens:,}. Raise it to at least {instruction:,} ({fitting:,} leaves the state its "
            f"share), or shorten the instruction."
        )
    reserved = budget.max_tokens - budget.state_limit - instruction
    room = min(budget.max_tokens - instruction, max(reserved, budget.max_tokens // 10))
    lines = previous_actions(history, context.keep_previous_actions)
    while lines:
        block = TextBlock(text="## Previous actions\n" + "\n".join(lines))
        actions = cost([*head, block]) - instruction
        if actions <= room:
            return Prompt(opening, (*head, block), instruction, actions)
        lines = lines[1:]  # the oldest goes first
    return Prompt(opening, tuple(head), instruction, 0)


def _earlier(left: int, context: Context) -> tuple[list[Message], int]:
    """Earlier turns, the newest first while they fit, and the number of the first that is included."""
    config, counter, history = context.config, context.counter, context.history
    first = len(history.steps)
    if config.context_management.drop_full_history:
        return [], first
    for step in reversed(history.steps):
        price = count_messages(counter, earlier_turns([step]))
        if price > left:
            break
        left, first = left - price, first - 1
    return earlier_turns(history.steps[first:]), first


def _leans_on_hidden(picked: Sequence[Picked], history: History, first: int) -> bool:
    """Whether a change is shown of something that stands before the first step in the context."""
    return any(
        p.candidate.level is Level.DELTA
        and any(history.shown[m.part.id].keyframe < first for m in p.subject.members)
        for p in picked
    )


def _shown(state: State) -> dict[str, tuple[AnyBlock, ...]]:
    return {member.part.id: p.blocks for p in state.picked for member in p.subject.members}


def _entries(state: State, counter: TokenCounter) -> list[Entry]:
    entries: dict[str, Entry] = {}
    for p in state.picked:
        paid = _paid(p.subject, p.blocks, counter)
        joined = sum(m.stop - m.start for m in p.subject.members[1:])
        segments = max(1, p.subject.members[-1].stop)
        for number, member in enumerate(p.subject.members):
            if number == 0:
                share = 1.0 - joined / segments if len(p.subject.members) > 1 else 1.0
            else:
                share = (member.stop - member.start) / segments
            entry = _entry(p, member, p.candidate, round(paid * share), share)
            if p.candidate.same_as is not None:
                entry = _leaning(entry, entries[p.candidate.same_as])
            entries[member.part.id] = entry
    return list(entries.values())


def _paid(subject: Subject, blocks: tuple[AnyBlock, ...], counter: TokenCounter) -> int:
    """Tokens of what is shown of a subject."""
    sheet = subject.sheet
    match blocks:
        case (TextBlock(text=text),) if sheet is not None and text == sheet.full_text:
            return sheet.full_tokens
    return count_blocks(counter, blocks)


def _leaning(entry: Entry, first: Entry) -> Entry:
    """The entry of what is the same as another part: as much is left of it as of that."""
    retained = max(first.retained, REFERENCE_RETAINED)
    if first.level is Level.FULL:
        return entry.model_copy(update={"retained": retained})
    why = entry.why.replace(f"ref:{first.part_id}", f"ref:{first.part_id}, which is {_SAID[first.level]}", 1)
    return entry.model_copy(update={"retained": retained, "why": why})


def _entry(p: Picked, member: Member, candidate: Candidate, tokens: int, share: float) -> Entry:
    subject, level, retained, why = p.subject, candidate.level, candidate.retained, candidate.why
    if candidate.kept is not None and len(subject.members) > 1:
        kept = bisect_left(candidate.kept, member.stop) - bisect_left(candidate.kept, member.start)
        count = member.stop - member.start
        level = Level.FULL if kept == count else Level.SUMMARY if kept else Level.DROPPED
        retained, why = kept / max(1, count), f"{kept:,} of {counted(count, 'line')}"
    if member is not subject.members[0]:
        why = f"with its cell{f': {why}' if why else ''}"
    within = subject.within_limits
    if within < 1.0 and level in (Level.FULL, Level.SUMMARY):
        if member.part.text is not None:  # of a table, the profile of its columns speaks of all rows
            retained *= within
        why = f"{f'{why}, ' if why else ''}limits of its kind leave {within:.1%} of it"
    is_whole = level is Level.FULL and within >= 1.0
    return Entry(
        part_id=member.part.id,
        modality=member.part.modality,
        level=level,
        tokens_before=max(1, round(subject.tokens * share)),
        tokens_after=tokens,
        retained=retained,
        weight=p.weight.value,
        why=_why(subject, level, why, p.weight, is_stand_in=candidate.is_stand_in),
        digest=member.part.digest,
        ref=None if is_whole else f"ref:{member.part.id}",
    )


def _why(subject: Subject, level: Level, why: str, weight: Weight, *, is_stand_in: bool) -> str:
    match level:
        case Level.FULL:
            text = why or "whole"
        case Level.DROPPED if isinstance(subject.part.value, ImageValue) and not subject.media:
            text = "withheld by the safety check: unsafe, or could not be judged"
        case Level.DROPPED:
            text = "no room: other parts bring more per token"
        case Level.REFERENCE if is_stand_in:
            text = "no room for more than a reference: other parts bring more per token"
        case _:
            text = why
    return f"{text} ({', '.join(weight.why)})" if weight.why else text
