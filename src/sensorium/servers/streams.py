"""Finished answers told again as streams of events, for clients that insist on them."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.responses import Response

from sensorium.servers.replies import json_bytes


def chat_stream(answer: Mapping[str, Any], *, usage: bool) -> Response:
    """An answer of chat completions as its stream."""
    return _events(_chat_events(answer, usage), named=False, end=b"data: [DONE]\n\n")


def response_stream(response: Mapping[str, Any]) -> Response:
    """A response as its stream."""
    return _events(_response_events(response), named=True)


def _events(events: Iterator[dict[str, Any]], *, named: bool, end: bytes = b"") -> Response:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n".encode() if named else b""
        lines.append(name + b"data: " + json_bytes(event) + b"\n\n")
    return Response(b"".join(lines) + end, 200, media_type="text/event-stream")


def _chat_events(answer: Mapping[str, Any], usage: bool) -> Iterator[dict[str, Any]]:
    head = {key: answer.get(key) for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in answer.get("choices") or ():
        number, message = choice.get("index", 0), choice.get("message") or {}
        calls = [{"index": place, **call} for place, call in enumerate(message.get("tool_calls") or ())]
        others = {
            k: v for k, v in message.items() if k not in ("role", "content", "tool_calls") and v is not None
        }
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, others]
        deltas += [{"content": message.get("content")}] if message.get("content") else []
        deltas += [{"tool_calls": calls}] if calls else []
        for delta in deltas:
            if delta:
                yield {**head, "choices": [{"index": number, "delta": delta, "finish_reason": None}]}
        last = {"index": number, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield {
            **head,
            "choices": [last | ({"logprobs": choice["logprobs"]} if choice.get("logprobs") else {})],
        }
    if usage:
        yield {**head, "choices": [], "usage": answer.get("usage")}


def _response_events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    number = 0

    def event(kind: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number - 1, **more}

    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for place, item in enumerate(response.get("output") or ()):
        at = {"output_index": place, "item_id": item.get("id", "")}
        empty = {**item, "status": "in_progress"}
        if item.get("type") == "message":
            empty["content"] = []
        if item.get("type") == "function_call":
            empty["arguments"] = ""
        yield event("response.output_item.added", output_index=place, item=empty)
        if item.get("type") == "function_call":
            arguments = item.get("arguments", "")
            yield event("response.function_call_arguments.delta", **at, delta=arguments)
            yield event("response.function_call_arguments.done", **at, arguments=arguments)
        for index, part in enumerate(item.get("content") or () if item.get("type") == "message" else ()):
            where = {**at, "content_index": index}
            yield event("response.content_part.added", **where, part={**part, "text": ""})
            text = part.get("text", "")
            yield event("response.output_text.delta", **where, delta=text, logprobs=[])
            yield event("response.output_text.done", **where, text=text, logprobs=[])
            yield event("response.content_part.done", **where, part=part)
        yield event("response.output_item.done", output_index=place, item=item)
    status = "incomplete" if response.get("status") == "incomplete" else "completed"
    yield event(f"response.{status}", response=dict(response))
