"""Answers as JSON, and what is shown to a model as text or as parts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from sensorium.envs.episode import Turn
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, Message, TextBlock
from sensorium.llm.responses import responses

PARTS_TYPE = "application/vnd.sensorium.parts+json"
"""Ask for it with Accept, and a tool's answer comes as parts, whatever is in it."""


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8; text that is not Unicode (half of a surrogate pair) is replaced."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json().encode()
        return to_json(value, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        return to_json(_encodable(plain), inf_nan_mode="null", fallback=str)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(json_bytes(value), status, dict(headers or {}), "application/json")


def content_parts(blocks: Sequence[AnyBlock]) -> list[dict[str, Any]]:
    """Blocks as parts of the responses API."""
    items = responses([Message(role="user", content=tuple(blocks))])
    return [part for item in items for part in item["content"]]


def shown_blocks(messages: Iterable[Message], *, system: bool = False) -> tuple[AnyBlock, ...]:
    """What messages show, without the system prompt."""
    return tuple(
        block
        for one in messages
        if system or one.role not in ("system", "developer")
        for block in one.content
    )


def turn_blocks(turn: Turn) -> tuple[AnyBlock, ...]:
    """What a turn shows: answers of tools and the state behind them."""
    if turn.view is not None:
        return shown_blocks(turn.view.messages)
    return tuple(block for result in turn.results for block in result.content)


def has_media(blocks: Iterable[AnyBlock]) -> bool:
    """Whether there is more than text."""
    return any(not isinstance(block, TextBlock) for block in blocks)


def as_text(blocks: Iterable[AnyBlock]) -> str:
    """Blocks for readers that take text alone: a picture or a sound is named, or given by its address."""
    lines = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                lines.append(text)
            case ImageBlock(url=url) if not url.startswith("data:"):
                lines.append(f"[picture: {url}]")
            case ImageBlock(width=width, height=height):
                lines.append(f"[picture of {width} x {height} pixels]")
            case AudioBlock(duration_s=duration_s):
                lines.append(f"[sound of {duration_s:g} s]")
            case _:
                lines.append(f"[{block.data.get('type', 'content')}]")
    return "\n".join(lines)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(str(key)): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(one) for one in value]
    return value
