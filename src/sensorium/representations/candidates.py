"""All the ways in which a subject can be shown, from whole to not at all, with what each costs."""

from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import TextBlock
from sensorium.observations.values import ArrayValue, AudioValue, ImageValue, TableValue
from sensorium.representations.base import Level
from sensorium.representations.changes import changes, line
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.model_summary import with_model
from sensorium.representations.plots import with_plot
from sensorium.representations.subjects import Candidate, Serve, Subject
from sensorium.representations.summary import Draft

REFERENCE_RETAINED = 0.03
"""What a reference keeps of a part's information: that it is there."""
NOTHING = Candidate(Level.DROPPED, 0, 0.0, "", tuple)
"""Not to show it."""


def whole(subject: Subject) -> Candidate:
    """The subject as large as its limits allow."""
    sheet = subject.sheet
    assert sheet is not None
    return drafted(subject, Draft(Level.FULL, sheet.full_tokens, 1.0, None, ""))


def drafted(subject: Subject, draft: Draft) -> Candidate:
    """A draft of a subject's document as a candidate."""
    sheet = subject.sheet
    assert sheet is not None
    return Candidate(
        draft.level,
        draft.tokens,
        draft.retained,
        draft.why,
        lambda: (TextBlock(text=sheet.text(draft)),),
        draft.kept,
    )


def candidates(
    subject: Subject,
    config: PipelineConfig,
    counter: TokenCounter,
    history: History,
    visible_from: int,
    serve: Serve | None = None,
    room: int | None = None,
) -> list[Candidate]:
    """Ways to show one subject; the last one is not to show it.

    Args:
        subject: What to show.
        config: Limits.
        counter: Counts tokens.
        history: What the agent saw before.
        visible_from: First step whose state the agent still has in its context.
        serve: Registers pictures, for ``encoding: url``.
        room: Tokens there are when it is the only subject: smaller summaries than that are of no use, unless
            something is added to them (a plot, what a model said).
    """
    found: list[Candidate] = []
    if subject.sheet is None and not subject.media:
        return [NOTHING]  # withheld
    if subject.twin is not None:
        found.append(line(subject, f"same as ref:{subject.twin}", Level.REFERENCE, 1.0, counter))
    elif subject.sheet is not None:
        ratio = config.observation.compression_ratio
        is_bare = subject.summary is None and not isinstance(subject.part.value, TableValue | ArrayValue)
        drafts = subject.sheet.drafts(ratio, room if is_bare else None)
        found += [drafted(subject, draft) for draft in drafts]
        found = with_model(subject, found, config, counter)
        found += with_plot(subject, found, config, counter, serve)
    else:
        found += subject.media
    found += changes(subject, config, counter, history, visible_from, serve)
    if subject.twin is None:
        found.append(line(subject, describe(subject), Level.REFERENCE, REFERENCE_RETAINED, counter))
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
