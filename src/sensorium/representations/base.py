"""The third layer for a language model: messages, and the account of what became of every part."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sensorium.core.types import Modality
from sensorium.llm.messages import AnyBlock, Message, chat


class Level(StrEnum):
    """How much of a part is sent, from all to nothing."""

    FULL = "full"
    """Unchanged, or as large as its limits (`max_lines`, `max_size_kb`) allow."""
    DELTA = "delta"
    """What changed since the part was last sent: nothing is lost."""
    SUMMARY = "summary"
    """Its most important segments, with marks where others are left out."""
    THUMBNAIL = "thumbnail"
    """A smaller picture."""
    REFERENCE = "reference"
    """A line that says what it is and how to fetch it."""
    DROPPED = "dropped"
    """Nothing; only the account tells."""


class Variant(NamedTuple):
    """One way to show a part."""

    level: Level
    blocks: tuple[AnyBlock, ...]
    tokens: int
    """Cost of the blocks."""
    retained: float
    """Estimated share of the part's information that is still there, in [0, 1]; 1 for full and delta."""
    why: str = ""
    """What was done, in a few words: ``40 of 1,200 lines``, ``512x384 of 4096x3072``."""


class Segment(NamedTuple):
    """A piece of a document that is kept or left out whole: a line, a sentence, a row, a block of code."""

    text: str
    """One or several lines, without the last line end."""
    weight: float = 1.0
    """Importance beside the other segments of its document, before the task is considered; 0 is filler."""
    place: str = ""
    """Where it is, for marks and fetching, e.g. ``line 12`` or ``row 40``."""
    parent: int | None = None
    """Position of the segment without which it makes no sense (heading, signature); kept with it."""
    is_pinned: bool = False
    """Kept in every summary: an error, the line of the cursor, the columns of a table."""


class Document:
    """A part laid out as text.

    What it says is known at once, what its segments are worth only once somebody asks: most documents are
    shown whole, and nobody does.

    Args:
        title: One line that says what it is, e.g. ``cell 12 (code, run 3)``.
        segments: In reading order; or a function that makes them, together with `texts`.
        unit: What segments are, plural, for marks such as ``... 30 lines left out ...``.
        fence: Language of the code fence around it (may be empty); None for no fence.
        separator: What stands between segments.
        texts: Text of every segment; found from the segments when not given.
    """

    __slots__ = ("_made", "_segments", "fence", "lowered", "separator", "texts", "title", "unit")

    def __init__(
        self,
        title: str,
        segments: "Sequence[Segment] | Callable[[], Sequence[Segment]]",
        unit: str = "lines",
        fence: str | None = None,
        separator: str = "\n",
        *,
        texts: Sequence[str] | None = None,
    ) -> None:
        self.title, self.unit, self.fence, self.separator = title, unit, fence, separator
        self._segments = segments
        self._made: tuple[Segment, ...] | None = None if callable(segments) else tuple(segments)
        self.texts = tuple([segment.text for segment in self.segments] if texts is None else texts)
        """Text of every segment."""
        self.lowered = Lowered(self.texts)
        """For looking words up."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """In reading order."""
        if self._made is None:
            assert callable(self._segments)
            self._made = tuple(self._segments())
        return self._made

    def __eq__(self, other: object) -> bool:
        """Whether both say the same and weigh it alike."""
        if not isinstance(other, Document):
            return NotImplemented
        mine = (self.title, self.texts, self.unit, self.fence, self.separator)
        theirs = (other.title, other.texts, other.unit, other.fence, other.separator)
        return mine == theirs and self.segments == other.segments


class Lowered:
    """Texts in lower case as one, in which words are found faster than in each of them.

    Args:
        texts: The texts.
    """

    __slots__ = ("_ends", "_whole", "texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._whole: str | None = None
        self._ends: list[int] | None = None

    def containing(self, words: Iterable[str]) -> list[int]:
        """Positions of the texts that contain at least one of some words, ascending."""
        whole = self._whole
        if whole is None:
            whole = self._whole = "\n".join(self.texts).lower()
        found: set[int] = set()
        for word in words:
            place = whole.find(word)
            while place >= 0:
                ends = self._text_ends()
                at = bisect_left(ends, place)
                found.add(at)
                place = whole.find(word, ends[at])
        return sorted(found)

    def _text_ends(self) -> list[int]:
        if self._ends is None:
            # Characters whose small form has another length are rare: then every text is measured by itself.
            same = (
                self._whole is not None
                and len(self._whole) == sum(map(len, self.texts)) + len(self.texts) - 1
            )
            sizes = map(len, self.texts) if same else [len(text.lower()) for text in self.texts]
            self._ends = [at + end for at, end in enumerate(accumulate(sizes))]  # with line ends between them
        return self._ends


class Record(BaseModel):
    """Base of what is written to JSON."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="strings"
    )


class Entry(Record):
    """What became of one part."""

    part_id: str
    modality: Modality
    level: Level
    tokens_before: int
    """Tokens of the whole part, before anything was done."""
    tokens_after: int
    """Tokens that it costs in the messages."""
    retained: float
    """Estimated share of its information that is still there, in [0, 1]."""
    weight: float
    """Importance that decided: user weight x kind x relevance to the task x how new it is."""
    why: str
    """What was done and why, one sentence."""
    digest: str = ""
    """Of the part's content."""
    ref: str | None = None
    """With which the agent can fetch the whole part; None when it was sent whole."""


class Account(Record):
    """What was kept, dropped and why: one record for the budget, the visualiser and the metrics."""

    entries: tuple[Entry, ...]
    max_tokens: int
    """Limit of the whole representation."""
    state_limit: int
    """Limit of the observed state: what the reserve for instruction and answer leaves."""
    instruction_tokens: int = 0
    history_tokens: int = 0
    """Previous actions, and earlier states where they are kept."""
    state_tokens: int = 0
    num_tokens: int = 0
    """Of all messages."""
    tokenizer: str = ""
    """Identity of the counter."""
    notes: tuple[str, ...] = ()
    """What else the reader must know: an extractor that was unavailable, a limit that was lowered."""
    extraction_ms: dict[str, float] = Field(default_factory=dict)
    """Extractor -> time of this observation, milliseconds; 0 from the cache."""
    cache_hits: int = 0
    cache_misses: int = 0

    def counts(self) -> dict[str, int]:
        """Level -> number of parts."""
        return dict(Counter(entry.level.value for entry in self.entries))

    def entry(self, part_id: str) -> Entry:
        """The entry of one part.

        Raises:
            KeyError: There is no such part.
        """
        for entry in self.entries:
            if entry.part_id == part_id:
                return entry
        raise KeyError(part_id)


class Representation(Record):
    """What a language model reads of one observation."""

    messages: tuple[Message, ...]
    """The last one ends with the observed state."""
    account: Account
    state_from: int = 0
    """Block of the last message at which the observed state begins."""

    @property
    def state(self) -> tuple[AnyBlock, ...]:
        """What is shown of the observed state."""
        return self.messages[-1].content[self.state_from :] if self.messages else ()

    @property
    def num_tokens(self) -> int:
        """Tokens of all messages."""
        return self.account.num_tokens

    @property
    def references(self) -> tuple[str, ...]:
        """What the agent can fetch: ``ref:report.ipynb/cell-12/output-0``."""
        return tuple(entry.ref for entry in self.account.entries if entry.ref is not None)

    def chat(self) -> list[dict[str, Any]]:
        """The messages in the form of the chat-completions API."""
        return chat(self.messages)
