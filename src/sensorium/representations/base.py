"""The third layer for a language model: messages, and the account of what became of every part."""

from collections import Counter
from enum import StrEnum
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


class Document(NamedTuple):
    """A part laid out as text."""

    title: str
    """One line that says what it is, e.g. ``cell 12 (code, run 3)``."""
    segments: tuple[Segment, ...]
    """In reading order."""
    unit: str = "lines"
    """What segments are, plural, for marks such as ``... 30 lines left out ...``."""
    fence: str | None = None
    """Language of the code fence around it (may be empty); None for no fence."""
    separator: str = "\n"
    """What stands between segments."""


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
