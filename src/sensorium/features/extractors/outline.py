"""What a piece of code defines and imports, with lines: Python by its own parser, others by tree-sitter."""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sensorium.observations.languages import MAX_PARSED, parse_code, parse_python

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEFINITIONS = 5_000

_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "function_definition",
        "function_item",
        "method_definition",
        "method_declaration",
        "constructor_declaration",
        "generator_function_declaration",
        "method",
        "singleton_method",
        "function_signature",
        "function_signature_item",
        "function",
        "subroutine",
        "procedure_declaration",
        "subroutine_declaration_statement",
    ]
)
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function"))
"""Functions without a name of their own: the variable that holds them names them."""
_HOLDERS = frozenset(
    [
        "variable_declarator",
        "assignment_expression",
        "pair",
        "field_definition",
        "public_field_definition",
        "binary_operator",
    ]
)
_CLASSES = frozenset(
    [
        "class_declaration",
        "class_definition",
        "class_specifier",
        "struct_specifier",
        "struct_item",
        "enum_item",
        "trait_item",
        "union_item",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "class",
        "module",
        "type_spec",
        "object_definition",
        "trait_definition",
        "object_declaration",
        "struct_definition",
        "struct_declaration",
        "data_type",
        "enum_specifier",
        "protocol_declaration",
        "abstract_class_declaration",
        "mixin_declaration",
    ]
)
_IMPORTS = frozenset(
    [
        "import_statement",
        "import_declaration",
        "import_spec",
        "use_declaration",
        "preproc_include",
        "using_directive",
        "namespace_use_declaration",
        "import_header",
        "import",
        "import_from_statement",
        "using_statement",
        "library_import",
        "require_expression",
        "require_once_expression",
        "include_expression",
        "include_once_expression",
        "mod_item",
        "extern_crate_declaration",
        "package_import",
        "future_import_statement",
    ]
)
_CALLS = frozenset(("call", "call_expression", "function_call", "command"))
_LOADERS = frozenset(("require", "require_relative", "import", "load", "library", "source", "dofile", "."))
_STRING = re.compile(r"""["'`<]([^"'`<>\n]+)["'`>]""")
_KEYWORDS = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:import|use|using|from|mod|extern\s+crate|package|require(?:_once)?|include(?:_once)?)"
    r"\s+(?:static\s+|qualified\s+|type\s+|function\s+|const\s+|lazy\s+)*"
)
_PY_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """A function or class."""

    name: str
    """Within classes with their names: ``Reader.read``."""
    line: int
    """Of its signature, from 1."""
    end_line: int
    """The last one, from 1."""


class Import(NamedTuple):
    """Something that the code takes from elsewhere."""

    module: str
    """As written, without relative dots: ``numpy.typing``, ``./part``, ``stdio.h``."""
    line: int
    """From 1."""
    names: tuple[str, ...] = ()
    """What is taken out of it (Python's ``from``)."""
    level: int = 0
    """Number of leading dots (Python)."""


class Outline(NamedTuple):
    """What a piece of code defines and imports."""

    functions: tuple[Definition, ...] = ()
    classes: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()


def outline_of(text: str, language: str | None) -> Outline | None:
    """The outline of a piece of code.

    Returns:
        None when the language has no parser or the text is too long to be parsed. Code with faults has an
        outline of what could be recognised.
    """
    if len(text) > MAX_PARSED:
        return None
    if language == "python":
        tree = _python_tree(text)
        if tree is not None:
            return _python_outline(tree)
    parsed = parse_code(text, language)
    return _tree_outline(parsed.root_node) if parsed is not None else None


def _python_tree(text: str) -> ast.Module | None:
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python_outline(tree: ast.Module) -> Outline:
    functions: list[Definition] = []
    classes: list[Definition] = []
    imports: list[Import] = []
    stack: list[tuple[ast.AST, str]] = [(node, "") for node in reversed(tree.body)]
    while stack:
        node, prefix = stack.pop()
        if isinstance(node, ast.Import):
            imports += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            imports.append(Import(node.module or "", node.lineno, names, node.level))
        elif isinstance(node, (*_PY_FUNCTIONS, ast.ClassDef)):
            definition = Definition(prefix + node.name, node.lineno, node.end_lineno or node.lineno)
            (classes if isinstance(node, ast.ClassDef) else functions).append(definition)
            prefix = f"{prefix}{node.name}."
        inside = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        stack += [(child, prefix) for child in reversed(inside)]
        if len(functions) + len(classes) >= MAX_DEFINITIONS:
            break
    return Outline(tuple(functions), tuple(classes), tuple(imports))


def _tree_outline(root: "Node") -> Outline:
    functions: list[Definition] = []
    classes: list[Definition] = []
    imports: list[Import] = []
    stack: list[tuple[Node, str]] = [(root, "")]
    while stack and len(functions) + len(classes) + len(imports) < MAX_DEFINITIONS:
        node, prefix = stack.pop()
        kind = node.type
        if node.is_named:
            if kind in _IMPORTS and node.named_child_count and not _has_body(node, "mod_item"):
                found = list(_imports_in(node))
                imports += found
                if found or kind != "import":
                    continue
            elif kind in _CALLS and (loaded := _loaded(node)):
                imports.append(loaded)
            elif kind == "export_statement" and (source := node.child_by_field_name("source")):
                imports.append(Import(_text(source).strip("\"'`"), node.start_point[0] + 1))
            is_class = kind in _CLASSES and node is not root and _defines(node)
            if is_class or kind in _FUNCTIONS or kind in _FUNCTION_VALUES:
                name = _holder(node) or (_name(node) if kind not in _FUNCTION_VALUES else "")
                if name:
                    whole = Definition(prefix + name, node.start_point[0] + 1, node.end_point[0] + 1)
                    (classes if is_class else functions).append(whole)
                    prefix = f"{prefix}{name}."
        stack += [(child, prefix) for child in reversed(node.children)]
    return Outline(tuple(functions), tuple(classes), tuple(imports))


def _has_body(node: "Node", kind: str) -> bool:
    return node.type == kind and node.child_by_field_name("body") is not None


def _defines(node: "Node") -> bool:
    """``struct S x;`` in C uses a type; with a name and a body it defines one."""
    if node.type in ("struct_specifier", "enum_specifier", "class_specifier"):
        return _has_body(node, node.type) and node.child_by_field_name("name") is not None
    return True


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _name(node: "Node") -> str:
    found = node.child_by_field_name("name")
    at = node
    for _ in range(8):  # C: the name lies inside declarators of pointers and functions
        inner = at.child_by_field_name("declarator") if found is None else None
        if inner is None:
            break
        at = inner
        found = at.child_by_field_name("name")
    if found is None and at is not node:
        found = at
    if found is None:
        kinds = ("identifier", "name", "constant")
        found = next((child for child in node.named_children if child.type.endswith(kinds)), None)
    if found is None and node.named_children:  # Julia: inside the signature
        found = next(_identifiers(node.named_children[0]), None)
    return _text(found)[:200] if found is not None else ""


def _identifiers(node: "Node") -> "Iterator[Node]":
    stack, left = [node], 50
    while stack and left:
        left -= 1
        at = stack.pop()
        if at.type.endswith("identifier"):
            yield at
        stack += reversed(at.named_children)


def _holder(node: "Node") -> str:
    """Name of the variable, field or property that a function value is given to."""
    parent = node.parent
    if parent is None or parent.type not in _HOLDERS:
        return ""
    for field in ("name", "left", "key", "property", "lhs"):
        found = parent.child_by_field_name(field)
        if found is not None:
            return _text(found)[:200]
    return ""


def _imports_in(node: "Node") -> Iterator[Import]:
    line = node.start_point[0] + 1
    specs = (
        [child for child in _inside(node) if child.type == "import_spec"]
        if node.type == "import_declaration"
        else []
    )
    if specs:  # Go: several in one declaration
        for spec in specs:
            yield Import(_text(spec.child_by_field_name("path") or spec).strip('"`'), spec.start_point[0] + 1)
        return
    source = (
        node.child_by_field_name("source")
        or node.child_by_field_name("path")
        or node.child_by_field_name("module")
    )
    if source is None or (node.type == "import_declaration" and source.type == "identifier"):
        source = node
    text = _text(source)[:2_000]
    match = _STRING.search(text)
    if match:
        module = match[1]
    elif node.type == "mod_item":
        module = f"self::{_name(node)}"
    else:
        module = _KEYWORDS.sub("", text).split(";")[0].split(" as ")[0].strip()
        module = re.split(r"[\s({]", module, maxsplit=1)[0].rstrip(":.,") if module else ""
    if module:
        yield Import(module, line)


def _inside(node: "Node") -> Iterator["Node"]:
    for child in node.named_children:
        yield child
        yield from child.named_children


def _loaded(node: "Node") -> Import | None:
    """``require("x")``, ``import("x")``, ``library(x)``, ``source x.sh``."""
    head = (
        node.child_by_field_name("function")
        or node.child_by_field_name("method")
        or node.child_by_field_name("name")
    )
    if head is None or _text(head)[:20] not in _LOADERS:
        return None
    rest = (node.text or b"")[head.end_byte - node.start_byte :].decode("utf-8", "replace")[:300]
    match = _STRING.search(rest) or re.match(r"\s*\(?\s*([\w./-]+)\s*\)?\s*$", rest)
    if match is None:
        return None
    module = match[1] if _text(head) != "require_relative" else f"./{match[1].removeprefix('./')}"
    return Import(module, node.start_point[0] + 1)
