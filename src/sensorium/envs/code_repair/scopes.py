"""What a mutation must know of the function around a node: its names, its place, what not to touch."""

import ast
from collections.abc import Iterator


class Scopes:
    """Functions of a module, the nodes in them that may be changed, and their local names.

    Args:
        tree: The module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[ast.AST] = []
        self._function: dict[ast.AST, ast.AST] = {}
        self._names: dict[ast.AST, str] = {}
        self._locals: dict[ast.AST, list[str]] = {}
        self._visit(tree, None, "")

    def _visit(self, node: ast.AST, function: ast.AST | None, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{name}.{child.name}" if name else child.name
                self._locals[child] = list(dict.fromkeys(_bound_names(child)))
                for part in (child.args, *child.body):  # its decorators stay
                    self._add(part, child, inner)
            elif isinstance(child, ast.ClassDef):
                self._visit(child, function, f"{name}.{child.name}" if name else child.name)
            elif function is None:
                self._visit(child, None, name)
            else:
                self._add(child, function, name)

    def _add(self, node: ast.AST, function: ast.AST, name: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            holder = ast.Module([node], [])
            self._visit(holder, function, name)
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # documentation
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            return
        self.nodes.append(node)
        self._function[node] = function
        self._names[node] = name
        self._visit(node, function, name)

    def name_of(self, node: ast.AST) -> str:
        """Dotted name of the function around a node."""
        return self._names[node]

    def is_local(self, node: ast.Name) -> bool:
        """Whether a name is a parameter or variable of the function around it."""
        return node.id in self._locals[self._function[node]]

    def confusable(self, node: ast.Name) -> list[str]:
        """Other local names, those that look alike first."""
        names = [name for name in self._locals[self._function[node]] if name != node.id]
        return sorted(names, key=lambda name: (-_likeness(name, node.id), name))


def _bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.arg not in ("self", "cls"):
            yield argument.arg
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
            yield node.id


def _likeness(first: str, second: str) -> int:
    """Shared leading characters, and whether the lengths agree."""
    shared = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        shared += 1
    return 2 * shared + (len(first) == len(second))
