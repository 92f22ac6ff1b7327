"""The account tells of every part what became of it, in figures that fit the messages."""

from pathlib import Path

import pytest
from drawn_states import COUNTER, draw_case, draw_observation
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from part_strategies import observations

from sensorium.core import ObservationError
from sensorium.core.types import Modality
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import TextBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.read import read
from sensorium.observations.values import CellValue, OutputValue, StackTrace, TextValue
from sensorium.representations.adaptive import AdaptiveState
from sensorium.representations.align import interleave
from sensorium.representations.base import Account, Level, Representation
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.session import SessionState

LOG = "\n".join(f"step {i} took {i * 37 % 91} ms on host h{i % 7}" for i in range(300))
ROUND_TRIP = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def pipeline(max_tokens: int = 8192, **sections: object) -> ObservationPipeline:
    config = PipelineConfig().updated({"observation": {"max_tokens": max_tokens}, **sections})
    return ObservationPipeline(config, counter=COUNTER)


def texts(**named: str) -> Observation:
    """A part of text for each name."""
    return Observation(
        parts=tuple(
            Part(id=name, modality=Modality.TEXT, value=TextValue(text=text)) for name, text in named.items()
        )
    )


def cell_and_output(output: str, error: StackTrace | None = None) -> Observation:
    cell = CellValue(index=0, cell_type="code", source="x = load()\nx.fit()\nprint(x)")
    out = OutputValue(output_type="error" if error else "stream", text=output, stream=None, error=error)
    return Observation(
        parts=(
            Part(id="nb/cell-0", modality=Modality.NOTEBOOK, value=cell),
            Part(id="nb/cell-0/output-0", modality=Modality.NOTEBOOK, value=out),
        )
    )


def test_every_part_has_one_entry_in_order_and_figures_add_up():
    checked = 0
    for number in range(4000, 4150):
        case = draw_case(number)
        run = ObservationPipeline(case.config, counter=COUNTER)
        try:
            rep = run(case.observation, task=case.task, history=case.history, system=case.system)
        except ObservationError:
            continue
        entries = rep.account.entries
        kept = case.config.context_management.keep_current_state
        in_time = [part.id for part in interleave(case.observation.parts)]
        assert [e.part_id for e in entries] == (in_time if kept else [])
        assert sum(rep.account.counts().values()) == len(entries)
        for entry in entries:
            assert 0.0 <= entry.retained <= 1.0, (number, entry)
            assert entry.tokens_after >= 0
            assert entry.tokens_before >= 1
            assert entry.why
            assert entry.digest == case.observation[entry.part_id].digest
            if entry.level is Level.DROPPED:
                assert entry.tokens_after == 0
                assert entry.retained == 0.0, (number, entry)
            if entry.ref is not None:
                assert entry.ref == f"ref:{entry.part_id}"
        shares = sum(e.tokens_after for e in entries)
        heading = 220  # heading, guide, at most five errors and the line at the end
        slack = 3 * len(entries) + 3
        assert rep.account.state_tokens - heading - slack <= shares <= rep.account.state_tokens + slack, (
            number
        )
        checked += 1
    assert checked > 100


def test_levels_and_reasons_from_whole_to_nothing():
    rep = pipeline(700)(texts(small="the pump is off", log=LOG), task="Is the pump off?")
    assert rep.account.entry("small").level is Level.FULL
    assert rep.account.entry("small").why.startswith("whole (relevance")
    assert rep.account.entry("small").ref is None
    log = rep.account.entry("log")
    assert log.level is Level.SUMMARY
    assert " of 300 lines" in log.why
    assert log.ref == "ref:log"
    assert 0 < log.tokens_after < log.tokens_before
    assert "ref:log" in rep.references


def test_what_has_no_room_is_a_reference_or_dropped_and_counted():
    parts = tuple(
        Part(id=f"note-{i}", modality=Modality.TEXT, value=TextValue(text=f"note {i}: " + "word " * 60))
        for i in range(40)
    )
    rep = pipeline(300)(Observation(parts=parts))
    counts = rep.account.counts()
    assert set(counts) & {"reference", "dropped"}
    hidden = counts.get("dropped", 0)
    assert f"[{hidden} more not shown" in rep.messages[-1].text
    for entry in rep.account.entries:
        if entry.level in (Level.DROPPED, Level.REFERENCE):
            assert entry.why.startswith("no room")


def test_user_weight_error_and_cause_are_named_as_reasons():
    error = StackTrace(type="KeyError", message="'x'")
    observation = cell_and_output("KeyError: 'x'", error)
    heavy = observation.parts[0].model_copy(update={"importance": 3.0})
    rep = pipeline()(Observation(parts=(heavy, observation.parts[1])))
    assert rep.account.entry("nb/cell-0").why == "whole (user weight 3, belongs to an error, relevance 0.06)"
    assert rep.account.entry("nb/cell-0").weight == pytest.approx(3.0 * 2.0 * (1.0 + 3.0 * 0.0628), rel=1e-3)
    assert rep.account.entry("nb/cell-0/output-0").why == "whole (error, relevance 0.50)"
    assert "! cell-0/output-0: KeyError: 'x'" in rep.messages[-1].text


def test_a_short_output_is_shown_with_its_cell_and_has_an_entry_of_its_own():
    rep = pipeline()(cell_and_output("(1204, 6)"))
    text = rep.messages[-1].text
    assert text.count("###") == 1
    assert "# output-0: (1204, 6)" in text
    cell, output = rep.account.entries
    assert output.why.startswith("with its cell")
    assert output.level is cell.level is Level.FULL
    assert cell.tokens_after > output.tokens_after > 0


def test_a_part_of_infinite_or_no_importance_is_like_any_other():
    for importance in (0.0, 1e-300, 1e300, float("inf")):
        part = Part(id="a", modality=Modality.TEXT, value=TextValue(text=LOG), importance=importance)
        other = Part(id="b", modality=Modality.TEXT, value=TextValue(text="the pump is off"))
        rep = pipeline(600)(Observation(parts=(part, other)))
        assert rep.num_tokens <= 600
        assert rep.account.entry("a").weight == rep.account.entry("a").weight  # not NaN


def test_the_more_important_part_keeps_more():
    def shares(first: float) -> tuple[int, int]:
        parts = tuple(
            Part(
                id=name,
                modality=Modality.TEXT,
                value=TextValue(text=LOG.replace("host", name)),
                importance=weight,
            )
            for name, weight in (("a", first), ("b", 1.0))
        )
        rep = pipeline(900)(Observation(parts=parts))
        return rep.account.entry("a").tokens_after, rep.account.entry("b").tokens_after

    light, heavy = shares(0.1), shares(10.0)
    assert heavy[0] > light[0]
    assert heavy[0] > heavy[1]
    assert light[0] < light[1]


def test_an_account_says_which_part_it_does_not_have():
    rep = pipeline()("words")
    with pytest.raises(KeyError, match="nowhere"):
        rep.account.entry("nowhere")


@ROUND_TRIP
@given(observations())
def test_observations_survive_json(observation: Observation):
    again = Observation.model_validate_json(observation.model_dump_json())
    assert [part.digest for part in again.parts] == [part.digest for part in observation.parts]
    assert again.model_dump_json() == observation.model_dump_json()


@ROUND_TRIP
@given(observations(), st.integers(30, 3000), st.booleans())
def test_representations_accounts_and_sessions_survive_json(observation: Observation, size: int, keeps: bool):
    run = pipeline(size, context_management={"drop_full_history": not keeps})
    shown = run(observation, task="price")
    for record in (shown, shown.account):
        kind = type(record)
        again = kind.model_validate_json(record.model_dump_json())
        assert again.model_dump_json() == record.model_dump_json()
    assert Representation.model_validate_json(shown.model_dump_json()).messages == shown.messages
    history = History().after("look", shown, observation=observation, outcome="ok", reward=0.5)
    state = SessionState(
        task="t", history=history, adaptive=AdaptiveState(weights={"text": 2.0}, success=0.5)
    )
    back = SessionState.model_validate_json(state.model_dump_json())
    assert back.model_dump_json() == state.model_dump_json()
    assert run(observation, task="price", history=back.history) == run(
        observation, task="price", history=history
    )


@ROUND_TRIP
@given(
    st.none() | st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
    st.none() | st.text(max_size=9),
)
def test_features_survive_json(vector: list[float] | None, data: dict[str, object], reason: str | None):
    found = Features(
        part_id="a",
        extractor="sentence",
        version="1",
        vector=vector,
        data=data,
        unavailable=reason,
        seconds=0.5,
    )
    again = Features.model_validate_json(found.model_dump_json())
    assert again.model_dump_json() == found.model_dump_json()
    assert again.data == found.data
    if vector is not None:
        assert again.vector is not None
        assert again.vector.tolist() == vector
        assert not again.vector.flags.writeable


def test_the_trace_has_all_three_layers():
    trace = pipeline().trace(texts(a="one", b="two"), task="two")
    assert [part.id for part in trace.observation] == ["a", "b"]
    assert trace.shown("b") == (TextBlock(text="### b: text, 1 line\ntwo"),)
    assert trace.shown("nowhere") == ()
    assert isinstance(trace.representation.account, Account)


def test_an_empty_state_is_an_empty_message():
    rep = pipeline()(Observation())
    assert rep.account.entries == ()
    assert rep.num_tokens == COUNTER.message_overhead
    assert rep.chat() == [{"role": "user", "content": ""}]


def test_the_drawn_states_cover_every_kind():
    import random

    kinds = {part.value.kind for seed in range(60) for part in draw_observation(random.Random(seed))}
    assert len(kinds) == 12
    assert read("x").parts[0].value.kind in kinds


def test_a_part_that_says_it_is_the_same_as_another_is_taken_for_no_twin():
    state = texts(**{"same as": "same as ref:first\n" * 200, "first": "one\n" * 200})
    for limit in (60, 120, 300):
        entries = pipeline(limit)(state).account.entries
        assert [entry.part_id for entry in entries] == ["same as", "first"]


def test_the_list_of_a_directory_is_shown_when_its_files_have_no_room(tmp_path: Path):
    for number in range(400):
        (tmp_path / f"{number:03d}.txt").write_text(f"value {number} = {number * 7}\nname of {number}\n")
    rep = pipeline(2_000)(tmp_path)
    assert rep.account.entries[0].level is not Level.DROPPED
    assert "400 files" in rep.messages[-1].text
    assert "lists other parts" in rep.account.entries[0].why
