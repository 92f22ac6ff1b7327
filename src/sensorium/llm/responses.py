"""Messages in the form of the responses API, both ways.

There a conversation is a list of items: messages, calls of functions and their outputs are apart. Numbers and
states that a server gave to items (`id`, `status`) are left out: a conversation is always sent whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sensorium.core import ModelError
from sensorium.llm.messages import (
    SOUND_FORMATS,
    AnyBlock,
    AudioBlock,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    image_block,
    sound_block,
)

_SERVER_KEYS = frozenset({"id", "status"})
_CONTENT_TYPES = frozenset({"output_text", "refusal", "input_file"})
"""Kinds of content that stand inside a message; other kinds are items of their own."""


def responses(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as input items of the responses API."""
    return [item for message in messages for item in _items(message)]


def from_responses(items: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Read items of the responses API; calls and reasoning join the assistant's message around them.

    Raises:
        ModelError: An item is no mapping, or a message in it has no known role.
    """
    messages: list[Message] = []
    for item in items:
        if not isinstance(item, Mapping):
            raise ModelError(f"An item of the responses API is {type(item).__name__}. Expected a mapping.")
        read = _read_item(item)
        last = messages[-1] if messages else None
        if last is not None and last.role == read.role == "assistant" and _belongs(last, read):
            joined = {"content": last.content + read.content, "tool_calls": last.tool_calls + read.tool_calls}
            messages[-1] = last.model_copy(update=joined)
        else:
            messages.append(read)
    return messages


def responses_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in the form of the responses API, from that of chat completions; other kinds stay."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return dict(tool)
    return {"type": "function", **function}


def _belongs(last: Message, read: Message) -> bool:
    """Whether an item continues the assistant's message: content is not added once tools are called."""
    return not last.tool_calls or bool(read.tool_calls)


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        plain = all(isinstance(block, TextBlock) for block in message.content) and not message.as_list
        output: Any = message.text if plain else [_block(block, "input") for block in message.content]
        return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": output}]
    direction = "output" if message.role == "assistant" else "input"
    items: list[dict[str, Any]] = []
    pending: list[dict[str, Any]] = []

    def close() -> None:
        if pending:
            items.append({"type": "message", "role": message.role, "content": list(pending)})
            pending.clear()

    for block in message.content:
        if isinstance(block, OtherBlock) and _is_item(block, message.role):
            close()
            items.append(block.data)
        else:
            pending.append(_block(block, direction))
    close()
    for call in message.tool_calls:
        function = call.get("function") or {}
        items.append(
            {
                "type": "function_call",
                "call_id": call.get("id", ""),
                "name": function.get("name", ""),
                "arguments": function.get("arguments", ""),
            }
        )
    return items


def _is_item(block: OtherBlock, role: str) -> bool:
    """Whether it is an item of its own, as reasoning is."""
    return role == "assistant" and block.data.get("type") not in _CONTENT_TYPES


def _block(block: AnyBlock, direction: str) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": f"{direction}_text", "text": block.text}
        case ImageBlock():
            return {"type": "input_image", "image_url": block.url, "detail": block.detail or "auto"}
        case AudioBlock():
            return {"type": "input_audio", "input_audio": {"data": block.data, "format": block.format}}
        case OtherBlock():
            return block.data


def _read_item(item: Mapping[str, Any]) -> Message:
    match item.get("type", "message"):
        case "message":
            content = item.get("content")
            message = Message.from_chat({"role": item.get("role"), "content": None})
            blocks: tuple[AnyBlock, ...] = (
                (TextBlock(text=content),)
                if isinstance(content, str)
                else tuple(_read_block(block) for block in content or () if isinstance(block, Mapping))
            )
            return Message(role=message.role, content=blocks)
        case "function_call":
            function = {"name": item.get("name", ""), "arguments": item.get("arguments", "")}
            call = {"id": item.get("call_id", ""), "type": "function", "function": function}
            return Message(role="assistant", content=(), tool_calls=(call,))
        case "function_call_output":
            output = item.get("output")
            is_list = isinstance(output, list)
            text = {"type": "input_text", "text": str(output or "")}
            parts = output if isinstance(output, list) else [text]
            return Message(
                role="tool",
                content=tuple(_read_block(part) for part in parts if isinstance(part, Mapping)),
                tool_call_id=str(item.get("call_id", "")),
                as_list=is_list,
            )
        case _:
            return Message(role="assistant", content=(OtherBlock(data=dict(item)),))


def _read_block(block: Mapping[str, Any]) -> AnyBlock:
    match dict(block):
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextBlock(text=text)
        case {"type": "input_image", "image_url": str(url), **rest}:
            detail = rest.get("detail")
            return image_block(url, None if detail == "auto" else detail)
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}} if (
            kind in SOUND_FORMATS
        ):
            return sound_block(data, kind)
        case other:
            return OtherBlock(data={key: value for key, value in other.items() if key not in _SERVER_KEYS})
