"""Rows and bodies about which NeMo Gym was asked; `capture_nemo` writes its answers beside them."""

from typing import Any

IMAGE = "data:image/png;base64,iVBORw0KGgo="
_SCORES = ((1, 0, 1, 1), (0, 0, 0, 1), (0, 0, 0, 0))
_ANSWERS = (("a", "b", "a", "a"), ("x", "x", "y", "z"), (None, "q", None, None))


def _row(task: int, repeat: int, reward: float | None, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"_ng_task_index": task, "_ng_rollout_index": repeat} | more
    return row if reward is None else row | {"reward": reward}


def _usage(tokens_in: int, tokens_out: int) -> dict[str, Any]:
    details = {
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": None},
    }
    total = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return {"usage": total | details}


BINARY = [
    _row(
        task,
        repeat,
        float(reward),
        answer=_ANSWERS[task][repeat],
        correct=bool(reward),
        turns=task + repeat,
        difficulty="hard" if task == 2 else "easy",
        response=_usage(100 + 10 * task, 5 + repeat),
        agent_ref={"name": "agent"},
    )
    for task, rewards in enumerate(_SCORES)
    for repeat, reward in enumerate(rewards)
]

METRICS: dict[str, dict[str, Any]] = {
    "binary rewards, repeats, answers, usage": {
        "rows": BINARY, "answer_key": "answer"},
    "continuous rewards, unequal repeats, columns of some rows": {
        "rows": [
            _row(0, 0, 0.25, extra=1),
            _row(0, 1, 0.5),
            _row(0, 2, 0.75, extra=2.5),
            _row(1, 0, -1.0),
            _row(1, 1, 2.0, flag=True),
            _row(4, 0, 0.1),
        ]
    },
    "one row": {"rows": [_row(0, 0, 1.0, n=3)]},
    "one repeat of three tasks": {"rows": [_row(task, 0, task / 2) for task in range(3)]},
    "all rewards alike": {"rows": [_row(task, repeat, 1.0) for task in range(2) for repeat in range(2)]},
    "masked rows": {
        "rows": [
            _row(0, 0, 1.0, mask_sample=False, failure_kind=None),
            _row(0, 1, 0.0, mask_sample=True, failure_kind="judge_failed"),
            _row(1, 0, 0.0, mask_sample=True),
            _row(2, 0, 0.5, mask_sample=False),
            _row(2, 1, 0.75, mask_sample=False),
        ]
    },
    "all rows masked": {"rows": [_row(0, 0, 0.0, mask_sample=True), _row(1, 0, 0.0, mask_sample=True)]},
    "no rows": {"rows": []},
    "records of speed": {
        "rows": [
            _row(0, 0, 1.0, ng_perf={"num_turns": 2, "num_tool_calls": 1, "token_observability_coverage": 1.0,
                                     "prompt_tokens": 10, "completion_tokens": 4, "total_latency_ms": 12.5}),
            _row(0, 1, 0.0, ng_perf={"num_turns": 4, "num_tool_calls": 3, "token_observability_coverage": 0.5,
                                     "prompt_tokens": 30, "completion_tokens": 9, "total_latency_ms": 50.0}),
            _row(1, 0, 0.0),
        ]
    },
}  # fmt: skip

_RESPONSE: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 0,
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
_EPISODE = {"rollout_id": "0-0", "attempt": 0}
_TASK = {"taskset": "t", "task_id": "0"}
_SEED = {"resources_session_id": "s", "episode_id": _EPISODE, "task_id": _TASK, "task_data": {}}
_TEXT = {"type": "output_text", "text": "x", "annotations": []}
_SAID = {"type": "message", "id": "m", "role": "assistant", "content": [_TEXT]}
_CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
_TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
_USAGE = _usage(1, 2)["usage"]


def _without(body: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != key}


def _user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": list(parts)}]}


def _result(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"input": [{"type": "function_call_output", "call_id": "c", "output": list(parts)}]}


_FUNCTION = {"type": "function", "name": "f"}
_REQUEST = "NeMoGymResponseCreateParamsNonStreaming"
_REPLY = "NeMoGymResponse"

VALIDITY: list[tuple[str, Any]] = [
    (_REQUEST, {"input": "hello"}),
    (_REQUEST, {}),
    (_REQUEST, {"input": "hello", "seed": 1}),
    (_REQUEST, {"input": "hello", "stream": True}),
    (_REQUEST, {"input": "hello", "stream": False}),
    (_REQUEST, {"input": "hello", "metadata": {"extra_body": '{"seed": 1}'}}),
    (_REQUEST, {"input": "hello", "metadata": {"n": 1}}),
    (_REQUEST, {"input": [{"role": "user", "content": "x"}, _SAID, _CALL]}),
    (_REQUEST, {"input": [{"role": "tool", "content": "x"}]}),
    (_REQUEST, _user({"type": "input_text", "text": "x", "more": 1})),
    (_REQUEST, _user({"type": "input_image", "image_url": IMAGE, "detail": "auto"})),
    (_REQUEST, _user({"type": "input_image", "image_url": IMAGE})),
    (_REQUEST, _user({"type": "input_video", "video_url": IMAGE})),
    (_REQUEST, _user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}})),
    (_REQUEST, _user({"type": "text", "text": "x"})),
    (_REQUEST, _result({"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": IMAGE})),
    (_REQUEST, _result({"type": "output_text", "text": "x"})),
    (_REQUEST, {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}),
    (_REQUEST, {"input": [{"type": "function_call_output", "call_id": "c", "output": {"a": 1}}]}),
    (_REQUEST, {"input": [{"type": "reasoning", "id": "r", "summary": []}]}),
    (_REQUEST, {"input": [{"type": "reasoning", "summary": []}]}),
    (_REQUEST, {"input": "x", "tools": [_FUNCTION | {"parameters": {}, "strict": True}]}),
    (_REQUEST, {"input": "x", "tools": [_FUNCTION | {"parameters": {}}]}),
    (_REQUEST, {"input": "x", "tools": [_FUNCTION]}),
    (_REQUEST, {"input": "x", "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
    (_REPLY, _RESPONSE),
    *[(_REPLY, _without(_RESPONSE, key)) for key in _RESPONSE],
    (_REPLY, _RESPONSE | {"usage": None, "more": 1}),
    (_REPLY, _RESPONSE | {"usage": _USAGE}),
    (_REPLY, _RESPONSE | {"usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}),
    (_REPLY, _RESPONSE | {"incomplete_details": {"reason": "max_output_tokens"}, "status": "incomplete"}),
    (_REPLY, _RESPONSE | {"incomplete_details": {"reason": "length"}}),
    (_REPLY, _RESPONSE | {"output": [_SAID, _CALL | {"more": 1}]}),
    (_REPLY, _RESPONSE | {"output": [_without(_SAID, "id")]}),
    (_REPLY, _RESPONSE | {"output": [_SAID | {"content": [_without(_TEXT, "annotations")]}]}),
    (_REPLY, _RESPONSE | {"output": [_without(_CALL, "type")]}),
    (_REPLY, _RESPONSE | {"output": [_without(_CALL, "call_id")]}),
    (_REPLY, _RESPONSE | {"output": [{"type": "sensation"}]}),
    (_REPLY, _RESPONSE | {"output": [_SAID | _TOKENS]}),
    (_REPLY, _RESPONSE | {"output": [_SAID | _without(_TOKENS, "generation_log_probs")]}),
    (_REPLY, _RESPONSE | {"output": _result({"type": "input_image", "image_url": IMAGE})["input"]}),
    (_REPLY, _RESPONSE | {"output": [{"type": "message", "role": "user", "content": [
        {"type": "input_image", "image_url": IMAGE, "detail": "auto"}]}]}),
    ("ResourcesSeedSessionRequest", _SEED),
    *[("ResourcesSeedSessionRequest", _without(_SEED, key)) for key in _SEED],
    ("ResourcesSeedSessionRequest", _SEED | {"more": 1}),
    ("ResourcesSeedSessionRequest", _SEED | {"resources_session_id": ""}),
    ("ResourcesSeedSessionRequest", _SEED | {"episode_id": {"rollout_id": "0-0"}}),
    ("ResourcesSeedSessionRequest", _SEED | {"episode_id": {"rollout_id": "0-0-a1"}}),
    ("ResourcesSeedSessionRequest", _SEED | {"episode_id": {"rollout_id": "a b"}}),
    ("ResourcesSeedSessionRequest", _SEED | {"episode_id": {"rollout_id": "0-0", "attempt": -1}}),
    ("ResourcesSeedSessionRequest", _SEED | {"task_id": {"taskset": "", "task_id": "0"}}),
    ("ResourcesSeedSessionResponse", {"resources_session_id": "s"}),
    ("ResourcesSeedSessionResponse", {"resources_session_id": "s", "tools": []}),
    ("ResourcesSeedSessionResponse", {"resources_session_id": "s", "resources_tools": {
        "server_name": "n", "headers": {"X-NeMo-Gym-Session-Token": "t"}}}),
    ("ResourcesCloseSessionRequest", {"resources_session_id": "s", "episode_id": _EPISODE}),
    ("ResourcesCloseSessionRequest", {"resources_session_id": "s"}),
    ("ResourcesCloseSessionResponse", {"resources_session_id": "s"}),
    ("ResourcesCloseSessionResponse", {"resources_session_id": "s", "closed": True}),
    ("BaseVerifyResponse", {"responses_create_params": {"input": "x"}, "response": _RESPONSE, "reward": 1}),
    ("BaseVerifyResponse", {"responses_create_params": {"input": "x"}, "response": _RESPONSE}),
    ("BaseVerifyResponse", {"responses_create_params": {"input": "x"}, "response": _RESPONSE, "reward": 1,
                            "failure_kind": "no such kind", "more": 1}),
    ("AgentSeedSessionRequest", {"agent_session_id": "a", "episode_id": _EPISODE, "task_id": _TASK}),
    ("AgentSeedSessionRequest", {"agent_session_id": "a", "episode_id": _EPISODE, "task_id": _TASK,
                                 "tool_accesses": [{"kind": "direct_http", "name": "n", "required": True,
                                                    "base_url": "http://127.0.0.1:1"}]}),
    ("AgentCloseSessionResponse", {"agent_session_id": "a"}),
    ("AgentCloseSessionResponse", {"agent_session_id": "a", "agent_observations": None,
                                   "resources_cookies": {"c": "v"}}),
    ("SingleAgentTurnRequest", {"episode_id": _EPISODE, "task": {"task_id": _TASK, "task_input": {
        "responses_create_params": {"input": "x"}, "expected": 1}}}),
    ("SingleAgentTurnResponse", {"episode_id": _EPISODE, "task_id": _TASK, "failure": {
        "failure_reason": "why", "terminal": True}}),
    ("SingleAgentTurnResponse", {"episode_id": _EPISODE, "task_id": _TASK, "failure": {
        "failure_reason": "why", "terminal": True, "stage": "model"}}),
    ("SingleAgentTurnResponse", {"episode_id": _EPISODE, "task_id": _TASK}),
    ("AggregateMetrics", {}),
    ("AggregateMetricsRequest", {"verify_responses": []}),
    ("AggregateMetricsRequest", {}),
]  # fmt: skip
