"""Which session a request belongs to: a header of our clients, a token of MCP, or a signed cookie."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sensorium.servers.errors import ServerError
from sensorium.servers.security import Signer

SESSION_HEADER = "X-Sensorium-Session"
"""Our clients name their sessions themselves, so that a request that is sent again finds the same one."""
MCP_HEADER = "X-NeMo-Gym-Session-Token"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{15,199}\Z")
_NOT_TOKEN = re.compile(r"[^A-Za-z0-9_.-]+")


def cookie_name(class_name: str, name: str) -> str:
    """Name of the cookie of a server, in the manner of NeMo Gym."""
    return _NOT_TOKEN.sub("_", f"{class_name}___{name}")


class SessionCookies:
    """ASGI middleware that reads the session of a request into ``scope["state"]["session_id"]``.

    Whatever stands there when the answer begins is sent as a cookie, with every answer: clients of NeMo Gym
    replace all cookies by those of the last answer.

    Args:
        app: What follows.
        name: Of the cookie.
        signer: Makes and reads its value.
        worker: Number of this process, kept in front of the value, so that a router finds it.
    """

    def __init__(self, app: ASGIApp, name: str, signer: Signer, worker: int = 0) -> None:
        self._app, self._name, self._signer, self._worker = app, name, signer, worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state["session_id"], state["named"] = self._read(Headers(scope=scope))

        async def send_with_cookie(message: Message) -> None:
            id = state.get("session_id")
            if message["type"] == "http.response.start" and id is not None:
                value = f"{self._name}={self.token(id)}; Path=/; HttpOnly; SameSite=Strict"
                MutableHeaders(scope=message).append("Set-Cookie", value)
            await send(message)

        await self._app(scope, receive, send_with_cookie)

    def token(self, id: str) -> str:
        """The signed value that names a session."""
        return session_token(self._signer, self._worker, id)

    def _read(self, headers: Headers) -> tuple[str | None, bool]:
        """The session's name, and whether the client chose it."""
        named = headers.get(SESSION_HEADER)
        if named is not None:
            if not _ID.match(named):
                said = f"{SESSION_HEADER} must have 16 to 200 letters, digits or . _ : - in it."
                raise ServerError(400, "invalid_request", said)
            return named, True
        token = headers.get(MCP_HEADER)
        if token is None and "cookie" in headers:
            token = cookie_parser(headers["cookie"]).get(self._name)
        return read_token(self._signer, token), False


def session_token(signer: Signer, worker: int, id: str) -> str:
    """The signed value that names a session, in letters that cookies and headers bear."""
    coded = urlsafe_b64encode(id.encode()).decode().rstrip("=")
    return signer.sign(f"{worker}.{coded}")


def read_token(signer: Signer, token: str | None) -> str | None:
    """The session that a token names; None when it is not one of ours."""
    text = signer.read(token)
    if text is None:
        return None
    coded = text.partition(".")[2]
    return urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()


def worker_of(token: str) -> int | None:
    """Which worker made a token; it is only read here, not trusted."""
    number = token.partition(".")[0]
    return int(number) if number.isdigit() and len(number) < 6 else None


def session_id(request: Request) -> str | None:
    """The session that a request names; it need not exist."""
    found = request.scope.get("state", {}).get("session_id")
    return found if isinstance(found, str) else None


def is_named_by_client(request: Request) -> bool:
    """Whether the client chose the name, and means this session and no other."""
    return bool(request.scope.get("state", {}).get("named"))


def set_session(request: Request, id: str) -> None:
    """Send the session's cookie with the answer."""
    request.scope.setdefault("state", {})["session_id"] = id
