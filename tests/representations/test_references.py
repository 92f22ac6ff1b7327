"""The fetch tool: everything that was left out can be had, in answers that never exceed their size."""

import random
from typing import Any

import numpy as np
import pytest
from drawn_states import COUNTER, draw_observation
from media_parts import picture_part, sound_part

from sensorium.core.types import Modality
from sensorium.llm.base import count_messages
from sensorium.llm.messages import AnyBlock, ImageBlock, Message, TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.read import read
from sensorium.observations.values import ImageValue, TextValue
from sensorium.representations.config import PipelineConfig
from sensorium.representations.layout.dispatch import lay_out
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.references import References, fetch_tool

CONFIG = PipelineConfig()
LINES = [f"{i:04d} host-{i % 9} served {i * 13 % 700} requests" for i in range(500)]


def text(name: str, content: str) -> Part:
    return Part(id=name, modality=Modality.TEXT, value=TextValue(text=content))


def references(*parts: Part, max_tokens: int = 400) -> References:
    return References(Observation(parts=parts), CONFIG, COUNTER, max_tokens)


def said(blocks: tuple[AnyBlock, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def notebook() -> Observation:
    def cell(name: str, source: str) -> dict[str, Any]:
        output = {"output_type": "stream", "name": "stdout", "text": "\n".join(LINES[:40])}
        return {
            "cell_type": "code",
            "id": name,
            "metadata": {},
            "execution_count": 1,
            "source": source,
            "outputs": [output],
        }

    cells = [cell("load", "x = load()"), cell("fit", "x.fit()"), cell("fit-again", "x.fit(2)")]
    return read({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}, name="report.ipynb")


def test_pages_show_every_segment_exactly_once():
    part = text("a.log", "\n".join(LINES))
    answers = references(part)
    first = said(answers.fetch("ref:a.log"))
    assert "(page 1 of " in first
    count = int(first.partition("(page 1 of ")[2].partition(")")[0])
    assert count > 5
    pages = [said(answers.fetch("ref:a.log", page=page)) for page in range(1, count + 1)]
    shown = [line for page in pages for line in page.split("\n")[1:]]
    assert shown == LINES
    assert not any("cut]" in page for page in pages)


@pytest.mark.parametrize("seed", range(12))
def test_pages_cover_parts_of_every_kind(seed: int):
    observation = draw_observation(random.Random(seed), max_parts=12, max_lines=60)
    answers = References(observation, CONFIG, COUNTER, 300)
    for part in observation:
        document = lay_out(part, CONFIG.multimodal)
        if document is None:
            continue
        found, page, last = [], 1, 1
        while page <= last:
            answer = said(answers.fetch(f"ref:{part.id}", page=page))
            head, _, body = answer.partition("\n")
            last = int(head.rpartition(" of ")[2].removesuffix(")"))
            found.append(body)
            page += 1
        whole = document.separator.join(segment.text for segment in document.segments)
        if "characters cut]" not in "".join(found):
            assert document.separator.join(found) == whole


def test_a_start_shows_the_segments_from_there():
    answers = references(text("a.log", "\n".join(LINES)))
    shown = said(answers.fetch("ref:a.log", start=400)).split("\n")
    assert shown[0].endswith("(from lines 400 of 500)")
    assert shown[1] == LINES[399]
    assert said(answers.call({"ref": "a.log", "start": 501})) == (
        "fetch_part: start 501 is outside a.log; it has 500 lines"
    )


def test_a_search_shows_what_has_the_words_with_its_place():
    answers = references(text("a.log", "\n".join([*LINES[:200], "valve V-17 stuck open", *LINES[200:]])))
    shown = said(answers.fetch("ref:a.log", search="stuck valve"))
    assert shown == (
        "### a.log: 1 lines have words of 'stuck valve', 1 shown\nline 201: valve V-17 stuck open"
    )
    assert "0 shown" in said(answers.fetch("ref:a.log", search="zebra"))


def test_a_phrase_is_found_even_without_words():
    answers = references(text("a.py", "a = 1\nif a == b:\n    c()\nd()"))
    assert said(answers.fetch("a.py", search="== b:")).endswith("line 2: if a == b:")


def test_the_best_hits_come_when_not_all_have_room():
    lines = [f"pump {i} runs" for i in range(300)]
    lines[250] = "pump 250 leaks oil"
    shown = said(references(text("a", "\n".join(lines)), max_tokens=128).fetch("a", search="pump leaks oil"))
    assert "line 251: pump 250 leaks oil" in shown


def test_a_picture_is_shown_whole_or_by_region():
    pixels = np.random.default_rng(0).integers(0, 255, (200, 300, 3), dtype=np.uint8)
    answers = references(picture_part(pixels, "screen"), max_tokens=400)
    head, picture = answers.fetch("ref:screen")
    assert head == TextBlock(text="### screen")
    assert isinstance(picture, ImageBlock)
    assert (picture.width, picture.height) == (300, 200)
    region = answers.call({"ref": "ref:screen", "region": [10, 20, 74, 52]})[1]
    assert isinstance(region, ImageBlock)
    assert (region.width, region.height) == (64, 32)
    outside = said(answers.call({"ref": "ref:screen", "region": [400, 0, 500, 10]}))
    assert "is empty; expected left, top, right, bottom within 0, 0, 300, 200" in outside


def test_what_does_not_fit_says_so():
    pixels = np.zeros((900, 900, 3), dtype=np.uint8)
    shown = said(references(picture_part(pixels, "screen"), max_tokens=128).fetch("screen"))
    assert "does not fit 128 tokens" in shown


def test_a_broken_picture_is_answered():
    part = Part(id="p", modality=Modality.IMAGE, value=ImageValue(data=b"no picture"))
    answers = references(part)
    assert "Not shown" in said(answers.call({"ref": "p"}))
    assert said(answers.call({"ref": "p", "region": [0, 0, 5, 5]})).startswith("fetch_part: ")


def test_a_sound_is_told():
    answers = references(sound_part(np.zeros(8000, dtype=np.float32), part_id="s"))
    assert "0.5 s" in said(answers.call({"ref": "ref:s"}))
    assert "has no regions" in said(answers.call({"ref": "ref:s", "region": [0, 0, 1, 1]}))


def test_an_empty_reference_lists_all_parts():
    answers = References(notebook(), CONFIG, COUNTER)
    assert said(answers.call({"ref": "ref:"})).split("\n") == [
        "6 parts:",
        "ref:report.ipynb/cell-load (notebook)",
        "ref:report.ipynb/cell-load/output-0 (notebook)",
        "ref:report.ipynb/cell-fit (notebook)",
        "ref:report.ipynb/cell-fit/output-0 (notebook)",
        "ref:report.ipynb/cell-fit-again (notebook)",
        "ref:report.ipynb/cell-fit-again/output-0 (notebook)",
    ]
    assert said(answers.call({"ref": "ref:report.ipynb"})).startswith("6 parts:")
    assert said(answers.call({"ref": "cell-fit-"})).startswith("2 parts:")


def test_long_lists_say_how_many_more_there_are():
    answers = references(*(text(f"part-{i:03d}", "x") for i in range(200)), max_tokens=200)
    shown = said(answers.call({"ref": "ref:"})).split("\n")
    listed = sum(line.startswith("ref:") for line in shown)
    assert 5 < listed < 100
    assert shown[-1] == f"... and {200 - listed} more; give a longer beginning of their names"


def test_references_are_found_as_the_prompt_shows_them():
    observation = notebook()
    shown = ObservationPipeline(counter=COUNTER)(observation, task="fit")
    labels = [
        line.removeprefix("### ").partition(":")[0]
        for line in shown.messages[-1].text.split("\n")
        if line.startswith("### ")
    ]
    assert "cell-fit" in labels
    answers = References(observation, CONFIG, COUNTER)
    for label in labels:
        assert said(answers.call({"ref": f"ref:{label}"})).startswith(f"### report.ipynb/{label}: ")
    for ref in shown.references:
        assert said(answers.call({"ref": ref})).startswith(f"### {ref.removeprefix('ref:')}: ")


def test_the_end_of_an_id_is_enough_when_no_other_part_has_it():
    answers = references(text("src/app/main.py", "go()"), text("tests/a.py", "a"), text("src/a.py", "b"))
    assert said(answers.call({"ref": "main.py"})).startswith("### src/app/main.py: ")
    assert "There is no part ref:a.py" in said(answers.call({"ref": "a.py"}))


def test_unknown_references_name_the_nearest():
    shown = said(References(notebook(), CONFIG, COUNTER).call({"ref": "ref:report.ipynb/cell-lod"}))
    assert "There is no part ref:report.ipynb/cell-lod. Did you mean ref:report.ipynb/cell-load" in shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "ref is missing"),
        ({"ref": 3}, "ref is missing"),
        ({"ref": "a", "lines": 4}, "unknown arguments lines"),
        ({"ref": "a", "page": "2"}, "page must be a whole number, found '2'"),
        ({"ref": "a", "page": 0}, "page 0 of a does not exist; it has 1"),
        ({"ref": "a", "page": 9}, "page 9 of a does not exist; it has 1"),
        ({"ref": "a", "start": True}, "start must be a whole number"),
        ({"ref": "a", "search": ["x"]}, "search must be text"),
        ({"ref": "a", "region": [1, 2, 3]}, "region must be four whole numbers"),
        ({"ref": "a", "region": [1, 2, 3, 4]}, "a is no picture and has no regions"),
    ],
)
def test_wrong_arguments_are_answered_with_what_is_wrong(arguments: dict[str, Any], problem: str):
    shown = said(references(text("a", "words")).call(arguments))
    assert shown.startswith(f"fetch_part: {problem}")


def test_arguments_that_are_null_are_not_given():
    arguments = {"ref": "a", "page": None, "start": None, "search": None, "region": None}
    assert said(references(text("a", "words")).call(arguments)) == "### a: text, 1 line (page 1 of 1)\nwords"


@pytest.mark.parametrize("seed", range(12))
def test_no_answer_exceeds_its_size(seed: int):
    rng = random.Random(seed)
    observation = draw_observation(rng, max_parts=10, max_lines=40)
    long = text("long/" + "name" * 80, "word" * 3000)
    observation = Observation(parts=(*observation.parts, long))
    for size in (128, 300):
        answers = References(observation, CONFIG, COUNTER, size)
        for part in observation:
            for more in (
                {},
                {"start": 1},
                {"search": "price rows"},
                {"page": 10**9},
                {"region": [0, 0, 9, 9]},
            ):
                blocks = answers.call({"ref": part.id, **more})
                assert count_messages(COUNTER, [Message(role="user", content=blocks)]) <= size
        for ref in ("ref:", "x" * 5000, "\u2028" * 400):
            blocks = answers.call({"ref": ref})
            assert count_messages(COUNTER, [Message(role="user", content=blocks)]) <= size


def test_an_answer_needs_some_room():
    with pytest.raises(ValueError, match="at least 128, found 20"):
        references(text("a", "b"), max_tokens=20)


def test_the_tool_is_described_as_it_is_called():
    function = fetch_tool()["function"]
    properties = function["parameters"]["properties"]
    assert set(properties) == {"ref", "page", "start", "search", "region"}
    assert function["parameters"]["required"] == ["ref"]
