"""Documents of parts that were met before are the same objects; what changed, or is another kind, is not."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.llm.config import EstimateConfig
from sensorium.llm.estimate import EstimateCounter
from sensorium.observations.base import Part
from sensorium.observations.read import read
from sensorium.observations.values import ImageValue, ProblemValue, TextValue
from sensorium.representations.base import Document, Level, Lowered
from sensorium.representations.config import MultimodalConfig
from sensorium.representations.documents import DocumentCache
from sensorium.representations.layout.dispatch import lay_out
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.scoring import worth

CONFIG, COUNTER = MultimodalConfig(), EstimateCounter(EstimateConfig())


def text_part(text: str, part_id: str = "note", **more: object) -> Part:
    return Part(id=part_id, modality=Modality.TEXT, value=TextValue(text=text), **more)  # type: ignore[arg-type]


def test_equal_content_is_laid_out_once():
    documents = DocumentCache(CONFIG, COUNTER)
    first = documents.lay_out(text_part("one\ntwo"))
    again = documents.lay_out(text_part("one\ntwo", "elsewhere"))
    assert first is again
    assert first is not None
    assert first.document == lay_out(text_part("one\ntwo"), CONFIG)
    assert first.costs == [COUNTER.text("one") + 1, COUNTER.text("two") + 1]
    assert first.worth == worth(first.document)


def test_other_content_or_notes_are_another_document():
    documents = DocumentCache(CONFIG, COUNTER)
    first = documents.lay_out(text_part("one"))
    assert documents.lay_out(text_part("two")) is not first
    assert documents.lay_out(text_part("one", notes=("cut",))) is not first


def test_a_problem_is_told_with_the_place_it_is_at():
    documents = DocumentCache(CONFIG, COUNTER)
    value = ProblemValue(what="it is empty", where="b.txt")
    texts = []
    for part_id in ("a.txt", "b.txt"):
        measured = documents.lay_out(Part(id=part_id, modality=Modality.TEXT, value=value))
        assert measured is not None
        texts.append(measured.document.segments[0].text)
    assert "b.txt" in texts[0]
    assert "b.txt" not in texts[1]


def test_pictures_have_no_document():
    picture = Part(id="p", modality=Modality.IMAGE, value=ImageValue(url="https://example.org/a.png"))
    assert DocumentCache(CONFIG, COUNTER).lay_out(picture) is None


def test_memory_is_bounded_and_what_was_used_last_stays():
    documents = DocumentCache(CONFIG, COUNTER, limit_bytes=10_000)
    parts = [text_part(f"number {i} " + "x" * 300) for i in range(40)]
    kept = [documents.lay_out(part) for part in parts[:2]]
    for part in parts[2:]:
        documents.lay_out(part)
        assert documents.lay_out(parts[0]) is kept[0]
    assert documents.lay_out(parts[1]) is not kept[1]
    large = text_part("\n".join(f"line {i}" for i in range(100)))
    assert documents.lay_out(large) is not documents.lay_out(large)


def test_a_pipeline_that_has_met_a_state_says_the_same_as_one_that_has_not():
    lines = [f"step {i} wrote {i * i} rows to table_{i % 7}" for i in range(400)]
    states = ["\n".join([*lines[:i], "the limit is 42", *lines[i:]]) for i in (10, 390, 10)]
    known = ObservationPipeline()
    for state in states:
        for task in ("", "What is the limit?"):
            assert known({"run.log": state}, task=task) == ObservationPipeline()(
                {"run.log": state}, task=task
            )


def test_it_travels_to_other_processes_empty():
    documents = DocumentCache(CONFIG, COUNTER)
    documents.lay_out(text_part("one"))
    other = pickle.loads(pickle.dumps(documents))
    measured = other.lay_out(text_part("one"))
    assert measured is not None
    assert measured.document.segments[0].text == "one"


def test_what_is_shown_whole_is_not_weighed(monkeypatch: pytest.MonkeyPatch):
    asked: list[Document] = []
    make = Document.segments.fget
    assert make is not None
    monkeypatch.setattr(Document, "segments", property(lambda self: asked.append(self) or make(self)))
    pipeline = ObservationPipeline()
    code = "def area(width):\n    return width * 2\n\n\nLIMIT = 7\n" * 20
    state = {"notes.md": "# Title\n\nText of it.\n" * 30, "m.py": code}
    whole = pipeline(state, task="What is the limit?")
    assert {entry.level for entry in whole.account.entries} == {Level.FULL}
    assert asked == []
    small = pipeline.with_settings({"observation": {"max_tokens": 300}})
    assert small(state, task="What is the limit?").account.counts().get("summary", 0) > 0
    assert asked


def test_texts_are_those_of_the_segments():
    for raw in (
        {"a.md": "# A\n\none\n\n  \ntwo\n"},
        {"a.log": "12:00:00 INFO up\n  more\n" * 3},
        {"a.py": "x = 1\n\n\ny = 2"},
    ):
        document = lay_out(read(raw).parts[0], CONFIG)
        assert document is not None
        assert document.texts == tuple(segment.text for segment in document.segments)


@given(st.lists(st.text(alphabet="aİΣß\n 𝐀x", max_size=6), min_size=1, max_size=8), st.sampled_from("aσςi̇xß"))
def test_texts_with_a_word_are_found(texts: list[str], word: str):
    assert Lowered(texts).containing([word]) == [at for at, text in enumerate(texts) if word in text.lower()]
