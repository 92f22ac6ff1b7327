"""Questions about a table of facts, answered with a look-up tool and a calculator."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from sensorium.envs.base import Task
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import ToolError, tool

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_MAX_EXPRESSION_CHARS = 200
_TOLERANCE = 1e-6


class LookupEnv(ToolEnv):
    """The table is behind the look-up tool; the answer is a number."""

    async def _reset(self, task: Task, seed: int) -> None:
        self._facts: dict[str, dict[str, float]] = task.data["facts"]

    async def _observe(self) -> Any:
        return None

    @tool()
    async def lookup(self, item: str, attribute: str) -> str:
        """Look up one attribute of one item.

        Args:
            item: Name of the item.
            attribute: Name of the attribute.
        """
        if item not in self._facts:
            raise ToolError(f"there is no item {item!r}; items: {', '.join(self._facts)}")
        if attribute not in self._facts[item]:
            raise ToolError(f"{item} has no {attribute!r}; attributes: {', '.join(self._facts[item])}")
        return f"{self._facts[item][attribute]:g}"

    @tool()
    async def calculate(self, expression: str) -> str:
        """Calculate with numbers, + - * / and brackets.

        Args:
            expression: e.g. (3 + 4) * 2.
        """
        return f"{calculate(expression):.10g}"

    @tool()
    async def submit(self, answer: float) -> str:
        """Give the final answer.

        Args:
            answer: A number.
        """
        wanted = self.task.hidden["answer"]
        right = abs(answer - wanted) <= _TOLERANCE * max(1.0, abs(wanted))
        self.finish(1.0 if right else 0.0)
        return "submitted"


def calculate(expression: str) -> float:
    """The value of an expression of numbers, ``+ - * /`` and brackets.

    Raises:
        ToolError: It is something else, too long, or divides by zero.
    """
    if len(expression) > _MAX_EXPRESSION_CHARS:
        raise ToolError(f"the expression has over {_MAX_EXPRESSION_CHARS} characters")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{expression!r} is no expression of numbers, + - * / and brackets") from error
    except ZeroDivisionError as error:
        raise ToolError(f"{expression!r} divides by zero") from error
    except OverflowError as error:
        raise ToolError(f"{expression!r} is too large") from error


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand))
    raise ValueError("not arithmetic")
