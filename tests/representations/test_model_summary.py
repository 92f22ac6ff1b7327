from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply
from plain_counter import PlainCounter

from sensorium.core import Modality, parse_config
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import CellValue, OutputValue, TextValue
from sensorium.representations.base import Document, Level, Representation, Segment
from sensorium.representations.candidates import candidates
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.model_summary import DENSITY, with_model
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.scoring import Relevance
from sensorium.representations.subjects import Candidate, Context, Member, Subject
from sensorium.representations.summary import Sheet

COUNTER = PlainCounter()
LINES = [f"{name} walks slowly to the {place} of town" for name in ("Anna", "Bert") for place in "abcdefghij"]
LINES[4] = "ERROR the bridge is closed"


def said(text: str, first: int | None, last: int = 0, *, verified: bool = True) -> dict[str, Any]:
    if first is None:
        return {"text": text, "lines": None, "cited": [], "where": "", "verified": verified, "doubt": "?"}
    where = f"line {first}" if last <= first else f"lines {first}-{last}"
    lines = [first, max(first, last)]
    return {"text": text, "lines": lines, "cited": [lines], "where": where, "verified": verified, "doubt": ""}


def subject(*sentences: dict[str, Any], pinned: tuple[int, ...] = (5,), **changes: Any) -> Subject:
    text = "\n".join(LINES)
    part = Part(id="walk.txt", modality=Modality.TEXT, value=TextValue(text=text))
    segments = tuple(
        Segment(line, 1.0, f"line {number}", is_pinned=number in pinned)
        for number, line in enumerate(LINES, start=1)
    )
    sheet = Sheet("walk.txt", Document("text, 20 lines", segments), COUNTER, Relevance(""))
    data = {"sentences": list(sentences), "model": "light-1b", "num_lines": 20, "num_read": 20} | changes
    features = Features(part_id="walk.txt", extractor="summary", version="1", data=data)
    members = (Member(part, 0, len(segments)),)
    return Subject(members, "walk.txt", sheet, tokens=sheet.full_tokens, summary=features)


def config(ratio: float = 0.02, unverified: str = "mark") -> PipelineConfig:
    values = {"observation": {"compression_ratio": ratio}, "summaries": {"unverified": unverified}}
    return parse_config(PipelineConfig, values)


def context_of(settings: PipelineConfig) -> Context:
    return Context(settings, COUNTER, History())


def told(about: Subject, settings: PipelineConfig) -> list[Candidate]:
    return [c for c in with_model(about, [], context_of(settings)) if c.why.startswith("by ")]


def text_of(candidate: Candidate) -> str:
    (block,) = candidate.write()
    assert isinstance(block, TextBlock)
    return block.text


def test_sentences_stand_with_their_sources_above_what_is_pinned() -> None:
    about = subject(said("Anna walks.", 1, 10), said("It rains.", None, verified=False))
    smallest = told(about, config())[-1]
    assert text_of(smallest) == (
        "### walk.txt: text, 20 lines\n"
        "Summary by light-1b:\n"
        "Anna walks. [lines 1-10]\n"
        "It rains. (unverified)\n"
        "Most important lines:\n"
        "[... lines 1-4]\n"
        "ERROR the bridge is closed\n"
        "[... lines 6-20]"
    )
    assert smallest.level is Level.SUMMARY
    assert smallest.why == "by light-1b, 1 of 2 sentences verified, with 1 of 20 lines"
    assert smallest.tokens == COUNTER.text(text_of(smallest))


def test_unverified_sentences_are_left_out_when_asked() -> None:
    about = subject(said("Anna walks.", 1, 10), said("It rains.", None, verified=False), pinned=())
    smallest = told(about, config(unverified="omit"))[-1]
    assert text_of(smallest).endswith("Anna walks. [lines 1-10]\n[... lines 1-20]")
    assert smallest.why == "by light-1b, 1 of 2 sentences verified"


def test_without_a_verified_sentence_nothing_of_it_is_shown() -> None:
    assert told(subject(said("It rains.", None, verified=False)), config()) == []
    assert told(subject(), config()) == []
    about = subject(said("Anna walks.", 1, 10))
    about.summary = Features(part_id="walk.txt", extractor="summary", version="1", unavailable="down")
    assert told(about, config()) == []
    about.summary = None
    assert told(about, config()) == []


def test_what_it_retains_is_the_value_of_what_it_shows_and_cites() -> None:
    """Value that is shown counts whole; value that is cited as far as the sentence is long enough."""
    about = subject(said("Anna walks on.", 1, 4), said("Bert walks.", 11), said("No.", 20, verified=False))
    sheet = about.sheet
    assert sheet is not None
    values, costs = sheet.values, sheet.costs
    anna = min(1.0, DENSITY * 4 / sum(costs[0:4]))  # 14 characters are 4 tokens
    bert = min(1.0, DENSITY * 3 / costs[10])
    assert (sum(costs[0:4]), costs[10]) == (4 * 10, 10)
    assert (anna, bert) == (pytest.approx(12 / 40), pytest.approx(9 / 10))
    expected = anna * sum(values[0:4]) + values[4] + bert * values[10]
    assert told(about, config())[-1].retained == pytest.approx(expected / sum(values))


def test_summaries_are_as_long_as_the_compression_ratio_asks_for() -> None:
    about = subject(said("Anna walks.", 1, 10))
    full = about.sheet.full_tokens if about.sheet else 0
    found = told(about, config(ratio=0.3))
    assert all(candidate.tokens >= 0.25 * full for candidate in found)
    assert "Anna walks slowly" in text_of(found[-1])
    assert told(about, config(ratio=1.0)) == []


def test_they_grow_into_the_room_that_is_left() -> None:
    about = subject(said("Anna walks.", 1, 10))
    (smallest,) = told(about, config())[-1:]
    assert smallest.extend is not None
    larger = smallest.extend(smallest.tokens + 40)
    assert larger is not None
    assert smallest.tokens < larger.tokens <= smallest.tokens + 40
    assert larger.retained > smallest.retained
    assert "Anna walks. [lines 1-10]" in text_of(larger)
    assert smallest.extend(10) is None


def test_they_take_the_place_of_summaries_by_lines_of_the_same_size() -> None:
    about = subject(said("Anna walks.", 1, 10))
    found = candidates(about, context_of(config()))
    full = found[0].tokens
    by_lines = [c.tokens for c in found if c.level is Level.SUMMARY and not c.why.startswith("by ")]
    head = COUNTER.text("Summary by light-1b:\nAnna walks. [lines 1-10]") + 6
    assert by_lines
    assert all(not 2 * head <= tokens <= 0.35 * full for tokens in by_lines)
    assert any(c.why.startswith("by ") for c in found)


def test_a_part_that_was_not_read_whole_says_so() -> None:
    about = subject(said("Anna walks.", 1, 10), num_lines=900, num_read=20)
    assert "1 of 1 sentence verified, 20 of 900 lines read by it, with" in told(about, config())[-1].why


def test_outputs_shown_with_a_cell_are_not_lost() -> None:
    source = "\n".join(f"total_{i} = measure(sensor_{i}, retries={i})" for i in range(40))
    parts = [
        Part(
            id="n.ipynb/cell-0",
            modality=Modality.NOTEBOOK,
            value=CellValue(index=0, cell_type="code", source=source),
        ),
        Part(
            id="n.ipynb/cell-0/output-0",
            modality=Modality.NOTEBOOK,
            value=OutputValue(output_type="stream", text="mean 41.5"),
        ),
    ]
    reply = "It measures many sensors [1-40]."
    shown = observed(parts, Reply(reply), max_tokens=400)
    assert "It measures many sensors. [lines 1-40]" in shown.state[0].text
    assert "output-0: mean 41.5" in shown.state[0].text


LOG = "\n".join(
    "12:03:20 ERROR database connection lost after 30 s"
    if i == 200
    else f"12:{i // 60:02d}:{i % 60:02d} INFO worker {i % 7} handled request {i} in {i * 3 % 97} ms"
    for i in range(1, 400)
)
SAID = (
    "Workers handled requests [1-199]. The database connection was lost after 30 s [200]. "
    "Then it took 12345 ms to recover [201]."
)


def observed(
    raw: Any, reply: Reply, *, max_tokens: int = 1_000, folder: Path | None = None, **changes: Any
) -> Representation:
    with ChatServer([reply]) as server:
        endpoint = {"base_url": server.base_url, "model": "light-1b", "max_retries": 0}
        values = {
            "observation": {"max_tokens": max_tokens},
            "features": {
                "extractors": ["summary"],
                "settings": {"summary": {"model": endpoint, "min_chars": 1_000, "max_input_tokens": 20_000}},
                "cache": folder is not None,
                "cache_folder": folder and str(folder),
            },
        } | changes
        pipeline = ObservationPipeline(parse_config(PipelineConfig, values))
        try:
            return pipeline(Observation(parts=tuple(raw)) if isinstance(raw, list) else raw)
        finally:
            pipeline.close()


def test_from_the_endpoint_to_the_messages(tmp_path: Path) -> None:
    shown = observed(LOG, Reply(SAID), folder=tmp_path)
    (block,) = shown.state
    assert isinstance(block, TextBlock)
    assert (
        "Summary by light-1b:\n"
        "Workers handled requests. [lines 1-199]\n"
        "The database connection was lost after 30 s. [line 200]\n"
        "Then it took 12345 ms to recover. [line 201] (unverified)\n"
    ) in block.text
    assert "12:03:20 ERROR database connection lost after 30 s" in block.text, "errors are shown themselves"
    (entry,) = shown.account.entries
    assert entry.level is Level.SUMMARY
    assert entry.why.startswith("by light-1b, 2 of 3 sentences verified, with ")
    assert 0.0 < entry.retained < 1.0
    assert shown.num_tokens <= 1_000
    assert shown.account.cache_misses == 1
    again = observed(LOG, Reply(status=500), folder=tmp_path)
    assert again.state == shown.state, "from the cache"
    assert again.account.cache_hits == 1


def test_the_setting_reaches_the_messages() -> None:
    shown = observed(LOG, Reply(SAID), summaries={"unverified": "omit"})
    assert "lost after 30 s. [line 200]" in shown.state[0].text
    assert "12345" not in shown.state[0].text


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (Reply(status=500, body=b"out of memory"), "out of memory"),
        (Reply("I cannot help with that. Ask again later."), "only 0 of 2 sentences by light-1b"),
    ],
    ids=["down", "nonsense"],
)
def test_without_a_usable_summary_lines_are_chosen_as_ever(reply: Reply, note: str) -> None:
    shown = observed(LOG, reply)
    assert "ERROR database connection lost" in shown.state[0].text
    assert "Summary by" not in shown.state[0].text
    (entry,) = shown.account.entries
    assert entry.level is Level.SUMMARY
    assert any("summary" in text and note in text for text in shown.account.notes)


def test_what_fits_whole_is_sent_whole() -> None:
    shown = observed(LOG, Reply(SAID), max_tokens=40_000)
    assert "Summary by" not in shown.state[0].text
    assert shown.account.entries[0].level is Level.FULL


@pytest.mark.parametrize("max_tokens", [60, 100, 150, 200, 300, 500, 800, 1_300, 3_000, 8_000])
def test_no_budget_is_exceeded(max_tokens: int, tmp_path: Path) -> None:
    shown = observed(LOG, Reply(SAID), max_tokens=max_tokens, folder=tmp_path)
    assert shown.num_tokens <= max_tokens
