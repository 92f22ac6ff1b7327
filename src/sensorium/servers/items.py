"""Items of the responses API as NeMo Gym's models insist on them."""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sensorium.llm.messages import Message
from sensorium.llm.responses import responses
from sensorium.rollouts.rows import CUT, finished_item, row_tool

TOKEN_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
"""All or none of them stand at the last item of an answer."""


def finished_items(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as items; those of an assistant have ids, a status, and lists of annotations."""
    return [finished_item(item, f"{random.getrandbits(48):012x}") for item in responses(list(messages))]


def response_object(
    items: Sequence[Mapping[str, Any]],
    *,
    model: str,
    tools: Sequence[Mapping[str, Any]] = (),
    finish_reason: str | None = None,
    usage: Mapping[str, Any] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A response with these output items.

    Args:
        items: The output.
        model: Its name.
        tools: That were offered, in either form.
        finish_reason: Of chat completions; one that cuts makes the response incomplete.
        usage: In the responses form; None when nobody counted.
        metadata: Of the request.
    """
    cut = CUT.get(finish_reason or "")
    return {
        "id": f"resp_{random.getrandbits(96):024x}",
        "object": "response",
        "created_at": time.time(),
        "model": model,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "instructions": None,
        "metadata": dict(metadata or {}),
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [row_tool(tool) for tool in tools],
        "usage": dict(usage) if usage is not None else None,
    }
