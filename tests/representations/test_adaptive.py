"""Learnt weights: bounded, in the right direction, reported; and they move the budget."""

import math
import random

import pytest
from drawn_states import COUNTER

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import CellValue, OutputValue, StackTrace, TextValue
from sensorium.representations.adaptive import Adaptive, AdaptiveState
from sensorium.representations.base import Representation
from sensorium.representations.config import AdaptiveConfig, PipelineConfig
from sensorium.representations.pipeline import ObservationPipeline
from sensorium.representations.session import Session, SessionState

RATE = AdaptiveConfig(enabled=True, rate=0.5)


def state(number: int) -> Observation:
    """A cell, its long error, and a long text: each with words of its own."""
    rng = random.Random(number)
    error = StackTrace(type="KeyError", message=f"'column{number}'")
    trace = "\n".join(f"frame {i} of module{number}x{i} at {rng.randrange(900)}" for i in range(60))
    prose = "\n".join(f"remark {i} speaks of topic{number}y{i} and {rng.randrange(900)}" for i in range(60))
    cell = CellValue(index=0, cell_type="code", source=f"load('column{number}')")
    output = OutputValue(output_type="error", text=f"{trace}\nKeyError: 'column{number}'", error=error)
    return Observation(
        parts=(
            Part(id="nb/cell-0", modality=Modality.NOTEBOOK, value=cell),
            Part(id="nb/cell-0/output-0", modality=Modality.NOTEBOOK, value=output),
            Part(id="nb/notes", modality=Modality.TEXT, value=TextValue(text=prose), importance=4.0),
        )
    )


def pipeline(**adaptive: float | bool) -> ObservationPipeline:
    config = PipelineConfig().updated(
        {
            "observation": {"max_tokens": 900},
            "adaptive": {"enabled": True, "rate": 0.5, **adaptive},
            "context_management": {"keep_previous_actions": 0},
            "delta": {"enabled": False},
        }
    )
    return ObservationPipeline(config, counter=COUNTER)


def shown(observation: Observation) -> Representation:
    return pipeline()(observation)


def share(rep: Representation, part_id: str) -> float:
    total = sum(entry.tokens_after for entry in rep.account.entries)
    return rep.account.entry(part_id).tokens_after / total


def test_what_is_used_gains_and_what_is_not_loses():
    adaptive, observation = Adaptive(RATE), state(1)
    used = adaptive.acted(
        observation, shown(observation), "look at module1x2 module1x3 module1x4 of the trace"
    )
    assert used == {"cell": 0.0, "output": 1.0, "text": 0.0}
    mean = 1.0 / 3.0
    assert adaptive.weights["output"] == pytest.approx(math.exp(0.5 * (1.0 - mean)))
    assert adaptive.weights["text"] == pytest.approx(math.exp(-0.5 * mean))
    assert adaptive.weights["cell"] == adaptive.weights["text"]


def test_words_that_several_parts_have_prove_nothing():
    adaptive, observation = Adaptive(RATE), state(1)
    used = adaptive.acted(observation, shown(observation), "load column1")
    assert used == {"cell": pytest.approx(1 / 3), "output": 0.0, "text": 0.0}


def test_a_part_that_was_fetched_was_of_use():
    adaptive, observation = Adaptive(RATE), state(1)
    used = adaptive.acted(observation, shown(observation), "nothing", fetched=("nb/notes",))
    assert used == {"cell": 0.0, "output": 0.0, "text": 1.0}


def test_weights_stay_within_their_bounds():
    adaptive = Adaptive(AdaptiveConfig(enabled=True, rate=1.0, low=0.5, high=2.0))
    observation = state(1)
    rep = shown(observation)
    for _ in range(20):
        adaptive.acted(observation, rep, "module1x2 module1x3 module1x4")
    assert adaptive.weights["output"] == pytest.approx(2.0)
    assert adaptive.weights["text"] == pytest.approx(0.5)
    for step in range(60):
        adaptive.acted(observation, rep, "topic1y3 topic1y4 topic1y5")
        adaptive.finished(float(step % 2))
        assert all(0.5 - 1e-9 <= weight <= 2.0 + 1e-9 for weight in adaptive.weights.values())


def test_success_approaches_the_shares_of_its_episode_and_failure_leaves_them():
    observation = state(1)
    rep = shown(observation)
    largest = max(("cell", "output", "text"), key=lambda kind: _tokens(observation, rep, kind))

    def after(success: float) -> float:
        adaptive = Adaptive(RATE, AdaptiveState(success=0.5, episodes=3))
        adaptive.acted(observation, rep, "nothing of it")
        adaptive.finished(success)
        return adaptive.weights[largest]

    assert after(1.0) > after(0.5) == 1.0 > after(0.0)


def _tokens(observation: Observation, rep: Representation, kind: str) -> int:
    return sum(e.tokens_after for e in rep.account.entries if observation[e.part_id].value.kind == kind)


def test_an_episode_is_counted_and_its_shares_forgotten():
    adaptive, observation = Adaptive(RATE), state(1)
    adaptive.acted(observation, shown(observation), "x")
    assert sum(adaptive.state.shares.values()) > 0
    adaptive.finished(1.0)
    adaptive.finished(0.0)
    assert adaptive.state.episodes == 2
    assert adaptive.state.success == 0.5
    assert adaptive.state.shares == {}
    with pytest.raises(ValueError, match=r"success must be in \[0, 1\], found 2"):
        adaptive.finished(2)


def test_an_agent_that_uses_errors_only_gets_more_of_them():
    """Ten episodes of five steps; every action repeats words of the error alone."""
    run = pipeline()
    stored, shares, rng = AdaptiveState(), [], random.Random(0)
    for episode in range(10):
        session = Session(run, "", state=SessionState(task="", adaptive=stored))
        for step in range(5):
            number = 100 * episode + step
            rep = session.observe(state(number))
            shares.append(share(rep, "nb/cell-0/output-0"))
            words = [f"module{number}x{rng.randrange(60)}" for _ in range(4)]
            used = session.acted(f"inspect {' '.join(words)} in the trace")
            assert set(used) == {"cell", "output", "text"}
        session.finished(success=1.0)
        stored = session.state.adaptive
    assert stored.weights["output"] > 2.0 > 1.0 > stored.weights["text"]
    assert sum(shares[-5:]) / 5 > sum(shares[:5]) / 5 + 0.1


def test_the_account_names_the_learnt_weight():
    rep = pipeline()(state(1), weights={"text": 2.0})
    assert "learnt weight 2.00" in rep.account.entry("nb/notes").why
    assert "learnt weight" not in rep.account.entry("nb/cell-0").why


def test_without_adaptation_nothing_is_learnt():
    session = Session(pipeline(enabled=False), "t")
    session.observe(state(1))
    assert session.acted("module1x2 module1x3") == {}
    session.finished(1.0)
    assert session.state.adaptive == AdaptiveState()
