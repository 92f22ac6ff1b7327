"""Bugs made of small programs, checked by hand."""

import ast
import textwrap

import pytest

from sensorium.envs.code_repair.mutation import OPERATORS, Mutation, mutations_of

PROGRAM = textwrap.dedent(
    '''
    """A module."""
    import os

    LIMIT = 3 < 4


    def find(items, start=0, deep=False, *, size=10):
        """Say where."""
        total, other = 0, 1  # comments stay
        for number in range(1, size):
            if not deep and items[number - 1] < start:
                continue
            total += items[number]
            items.append(max(start, number, key=len))
        if total == 3:
            raise ValueError("é: three", total)
        try:
            return sorted(items[1:size]), other
        except KeyError:
            return True
    '''
)


def changed(operator: str, program: str = PROGRAM) -> list[tuple[str, str]]:
    return [(m.before, m.after) for m in mutations_of(program) if m.operator == operator]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("comparison", ("items[number - 1] < start", "items[number - 1] <= start")),
        ("comparison", ("total == 3", "total != 3")),
        ("boundary", ("1", "2")),
        ("boundary", ("1", "0")),
        ("boundary", ("size", "size - 1")),
        ("arithmetic", ("number - 1", "number + 1")),
        ("accumulation", ("total += items[number]", "total -= items[number]")),
        ("accumulation", ("total += items[number]", "total = items[number]")),
        ("logic", ("not deep and items[number - 1] < start", "not deep or items[number - 1] < start")),
        ("logic", ("not deep and items[number - 1] < start", "not deep")),
        ("wrong_variable", ("total", "items")),
        ("swapped_arguments", ("range(1, size)", "range(size, 1)")),
        ("dropped_argument", ("max(start, number, key=len)", "max(start, number)")),
        ("dropped_call", ("sorted(items[1:size])", "items[1:size]")),
        ("dropped_statement", ("items.append(max(start, number, key=len))", "pass")),
        ("dropped_statement", ("continue", "break")),
        ("returned", ("True", "False")),
        ("returned", ("sorted(items[1:size]), other", "(other, sorted(items[1:size]))")),
        ("default", ("False", "True")),
        ("default", ("10", "11")),
        ("exception", ("ValueError", "TypeError")),
        ("exception", ("KeyError", "IndexError")),
        ("slice", ("items[1:size]", "items[:size]")),
        ("slice", ("items[1:size]", "items[1:]")),
    ],
)
def test_an_operator_makes_its_kind_of_bug(operator: str, expected: tuple[str, str]) -> None:
    assert expected in changed(operator)


def test_negation() -> None:
    assert changed("negation", "def f(a):\n    if a:\n        return 1\n") == [("a", "not a")]
    assert changed("negation", "def f(a):\n    while not a:\n        a = 1\n") == [("not a", "a")]


def test_every_operator_finds_something_here() -> None:
    program = PROGRAM + "\ndef g(a):\n    if a:\n        pass\n"
    assert {mutation.operator for mutation in mutations_of(program)} == set(OPERATORS)


def test_every_mutation_parses_changes_one_place_and_can_be_undone() -> None:
    for mutation in mutations_of(PROGRAM):
        given = mutation.apply(PROGRAM)
        assert ast.dump(ast.parse(given)) != ast.dump(ast.parse(PROGRAM)), mutation
        assert len(given.split("\n")) == len(PROGRAM.split("\n"))
        differing = [
            i for i, (a, b) in enumerate(zip(given.split("\n"), PROGRAM.split("\n"), strict=True)) if a != b
        ]
        assert differing == [mutation.line - 1]
        assert Mutation("x", mutation.start, mutation.after, mutation.before, 1, "").apply(given) == PROGRAM


def test_text_outside_functions_and_documentation_stay() -> None:
    for mutation in mutations_of(PROGRAM):
        assert mutation.line >= 8
        assert mutation.function == "find"
        assert '"""' not in mutation.before


def test_meaning_is_kept_by_parentheses() -> None:
    program = "def f(a, b, c):\n    return (a).copy() * g(b, c or a)\n"
    for mutation in mutations_of(program):
        if mutation.operator == "dropped_call":
            assert ast.unparse(ast.parse(mutation.apply(program))).endswith("return a * g(b, c or a)")
    inner = "def f(a, b):\n    return sorted(a or b) * 2\n"
    (dropped,) = [m for m in mutations_of(inner) if m.operator == "dropped_call"]
    assert dropped.after == "(a or b)"


def test_columns_are_counted_in_characters() -> None:
    program = 'def f(a):\n    return "äöü", a < 1\n'
    assert ("a < 1", "a <= 1") in changed("comparison", program)


@pytest.mark.parametrize("mark", ["\f", "\x1d", "\u2028"])
def test_lines_are_counted_as_python_counts_them(mark: str) -> None:
    program = f'def f(a):\n    b = "{mark}"\n    return a < 1\n'
    assert changed("comparison", program) == [("a < 1", "a <= 1")]


def test_methods_and_nested_functions_are_named() -> None:
    program = "class A:\n    def f(self, a):\n        def g(b):\n            return b < a\n        return g\n"
    names = {m.function for m in mutations_of(program) if m.operator == "comparison"}
    assert names == {"A.f.g"}


def test_a_mutation_of_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 'a < 1' at character 3"):
        Mutation("comparison", 3, "a < 1", "a <= 1", 1, "").apply("something else")


def test_order_and_content_are_the_same_every_time() -> None:
    assert mutations_of(PROGRAM) == mutations_of(PROGRAM)
