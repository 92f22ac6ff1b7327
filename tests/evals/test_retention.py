import ast
import csv
import io
import json
import random
from typing import Any

import numpy as np
import pytest

from sensorium.core import ObservationError
from sensorium.evals.facts import Fact, draw_fact, is_retained
from sensorium.evals.planting import plant_facts
from sensorium.evals.retention import embedding_similarity, measure_retention, representation_text
from sensorium.llm.messages import text_message
from sensorium.representations.base import Account, Representation

TEXT = "The quick brown fox jumps. It is lazy.\n\nAnother paragraph ends here.\n" * 5
LOG = "\n".join(f"2024-03-11 14:22:{n:02d} INFO step {n} loss={1 / (n + 1):.4f}" for n in range(40))
CODE = (
    '"""Doc."""\n\nfrom __future__ import annotations\n\nimport os\n\n\n'
    "@staticmethod\ndef f(x):\n    return x\n\n\ng = f\n"
)
NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "source": ["# Title"], "metadata": {}},
        {"cell_type": "code", "source": "x = 1", "outputs": [], "metadata": {}, "execution_count": 3},
    ],
}
TABLE = "name,age,weight\n" + "".join(f"p{n},{20 + n % 30},{60 + n * 0.5}\n" for n in range(50))
STRUCTURED = {"a": {"b": [1, {"c": 3}]}, "d": [{"x": 1}, {"x": 2}]}
RAW: dict[str, Any] = {
    "text": TEXT,
    "log": LOG,
    "code": CODE,
    "notebook": NOTEBOOK,
    "table": TABLE,
    "structured": STRUCTURED,
}


def as_text(raw: Any) -> str:
    """Every text and number of a raw state, a line each; objects as `key: value`."""
    if isinstance(raw, dict):
        return "\n".join(f"{key}: {as_text(value)}" for key, value in raw.items())
    if isinstance(raw, list):
        return "\n".join(map(as_text, raw))
    return str(raw)


@pytest.mark.parametrize("form", RAW)
def test_facts_are_there_after_planting_and_not_before(form: Any) -> None:
    before = json.dumps(RAW[form])
    planted = plant_facts(RAW[form], form=form, seed=1, count=8)
    assert len(planted.facts) == 8
    assert measure_retention(planted.facts, as_text(planted.raw)).share == 1.0
    assert measure_retention(planted.facts, as_text(RAW[form])).share == 0.0
    assert json.dumps(RAW[form]) == before
    assert len({fact.question + fact.text for fact in planted.facts}) == 8
    assert all(fact.where for fact in planted.facts)
    assert [Fact.model_validate_json(fact.model_dump_json()) for fact in planted.facts] == list(planted.facts)


@pytest.mark.parametrize("form", RAW)
def test_the_same_seed_plants_the_same(form: Any) -> None:
    one, two, other = (plant_facts(RAW[form], form=form, seed=seed, count=5) for seed in (7, 7, 8))
    assert one == two
    assert one != other


def test_planted_states_are_still_what_they_were() -> None:
    code = plant_facts(CODE, form="code", seed=2, count=6).raw
    compile(ast.parse(code), "x", "exec")
    assert code.startswith('"""Doc."""\n\nfrom __future__')
    rows = list(csv.reader(io.StringIO(plant_facts(TABLE, form="table", count=6).raw)))
    assert {len(row) for row in rows} == {3}
    assert len(rows) == 51
    notebook = plant_facts(NOTEBOOK, form="notebook", count=9).raw
    kinds = {output["output_type"] for output in notebook["cells"][1]["outputs"]}
    assert kinds == {"error", "stream"}
    assert notebook["cells"][0]["source"].startswith("# Title\n")
    log = plant_facts(LOG, form="log", count=6).raw.splitlines()
    assert len(log) == 46
    assert all(line.startswith("2024-03-11 14:22:") for line in log)


def test_table_facts_stand_out() -> None:
    for fact in plant_facts(TABLE, form="table", seed=5, count=9).facts:
        if "column age" in fact.where:
            assert not 20 <= float(fact.tokens[-1]) <= 49
        if "column weight" in fact.where:
            assert not 60 <= float(fact.tokens[-1]) <= 84.5


@pytest.mark.parametrize("language", ["javascript", "rust", "c", "klingon"])
def test_code_of_other_languages(language: str) -> None:
    code = "#include <x>\n\nint f() {\n\n  return 1;\n}\n\nint g() { return 2; }\n"
    planted = plant_facts(code, form="code", count=3, language=language)
    assert len(planted.facts) == 3
    lines = planted.raw.splitlines()
    assert lines.index("  return 1;") - lines.index("int f() {") == 2  # nothing inside a function


@pytest.mark.parametrize(
    ("form", "raw"),
    [("text", 3), ("notebook", {"worksheets": []}), ("table", "only a header"), ("structured", [1, 2])],
)
def test_a_state_of_another_form_is_refused(form: Any, raw: Any) -> None:
    with pytest.raises(ObservationError, match="cannot be planted"):
        plant_facts(raw, form=form)


@pytest.mark.parametrize(("form", "count"), [("text", 2), ("log", 0), ("code", 2)])
def test_an_empty_text(form: Any, count: int) -> None:
    assert len(plant_facts("", form=form, count=2).facts) == count


def fact(*tokens: str, text: str = "") -> Fact:
    return Fact(kind="setting", text=text, tokens=tokens, question="?")


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("lr is set to 0.31 here", True),
        ("0.31 is what lr is", True),
        ("lr" + " " * 100 + "0.31", True),
        ("lr" + " " * 200 + "0.31", False),
        ("lr ... " + " " * 200 + "0.31 and lr", True),
        ("lr = 0.312", False),
        ("lr = 10.31", False),
        ("lrs = 0.31", False),
        ("lr = 0.31.", True),
        ("lr = 0.31.5", False),
        ("`lr`=0.31,", True),
        ("lr", False),
        ("", False),
    ],
)
def test_all_tokens_verbatim_and_close(text: str, is_there: bool) -> None:
    assert is_retained(fact("lr", "0.31"), text) == is_there


def test_the_window_grows_with_the_fact_or_is_given() -> None:
    far = "a" + " " * 300 + "b"
    assert not is_retained(fact("a", "b"), far)
    assert is_retained(fact("a", "b", text="x" * 200), far)
    assert is_retained(fact("a", "b"), far, window=302)
    assert not is_retained(fact("a", "b"), far, window=301)
    assert is_retained(fact("-3.5"), "low: -3.5")


def test_many_repetitions_are_searched_quickly() -> None:
    text = "a " * 20_000 + " " * 500 + "b"
    assert not is_retained(fact("a", "b"), text)


def test_shares() -> None:
    facts = [
        draw_fact(kind, random.Random(n)) for n, kind in enumerate(("statement", "setting", "error", "error"))
    ]
    shown = "\n".join(fact.text for fact in facts[:3])
    found = measure_retention(facts, shown)
    assert (found.planted, found.retained, found.share) == (4, 3, 0.75)
    assert found.by_kind == {"statement": 1.0, "setting": 1.0, "error": 0.5}
    assert found.lost == (facts[3],)
    assert found.similarity is None
    assert measure_retention([], "x").share == 1.0


def test_a_representation_is_read_message_by_message() -> None:
    one = draw_fact("measurement", random.Random(0))
    representation = Representation(
        messages=(text_message("system", "Be brief."), text_message("user", one.text)),
        account=Account(entries=(), max_tokens=10, state_limit=8),
    )
    assert representation_text(representation) == f"Be brief.\n{one.text}"

    def embed(texts: Any) -> Any:
        assert texts == ["all", f"Be brief.\n{one.text}"]
        return np.asarray([[1.0, 0.0], [0.6, 0.8]], np.float32)

    found = measure_retention([one], representation, full_text="all", embed=embed)
    assert found.share == 1.0
    assert found.similarity == pytest.approx(0.6)
    assert type(found).model_validate_json(found.model_dump_json()) == found


@pytest.mark.slow
def test_a_good_summary_is_more_similar_than_an_unrelated_text() -> None:
    good = embedding_similarity(TEXT, "A quick fox jumps; it is lazy.")
    assert good > embedding_similarity(TEXT, "Quarterly revenue grew by 4 %.") + 0.3
