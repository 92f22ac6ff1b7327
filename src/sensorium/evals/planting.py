"""Planting probe facts into raw states: text, logs, code, notebooks, tables and structured data."""

import ast
import copy
import csv
import io
import random
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from sensorium.core import ObservationError
from sensorium.evals.facts import Fact, FactKind, code_word, draw_fact, is_retained

Form = Literal["text", "log", "code", "notebook", "table", "structured"]

_STAMP = re.compile(r"^(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\dZ+:]*\]?|\[?\d\d:\d\d:\d\d[.,\d]*\]?)\s*")
_FORMS = {
    "python": "{name} = {value}",
    "r": "{name} <- {value}",
    "javascript": "const {name} = {value};",
    "typescript": "const {name} = {value};",
    "go": "const {name} = {value}",
    "rust": "const {name}: f64 = {value};",
    "java": "static final double {name} = {value};",
    "c": "static const double {name} = {value};",
    "cpp": "static const double {name} = {value};",
}
_MAX_DRAWS = 50
_PRINTED_ALIKE = re.compile(r"-?\d{1,8}|-?\d{1,5}\.\d{0,3}[1-9]")
"""Numbers that read the same however a table is printed."""


class Planted(NamedTuple):
    """A raw state with facts in it."""

    raw: Any
    """As it was given, a changed copy."""
    facts: tuple[Fact, ...]
    """Those that found a place: at most as many as were asked for."""


def plant_facts(
    raw: Any, *, form: Form, seed: int = 0, count: int = 10, language: str = "python", delimiter: str = ","
) -> Planted:
    """Plant random but realistic facts; the same seed gives the same facts at the same places.

    ``text`` gets sentences, measurements and errors behind its own sentences; ``log`` lines with
    measurements, settings and exceptions, with the time stamp of their neighbour; ``code`` assignments at
    top level; ``notebook`` (a dict of nbformat 4) assignments in code cells, measurements and exceptions in
    outputs, and sentences in markdown; ``table`` (delimited text with a header) numbers far outside their
    column's range, and code words in columns of text; ``structured`` (JSON data) entries of objects. No fact
    is planted that `raw` holds already.

    Args:
        raw: Text, or plain JSON data for ``notebook`` and ``structured``; it is not changed.
        form: What it is.
        seed: Of the random choices.
        count: Facts wanted.
        language: Of the code.
        delimiter: Of the table.

    Raises:
        ObservationError: `raw` is not of this form.
    """
    rng = random.Random(f"{form}-{seed}")
    _check_form(raw, form)
    match form:
        case "text":
            return _plant_in_text(raw, rng, count)
        case "log":
            return _plant_in_log(raw, rng, count)
        case "code":
            return _plant_in_code(raw, rng, count, language)
        case "notebook":
            return _plant_in_notebook(raw, rng, count)
        case "table":
            return _plant_in_table(raw, rng, count, delimiter)
        case "structured":
            return _plant_in_structure(raw, rng, count)


def _check_form(raw: object, form: Form) -> None:
    wanted: dict[str, tuple[type, ...]] = {"notebook": (dict,), "structured": (dict, list)}
    if not isinstance(raw, wanted.get(form, (str,))):
        names = " or ".join(kind.__name__ for kind in wanted.get(form, (str,)))
        raise ObservationError(
            f"Facts cannot be planted: for form {form!r} {names} is expected, found {type(raw).__name__}."
        )


def _new(draw: Callable[[], Fact], texts: list[str], facts: list[Fact]) -> Fact | None:
    """A fact that none of the texts holds, about something else than those that were planted."""
    taken = {known for fact in facts for known in (fact.question, fact.tokens[-1])}
    for _ in range(_MAX_DRAWS):
        fact = draw()
        is_new = fact.question not in taken and fact.tokens[-1] not in taken
        if is_new and not any(is_retained(fact, text) for text in texts):
            return fact
    return None


def _some(rng: random.Random, places: list[int], count: int) -> list[int]:
    """So many places, each once as long as there are enough; in order."""
    if not places:
        return []
    drawn = rng.sample(places, min(count, len(places)))
    drawn += [rng.choice(places) for _ in range(count - len(drawn))]
    return sorted(drawn)


def _insert(
    text: str, rng: random.Random, places: list[int], draws: list[FactKind], join: Callable[[str, str], str]
) -> Planted:
    """Plant one fact of each kind at lines of a text.

    Args:
        text: The text.
        rng: Source of randomness.
        places: Lines at which a fact may be planted.
        draws: Kinds.
        join: Makes of a line and a fact the lines that replace the line.
    """
    lines, facts = text.split("\n"), list[Fact]()
    for place, kind in zip(_some(rng, places, len(draws)), draws, strict=False):
        fact = _new(lambda kind=kind: draw_fact(kind, rng), [text], facts)  # type: ignore[misc]
        if fact is not None:
            lines[place] = join(lines[place], fact.text)
            facts.append(fact.model_copy(update={"where": f"line {place + 1} of the original"}))
    return Planted("\n".join(lines), tuple(facts))


def _kinds(rng: random.Random, kinds: tuple[FactKind, ...], count: int) -> list[FactKind]:
    """Kinds in turn, in random order."""
    drawn = [kinds[n % len(kinds)] for n in range(count)]
    rng.shuffle(drawn)
    return drawn


def _plant_in_text(text: str, rng: random.Random, count: int) -> Planted:
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if line.rstrip().endswith((".", "!", "?"))]
    kinds = _kinds(rng, ("statement", "measurement", "error"), count)
    return _insert(
        text, rng, places or list(range(len(lines))), kinds, lambda line, fact: f"{line} {fact}".strip()
    )


def _plant_in_log(text: str, rng: random.Random, count: int) -> Planted:
    def join(line: str, fact: str) -> str:
        stamp = _STAMP.match(line)
        return f"{line}\n{stamp.group() if stamp else ''}{fact}"

    places = [n for n, line in enumerate(text.split("\n")) if line.strip()]
    return _insert(text, rng, places, _kinds(rng, ("measurement", "error", "setting"), count), join)


def _plant_in_code(text: str, rng: random.Random, count: int, language: str) -> Planted:
    form, places = _FORMS.get(language, _FORMS["python"]), _top_level(text, language)
    lines, facts = text.split("\n"), list[Fact]()
    for place in reversed(_some(rng, places, count)):
        fact = _new(lambda: draw_fact("assignment", rng, form=form), [text], facts)
        if fact is not None:
            lines.insert(place, fact.text)
            facts.append(fact.model_copy(update={"where": f"line {place + 1} of the original"}))
    return Planted("\n".join(lines), tuple(reversed(facts)))


def _top_level(text: str, language: str) -> list[int]:
    """Lines, from 0, before which a statement may stand."""
    lines = text.split("\n")
    if language == "python":
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return [len(lines)]
        starts = [
            min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
            for node in tree.body
            if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        ]
        first = 1 if tree.body and isinstance(tree.body[0], ast.Expr) else 0
        return starts[first:] or [len(lines)]
    blank = [n for n in range(1, len(lines)) if not lines[n - 1].strip() and lines[n][:1].isalpha()]
    return blank or [len(lines)]


def _plant_in_notebook(raw: dict[str, Any], rng: random.Random, count: int) -> Planted:
    notebook = copy.deepcopy(raw)
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not cells:
        raise ObservationError("Facts cannot be planted: a notebook of nbformat 4 with cells was expected.")
    texts, facts = [str(raw)], list[Fact]()
    coded = [n for n, cell in enumerate(cells) if cell.get("cell_type") == "code"]
    told = [n for n, cell in enumerate(cells) if cell.get("cell_type") == "markdown"]
    kinds: tuple[FactKind, ...] = ("assignment", "measurement", "error") if coded else ("statement",)
    if told and coded:
        kinds += ("statement",)
    for kind in _kinds(rng, kinds, count):
        place = rng.choice(told if kind == "statement" and told else coded or list(range(len(cells))))
        fact = _new(lambda kind=kind: draw_fact(kind, rng), texts, facts)  # type: ignore[misc]
        if fact is not None:
            where = _plant_in_cell(cells[place], fact)
            facts.append(fact.model_copy(update={"where": f"cell {place}{where}"}))
    return Planted(notebook, tuple(facts))


def _plant_in_cell(cell: dict[str, Any], fact: Fact) -> str:
    """Put a fact into a cell's source or its outputs, and say where."""
    if fact.kind in ("assignment", "statement"):
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else source
        cell["source"] = f"{source}\n{fact.text}" if source else fact.text
        return ""
    outputs = cell.setdefault("outputs", [])
    if fact.kind == "error":
        name, _, message = fact.text.partition(": ")
        frame = f"Cell In[{cell.get('execution_count') or 1}], line 1"
        trace = ["Traceback (most recent call last)", frame, fact.text]
        outputs.append({"output_type": "error", "ename": name, "evalue": message, "traceback": trace})
    else:
        outputs.append({"output_type": "stream", "name": "stdout", "text": f"{fact.text}\n"})
    return f", output {len(outputs) - 1}"


def _plant_in_table(text: str, rng: random.Random, count: int, delimiter: str) -> Planted:
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    if len(rows) < 2:
        raise ObservationError("Facts cannot be planted: a table with a header and rows was expected.")
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    facts: list[Fact] = []
    ranges = [_range([row[column] for row in body]) for column in range(len(header))]
    columns = rng.sample(range(len(header)), len(header))
    for n in range(count * _MAX_DRAWS if body else 0):
        if len(facts) == count:
            break
        row, column = rng.randrange(len(body)), columns[n % len(columns)]
        fact = _cell_fact(body[row], header[column], column, ranges[column], rng)
        is_taken = any(body[row][column].strip() in other.tokens for other in facts)
        if not is_taken and not is_retained(fact, text):
            body[row][column] = fact.tokens[-1]
            facts.append(fact.model_copy(update={"where": f"row {row}, column {header[column]}"}))
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return Planted(out.getvalue(), tuple(facts))


def _range(cells: list[str]) -> tuple[float, float, bool] | None:
    """Lowest and highest number of a column and whether all are whole; None for a column of text."""
    try:
        numbers = [float(cell) for cell in cells if cell.strip()]
    except ValueError:
        return None
    if not numbers:
        return None
    return min(numbers), max(numbers), all(number.is_integer() for number in numbers)


def _cell_fact(
    row: list[str], name: str, column: int, limits: tuple[float, float, bool] | None, rng: random.Random
) -> Fact:
    """A number outside its column's range, or a code word, with another cell of its row as the key."""
    if limits is None:
        value = code_word(rng)
    else:
        low, high, is_whole = limits
        span = max(high - low, abs(high), 1.0) * rng.uniform(1.5, 4.0)
        number = high + span if rng.random() < 0.5 else low - span
        # Five digits, so that it reads the same however the table is printed.
        value = str(round(number)) if is_whole or abs(number) >= 1e4 else f"{number:.5g}"
    others = [cell.strip() for n, cell in enumerate(row) if n != column and 0 < len(cell.strip()) <= 40]
    words = [cell for cell in others if _range([cell]) is None]
    numbers = [cell for cell in others if _PRINTED_ALIKE.fullmatch(cell)]
    key = (words or numbers or [""])[0]
    return Fact(
        kind="cell",
        text=" ".join(f"{name}: {value} ({key})".split()),
        tokens=(key, value) if key else (value,),
        question=f"Which rows have an unusual {name}?",
    )


def _plant_in_structure(raw: Any, rng: random.Random, count: int) -> Planted:
    data = copy.deepcopy(raw)
    objects = list(_objects(data, "$"))
    if not objects:
        raise ObservationError("Facts cannot be planted: structured data with an object in it was expected.")
    texts, facts = [str(raw)], list[Fact]()
    for _ in range(count):
        fact = _new(lambda: draw_fact("setting", rng), texts, facts)
        if fact is None:
            continue
        place, target = objects[rng.randrange(len(objects))]
        key, value = fact.tokens
        key = key.replace(".", "_")
        if key in target:
            continue
        target[key] = float(value) if "." in value else int(value)
        entry = {"kind": "entry", "tokens": (key, value), "text": f"{key}: {value}", "where": place}
        facts.append(fact.model_copy(update=entry | {"question": f"What is the value of {key}?"}))
    return Planted(data, tuple(facts))


def _objects(data: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    """Every object inside, with its path; at most 10,000."""
    found: list[tuple[str, dict[str, Any]]] = []
    stack = [(place, data)]
    while stack and len(found) < 10_000:
        where, value = stack.pop()
        if isinstance(value, dict):
            found.append((where, value))
            stack += [(f"{where}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            stack += [(f"{where}[{n}]", inner) for n, inner in enumerate(value)]
    return found
