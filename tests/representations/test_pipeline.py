"""The pipeline as it is called: alone, in batches, from threads and event loops, with a check of pictures."""

import asyncio
import io
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from chat_server import Asked, ChatServer, Reply
from drawn_states import COUNTER, draw_observation
from media_parts import picture_part
from PIL import Image

from sensorium.core.types import Modality
from sensorium.features.extractors import registry
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import ImageBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import TextValue
from sensorium.representations.base import Level
from sensorium.representations.candidates import REFERENCE_RETAINED
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.media.store import MediaStore
from sensorium.representations.pipeline import ObservationPipeline

RED = np.full((40, 60, 3), (200, 30, 30), dtype=np.uint8)
BLUE = np.full((40, 60, 3), (30, 30, 200), dtype=np.uint8)


def pipeline(**sections: Any) -> ObservationPipeline:
    return ObservationPipeline(PipelineConfig().updated(sections), counter=COUNTER)


def drawn(seed: int) -> Observation:
    return draw_observation(random.Random(seed), max_parts=8)


class Slow:
    """An extractor that waits until it is let go on."""

    name, version = "slow", "1"
    go_on = threading.Event()

    def accepts(self, part: Part) -> bool:
        return isinstance(part.value, TextValue)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        assert self.go_on.wait(20)
        return [Features(part_id=part.id, extractor="slow", version="1", summary="seen") for part in parts]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[Slow]:
    monkeypatch.setitem(registry.EXTRACTORS, "slow", f"{__name__}:Slow")
    monkeypatch.setattr(registry, "_load", lambda name: Slow)
    Slow.go_on.clear()
    return Slow


def test_aobserve_gives_what_a_call_gives_and_leaves_the_loop_free(slow: type[Slow]):
    run = pipeline(features={"extractors": ["slow"], "cache": False})

    async def main() -> None:
        observing = asyncio.create_task(run.aobserve("a state", task="t"))
        turns = 0
        while turns < 50:  # the loop goes on turning while the extractor waits
            await asyncio.sleep(0.001)
            turns += 1
        assert not observing.done()
        slow.go_on.set()
        found = await observing
        assert found.messages == run("a state", task="t").messages

    asyncio.run(main())
    run.close()


def test_reading_and_layout_do_not_run_on_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    run, threads = pipeline(), set()
    monkeypatch.setattr(ObservationPipeline, "_read", _noting(ObservationPipeline._read, threads))
    monkeypatch.setattr(ObservationPipeline, "_represent", _noting(ObservationPipeline._represent, threads))

    async def main() -> int:
        await run.aobserve("a state")
        return threading.get_ident()

    assert asyncio.run(main()) not in threads
    assert threads


def _noting(function: Callable[..., Any], threads: set[int]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        threads.add(threading.get_ident())
        return function(*args, **kwargs)

    return noted


def test_many_at_once_from_one_loop():
    run = pipeline(observation={"max_tokens": 300})
    states = [drawn(seed) for seed in range(12)]

    async def main() -> list[Any]:
        return await asyncio.gather(*(run.aobserve(state, task="price") for state in states))

    assert asyncio.run(main()) == [run(state, task="price") for state in states]


def test_a_batch_equals_single_calls():
    run = pipeline(observation={"max_tokens": 400})
    states = [drawn(seed) for seed in range(20, 32)]
    tasks = [f"task {number}" for number in range(len(states))]
    histories = [
        None if number % 2 else History().after("look", run(state), observation=state)
        for number, state in enumerate(states)
    ]
    batch = run.observe_batch(states, tasks=tasks, histories=histories)
    single = [run(s, task=t, history=h) for s, t, h in zip(states, tasks, histories, strict=True)]
    assert batch == single
    assert run.observe_batch([], tasks="t") == []
    with pytest.raises(ValueError, match="2 states, 1 tasks and 2 histories do not fit"):
        run.observe_batch(["a", "b"], tasks=["t"])


def test_features_of_a_batch_are_extracted_as_one():
    run = pipeline(features={"extractors": ["sentiment"], "cache": False})
    pytest.importorskip("vaderSentiment")
    batch = run.observe_batch(["what a lovely day", "a dreadful error"], tasks="t")
    single = [run(text, task="t") for text in ("what a lovely day", "a dreadful error")]
    assert [rep.messages for rep in batch] == [rep.messages for rep in single]
    run.close()


def test_one_pipeline_serves_many_threads():
    run = pipeline(observation={"max_tokens": 350})
    states = [drawn(seed) for seed in range(40, 64)]
    expected = [run(state, task="price of x").model_dump_json() for state in states]
    fresh = pipeline(observation={"max_tokens": 350})
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            found = list(pool.map(lambda state: fresh(state, task="price of x").model_dump_json(), states))
            assert found == expected


def test_the_same_picture_is_sent_once():
    parts = (picture_part(RED, "first"), picture_part(BLUE, "other"), picture_part(RED, "again"))
    rep = pipeline()(Observation(parts=parts))
    assert sum(isinstance(block, ImageBlock) for block in rep.state) == 2
    entry = rep.account.entry("again")
    assert entry.level is Level.REFERENCE
    assert entry.why == "same as ref:first"
    assert entry.retained == 1.0
    assert "[ref:again: same as ref:first]" in rep.messages[-1].text


def test_texts_and_pictures_that_all_fit_are_shown_without_a_choice(monkeypatch: pytest.MonkeyPatch):
    picture = Image.fromarray(np.full((40, 60, 3), 90, np.uint8))
    raw = {"notes.md": "# Plan\n" + "Go on as before. " * 40, "screen.png": picture}
    expected = pipeline(observation={"max_tokens": 8_192})(raw)
    monkeypatch.setattr("sensorium.representations.selection.candidates", None)  # a call would fail
    rep = pipeline(observation={"max_tokens": 8_192})(raw)
    assert rep == expected
    assert [entry.level for entry in rep.account.entries] == [Level.FULL, Level.FULL]
    assert sum(isinstance(block, ImageBlock) for block in rep.state) == 1
    with pytest.raises(TypeError):
        pipeline(observation={"max_tokens": 200})(raw)


def test_a_duplicate_retains_what_the_first_does():
    photo = Image.effect_noise((1024, 768), 60).convert("RGB")
    parts = (
        picture_part(photo, "first"),
        picture_part(photo, "again").model_copy(update={"importance": 3.0}),
    )
    whys = set()
    for size in (2000, 700, 200, 60, 30):
        rep = pipeline(observation={"max_tokens": size})(Observation(parts=parts))
        first, again = rep.account.entry("first"), rep.account.entry("again")
        assert first.weight == again.weight == 3.0
        if again.level is Level.REFERENCE:
            assert again.retained == max(first.retained, REFERENCE_RETAINED)
            whys.add((first.level, again.why.partition(" (")[0]))
    assert whys >= {
        (Level.FULL, "same as ref:first"),
        (Level.THUMBNAIL, "same as ref:first, which is a thumbnail"),
    }
    assert any(level in (Level.REFERENCE, Level.DROPPED) for level, _ in whys)


def judged(answers: dict[str, str]) -> Callable[[Asked], Reply]:
    """Says of pictures by their colour: red is unsafe, blue is safe, green cannot be judged."""

    def reply(asked: Asked) -> Reply:
        red, _, blue = Image.open(io.BytesIO(asked.pictures[0])).convert("RGB").getpixel((1, 1))
        colour = "red" if red > 100 else "blue" if blue > 100 else "green"
        return Reply(text=answers[colour])

    return reply


def test_pictures_that_are_not_judged_safe_are_withheld():
    answers = {
        "red": '{"verdict": "unsafe", "categories": ["violence"], "reason": "blood"}',
        "blue": '{"verdict": "safe", "categories": [], "reason": "a plain surface"}',
        "green": "I would rather not say.",
    }
    green = np.full((40, 60, 3), (10, 90, 10), dtype=np.uint8)
    parts = (picture_part(RED, "red"), picture_part(BLUE, "blue"), picture_part(green, "green"))
    with ChatServer(judged(answers)) as server:
        judge = {"base_url": server.base_url, "model": "judge-7b", "max_retries": 0}
        settings = {"safety": {"judge": judge, "cache": False}}
        run = pipeline(features={"extractors": ["safety"], "settings": settings, "cache": False})
        trace = run.trace(Observation(parts=parts))
        rep = trace.representation
        fetched = [run.references(trace).call({"ref": f"ref:{name}"}) for name in ("red", "blue", "green")]
        run.close()
    assert [entry.part_id for entry in rep.account.entries if entry.level is Level.FULL] == ["blue"]
    assert sum(isinstance(block, ImageBlock) for block in rep.state) == 1
    for name in ("red", "green"):
        assert "safety check" in rep.account.entry(name).why
    assert [any(isinstance(b, ImageBlock) for b in blocks) for blocks in fetched] == [False, True, False]


def test_without_the_check_all_pictures_are_sent():
    parts = (picture_part(RED, "red"), picture_part(BLUE, "blue"))
    rep = pipeline()(Observation(parts=parts))
    assert rep.account.counts() == {"full": 2}


def test_pictures_are_served_by_address():
    store = MediaStore()
    config = PipelineConfig().updated({"multimodal": {"image": {"encoding": "url"}}})
    run = ObservationPipeline(config, counter=COUNTER, serve=store.server("http://here/media"))
    rep = run(Observation(parts=(picture_part(RED, "red"),)))
    block = next(block for block in rep.state if isinstance(block, ImageBlock))
    name = block.url.removeprefix("http://here/media/")
    media = store.get(name)
    assert media is not None
    assert media.mime in ("image/png", "image/jpeg")


def test_an_unavailable_extractor_is_noted_in_the_account():
    run = pipeline(features={"extractors": ["safety"], "cache": False})
    rep = run(Observation(parts=(picture_part(RED, "red"),)))
    run.close()
    assert any("safety" in note and "no judge is configured" in note for note in rep.account.notes)
    assert rep.account.entry("red").level is not Level.FULL, "unjudged is not safe"


def test_an_observation_is_taken_as_it_is():
    part = Part(id="a", modality=Modality.TEXT, value=TextValue(text="words"))
    observation = Observation(parts=(part,))
    assert pipeline().trace(observation).observation is observation


def test_a_state_that_raises_when_it_is_read_is_told():
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    rep = pipeline()(Hostile())
    assert len(rep.account.entries) == 1
    assert rep.num_tokens > 0


@pytest.mark.parametrize("limit", [1500, 3000, 6000])
def test_marks_that_cost_more_than_was_estimated_do_not_leave_the_budget_unused(limit: int):
    # One line in ten says something: marks with numbers of four digits stand between all that are kept.
    lines = [f"total_{i} = load(rows[{i}], limit={i * 7})" if i % 10 == 0 else "pass" for i in range(4000)]
    observe = pipeline(multimodal={"code": {"max_lines": 100_000}}, observation={"max_tokens": limit})
    representation = observe({"loads.py": "\n".join(lines)})
    assert 0.9 * observe.config.observation.state_limit < representation.num_tokens <= limit
