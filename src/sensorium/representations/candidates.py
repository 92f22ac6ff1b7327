"""All the ways in which a subject can be shown, from whole to not at all, with what each costs."""

from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import TextBlock
from sensorium.observations.values import AudioValue, ImageValue
from sensorium.representations.base import Level
from sensorium.representations.config import PipelineConfig
from sensorium.representations.delta.parts import make_delta
from sensorium.representations.delta.render import render_delta, tells_all
from sensorium.representations.history import History
from sensorium.representations.scoring import Relevance
from sensorium.representations.subjects import Candidate, Subject
from sensorium.representations.summary import Draft, Sheet

REFERENCE_RETAINED = 0.03
"""What a reference keeps of a part's information: that it is there."""
UNSEEN_BASE_RETAINED = 0.6
"""What a change is worth to an agent that no longer sees what it changes."""
NOTHING = Candidate(Level.DROPPED, 0, 0.0, "", tuple)
"""Not to show it."""


def whole(subject: Subject) -> Candidate:
    """The subject as large as its limits allow."""
    sheet = subject.sheet
    assert sheet is not None
    return drafted(subject, Draft(Level.FULL, sheet.full_tokens, 1.0, None, ""))


def drafted(subject: Subject, draft: Draft) -> Candidate:
    """A draft of a subject's document as a candidate."""
    sheet, why, retained = subject.sheet, draft.why, draft.retained
    assert sheet is not None
    if subject.is_limited:
        share = sheet.full_tokens / subject.tokens
        retained *= share
        why = f"{why}, " if why else ""
        why += f"limits of its kind leave {share:.0%} of it"
    return Candidate(
        draft.level, draft.tokens, retained, why, lambda: (TextBlock(text=sheet.text(draft)),), draft.kept
    )


def candidates(
    subject: Subject, config: PipelineConfig, counter: TokenCounter, history: History, visible_from: int
) -> list[Candidate]:
    """Ways to show one subject; the last one is not to show it.

    Args:
        subject: What to show.
        config: Limits.
        counter: Counts tokens.
        history: What the agent saw before.
        visible_from: First step whose state the agent still has in its context.
    """
    found: list[Candidate] = []
    if subject.twin is not None:
        found.append(_line(subject, f"same as ref:{subject.twin}", Level.REFERENCE, 1.0, counter))
    elif subject.sheet is not None:
        ratio = config.observation.compression_ratio
        found += [drafted(subject, draft) for draft in subject.sheet.drafts(ratio)]
    else:
        found += subject.media
    found += _changes(subject, config, counter, history, visible_from)
    if subject.twin is None:
        found.append(_line(subject, describe(subject), Level.REFERENCE, REFERENCE_RETAINED, counter))
    return [*found, NOTHING]


def describe(subject: Subject) -> str:
    """A subject in a few words, for the line that stands for it."""
    if subject.sheet is not None:
        document = subject.sheet.document
        count = f"{len(document.segments):,} {document.unit}"
        known = len(document.segments) < 2 or f" {document.unit}" in document.title
        title = document.title or subject.part.modality.value
        return f"{title}{'' if known else f', {count}'}, {subject.tokens:,} tokens"
    value = subject.part.value
    if isinstance(value, ImageValue):
        size = f"{value.width}x{value.height} " if value.width else ""
        return f"{size}picture{f' of {value.alt}' if value.alt else ''}"
    if isinstance(value, AudioValue):
        return f"sound of {value.duration_s:.1f} s"
    return subject.part.modality.value


def _line(subject: Subject, text: str, level: Level, retained: float, counter: TokenCounter) -> Candidate:
    line = f"[ref:{subject.label}: {text}]"
    return Candidate(level, counter.text(line) + 1, retained, text, lambda: (TextBlock(text=line),))


def _changes(
    subject: Subject, config: PipelineConfig, counter: TokenCounter, history: History, visible_from: int
) -> list[Candidate]:
    """Showing what changed since the agent saw the subject last, where that is shorter."""
    settings = config.delta
    if not settings.enabled or any(m.part.id not in history.shown for m in subject.members):
        return []
    seen = [history.shown[m.part.id] for m in subject.members]
    keyframe = min(s.keyframe for s in seen)
    is_visible, step = keyframe >= visible_from, keyframe + 1
    if all(s.digest == m.part.digest for s, m in zip(seen, subject.members, strict=True)):
        text = f"unchanged since step {step}"
        if is_visible:  # what the agent still sees need not be named
            return [Candidate(Level.DELTA, 0, 1.0, text, tuple)]
        return [_line(subject, text, Level.REFERENCE, 0.3, counter)]
    part = subject.part
    base = history.base.get(part.id)
    too_often = seen[0].deltas + 1 >= settings.keyframe_every
    if base is None or subject.sheet is None or len(seen) > 1 or too_often:
        return []
    delta = make_delta(base, part)
    if delta is None:
        return []
    sheet = Sheet(subject.label, render_delta(delta, base, part, since=step), counter, Relevance(""))
    if sheet.full_tokens > settings.max_share * subject.tokens:
        return []
    retained = 1.0 if is_visible and tells_all(base, part) else UNSEEN_BASE_RETAINED
    why = f"changes since step {step}"
    return [
        Candidate(Level.DELTA, sheet.full_tokens, retained, why, lambda: (TextBlock(text=sheet.full_text),))
    ]
