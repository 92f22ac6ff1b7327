"""What the page of an observation holds, as plain data for its script."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from sensorium.analysis.observation_drawing import View, ViewLimits, media_view, plain_json
from sensorium.analysis.observation_lines import left_out_lines, mark_sent
from sensorium.analysis.observation_media import MediaLimits, PageMedia
from sensorium.analysis.observation_views import raw_views
from sensorium.features.extractors.base import FeatureMap, Features
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, Message, OtherBlock, TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import TableValue
from sensorium.representations.base import Entry, Level, Representation

_STRIP = 512
_FEATURE_CHARS = 6_000


@runtime_checkable
class Traced(Protocol):
    """The three layers of one observation, and what was sent of each part."""

    @property
    def observation(self) -> Observation:
        """The first layer."""
        ...

    @property
    def features(self) -> FeatureMap:
        """The second layer."""
        ...

    @property
    def representation(self) -> Representation:
        """The third layer."""
        ...

    def shown(self, part_id: str) -> Sequence[AnyBlock]:
        """What was sent of a part; nothing for a dropped one."""
        ...


class PageLimits(NamedTuple):
    """How much a page holds; what is sent to the model is always there as a whole."""

    part: ViewLimits = ViewLimits()
    media: MediaLimits = MediaLimits()
    raw_chars: int = 8_000_000
    """Characters of raw content of all parts; parts behind that show their first lines."""


def page_data(trace: Traced, limits: PageLimits | None = None) -> dict[str, Any]:
    """Parts, messages and media of the page.

    Args:
        trace: The three layers.
        limits: How much is kept.

    Returns:
        ``parts`` (in the order of the observation), ``messages``, ``media`` (key -> ``data:`` URL).
    """
    limits = limits or PageLimits()
    media = PageMedia(limits.media)
    messages = [_message(message, media) for message in trace.representation.messages]
    return {"parts": _parts(trace, media, limits), "messages": messages, "media": media.urls}


def block_views(blocks: Sequence[AnyBlock], media: PageMedia) -> list[View]:
    """Blocks of a message as drawable views; text as a whole, with the marks of what is left out."""
    views: list[View] = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                views.append(_said(text))
            case ImageBlock(url=url, width=width, height=height):
                size = (width, height) if width and height else None
                caption = f"{width}x{height}" if size else "of unknown size"
                views.append(media_view("image", media.image_url(url), caption, size))
            case AudioBlock(data=data, format=form, duration_s=seconds):
                mime = "audio/mpeg" if form == "mp3" else f"audio/{form}"
                views.append(media_view("audio", media.audio_base64(data, mime), f"{seconds:.2f} s"))
            case OtherBlock(data=data):
                views.append(_said(_json(data)))
    return views


def _said(text: str) -> View:
    return {"t": "said", "text": text, "gaps": left_out_lines(text)}


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2, default=str)


def _message(message: Message, media: PageMedia) -> dict[str, Any]:
    calls = [_said(_json(call)) for call in message.tool_calls]
    return {
        "role": message.role,
        "name": message.name or "",
        "views": [*block_views(message.content, media), *calls],
    }


def _parts(trace: Traced, media: PageMedia, limits: PageLimits) -> list[dict[str, Any]]:
    entries = {entry.part_id: entry for entry in trace.representation.account.entries}
    brief = limits.part._replace(chars=min(limits.part.chars, 1_000), lines=min(limits.part.lines, 20))
    raw: dict[str, list[View]] = {}
    left = limits.raw_chars
    for part in sorted(trace.observation, key=lambda one: -_weight(entries.get(one.id))):
        raw[part.id] = raw_views(part, media, limits.part if left > 0 else brief)
        left -= _num_chars(raw[part.id])
    found = []
    for part in trace.observation:
        entry = entries.get(part.id)
        shown = trace.shown(part.id) if entry is not None else ()
        _mark(raw[part.id], part, entry, shown)
        found.append(
            {
                **_account(part, entry),
                "raw": raw[part.id],
                "features": [_features(one) for one in trace.features.get(part.id, {}).values()],
                "reads": block_views(shown, media),
            }
        )
    return found


def _weight(entry: Entry | None) -> float:
    return -1.0 if entry is None else entry.weight


def _mark(views: list[View], part: Part, entry: Entry | None, shown: Sequence[AnyBlock]) -> None:
    """Tell sent lines and rows from others, where a part was sent in part."""
    if entry is None or not (part.text is not None or isinstance(part.value, TableValue)):
        return
    if entry.level is Level.SUMMARY or (entry.level is Level.FULL and entry.ref is not None):
        mark_sent(views, "\n".join(block.text for block in shown if isinstance(block, TextBlock)))


def _account(part: Part, entry: Entry | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "id": part.id,
        "modality": part.modality.value,
        "kind": part.value.kind,
        "error": part.is_error,
        "notes": list(part.notes),
        "time": None if part.timestamp_s is None else _finite(part.timestamp_s),
        "importance": _finite(part.importance),
    }
    if entry is None:
        return about | {
            "level": "dropped",
            "before": 0,
            "after": 0,
            "retained": 0.0,
            "weight": 0.0,
            "why": "The account does not tell of it",
            "ref": None,
        }
    return about | {
        "level": entry.level.value,
        "before": entry.tokens_before,
        "after": entry.tokens_after,
        "retained": _finite(entry.retained),
        "weight": _finite(entry.weight),
        "why": entry.why,
        "ref": entry.ref,
    }


def _features(found: Features) -> dict[str, Any]:
    text, is_cut = plain_json(found.data, ViewLimits(chars=_FEATURE_CHARS)) if found.data else ("", False)
    about: dict[str, Any] = {
        "name": found.extractor,
        "version": found.version,
        "summary": found.summary,
        "unavailable": found.unavailable,
        "ms": round(1000 * found.seconds, 2),
        "cached": found.is_cached,
        "data": text + ("\n... the rest is not in this page" if is_cut else ""),
    }
    if found.vector is not None and found.vector.size:
        about |= _strip(np.asarray(found.vector, dtype=np.float64).ravel())
    return about


def _strip(vector: "np.ndarray[Any, np.dtype[np.float64]]") -> dict[str, Any]:
    """A vector as signed bytes of its own scale, at most `_STRIP` of them (means of neighbours)."""
    clean = np.nan_to_num(vector, nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(clean).max())
    pooled = clean
    if clean.size > _STRIP:
        pooled = np.array([piece.mean() for piece in np.array_split(clean, _STRIP)])
    scale = float(np.abs(pooled).max())
    steps = np.round(pooled / scale * 127.0) if scale > 0.0 else np.zeros_like(pooled)
    return {
        "strip": base64.b64encode(steps.astype(np.int8).tobytes()).decode(),
        "size": int(vector.size),
        "norm": float(np.linalg.norm(clean)),
        "largest": largest,
    }


def _num_chars(views: Sequence[Mapping[str, Any]]) -> int:
    total = 0
    for view in views:
        total += sum(len(line) for line in view.get("lines", ()))
        total += sum(len(cell) for row in view.get("rows", ()) for cell in row)
    return total


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
