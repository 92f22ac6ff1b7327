"""Questions that one call of one tool answers."""

from typing import Any

from sensorium.envs.base import Task, ToolCall, ToolResult
from sensorium.envs.lookup.env import calculate
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import ToolError, tool

CALL_REWARD = 0.2
"""For a call of the right tool with arguments that fit it, whatever they are; one of the wrong tool earns
nothing."""
_TOLERANCE = 1e-6


class OneCallEnv(ToolEnv):
    """An episode is one action: its first call is judged, and an answer without a call earns nothing."""

    async def _reset(self, task: Task, seed: int) -> None:
        self._facts: dict[str, dict[str, float]] = task.data["facts"]

    async def _observe(self) -> Any:
        return None

    @tool()
    async def calculate(self, expression: str) -> str:
        """Calculate with numbers, + - * / and brackets."""
        return f"{calculate(expression):.10g}"

    @tool()
    async def lookup(self, item: str, attribute: str) -> str:
        """Look up one attribute of one item."""
        known = self._facts.get(item, {})
        if attribute not in known:
            raise ToolError(f"the table has no {attribute!r} of {item!r}")
        return f"{known[attribute]:g}"

    async def _said(self, text: str) -> str:
        self.finish(0.0)
        return ""

    async def _result(self, call: ToolCall) -> ToolResult:
        result = await super()._result(call)
        if result.failure != "not_run":
            self._judge(call, result)
        return result

    def _judge(self, call: ToolCall, result: ToolResult) -> None:
        wanted = self.task.hidden
        is_call = call.name == wanted["tool"] and result.failure in (
            None,
            "refused",
        )  # refused what it could read
        is_right = is_call and result.failure is None and self._is_right(call, result)
        self.give(CALL_REWARD * is_call, "call")
        self.finish((1.0 - CALL_REWARD) * is_right, success=float(is_right))

    def _is_right(self, call: ToolCall, result: ToolResult) -> bool:
        """Whether the fact is the one that was asked for, or the number the right one."""
        wanted = self.task.hidden
        if wanted["tool"] == "lookup":
            return bool(call.arguments == wanted["arguments"])
        value = float(wanted["answer"])
        return abs(float(result.text) - value) <= _TOLERANCE * max(1.0, abs(value))
