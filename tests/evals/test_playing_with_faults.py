from typing import Any

import numpy as np
import pytest
import torch
from cue_agents import ALL_SENSORS, cue_config, cue_round, perturb
from learnt_cue import LEARNING, trained

from sensorium.evals import Fault, FaultKind, Player, play_episodes
from sensorium.evals.gates import GateTrace
from sensorium.representations import tensors

pytestmark = pytest.mark.usefixtures("cue_backend")


def perturbed(**settings: Any) -> Any:
    made = cue_round(cue_config(ALL_SENSORS, **settings))
    perturb(made.agent.policy)
    return made


def fault(*sensors: str, **settings: Any) -> Fault:
    return Fault(sensors=frozenset(sensors), **settings)


@pytest.mark.parametrize("sensor", ALL_SENSORS)
def test_absent_all_along_equals_blanked(sensor: str) -> None:
    made = perturbed()
    blanked = Player(made.agent, made.env, frozenset({sensor}))
    faulty = Player(made.agent, made.env, fault=fault(sensor))
    for player in (blanked, faulty):
        player.reset(5)
    values = []
    for player in (blanked, faulty):
        player.reset(5)
        values.append(torch.stack([player.step()[1] for _ in range(10)]))
    torch.testing.assert_close(*values)


def test_a_fault_that_never_strikes_changes_nothing() -> None:
    made = perturbed()
    clean = play_episodes(made.agent, made.env, episodes=16, seed=3)
    for kind in FaultKind:
        spared = play_episodes(
            made.agent, made.env, episodes=16, seed=3, fault=fault(*ALL_SENSORS, kind=kind, onset=1000)
        )
        assert spared.finished == clean.finished
        assert len(spared.faults) == len(spared.finished)
        assert not any(record.struck or record.gates_during for record in spared.faults)
    assert clean.faults == ()


def test_speech_that_turns_to_noise_in_mid_episode_reaches_the_policy() -> None:
    """Constant readings are looked up at an episode's start only, unless something changes."""
    made = perturbed(length=6)
    clean, noisy = (
        Player(made.agent, made.env, fault=f)
        for f in (None, fault("speech", kind=FaultKind.NOISE, onset=2, duration=2))
    )
    values = []
    for player in (clean, noisy):
        player.reset(5)
        values.append([player.step()[1] for _ in range(3)])
    torch.testing.assert_close(values[0][:2], values[1][:2])
    assert not torch.allclose(values[0][2], values[1][2])


@pytest.mark.parametrize("kind", FaultKind)
def test_an_episode_does_not_depend_on_the_number_of_worlds(kind: FaultKind) -> None:
    faulty = fault("rgb", "speech", "instruction", kind=kind, onset=(0, 3), duration=2)
    config = cue_config(ALL_SENSORS)
    records = []
    for worlds in (8, 3):
        made = cue_round(config.updated({"algo": {"num_envs": worlds, "num_minibatches": 1}}))
        perturb(made.agent.policy)
        played = play_episodes(made.agent, made.env, episodes=2 * worlds, seed=9, fault=faulty)
        returns = [episode.episode_return for episode in played.finished]
        records.append({r.seed: (r, value) for r, value in zip(played.faults, returns, strict=True)})
    many, few = records
    assert set(few) <= set(many)
    for seed, (record, value) in few.items():
        other, same = many[seed]
        assert (record.onset, record.struck, value) == (other.onset, other.struck, same)
        for mine, theirs in (
            (record.gates_before, other.gates_before),
            (record.gates_during, other.gates_during),
        ):
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                np.testing.assert_allclose(mine, theirs, atol=1e-5)


def test_the_gate_of_an_absent_sensor_falls_to_zero_and_the_others_rise() -> None:
    made = perturbed(length=6)
    played = play_episodes(made.agent, made.env, episodes=8, seed=0, fault=fault("rgb", onset=3))
    assert [record.onset for record in played.faults] == [3] * 8
    for record in played.faults:
        assert record.struck
        assert record.gates_before is not None
        assert record.gates_during is not None
        assert record.gates_before[0] > 0 == record.gates_during[0]
        assert sum(record.gates_before) == pytest.approx(1, abs=1e-5)
        assert sum(record.gates_during) == pytest.approx(1, abs=1e-5)


def test_gate_traces_by_hand() -> None:
    trace = GateTrace(2, 2)
    no, first, both = np.zeros(2, np.bool_), np.array([True, False]), np.ones(2, np.bool_)
    trace.add(np.array([[0.25, 0.75], [0.5, 0.5]], np.float32), both, no)
    trace.add(np.array([[0.75, 0.25], [0.5, 0.5]], np.float32), both, no)
    trace.add(np.array([[0.0, 1.0], [0.9, 0.1]], np.float32), no, first)
    record = trace.close(0, seed=7, onset=2)
    assert (record.seed, record.onset, record.struck) == (7, 2, True)
    assert record.gates_before == (0.5, 0.5)
    assert record.gates_during == (0.0, 1.0)
    spared = trace.close(1, seed=8, onset=9)
    assert (spared.struck, spared.gates_before, spared.gates_during) == (False, (0.5, 0.5), None)
    assert trace.close(0, seed=9, onset=0).gates_before is None


def test_tables_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise makes a new spoken reading per episode; forgetting them changes nothing."""
    made = perturbed()
    noisy = fault("speech", "instruction", kind=FaultKind.NOISE)
    before = play_episodes(made.agent, made.env, episodes=64, seed=1, fault=noisy)
    assert len(made.agent.representer.tables()["speech"].values) >= 64
    monkeypatch.setattr("sensorium.evals.episodes.MAX_TABLE_ROWS", 20)
    again = play_episodes(made.agent, made.env, episodes=64, seed=1, fault=noisy)
    assert again.finished == before.finished
    assert len(made.agent.representer.tables()["speech"].values) <= 20 + made.env.num_envs
    assert tensors.MAX_TABLE_ROWS > 20


def test_a_policy_that_needs_its_eyes_fails_without_them_whatever_the_fault() -> None:
    agent, env = trained(cue_config(("rgb",), algo=LEARNING, length=6))
    rate = {}
    for kind in (None, *FaultKind):
        broken = None if kind is None else fault("rgb", kind=kind, onset=0)
        played = play_episodes(agent, env, episodes=96, seed=1, fault=broken)
        rate[kind] = played.successes / len(played.finished)
    assert rate[None] >= 0.95
    for kind in FaultKind:
        assert rate[kind] <= 0.6, (kind, rate)
