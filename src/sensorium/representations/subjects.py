"""Parts prepared for the choice: laid out, counted, short outputs joined to the cell they belong to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sensorium.features.extractors.base import FeatureMap, Features
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock, TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import (
    ArrayValue,
    AudioValue,
    CellValue,
    ImageValue,
    OutputValue,
    ProprioValue,
    TableValue,
)
from sensorium.representations.base import Document, Level, Segment
from sensorium.representations.config import PipelineConfig
from sensorium.representations.counting import count_ahead
from sensorium.representations.documents import DocumentCache, Measured
from sensorium.representations.history import History, one_line
from sensorium.representations.media.audio import audio_variants
from sensorium.representations.media.image import image_variants
from sensorium.representations.scoring import Relevance
from sensorium.representations.summary import Sheet

JOINED_CHARS = 240
"""An output of so many characters or fewer is shown with its cell: alone it would say nothing."""

_MAX_TITLE = 300

Serve = Callable[[bytes, str], str]
"""Registers encoded bytes of a MIME type and returns the URL under which a client can load them."""


class Context(NamedTuple):
    """What decides how anything can be shown, whichever subject it is."""

    config: PipelineConfig
    counter: TokenCounter
    history: History
    """What the agent saw before."""
    visible_from: int = 0
    """First step whose state the agent still has in its context."""
    serve: Serve | None = None
    """Registers pictures, for ``encoding: url``."""


class Candidate(NamedTuple):
    """One way to show a subject, not yet written out."""

    level: Level
    tokens: int
    """Estimate of its cost."""
    retained: float
    """Share of the information that is still there, in [0, 1]."""
    why: str
    write: Callable[[], tuple[AnyBlock, ...]]
    kept: tuple[int, ...] | None = None
    """Kept segments of a summary; None for all."""
    is_fixed: bool = False
    """It has more to it than segments, such as a plot, and is not extended when tokens are left."""
    extend: "Callable[[int], Candidate | None] | None" = None
    """Gives a longer version of it within so many tokens; None: by segments alone."""
    same_as: str | None = None
    """Id of the part that it names as the same."""
    is_stand_in: bool = False
    """A line in place of what there is no room for."""


class Member(NamedTuple):
    """A part of a subject and the segments of its document that are the part's."""

    part: Part
    start: int
    stop: int


@dataclass(slots=True)
class Subject:
    """What is decided about as one: a part, or a cell with its short outputs."""

    members: tuple[Member, ...]
    label: str
    """Its id as headings show it."""
    sheet: Sheet | None = None
    """None for pictures and sounds."""
    media: tuple[Candidate, ...] = ()
    """Of pictures and sounds: all but reference and nothing."""
    twin: str | None = None
    """Id of an earlier part with the same picture or sound."""
    tokens: int = 0
    """Of the whole, before any limit."""
    summary: Features | None = None
    """What a language model said of the first part (extractor ``summary``)."""

    @property
    def part(self) -> Part:
        """The first part."""
        return self.members[0].part

    @property
    def within_limits(self) -> float:
        """Share of it that limits such as `max_lines` leave, in (0, 1]."""
        if self.sheet is None or self.tokens <= 1.05 * self.sheet.full_tokens:
            return 1.0
        return self.sheet.full_tokens / self.tokens


def common_root(observation: Observation) -> str:
    """The first piece of the ids when all parts share it (``report.ipynb``), else ``""``."""
    roots = {part.id.partition("/")[0] for part in observation.parts}
    return roots.pop() if len(roots) == 1 and len(observation.parts) > 1 else ""


def build_subjects(
    observation: Observation,
    measured: Sequence[Measured | None],
    features: FeatureMap,
    config: PipelineConfig,
    documents: DocumentCache,
    relevance: Relevance,
    serve: Serve | None,
) -> list[Subject]:
    """Prepare every part; what is the same picture or sound as an earlier part becomes its twin."""
    root, first = common_root(observation), dict[str, str]()
    subjects: list[Subject] = []
    for group in _grouped(observation.parts, measured):
        part, document = group[0]
        label = part.id.removeprefix(f"{root}/") if root else part.id
        heading = label if part.timestamp_s is None else f"{label} at {part.timestamp_s:g} s"
        if document is not None:
            members, sheet = _of_text(group, heading, documents, relevance)
            summary = features.get(part.id, {}).get("summary")
            subjects.append(Subject(members, label, sheet, summary=summary))
            continue
        digest = _same_media(part)
        twin = first.setdefault(digest, part.id) if digest else part.id
        media = _media(part, heading, features.get(part.id, {}), config, documents.counter, serve)
        tokens = max((candidate.tokens for candidate in media), default=0)
        subjects.append(
            Subject((Member(part, 0, 0),), label, None, media, twin if twin != part.id else None, tokens)
        )
    laid_out = [(subject, subject.sheet) for subject in subjects if subject.sheet is not None]
    if len(laid_out) > 1:
        count_ahead(documents.counter, [sheet.full_text for _, sheet in laid_out])
    for subject, sheet in laid_out:
        subject.tokens = _whole_tokens(subject.part, sheet, documents.counter)
    return subjects


def is_withheld(part: Part, features: Mapping[str, Features]) -> bool:
    """Whether a picture was not judged safe by the safety check, be it unsafe or not to be judged."""
    judged = features.get("safety")
    return judged is not None and isinstance(part.value, ImageValue) and judged.data.get("verdict") != "safe"


_Laid = tuple[Part, Measured | None]


def _grouped(parts: Sequence[Part], documents: Sequence[Measured | None]) -> list[list[_Laid]]:
    """Cells with the short outputs that follow them; every other part by itself."""
    groups: list[list[_Laid]] = []
    for part, document in zip(parts, documents, strict=True):
        is_short = (
            isinstance(part.value, OutputValue)
            and part.value.error is None
            and part.value.stream != "stderr"
            and len(part.value.text) <= JOINED_CHARS
        )
        cell = groups[-1][0][0] if groups else None
        if is_short and cell and isinstance(cell.value, CellValue) and part.id.startswith(f"{cell.id}/"):
            groups[-1].append((part, document))
        else:
            groups.append([(part, document)])
    return groups


def _of_text(
    group: Sequence[_Laid], heading: str, documents: DocumentCache, relevance: Relevance
) -> tuple[tuple[Member, ...], Sheet]:
    """The members of a subject of text, and its document under a heading."""
    part, measured = group[0]
    assert measured is not None
    # The notes of tables and the like stand in their documents already.
    tells_notes = part.notes and not isinstance(part.value, TableValue | ArrayValue | ProprioValue)
    members = [Member(part, 0, len(measured.document.texts))]
    for output, laid in group[1:]:
        assert laid is not None
        start = members[-1].stop
        members.append(Member(output, start, start + len(laid.document.texts)))
    if tells_notes or len(members) > 1:
        measured = documents.joined(tuple(member.part for member in members), lambda: _joined(group))
    return tuple(members), Sheet(heading, measured.document, documents.counter, relevance, measured)


def _whole_tokens(part: Part, sheet: Sheet, counter: TokenCounter) -> int:
    """Tokens of a part that is laid out, before any limit."""
    raw, value = part.text, part.value
    if raw is not None and len(raw) > len(sheet.full_text):
        return counter.text(raw)
    if isinstance(value, TableValue):
        rows = sum(segment.place.startswith("row ") for segment in sheet.document.segments)
        return round(sheet.full_tokens * max(1.0, value.num_rows / max(1, rows)))
    return sheet.full_tokens


def _joined(group: Sequence[_Laid]) -> Document:
    """The document of a part with its notes, and the short outputs of a cell behind it."""
    part, measured = group[0]
    assert measured is not None
    document = measured.document
    outputs = [
        (output.id.rpartition("/")[2], laid.document) for output, laid in group[1:] if laid is not None
    ]
    texts = list(document.texts)
    for name, laid in outputs:
        texts += [f"# {name}: {text}" if at == 0 else text for at, text in enumerate(laid.texts)]

    def weighed() -> list[Segment]:
        segments = list(document.segments)
        for name, laid in outputs:
            start = len(segments)
            for at, segment in enumerate(laid.segments, start=start):
                above = 0 if segment.parent is None else segment.parent + start
                place = f"{name} {segment.place}"
                segments.append(Segment(texts[at], segment.weight, place, above, segment.is_pinned))
        return segments

    title = one_line("; ".join([document.title, *part.notes]), _MAX_TITLE) if part.notes else document.title
    return Document(title, weighed, document.unit, document.fence, document.separator, texts=texts)


def _same_media(part: Part) -> str | None:
    if isinstance(part.value, ImageValue):
        return part.value.sha256 or (part.value.url if part.value.data is None else part.digest)
    return part.digest


def _media(
    part: Part,
    heading: str,
    features: Mapping[str, Features],
    config: PipelineConfig,
    counter: TokenCounter,
    serve: Serve | None,
) -> tuple[Candidate, ...]:
    limits = config.multimodal
    if isinstance(part.value, ImageValue):
        if is_withheld(part, features):
            return ()
        variants = image_variants(
            part,
            limits.image,
            counter,
            compression_ratio=config.observation.compression_ratio,
            serve=serve,
            features=features,
        )
    elif isinstance(part.value, AudioValue):
        variants = audio_variants(part, limits.audio, counter, features)
    else:
        return ()
    title = one_line("; ".join([f"### {heading}", *part.notes]), _MAX_TITLE)
    cost = counter.text(title) + 1
    return tuple(
        Candidate(
            v.level,
            v.tokens + cost,
            v.retained,
            v.why,
            lambda v=v: (TextBlock(text=title), *v.blocks),  # type: ignore[misc]
        )
        for v in variants
    )
