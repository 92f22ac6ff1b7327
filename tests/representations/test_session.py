"""What an episode remembers: actions, what the agent saw, changes relative to what it still sees."""

import json
from typing import Any

import pytest
from delta_notebooks import Cell, notebook
from drawn_states import COUNTER

from sensorium.core import ObservationError
from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import TextValue
from sensorium.representations.base import Level, Representation
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History, one_line, previous_actions
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.session import Session, SessionState

BODY = [f"line {i}: valve {i * 7 % 31} at {i * 13 % 97} bar" for i in range(60)]


def pipeline(**sections: Any) -> ObservationPipeline:
    return ObservationPipeline(PipelineConfig().updated(sections), counter=COUNTER)


def keeping(max_tokens: int = 30_000, **delta: Any) -> ObservationPipeline:
    """One that sends earlier states, too."""
    return pipeline(
        observation={"max_tokens": max_tokens}, context_management={"drop_full_history": False}, delta=delta
    )


def page(*edits: str, name: str = "a") -> Observation:
    """A text of which some lines were edited."""
    text = "\n".join([*edits, *BODY[len(edits) :]])
    return Observation(parts=(Part(id=name, modality=Modality.TEXT, value=TextValue(text=text)),))


def walk(run: ObservationPipeline, states: list[Observation]) -> tuple[list[Representation], History]:
    history, shown = History(), []
    for number, state in enumerate(states, start=1):
        rep = run(state, task="Find the leak", history=history)
        history = history.after(f"act {number}", rep, observation=state, outcome="ok")
        shown.append(rep)
    return shown, history


def levels(shown: list[Representation]) -> list[str]:
    return [rep.account.entries[0].level.value for rep in shown]


def last(rep: Representation) -> str:
    return "\n".join(block.text for block in rep.state if block.type == "text")


def test_previous_actions_are_the_last_ones_with_outcome_and_reward():
    history = History()
    rep = pipeline()("x")
    for number in range(1, 8):
        history = history.after(
            f"run\n  cell {number}", rep, outcome=f"KeyError {number}", reward=0.5 if number == 7 else None
        )
    assert previous_actions(history, 2) == [
        "6. run cell 6 -> KeyError 6",
        "7. run cell 7 -> KeyError 7 (reward 0.5)",
    ]
    assert previous_actions(history, 0) == []
    assert len(previous_actions(history, 50)) == 7
    run = pipeline(context_management={"keep_previous_actions": 3})
    text = run("now", history=history).messages[-1].text
    assert text.startswith("## Previous actions\n5. run cell 5 -> KeyError 5\n6. ")


def test_actions_that_do_not_fit_go_oldest_first():
    history = History()
    for number in range(1, 6):
        history = history.after(f"step {number} " + "word " * 30, pipeline()("x"))
    rep = pipeline(observation={"max_tokens": 400})("state", task="t", history=history)
    text = rep.messages[-1].text
    assert "5. step 5" in text
    assert "1. step 1" not in text
    assert rep.num_tokens <= 400
    assert rep.account.history_tokens > 30


def test_long_actions_keep_both_ends():
    line = one_line("begin " + "x" * 900 + " end", 100)
    assert line.startswith("begin x")
    assert line.endswith("x end")
    assert len(line) <= 100


def test_a_history_is_left_as_it_is():
    rep = pipeline()("x")
    before = History()
    after = before.after("look", rep)
    assert before == History()
    assert len(after.steps) == 1
    assert after.after("look", rep) == after.after("look", rep)


def test_what_was_shown_is_kept_only_where_it_is_asked_for():
    rep = pipeline()("x")
    kept, left = History().after("look", rep), History().after("look", rep, keep_state=False)
    assert kept.steps[0].state == rep.state
    assert left.steps[0].state == ()
    assert (left.steps[0].action, left.shown, left.met) == ("look", kept.shown, kept.met)


def test_new_changed_and_unchanged_parts_weigh_differently():
    def state(**texts: str) -> Observation:
        return Observation(
            parts=tuple(
                Part(id=name, modality=Modality.TEXT, value=TextValue(text=text))
                for name, text in texts.items()
            )
        )

    run = pipeline(delta={"enabled": False})
    before = state(a="one valve", b="two valves")
    history = History().after("look", run(before), observation=before)
    account = run(state(a="one valve", b="three valves", c="four"), history=history).account
    assert account.entry("a").weight == 0.5
    assert account.entry("b").weight == 2.0
    assert account.entry("b").why == "whole (changed)"
    assert account.entry("c").why == "whole (new)"


def test_what_the_agent_still_sees_is_not_sent_again():
    shown, _ = walk(keeping(), [page(), page()])
    assert levels(shown) == ["full", "delta"]
    entry = shown[1].account.entries[0]
    assert entry.tokens_after == 0
    assert entry.retained == 1.0
    assert entry.why.startswith("unchanged since step 1")
    assert "[1 unchanged: see above]" in last(shown[1])
    assert BODY[30] in shown[1].messages[0].text


def test_a_change_is_sent_instead_of_the_state_and_says_since_when():
    shown, history = walk(
        keeping(),
        [page(), page("edited once"), page("edited once", "and twice"), page("edited once", "and twice")],
    )
    assert levels(shown) == ["full", "delta", "delta", "delta"]
    assert "since step 1" in last(shown[1])
    assert "edited once" in last(shown[1])
    assert "since step 2" in last(shown[2]), "the second change is one of what the first had made"
    assert "\n+ 2  and twice" in last(shown[2])
    assert "+ 1" not in last(shown[2])
    assert shown[3].account.entries[0].why.startswith("unchanged since step 3")
    assert shown[2].account.state_tokens < shown[0].account.state_tokens / 4
    assert history.shown["a"].keyframe == 0
    assert history.shown["a"].deltas == 2


def test_after_so_many_changes_the_whole_is_sent():
    states = [page(*(f"edit {i}" for i in range(count))) for count in range(7)]
    shown, _ = walk(keeping(keyframe_every=3), states)
    assert levels(shown) == ["full", "delta", "delta", "full", "delta", "delta", "full"]


def test_large_changes_are_sent_whole():
    rewritten = page(*(f"all new {i * 37}" for i in range(55)))
    shown, _ = walk(keeping(), [page(), rewritten])
    assert levels(shown) == ["full", "full"]
    shown, _ = walk(keeping(enabled=False), [page(), page("edited")])
    assert levels(shown) == ["full", "full"]


@pytest.mark.parametrize("max_tokens", [3000, 6000])
def test_a_change_leans_only_on_what_is_still_in_the_context(max_tokens: int):
    """Long histories push the whole state out of the window; then it is sent again."""
    states = [page(*(f"edit {i} of {step}" for i in range(step % 9))) for step in range(24)]
    run = keeping(max_tokens, keyframe_every=1000)
    history = History()
    renewed = 0
    for number, state in enumerate(states, start=1):
        rep = run(state, task="Find the leak", history=history)
        entry = rep.account.entries[0]
        included = (len(rep.messages) - 1) // 2
        first = len(history.steps) - included
        if entry.level is Level.DELTA and entry.retained == 1.0:
            assert history.shown["a"].keyframe >= first, number
            assert any(BODY[-1] in message.text for message in rep.messages[:-1]), number
        renewed += entry.level is Level.FULL
        assert rep.num_tokens <= max_tokens
        filler = " ".join(f"word{i * number}" for i in range(60))
        history = history.after(f"act {number} {filler}", rep, observation=state)
    assert 1 < renewed < 24


def test_without_earlier_states_a_change_does_not_claim_to_tell_all():
    run = pipeline(observation={"max_tokens": 200, "compression_ratio": 1.0})
    history = History()
    rep = ObservationPipeline(counter=COUNTER)(page(), task="leak")
    history = history.after("look", rep, observation=page())
    found = run(page("edited"), task="leak", history=history).account.entries[0]
    assert found.level is Level.DELTA
    assert found.retained < 1.0
    again = run(page(), task="leak", history=history).account.entries[0]
    assert again.tokens_after > 0, "unseen, it is not passed over in silence"


def test_what_was_shown_in_part_only_is_no_base_of_changes():
    run = pipeline(observation={"max_tokens": 200})
    rep = run(page(), task="leak")
    assert rep.account.entries[0].level is Level.SUMMARY
    history = History().after("look", rep, observation=page())
    assert history.shown == {}
    assert set(history.met) == {"a"}


def cells(step: int) -> list[Cell]:
    """A notebook that is edited, run and extended."""
    found = [
        Cell(
            source="\n".join(f"x{i}_{at} = load({i * at})" for i in range(6)),
            name=f"c{at}",
            output=f"{at * 11} rows read",
            count=at + 1,
        )
        for at in range(6 + step // 3)
    ]
    at = step % 5
    found[at] = found[at]._replace(
        source=found[at].source + f"\nprint(x1_{at} + {step})", output=f"{step} was printed", count=20 + step
    )
    return found


@pytest.mark.parametrize("drops", [True, False])
def test_a_session_that_went_through_json_gives_the_same_prompts(drops: bool):
    run = pipeline(
        observation={"max_tokens": 1500},
        context_management={"drop_full_history": drops},
        adaptive={"enabled": True},
    )
    local = Session(run, "Why is x1 wrong?", system="You repair notebooks.")
    stored = local.state.model_dump_json()
    for step in range(10):
        observation = notebook(cells(step))
        remote = Session(run, "", state=SessionState.model_validate_json(stored))
        here, there = (
            local.observe(observation),
            remote.observe(Observation.model_validate_json(observation.model_dump_json())),
        )
        assert here.model_dump_json() == there.model_dump_json(), step
        assert json.dumps(here.chat()) == json.dumps(there.chat())
        action = f"edit cell {step}: x1_{step % 5}"
        used = local.acted(action, outcome=f"{step} was printed", reward=0.1 * step)
        assert remote.acted(action, outcome=f"{step} was printed", reward=0.1 * step) == used
        stored = remote.state.model_dump_json()
        assert stored == local.state.model_dump_json()
    assert len(local.history.steps) == 10


def test_changes_are_shown_along_a_session():
    session = Session(keeping(4000), "Watch the valves")
    session.observe(page())
    session.acted("look")
    assert session.observe(page("edited")).account.entries[0].level is Level.DELTA


def test_a_session_must_observe_before_it_acts_or_fetches():
    session = Session(pipeline(), "t")
    with pytest.raises(ObservationError, match=r"Cannot record an action: call observe\(...\)"):
        session.acted("look")
    with pytest.raises(ObservationError, match="Cannot fetch a part"):
        session.fetch({"ref": "ref:"})
    session.observe(page())
    answer = session.fetch({"ref": "ref:a", "search": "line 59"})
    assert answer[0].type == "text"
    session.acted("look")
    with pytest.raises(ObservationError, match="call observe"):
        session.acted("look again")
