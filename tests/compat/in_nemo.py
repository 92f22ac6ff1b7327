"""What the interpreter with NeMo Gym is asked: metrics, validity of bodies, the contract of sessions.

PEER_PYTHON in_nemo.py metrics|validity|contract QUESTIONS.json ANSWERS.json
"""

import http.client
import json
import sys
import warnings
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]


def metrics(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What NeMo Gym makes of verify responses; None where it fails.

    Each case has `rows`, optionally `answer_key`.
    """
    from nemo_gym.reward_profile import (
        add_avg_sample_std_dev,
        compute_aggregate_metrics,
        compute_pass_majority_metrics,
    )

    def of_case(rows: list[dict[str, Any]], answer_key: str | None) -> dict[str, Any]:
        tasks: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            tasks.setdefault(row["_ng_task_index"], []).append(row)
        grouped = [tasks[index] for index in sorted(tasks)]
        passes, scores, names, largest = compute_pass_majority_metrics(grouped, answer_key=answer_key)
        with_spread = dict(passes)
        add_avg_sample_std_dev(with_spread, scores, names, largest)
        return {
            "aggregate": compute_aggregate_metrics(rows).model_dump(mode="json"),
            "pass_majority": with_spread,
        }

    answers: dict[str, Any] = {}
    for name, case in cases.items():
        try:
            answers[name] = of_case(case["rows"], case.get("answer_key"))
        except ValueError:  # numbers that are almost equal make its histograms fail
            answers[name] = None
    return answers


def validity(cases: list[tuple[str, Any]]) -> list[bool]:
    """Whether each body is valid for the named model of NeMo Gym."""
    from nemo_gym import (
        base_resources_server,
        base_responses_api_agent,
        config_types,
        openai_utils,
        single_agent_turn_types,
    )
    from pydantic import ValidationError

    modules = (
        base_resources_server,
        base_responses_api_agent,
        single_agent_turn_types,
        openai_utils,
        config_types,
    )

    def is_valid(name: str, body: Any) -> bool:
        model = next(getattr(module, name) for module in modules if hasattr(module, name))
        try:
            model.model_validate_json(json.dumps(body))
        except ValidationError:
            return False
        return True

    return [is_valid(name, body) for name, body in cases]


def contract(question: dict[str, Any]) -> str:
    """What `check_resources_session_contract` says of a server behind a URL; nothing where it holds."""
    from nemo_gym.base_resources_server import ResourcesSeedSessionRequest
    from nemo_gym.testing.session_conformance import check_resources_session_contract

    seed = ResourcesSeedSessionRequest.model_validate(question["seed"])
    try:
        check_resources_session_contract(_Proxy(question["url"]), seed, keeps_state=question["keeps_state"])
    except AssertionError as error:
        return str(error)
    return ""


class _Proxy:
    """An ASGI application that hands every request to a server behind a URL."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        connection = http.client.HTTPConnection(self._host, timeout=60)
        headers = {
            name.decode(): value.decode()
            for name, value in scope["headers"]
            if name not in (b"host", b"connection")
        }
        connection.request(scope["method"], scope["path"], body, headers)
        reply = connection.getresponse()
        content = reply.read()
        raw = [(name.lower().encode(), value.encode()) for name, value in reply.getheaders()]
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        await send({"type": "http.response.body", "body": content})


ANSWERS: dict[str, Callable[[Any], Any]] = {"metrics": metrics, "validity": validity, "contract": contract}


def main() -> None:
    """Answer the questions of one file in another."""
    warnings.simplefilter("ignore")
    what, questions, answers = sys.argv[1:4]
    found = ANSWERS[what](json.loads(Path(questions).read_text()))
    Path(answers).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
