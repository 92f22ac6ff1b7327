"""What a server says when it cannot do what was asked: one form for every error."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from sensorium.core import ConfigError, ModelError, SensoriumError
from sensorium.envs.episode import EpisodeError, Failure
from sensorium.llm.base import ContextLengthError, RequestRefusedError

_log = logging.getLogger(__name__)
_MAX_PROBLEMS = 5
_STATUS = {
    "session_conflict": 409,
    "session_lost": 409,
    "session_expired": 409,
    "episode_over": 409,
    "step_out_of_order": 409,
    "observation_too_large": 422,
    "env_timeout": 504,
    "transport_timeout": 504,
    "transport_unreachable": 502,
    "transport_peer_drop": 502,
    "session_limit": 429,
    "task_invalid": 422,
    "model_failed": 502,
    "agent_timeout": 504,
    "shutdown": 503,
}


class ServerError(SensoriumError):
    """An answer that is an error.

    Args:
        status: HTTP status, 4xx or 5xx.
        kind: One word for programs, e.g. ``session_limit``.
        message: For people.
        headers: Sent along, e.g. ``Retry-After``.
    """

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, kind, message, headers)
        self.status, self.kind, self.message = status, kind, message
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.message


def problems_text(problems: Sequence[Any]) -> str:
    """What does not fit in a body, of pydantic's list of errors: where and why, not what was found."""
    lines = [f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in problems[:_MAX_PROBLEMS]]
    more = len(problems) - _MAX_PROBLEMS
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def error_body(kind: str, message: str, **more: Any) -> bytes:
    """The JSON of an error, readable for clients of OpenAI's API and of FastAPI."""
    error = {"message": message, "type": kind, "code": kind, "kind": kind, **more}
    return to_json({"detail": message, "error": error})


def error_response(error: BaseException) -> Response:
    """The answer that an exception becomes; of unexpected ones only a number is told, the rest is logged."""
    match error:
        case ServerError():
            return _response(error.status, error_body(error.kind, error.message), error.headers)
        case EpisodeError(failure=Failure(kind="context_overflow") as failure):
            return _response(400, error_body("context_length_exceeded", failure.reason))
        case EpisodeError(failure=Failure(kind="model_failed", terminal=True) as failure):
            return _response(422, error_body("invalid_request", failure.reason))  # the model refused it
        case EpisodeError(failure=Failure() as failure):
            more = {"stage": failure.stage, "terminal": failure.terminal}
            return _response(_STATUS.get(failure.kind, 500), error_body(failure.kind, failure.reason, **more))
        case ContextLengthError():
            return _response(400, error_body("context_length_exceeded", str(error)))
        case RequestRefusedError():
            return _response(422, error_body("invalid_request", str(error)))
        case ModelError():
            return _response(502, error_body("model_failed", str(error)))
        case ConfigError():
            return _response(422, error_body("invalid_request", str(error)))
    number = secrets.token_hex(4)
    _log.error("request failed [%s]", number, exc_info=error)
    return _response(
        500, error_body("internal_error", f"The server failed; its log has more under {number}.")
    )


def _response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, dict(headers or {}), "application/json")
