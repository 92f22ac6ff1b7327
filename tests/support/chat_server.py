"""A real HTTP server on a real socket that speaks the chat-completions protocol by a script."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web


@dataclass
class Reply:
    """What the server does with one request."""

    text: str | None = None
    """Answers with this text in a completion."""
    status: int = 200
    body: bytes | None = None
    """Answers with these bytes instead."""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    resets: bool = False
    """Closes the connection without a byte."""
    cuts: bool = False
    """Begins a reply, and closes the connection in the middle."""


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    payload: dict[str, Any]

    @property
    def pictures(self) -> list[bytes]:
        """Bytes of all embedded pictures."""
        blocks = [
            block
            for message in self.payload["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "image_url"
        ]
        return [base64.b64decode(block["image_url"]["url"].partition(",")[2]) for block in blocks]


def completion(text: str, **changes: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "judge-7b",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} | changes
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


class ChatServer:
    """Serves scripted replies, one per request; the last one is repeated.

    It runs in a thread with an event loop of its own, so that blocking code can be tested, too.
    """

    def __init__(self, replies: Sequence[Reply] | Callable[[Asked], Reply]) -> None:
        self._replies = replies
        self.asked: list[Asked] = []
        self.arrived = threading.Event()
        """Set once a request is there."""
        self.most_at_once = 0
        self._now = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._runner is not None
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/{name:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.path, dict(request.headers), json.loads(await request.read()))
        self.asked.append(asked)
        self.arrived.set()
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            return await self._reply(request, self._next(asked))
        finally:
            self._now -= 1

    def _next(self, asked: Asked) -> Reply:
        if callable(self._replies):
            return self._replies(asked)
        return self._replies[min(len(self.asked), len(self._replies)) - 1]

    async def _reply(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        await asyncio.sleep(reply.delay_s)
        assert request.transport is not None
        if reply.resets:
            request.transport.abort()
            return web.Response()
        if reply.cuts:
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"choices": [')
            request.transport.abort()
            return response
        body = reply.body
        if body is None:
            body = json.dumps(completion(reply.text or "")).encode()
        return web.Response(body=body, status=reply.status, headers=reply.headers)
