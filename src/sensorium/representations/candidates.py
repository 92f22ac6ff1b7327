"""All the ways in which a subject can be shown, from whole to not at all, with what each costs."""

from sensorium.llm.messages import TextBlock
from sensorium.observations.values import ArrayValue, AudioValue, ImageValue, TableValue
from sensorium.representations.base import Level
from sensorium.representations.changes import changes, line
from sensorium.representations.model_summary import with_model
from sensorium.representations.plots import with_plot
from sensorium.representations.subjects import Candidate, Context, Subject
from sensorium.representations.summary import Draft

REFERENCE_RETAINED = 0.03
"""What a reference keeps of a part's information: that it is there."""
NOTHING = Candidate(Level.DROPPED, 0, 0.0, "", tuple)
"""Not to show it."""


def whole(subject: Subject) -> Candidate | None:
    """The subject as large as its limits allow; None when it is shown in short only, or as another one."""
    if subject.sheet is not None:
        return drafted(subject, Draft(Level.FULL, subject.sheet.full_tokens, 1.0, None, ""))
    if subject.twin is not None:
        return None
    return next((c for c in subject.media if c.level is Level.FULL and c.retained == 1.0), None)


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


def candidates(subject: Subject, context: Context, room: int | None = None) -> list[Candidate]:
    """Ways to show one subject; the last one is not to show it.

    Args:
        subject: What to show.
        context: Limits, and what the agent saw before.
        room: Tokens there are when it is the only subject: smaller summaries than that are of no use, unless
            something is added to them (a plot, what a model said).
    """
    counter = context.counter
    found: list[Candidate] = []
    if subject.sheet is None and not subject.media:
        return [NOTHING]  # withheld
    if _is_known_in_short(subject, context):
        said = "unchanged since it was shown in short"
        return [line(subject, said, Level.REFERENCE, REFERENCE_RETAINED, counter), NOTHING]
    if subject.twin is not None:
        same = line(subject, f"same as ref:{subject.twin}", Level.REFERENCE, 1.0, counter)
        found.append(same._replace(same_as=subject.twin))
    elif subject.sheet is not None:
        ratio = context.config.observation.compression_ratio
        is_bare = subject.summary is None and not isinstance(subject.part.value, TableValue | ArrayValue)
        drafts = subject.sheet.drafts(ratio, room if is_bare else None)
        found += [drafted(subject, draft) for draft in drafts]
        found = with_model(subject, found, context)
        found += with_plot(subject, found, context)
    else:
        found += subject.media
    found += changes(subject, context)
    if subject.twin is None:
        named = line(subject, describe(subject), Level.REFERENCE, REFERENCE_RETAINED, counter)
        found.append(named._replace(is_stand_in=True))
    return [*found, NOTHING]


def _is_known_in_short(subject: Subject, context: Context) -> bool:
    """Whether a shortened form of it stands in the conversation, all of which the agent still sees.

    It would be filled up a little more at every step, which costs what the first showing cost.
    """
    history = context.history
    if context.config.context_management.drop_full_history or context.visible_from > 0:
        return False
    parts = [member.part for member in subject.members]
    if any(history.met.get(part.id) != part.digest for part in parts):
        return False
    return any(part.id not in history.shown or history.shown[part.id].digest != part.digest for part in parts)


def describe(subject: Subject) -> str:
    """A subject in a few words, for the line that stands for it."""
    if subject.sheet is not None:
        document = subject.sheet.document
        count = f"{len(document.texts):,} {document.unit}"
        is_table = isinstance(subject.part.value, TableValue)  # its title counts rows and columns
        known = is_table or len(document.texts) < 2 or f" {document.unit}" in document.title
        title = document.title or subject.part.modality.value
        return f"{title}{'' if known else f', {count}'}, {subject.tokens:,} tokens"
    value = subject.part.value
    if isinstance(value, ImageValue):
        size = f"{value.width}x{value.height} " if value.width else ""
        return f"{size}picture{f' of {value.alt}' if value.alt else ''}"
    if isinstance(value, AudioValue):
        return f"sound of {value.duration_s:.1f} s"
    return subject.part.modality.value
