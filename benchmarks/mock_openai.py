"""An OpenAI endpoint that answers at once: the rest of a rollout's time is what the servers around it take.

python benchmarks/mock_openai.py PORT ['{"TOOL": {"ARGUMENT": VALUE}}']

It speaks the Responses and the Chat Completions API. It calls the first of the request's tools for which it
knows arguments, while the conversation holds no result of a tool, and then says "done"; without such a tool
it says "done" at once. `<action>stand</action>` is part of what it says, so that it also plays NeMo Gym's
blackjack. Only the standard library is used and requests are not validated: the endpoint must never be what
is measured. ``GET /stats`` tells the number of calls since the last ``GET /reset`` and the seconds from the
first to the last, so that both sides are timed by the same clock, without the start of their programs.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

SAYS = "done <action>stand</action>"
"""What the model says at last."""
_USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 10,
}
_CHAT_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


class MockModel:
    """The replies: they depend on the request alone, and identifiers count up."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = {tool: json.dumps(given) for tool, given in arguments.items()}
        self._calls = 0
        self._since = 0
        self._first = self._last = 0.0

    def reply(self, path: str, body: bytes) -> dict[str, Any]:
        """Answer a POST to a path that ends in ``/responses`` or ``/chat/completions``, or any GET."""
        if path.endswith("/responses"):
            self._count()
            return self._response(json.loads(body))
        if path.endswith("/chat/completions"):
            self._count()
            return self._chat(json.loads(body))
        if path == "/reset":
            self._since = 0
        if path in ("/reset", "/stats"):
            return {"calls": self._since, "seconds": self._last - self._first if self._since else 0.0}
        return {
            "object": "list",
            "data": [{"id": "mock", "object": "model", "created": 0, "owned_by": "mock"}],
        }

    def _count(self) -> None:
        self._calls += 1
        self._last = time.monotonic()
        if self._since == 0:
            self._first = self._last
        self._since += 1

    def _tool_of(self, offered: Sequence[str]) -> str | None:
        return next((name for name in offered if name in self._arguments), None)

    def _response(self, request: dict[str, Any]) -> dict[str, Any]:
        items = request["input"] if isinstance(request["input"], list) else []
        has_result = any(item.get("type") == "function_call_output" for item in items)
        tool = self._tool_of([entry.get("name") for entry in request.get("tools") or []])
        if tool is not None and not has_result:
            output: dict[str, Any] = {
                "type": "function_call",
                "id": f"fc_{self._calls}",
                "call_id": f"call_{self._calls}",
                "name": tool,
                "arguments": self._arguments[tool],
                "status": "completed",
            }
        else:
            output = {
                "type": "message",
                "id": f"msg_{self._calls}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": SAYS, "annotations": []}],
            }
        return {
            "id": f"resp_{self._calls}",
            "object": "response",
            "created_at": 0,
            "model": request.get("model") or "mock",
            "status": "completed",
            "output": [output],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": request.get("tools") or [],
            "usage": _USAGE,
        }

    def _chat(self, request: dict[str, Any]) -> dict[str, Any]:
        has_result = any(message["role"] == "tool" for message in request["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": None}
        tool = self._tool_of([entry["function"]["name"] for entry in request.get("tools") or []])
        if tool is not None and not has_result:
            function = {"name": tool, "arguments": self._arguments[tool]}
            message["tool_calls"] = [{"id": f"call_{self._calls}", "type": "function", "function": function}]
        else:
            message["content"] = SAYS
        reason = "stop" if message["content"] else "tool_calls"
        return {
            "id": f"chatcmpl_{self._calls}",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model") or "mock",
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": _CHAT_USAGE,
        }


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with Content-Length and keep-alive: all that clients of an API send."""

    def __init__(self, model: MockModel) -> None:
        self._model = model
        self._received = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            lines = self._received[:end].decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(":", 1) for line in lines[1:])
            size = int(headers.get("content-length", 0))
            if len(self._received) < end + 4 + size:
                return
            body = bytes(self._received[end + 4 : end + 4 + size])
            del self._received[: end + 4 + size]
            reply = json.dumps(self._model.reply(lines[0].split()[1], body)).encode()
            head = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(reply)}\r\n\r\n"
            )
            self._transport.write(head.encode() + reply)


async def serve(port: int, model: MockModel) -> None:
    """Serve on the loopback until cancelled; ``port`` 0 picks a free one, which is printed."""
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(model), "127.0.0.1", port)
    print(f"serving on {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str]) -> None:
    """Serve: port, then the arguments of the tools that it shall call."""
    known = json.loads(arguments[1]) if len(arguments) > 1 else {}
    asyncio.run(serve(int(arguments[0]), MockModel(known)))


if __name__ == "__main__":
    main(sys.argv[1:])
