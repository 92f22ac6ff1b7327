"""Episodes on NeMo Gym's resources servers: by tools and verify, or by reset and step."""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.core import EpisodeStatus, ModelError
from sensorium.envs.base import Action, Task, ToolCall, ToolFailure, ToolResult
from sensorium.envs.episode import EpisodeError, Failure, Opening, Stage, Turn, Verdict, View
from sensorium.llm.messages import AnyBlock, Message, TextBlock, text_message
from sensorium.llm.responses import from_responses
from sensorium.rollouts.failures import plain_kind
from sensorium.rollouts.row_names import FAILURE_KIND, FAILURE_REASON, MASK, PARAMS, RESERVED, REWARD
from sensorium.servers.errors import ServerError
from sensorium.servers.http import HttpClient, Reply, TransportError, failure_of_reply
from sensorium.servers.items import finished_items, response_object

_NEVER = frozenset(
    {"seed_session", "verify", "aggregate_metrics", "close_session", "reset", "step", "close", "mcp"}
)
"""Routes of the server itself: no model may call them, whatever a row says its tools are."""


class _ForeignEpisode:
    """What both protocols share: the row, cookies, and the conversation so far.

    Args:
        http: Connections.
        url: Of the server.
        row: The input row; its request holds the first prompt and the tools.
        max_steps: Answers of the model.
        timeout_s: Of one call.
        api_key: Of the server, where it is not that of `http`.
        cookies: That name a session which others seeded.
        headers: Sent with every call.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        row: Mapping[str, Any],
        *,
        max_steps: int = 30,
        timeout_s: float = 300.0,
        api_key: str | None = None,
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._http, self._url, self._row = http, url.rstrip("/"), dict(row)
        self._max_steps, self._timeout_s, self._api_key = max_steps, timeout_s, api_key
        self.cookies = dict(cookies or {})
        """Of the session; the server may change them with every answer."""
        self._headers = dict(headers or {})
        self._tools = chat_tools(self._params.get("tools"))
        self._done: list[Message] = []
        self._verdict: Verdict | None = None
        self._last: tuple[int, Turn] | None = None
        self.extra: dict[str, Any] = {}
        """What the server added to the row."""

    @property
    def _params(self) -> Mapping[str, Any]:
        params = self._row.get(PARAMS)
        return params if isinstance(params, Mapping) else {}

    def _opening(self, *more: Message) -> Opening:
        messages = (*row_messages(self._params), *more)
        return Opening(view=_view(messages, replaces=True), tools=tuple(self._tools))

    def _body(self) -> dict[str, Any]:
        return {key: value for key, value in self._row.items() if value is not None}

    def _response(self) -> dict[str, Any]:
        """The trajectory so far as a response."""
        return response_object(finished_items(self._done), model="", tools=self._tools)

    async def _post(self, path: str, body: Any, stage: Stage, *, repeat: bool = False) -> Reply:
        try:
            reply = await self._http.post(
                f"{self._url}{path}",
                body,
                timeout_s=self._timeout_s,
                cookies=self.cookies,
                headers=self._headers,
                repeat=repeat,
                api_key=self._api_key,
            )
        except TransportError as error:
            raise EpisodeError(Failure(kind=error.kind, reason=error.reason, stage=stage)) from error
        self.cookies |= reply.cookies
        return reply

    async def _object(self, path: str, body: Any, stage: Stage, *, repeat: bool = False) -> dict[str, Any]:
        reply = await self._post(path, body, stage, repeat=repeat)
        if reply.status != 200:
            raise failure_of_reply(reply, stage, f"{self._url}{path}")
        try:
            value = reply.json()
        except ValueError:
            value = None
        if not isinstance(value, dict):
            reason = f"{self._url}{path} answered no JSON object: {reply.text[:200]}"
            raise EpisodeError(Failure(kind="answer_unreadable", reason=reason, stage=stage, terminal=True))
        return value


class ToolEpisode(_ForeignEpisode):
    """An `Episode` by ``/seed_session``, ``/<tool>`` and ``/verify``; arguments as in `_ForeignEpisode`."""

    seeded = False
    """Somebody else began the session, and will have it verified."""

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin; see `Episode.start`."""
        if not self.seeded:
            reply = await self._post("/seed_session", self._body(), "seed")
            if reply.status != 200:
                raise failure_of_reply(reply, "seed", f"{self._url}/seed_session")
        return self._opening()

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act; see `Episode.act`. An answer without calls ends the episode."""
        if self._last is not None and self._last[0] == step_id:
            return self._last[1]
        self._done.append(action.message())
        results = [await self._call(call) for call in action.calls]
        answers = tuple(result.message() for result in results)
        self._done.extend(answers)
        cut = bool(results) and step_id + 1 >= self._max_steps
        over = not results or cut
        view = None if over else _view(answers, replaces=False)
        turn = Turn(view=view, results=tuple(results), terminated=not results, truncated=cut)
        self._last = (step_id, turn)
        return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended; see `Episode.verdict`."""
        if self._verdict is None:
            body = self._body() | {"response": self._response()}
            answered = await self._object("/verify", body, "verification")
            cut = self._last is not None and self._last[1].truncated
            steps = self._last[0] + 1 if self._last else 0
            self._verdict, self.extra = read_verdict(answered, self._row, steps, cut=cut)
        return self._verdict

    async def close(self) -> None:
        """Nothing: the protocol ends with verify."""

    async def _call(self, call: ToolCall) -> ToolResult:
        names = [tool["function"]["name"] for tool in self._tools]
        if call.name in _NEVER or (names and call.name not in names):
            return _answered(
                call, f"There is no tool {call.name!r}. Known: {', '.join(names) or 'none'}.", "unknown_tool"
            )
        if not isinstance(call.arguments, dict):
            said = json.dumps({"error": f"Invalid tool call arguments: {call.arguments[:200]}"})
            return _answered(call, said, "invalid_arguments")
        reply = await self._post(f"/{call.name}", call.arguments, "agent")
        content = read_parts(reply.text) or (TextBlock(text=reply.text),)
        failure: ToolFailure | None = None if reply.status < 400 else "refused"
        return ToolResult(call_id=call.id, name=call.name, content=content, failure=failure)


class GymnasiumEpisode(_ForeignEpisode):
    """An `Episode` by ``/reset`` and ``/step``; arguments as in `_ForeignEpisode`."""

    _closes = _has_ids = False
    _reward = 0.0
    _status = EpisodeStatus.RUNNING
    _steps = 0

    async def start(self, task: Task, *, seed: int | None = None) -> Opening:
        """Begin; see `Episode.start`."""
        body = await self._object("/reset", self._body(), "seed")
        info = body.get("info")
        info = info if isinstance(info, Mapping) else {}
        self._closes = info.get("supports_explicit_close") is True
        self._has_ids = info.get("supports_step_idempotency") is True
        shown = _observed(body)
        return self._opening(*shown)

    async def act(self, action: Action, step_id: int) -> Turn:
        """Act; see `Episode.act`."""
        if self._last is not None and self._last[0] == step_id:
            return self._last[1]
        message = action.message()
        response = response_object(finished_items([message]), model="", tools=self._tools)
        sent = self._body() | {"response": response}
        if self._has_ids:
            sent["_ng_step_request_id"] = secrets.token_hex(16)
        body = await self._object("/step", sent, "agent", repeat=self._has_ids)
        info = body.get("info")
        results = _outputs(action, info.get("tool_outputs") if isinstance(info, Mapping) else None)
        answers = (*(result.message() for result in results), *_observed(body))
        self._done += [message, *answers]
        reward, terminated = float(body.get("reward") or 0.0), bool(body.get("terminated"))
        truncated = not terminated and (bool(body.get("truncated")) or step_id + 1 >= self._max_steps)
        self._reward, self._steps = self._reward + reward, step_id + 1
        if terminated or truncated:
            self._status = EpisodeStatus.TRUNCATED if truncated else EpisodeStatus.FAILURE
            self.extra = {"terminated": terminated, "truncated": truncated, "info": info if info else {}}
        turn = Turn(
            view=None if terminated or truncated else _view(answers, replaces=False),
            results=results,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
        )
        self._last = (step_id, turn)
        return turn

    async def verdict(self, answer: str = "") -> Verdict:
        """How it ended: the sum of the rewards."""
        status = self._status
        if status is EpisodeStatus.FAILURE and self._reward >= 1.0:
            status = EpisodeStatus.SUCCESS
        status = EpisodeStatus.FAILURE if status is EpisodeStatus.RUNNING else status
        return Verdict(status=status, reward=self._reward, num_steps=self._steps)

    async def close(self) -> None:
        """Tell the server, where it can be told."""
        if self._closes:
            self._closes = False
            try:
                await self._post("/close", {}, "cleanup")
            except EpisodeError:
                return


def row_messages(params: Mapping[str, Any]) -> tuple[Message, ...]:
    """The prompt of a request in the responses dialect."""
    asked, instructions = params.get("input"), params.get("instructions")
    messages = [text_message("user", asked)] if isinstance(asked, str) else from_responses(asked or ())
    if isinstance(instructions, str) and instructions:
        messages.insert(0, text_message("system", instructions))
    return tuple(messages)


def check_prompt(params: Mapping[str, Any], status: int = 422) -> tuple[Message, ...]:
    """The prompt of a request that anybody may have sent, as `row_messages` reads it.

    Raises:
        ServerError: It cannot be read (`status`).
    """
    try:
        return row_messages(params)
    except (ModelError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise ServerError(status, "invalid_request", f"The input cannot be read: {error}"[:500]) from error


def chat_tools(tools: Any) -> list[dict[str, Any]]:
    """Tools of a request in the chat-completions form; kinds other than functions are left out."""
    made = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            continue
        if isinstance(tool.get("function"), Mapping):
            made.append(dict(tool))
        elif isinstance(tool.get("name"), str):
            made.append({"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}})
    return made


def read_parts(text: str) -> tuple[AnyBlock, ...]:
    """The parts in a tool's answer; empty when it is plain text."""
    if not text.startswith("["):
        return ()
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    known = {"input_text", "input_image", "input_audio", "input_file"}
    if not isinstance(parts, list) or not all(isinstance(p, dict) and p.get("type") in known for p in parts):
        return ()
    return from_responses([{"type": "message", "role": "user", "content": parts}])[0].content if parts else ()


def read_verdict(
    answered: Mapping[str, Any], row: Mapping[str, Any], num_steps: int, *, cut: bool
) -> tuple[Verdict, dict[str, Any]]:
    """What ``/verify`` said: the verdict, and what it added to the row beside numbers."""
    added = {
        k: v for k, v in answered.items() if k not in row and k not in RESERVED and not k.startswith("_ng_")
    }
    reward = answered.get(REWARD)
    if answered.get(MASK) or not isinstance(reward, int | float):
        kind = str(answered.get(FAILURE_KIND) or "verifier_error")
        reason = str(answered.get(FAILURE_REASON) or "The environment gave no reward that counts.")
        failure = Failure(kind=plain_kind(kind), reason=reason[:2000], stage="verification")
        return Verdict(status=EpisodeStatus.ERROR, reward=None, num_steps=num_steps, failure=failure), added
    numbers = {k: float(v) for k, v in added.items() if isinstance(v, int | float)}
    components = answered.get("reward_components")
    solved = EpisodeStatus.SUCCESS if reward >= 1.0 else EpisodeStatus.FAILURE
    verdict = Verdict(
        status=EpisodeStatus.TRUNCATED if cut and reward < 1.0 else solved,
        reward=float(reward),
        reward_components={k: float(v) for k, v in components.items() if isinstance(v, int | float)}
        if isinstance(components, Mapping)
        else {},
        metrics=numbers,
        num_steps=num_steps,
    )
    return verdict, {k: v for k, v in added.items() if k not in numbers}


def _observed(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """What an environment shows: its parts where it gives them, else its text."""
    parts = body.get("observation_content")
    if isinstance(parts, list) and parts:
        return tuple(from_responses([{"type": "message", "role": "user", "content": parts}]))
    text = body.get("observation")
    return (text_message("user", text),) if isinstance(text, str) and text else ()


def _outputs(action: Action, outputs: Any) -> tuple[ToolResult, ...]:
    names = {call.id: call.name for call in action.calls}
    made = []
    for one in outputs if isinstance(outputs, Sequence) and not isinstance(outputs, str) else ():
        if not isinstance(one, Mapping):
            continue
        output = one.get("output_content", one.get("output"))
        text = output if isinstance(output, str) else json.dumps(output)
        content = read_parts(text) or (TextBlock(text=text),)
        id = str(one.get("call_id", ""))
        made.append(ToolResult(call_id=id, name=names.get(id, ""), content=content))
    return tuple(made)


def _answered(call: ToolCall, text: str, failure: ToolFailure) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, content=(TextBlock(text=text),), failure=failure)


def _view(messages: Sequence[Message], *, replaces: bool) -> View:
    return View(messages=tuple(messages), replaces=replaces, num_tokens=0)
