"""Showing what changed of a subject since the agent saw it last, where that is shorter than the subject."""

from sensorium.core.types import Modality
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock, TextBlock
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue
from sensorium.representations.base import Level
from sensorium.representations.counting import count_blocks
from sensorium.representations.delta.images import changed_rectangles
from sensorium.representations.delta.parts import make_delta
from sensorium.representations.delta.render import render_delta, tells_all
from sensorium.representations.media.image import crop, image_variants
from sensorium.representations.scoring import Relevance
from sensorium.representations.subjects import Candidate, Context, Subject
from sensorium.representations.summary import Sheet

UNSEEN_BASE_RETAINED = 0.6
"""What a change is worth to an agent that no longer sees what it changes."""
MAX_REGIONS = 4
"""Changed regions of a picture that are shown by themselves; of more the whole picture says more."""


def line(subject: Subject, text: str, level: Level, retained: float, counter: TokenCounter) -> Candidate:
    """One line that stands for a subject."""
    said = f"[ref:{subject.label}: {text}]"
    return Candidate(level, counter.text(said) + 1, retained, text, lambda: (TextBlock(text=said),))


def changes(subject: Subject, context: Context) -> list[Candidate]:
    """Candidates that show a change; none for what the agent has not seen whole."""
    history = context.history
    settings = context.config.delta
    if not settings.enabled or any(m.part.id not in history.shown for m in subject.members):
        return []
    seen = [history.shown[m.part.id] for m in subject.members]
    keyframe = min(s.keyframe for s in seen)
    is_visible, step = keyframe >= context.visible_from, max(s.step for s in seen) + 1
    if all(s.digest == m.part.digest for s, m in zip(seen, subject.members, strict=True)):
        text = f"unchanged since step {step}"
        if is_visible:  # what the agent still sees need not be named
            return [Candidate(Level.DELTA, 0, 1.0, text, tuple)]
        return [line(subject, text, Level.REFERENCE, 0.3, context.counter)]
    base = history.base.get(subject.part.id)
    too_often = seen[0].deltas + 1 >= settings.keyframe_every
    if base is None or len(seen) > 1 or too_often:
        return []
    if isinstance(subject.part.value, ImageValue):
        found = _regions(subject, base, context, step) if is_visible else None
    else:
        found = _edits(subject, base, context.counter, step, is_visible)
    if found is None or found.tokens > settings.max_share * subject.tokens:
        return []
    return [found]


def _edits(
    subject: Subject, base: Part, counter: TokenCounter, step: int, is_visible: bool
) -> Candidate | None:
    part = subject.part
    if base.value.kind != part.value.kind:
        return None  # there is nothing in common to tell changes from
    delta = make_delta(base, part)
    if delta is None:
        return None
    document = render_delta(delta, base, part, since=step)
    assert subject.sheet is not None
    if sum(map(len, document.texts)) > len(subject.sheet.full_text):
        return None  # before its tokens are counted: two texts may have nothing in common
    sheet = Sheet(subject.label, document, counter, Relevance(""))
    retained = 1.0 if is_visible and tells_all(base, part) else UNSEEN_BASE_RETAINED
    why = f"changes since step {step}"
    text = (TextBlock(text=sheet.full_text),)
    return Candidate(Level.DELTA, sheet.full_tokens, retained, why, lambda: text)


def _regions(subject: Subject, base: Part, context: Context, step: int) -> Candidate | None:
    """The changed regions of a picture of the same size, each as a picture of its own."""
    part, counter, limits = subject.part, context.counter, context.config.multimodal.image
    if part.modality is not Modality.IMAGE or not isinstance(base.value, ImageValue):
        return None
    assert isinstance(part.value, ImageValue)
    change = changed_rectangles(base.value, part.value)
    if change is None or not 0 < len(change.rectangles) <= MAX_REGIONS:
        return None
    blocks: list[AnyBlock] = []
    for left, top, width, height in change.rectangles:
        right, bottom = left + width, top + height
        region = crop(part, (left, top, right, bottom))
        variants = image_variants(region, limits, counter, compression_ratio=1.0, serve=context.serve)
        whole = [variant for variant in variants if variant.level is Level.FULL]
        if not whole:
            return None
        where = f"### {subject.label}, changed since step {step}: x {left}-{right}, y {top}-{bottom}"
        blocks += [TextBlock(text=where), *whole[0].blocks]
    tokens = count_blocks(counter, blocks)
    count = len(change.rectangles)
    regions = "changed region" if count == 1 else f"{count} changed regions"
    why = f"{regions} since step {step}, {change.share:.1%} of its pixels"
    return Candidate(Level.DELTA, tokens, 1.0, why, lambda: tuple(blocks))
