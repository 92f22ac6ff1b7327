"""Progressive loading: the agent fetches what a representation left out, by page, by place or by region."""

import difflib
from collections.abc import Mapping
from typing import Any

from sensorium.core import SensoriumError
from sensorium.core.counted import counted
from sensorium.features.extractors.base import FeatureMap
from sensorium.llm.base import TokenCounter, count_message
from sensorium.llm.messages import AnyBlock, Message, TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import ImageValue
from sensorium.representations.base import Document
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import one_line
from sensorium.representations.layout.dispatch import lay_out
from sensorium.representations.scoring import Relevance
from sensorium.representations.subjects import common_root, is_withheld

TOOL_NAME = "fetch_part"
HEADING_TOKENS = 64
"""Tokens of an answer that are kept for its heading."""


def fetch_tool() -> dict[str, Any]:
    """The tool's schema in the chat-completions form."""
    return {
        "type": "function",
        "function": {
            "name": TOOL_NAME,
            "description": (
                "Show a part of the observation that was left out or shortened. Long parts come in pages."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "ref": {
                        "type": "string",
                        "description": "Reference as shown, e.g. ref:report.ipynb/cell-12/output-0; "
                        "'ref:' alone lists all parts.",
                    },
                    "page": {"type": "integer", "minimum": 1, "description": "Page of a long part, from 1."},
                    "start": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "First segment (line, row) to show, from 1, instead of a page.",
                    },
                    "search": {
                        "type": "string",
                        "description": "Show the segments (lines, rows) that have these words.",
                    },
                    "region": {
                        "type": "array",
                        "items": {"type": "integer"},
                        "minItems": 4,
                        "maxItems": 4,
                        "description": "Of a picture: left, top, right, bottom in pixels.",
                    },
                },
                "required": ["ref"],
            },
        },
    }


class References:
    """Answers calls of the tool for one observation.

    Args:
        observation: What the references are to.
        config: Limits of parts.
        counter: Counts tokens.
        max_tokens: Most tokens of one answer.
        features: What was found in the parts; pictures that the safety check withholds are not shown.

    Raises:
        ValueError: `max_tokens` is too small for an answer.
    """

    def __init__(
        self,
        observation: Observation,
        config: PipelineConfig,
        counter: TokenCounter,
        max_tokens: int = 1024,
        features: FeatureMap | None = None,
    ) -> None:
        self._observation, self._config, self._counter = observation, config, counter
        self._features = features or {}
        if max_tokens < 2 * HEADING_TOKENS:
            raise ValueError(
                f"an answer needs max_tokens of at least {2 * HEADING_TOKENS}, found {max_tokens}"
            )
        self.max_tokens = max_tokens

    def call(self, arguments: Mapping[str, Any]) -> tuple[AnyBlock, ...]:
        """Answer a call of the tool; wrong arguments are answered with what is wrong with them."""
        problem = _problem(arguments)
        if problem:
            return self._say(f"{TOOL_NAME}: {problem}")
        given = {name: value for name, value in arguments.items() if value is not None}
        if "region" in given:
            given["region"] = tuple(given["region"])  # JSON has lists only
        try:
            return self.fetch(**given)
        except (ValueError, SensoriumError) as error:
            return self._say(f"{TOOL_NAME}: {error}")

    def fetch(
        self,
        ref: str,
        *,
        page: int = 1,
        start: int | None = None,
        search: str | None = None,
        region: tuple[int, int, int, int] | None = None,
    ) -> tuple[AnyBlock, ...]:
        """Blocks that show a part, within `max_tokens`.

        Args:
            ref: ``ref:`` and the id of a part, or the end of it that no other part has; the beginning of ids
                lists the parts that have it.
            page: Of the segments, as many as fit into an answer, from 1.
            start: First segment, from 1, instead of a page.
            search: Words; segments that have them, the best first, instead of a page.
            region: Of a picture: left, top, right, bottom in pixels.

        Raises:
            ValueError: A number is out of its range, or a region is asked of what is no picture.
            ObservationError: A picture cannot be decoded.
        """
        name = self._id(ref.strip().removeprefix("ref:"))
        if name not in self._observation:
            return self._listing(name)
        part = self._observation[name]
        if is_withheld(part, self._features.get(name, {})):
            return self._say(f"{name} is withheld by the safety check.")
        if region is not None and not isinstance(part.value, ImageValue):
            raise ValueError(f"{name} is no picture and has no regions")
        document = lay_out(part, self._config.multimodal)
        if document is None:
            return self._media(part, region)
        if search is not None and search.strip():
            return self._say(self._found(part, document, search))
        return self._say(self._page(part, document, page, start))

    def _id(self, name: str) -> str:
        """The id that is meant: headings leave out what all ids begin with, so that an end is enough, too."""
        if name in self._observation or not name:
            return name
        root = common_root(self._observation)
        if root and f"{root}/{name}" in self._observation:
            return f"{root}/{name}"
        ends = [part.id for part in self._observation.parts if part.id.endswith(f"/{name}")]
        return ends[0] if len(ends) == 1 else name

    def _page(self, part: Part, document: Document, page: int, start: int | None) -> str:
        count = len(document.segments)
        if start is None:
            starts = self._pages(document)
            if not 1 <= page <= len(starts):
                raise ValueError(f"page {page} of {part.id} does not exist; it has {len(starts)}")
            first, note = starts[page - 1], f"page {page} of {len(starts)}"
        else:
            if not 1 <= start <= max(1, count):
                raise ValueError(f"start {start} is outside {part.id}; it has {count} {document.unit}")
            first, note = start - 1, f"from {document.unit} {start} of {count}"
        last = self._reach(document, first)
        body = document.separator.join(document.texts[first:last])
        return f"### {part.id}: {one_line(document.title, 80)} ({note})\n{self._cut(body)}"

    def _pages(self, document: Document) -> list[int]:
        starts, at = [0], 0
        while (at := self._reach(document, at)) < len(document.segments):
            starts.append(at)
        return starts

    def _reach(self, document: Document, first: int) -> int:
        """End of the page that begins at a segment; at least one segment further."""
        left, at = self._room, first
        while at < len(document.segments):
            left -= self._counter.text(document.segments[at].text) + 1
            if left < 0 and at > first:
                break
            at += 1
        return at

    def _found(self, part: Part, document: Document, search: str) -> str:
        relevance = Relevance(search, documents=[document])
        phrase = search.strip().casefold()
        ranks = [(phrase in text.casefold(), relevance(text)) for text in document.texts]
        hits = sorted((i for i, rank in enumerate(ranks) if any(rank)), key=lambda i: ranks[i], reverse=True)
        lines = {i: f"{document.segments[i].place or i + 1}: {document.segments[i].text}" for i in hits}
        kept: list[int] = []
        left = self._room
        for i in hits:
            left -= self._counter.text(lines[i]) + 1
            if left < 0 and kept:
                break
            kept.append(i)
        head = f"### {part.id}: {len(hits)} {document.unit} have words of {search!r}, {len(kept)} shown"
        return f"{head}\n{self._cut(document.separator.join(lines[i] for i in sorted(kept)))}"

    def _cut(self, body: str) -> str:
        """A single segment may be longer than an answer: its end is left out, and that is said."""
        return self._cut_to(body, self._room)

    def _cut_to(self, body: str, room: int) -> str:
        if self._counter.text(body) <= room:
            return body
        room -= 12  # for the mark
        low, high = 0, len(body)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._counter.text(body[:middle]) <= room else (low, middle - 1)
        return f"{body[:low]}\n[... {len(body) - low:,} characters cut]"

    def _media(self, part: Part, region: tuple[int, int, int, int] | None) -> tuple[AnyBlock, ...]:
        from sensorium.representations.media.audio import audio_variants
        from sensorium.representations.media.image import crop, image_variants

        limits = self._config.multimodal
        if isinstance(part.value, ImageValue):
            shown = part if region is None else crop(part, region)
            variants = image_variants(shown, limits.image, self._counter, compression_ratio=0.01, serve=None)
        else:
            variants = audio_variants(part, limits.audio, self._counter, self._features.get(part.id, {}))
        for variant in sorted(variants, key=lambda v: -v.retained):
            blocks = (TextBlock(text=f"### {part.id}"), *variant.blocks)
            if count_message(self._counter, Message(role="user", content=blocks)) <= self.max_tokens:
                return blocks
        return self._say(f"{part.id} does not fit {self.max_tokens} tokens; ask for a region of it")

    def _listing(self, prefix: str) -> tuple[AnyBlock, ...]:
        ids = [part.id for part in self._observation.parts]
        root = common_root(self._observation)
        below = [i for i in ids if i.startswith((prefix, f"{root}/{prefix}" if root else prefix))]
        if not below:
            near = difflib.get_close_matches(prefix, ids, n=3, cutoff=0.4)
            hint = f" Did you mean {', '.join(f'ref:{i}' for i in near)}?" if near else ""
            return self._say(f"There is no part ref:{prefix}.{hint} 'ref:' alone lists all parts.")
        lines, left = [f"{counted(len(below), 'part')}:"], self._room
        for i in below:
            part = self._observation[i]
            line = f"ref:{i} ({part.modality})"
            left -= self._counter.text(line) + 1
            if left < 0:
                lines.append(
                    f"... and {len(below) - len(lines) + 1} more; give a longer beginning of their names"
                )
                break
            lines.append(line)
        return self._say("\n".join(lines))

    @property
    def _room(self) -> int:
        """Tokens for the body of an answer: its heading has the rest."""
        return self.max_tokens - HEADING_TOKENS

    def _say(self, text: str) -> tuple[AnyBlock, ...]:
        room = self.max_tokens - self._counter.message_overhead
        return (TextBlock(text=self._cut_to(text, room)),)  # ids, too, may be long


def _problem(arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call; empty when nothing is."""
    unknown = sorted(set(map(str, arguments)) - {"ref", "page", "start", "search", "region"})
    if unknown:
        return f"unknown arguments {', '.join(unknown)}; it takes ref and page, start, search or region"
    if not isinstance(arguments.get("ref"), str):
        return "ref is missing; it takes ref and page, start, search or region"
    for name in ("page", "start"):
        value = arguments.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            return f"{name} must be a whole number, found {value!r}"
    search, region = arguments.get("search"), arguments.get("region")
    if search is not None and not isinstance(search, str):
        return f"search must be text, found {search!r}"
    if region is None:
        return ""
    is_box = isinstance(region, list | tuple) and len(region) == 4
    if not is_box or not all(isinstance(edge, int) and not isinstance(edge, bool) for edge in region):
        return f"region must be four whole numbers, left, top, right and bottom; found {region!r}"
    return ""
