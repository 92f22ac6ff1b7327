"""Bugs: small changes of a syntax tree, of kinds that people make.

A mutation replaces the text of one node, so that the rest of the file, its comments and its layout stay as
they were. Each operator looks at one node at a time and offers replacements; `mutations_of` collects all.
"""

import ast
import io
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sensorium.envs.code_repair.scopes import Scopes

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
EXCEPTIONS = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "StopIteration": "IndexError",
    "NetworkXError": "ValueError",
}
DROPPED_CALLS = frozenset(
    {"sorted", "list", "set", "tuple", "dict", "abs", "reversed", "str", "int", "float"}
)
DROPPED_METHODS = frozenset(
    {"copy", "strip", "lower", "upper", "items", "rstrip", "lstrip", "add_edges_from"}
)


class Mutation(NamedTuple):
    """One change of one file."""

    operator: str
    """Which kind of bug."""
    start: int
    """Characters before the change."""
    before: str
    after: str
    line: int
    """From 1."""
    function: str
    """Dotted name of the function or class around it; empty at module level."""

    def apply(self, text: str) -> str:
        """The file with the bug.

        Raises:
            ValueError: The file is not the one that the mutation was made for.
        """
        end = self.start + len(self.before)
        if text[self.start : end] != self.before:
            raise ValueError(f"expected {self.before!r} at character {self.start}")
        return text[: self.start] + self.after + text[end:]


Offer = tuple[ast.expr | ast.stmt, str]
"""A node and the text that takes its place."""
Operator = Callable[[ast.AST, Scopes], Iterator[Offer]]


def _comparison(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARISONS.get(type(node.ops[0]))
        if other is not None:
            yield node, _text(ast.Compare(node.left, [other()], node.comparators))


def _boundary(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    """Integers where one more or less matters: in comparisons, ranges, indices, sums."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        places = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        places = list(node.args)
        for place in places[-1:]:
            if not isinstance(place, ast.Constant):
                yield place, _text(ast.BinOp(place, ast.Sub(), ast.Constant(1)))
    elif isinstance(node, ast.Subscript):
        places = [node.slice]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        places = [node.right]
    for place in places:
        if isinstance(place, ast.Constant) and type(place.value) is int:
            yield place, str(place.value + 1)
            if place.value > 0:
                yield place, str(place.value - 1)


def _arithmetic(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.BinOp) and not isinstance(node.left, ast.Constant | ast.JoinedStr):
        other = ARITHMETIC.get(type(node.op))
        if other is not None:
            yield node, _text(ast.BinOp(node.left, other(), node.right))


def _accumulation(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.AugAssign):
        other = ARITHMETIC.get(type(node.op))
        if other is not None:
            yield node, _text(ast.AugAssign(node.target, other(), node.value))
        yield node, _text(ast.Assign([node.target], node.value, lineno=0))


def _logic(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield node, _text(ast.BoolOp(other, node.values))
        for left_out in range(len(node.values)):
            rest = [value for index, value in enumerate(node.values) if index != left_out]
            yield node, _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))


def _negation(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield node.test, _text(_negated(node.test))
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield test, _text(_negated(test))


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _wrong_variable(node: ast.AST, scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and scopes.is_local(node):
        for name in scopes.confusable(node)[:2]:
            yield node, name


def _swapped_arguments(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    first, second, *rest = node.args
    if any(isinstance(argument, ast.Starred) for argument in (first, second)):
        return
    if ast.dump(first) != ast.dump(second):
        yield node, _text(ast.Call(node.func, [second, first, *rest], node.keywords))


def _dropped_argument(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None:
                rest = [other for other in node.keywords if other is not keyword]
                yield node, _text(ast.Call(node.func, node.args, rest))


def _dropped_call(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if not isinstance(node, ast.Call) or node.keywords:
        return
    if isinstance(node.func, ast.Name) and node.func.id in DROPPED_CALLS and len(node.args) == 1:
        if not isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
            yield node, _text(node.args[0])
    elif isinstance(node.func, ast.Attribute) and node.func.attr in DROPPED_METHODS and not node.args:
        yield node, _text(node.func.value)


def _dropped_statement(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    """Calls made for their effect, and jumps, are forgotten."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"
    elif isinstance(node, ast.Continue | ast.Break):
        yield node, "pass"
        yield node, "break" if isinstance(node, ast.Continue) else "continue"


def _returned(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if not isinstance(node, ast.Return) or node.value is None:
        return
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield node.value, str(not node.value.value)
    elif not isinstance(node.value, ast.Constant):
        yield node, _text(ast.Expr(node.value))
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield node.value, _text(ast.Tuple(node.value.elts[::-1], ast.Load()))


def _default(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if not isinstance(node, ast.arguments):
        return
    for value in [*node.defaults, *(one for one in node.kw_defaults if one is not None)]:
        if isinstance(value, ast.Constant):
            if isinstance(value.value, bool):
                yield value, str(not value.value)
            elif type(value.value) is int:
                yield value, str(value.value + 1)


def _exception(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    name = None
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = node.exc.func
    elif isinstance(node, ast.ExceptHandler):
        name = node.type
    if isinstance(name, ast.Attribute):
        other = EXCEPTIONS.get(name.attr)
    else:
        other = EXCEPTIONS.get(name.id) if isinstance(name, ast.Name) else None
    if name is not None and other is not None:
        yield name, other


def _slice(node: ast.AST, _scopes: Scopes) -> Iterator[Offer]:
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return
    lower, upper, step = node.slice.lower, node.slice.upper, node.slice.step
    options = []
    if lower is not None:
        options.append(ast.Slice(None, upper, step))
    if upper is not None:
        options.append(ast.Slice(lower, None, step))
    if lower is None and upper is not None:
        options.append(ast.Slice(upper, None, step))
    if step is not None:
        options.append(ast.Slice(lower, upper, None))
    for option in options:
        yield node, _text(ast.Subscript(node.value, option, node.ctx))


OPERATORS: dict[str, Operator] = {
    "comparison": _comparison,
    "boundary": _boundary,
    "arithmetic": _arithmetic,
    "accumulation": _accumulation,
    "logic": _logic,
    "negation": _negation,
    "wrong_variable": _wrong_variable,
    "swapped_arguments": _swapped_arguments,
    "dropped_argument": _dropped_argument,
    "dropped_call": _dropped_call,
    "dropped_statement": _dropped_statement,
    "returned": _returned,
    "default": _default,
    "exception": _exception,
    "slice": _slice,
}
"""Kind of bug -> what offers it."""


def mutations_of(text: str) -> list[Mutation]:
    """Every mutation of a file, in the order of operators and places; only functions are changed.

    Args:
        text: Python source.

    Raises:
        SyntaxError: It does not parse.
    """
    scopes = Scopes(ast.parse(text))
    offsets = _line_offsets(text)
    found: dict[tuple[int, str, str], Mutation] = {}
    for operator, offer in OPERATORS.items():
        for node in scopes.nodes:
            for target, after in offer(node, scopes):
                start, end = _span(target, offsets, text)
                before = text[start:end]
                if not _fits(before, after):
                    continue
                mutation = Mutation(
                    operator,
                    start,
                    before,
                    _placed(target, after),
                    text.count("\n", 0, start) + 1,
                    scopes.name_of(node),
                )
                if _differs(mutation, text):
                    found.setdefault((start, before, mutation.after), mutation)
    return list(found.values())


def _fits(before: str, after: str) -> bool:
    """One line stays one line: what spans several would lose its layout and comments."""
    return "\n" not in before and "\n" not in after and 0 < len(before) <= 200


def _placed(target: ast.expr | ast.stmt, after: str) -> str:
    """Parentheses where the new expression binds less tightly than the one it replaces."""
    loose = ast.BoolOp | ast.UnaryOp | ast.Compare | ast.IfExp | ast.BinOp
    if isinstance(target, ast.expr) and not isinstance(target, ast.Name | ast.Constant):
        parsed = ast.parse(after, mode="eval").body
        if isinstance(parsed, loose) and not isinstance(target, loose):
            return f"({after})"
    return after


def _differs(mutation: Mutation, text: str) -> bool:
    """Whether more than spaces of the line change."""
    start = text.rfind("\n", 0, mutation.start) + 1
    end = text.find("\n", mutation.start)
    line = text[start : end if end >= 0 else len(text)]
    changed = mutation._replace(start=mutation.start - start).apply(line)
    return changed.split() != line.split()


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _line_offsets(text: str) -> list[int]:
    """Characters before each line, as `ast` counts lines."""
    offsets = [0]
    for line in io.StringIO(text, newline=""):  # `splitlines` would also end them at form feeds and the like
        offsets.append(offsets[-1] + len(line))
    return offsets


def _span(node: ast.expr | ast.stmt, offsets: list[int], text: str) -> tuple[int, int]:
    """First and last character of a node of a parsed file; `ast` counts columns in bytes."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None

    def place(line: int, column: int) -> int:
        content = text[offsets[line - 1] : offsets[line]]
        return offsets[line - 1] + len(content.encode()[:column].decode())

    return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
