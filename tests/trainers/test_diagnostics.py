"""What is measured about the senses, and that measuring changes nothing."""

from typing import Any

import numpy as np
import pytest
import torch
from cue_agents import ALL_SENSORS, cue_config, cue_round, perturb

from sensorium.algorithms import coalition_worth
from sensorium.core import ActionKind
from sensorium.metrics.names import meaning
from sensorium.policies.embodied import ActorCritic, SequenceBatch
from sensorium.rollouts.embodied import Rollout
from sensorium.trainers.dapo import build_learner
from sensorium.trainers.diagnostics import Diagnosis, diagnose
from sensorium.trainers.ppo import PPO

pytestmark = pytest.mark.usefixtures("cue_backend")


def make(sensors: tuple[str, ...], *, dropout: float = 0.0, **algo: Any) -> tuple[PPO, Rollout]:
    config = cue_config(sensors, ActionKind.HYBRID, algo=algo)
    if dropout:
        config = config.updated({"env": {"augment": {"modal_dropout": {"p": dropout}}}})
    made = cue_round(config, augmented=True)
    perturb(made.agent.policy)
    learner = build_learner(made.agent.policy, config.algo, torch.Generator().manual_seed(0))
    return learner, made.collector.collect(8)


def diagnosed(policy: ActorCritic, rollout: Rollout, *, seed: int = 0) -> Diagnosis:
    found = diagnose(policy, rollout, returns_of(rollout), rows=64, seed=seed)
    assert found is not None
    return found


def returns_of(rollout: Rollout) -> torch.Tensor:
    return torch.randn(rollout.rewards.shape, generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def worth(policy: ActorCritic, rollout: Rollout, sensors: tuple[str, ...]) -> float:
    """v(S), from scratch."""
    batch = rollout.sequences(torch.arange(8))
    prepared = policy.encode(batch)
    full = policy.fuse_sequences(prepared, batch)
    kept = torch.tensor([name in sensors for name in policy.perception.names])
    output = policy.fuse_sequences(prepared, batch, batch.present & kept)
    kl = output.distribution.kl_from(full.distribution)
    mask = rollout.valid.flatten()
    return float(coalition_worth(returns_of(rollout).flatten(), output.values, kl, mask))


@pytest.mark.parametrize(
    "sensors", [("rgb", "speech"), ("rgb", "depth", "instruction", "proprio"), ALL_SENSORS], ids=len
)
def test_contributions_add_up_to_what_all_senses_are_worth(sensors: tuple[str, ...]) -> None:
    """Above four senses orders are sampled; the sum is exact all the same."""
    learner, rollout = make(sensors)
    found = diagnosed(learner.policy, rollout).contributions
    whole, nothing = (worth(learner.policy, rollout, kept) for kept in (sensors, ()))
    assert set(found.shapley) == set(sensors)
    assert abs(whole - nothing) > 0.01
    assert sum(found.shapley.values()) == pytest.approx(whole - nothing, abs=1e-5)
    for name, alone in found.alone.items():
        assert alone == pytest.approx(worth(learner.policy, rollout, (name,)) - nothing, abs=1e-5)


def test_the_seed_decides_the_sampled_orders() -> None:
    learner, rollout = make(ALL_SENSORS)
    first, again, other = (diagnosed(learner.policy, rollout, seed=seed) for seed in (1, 1, 2))
    assert first.contributions == again.contributions
    assert first.contributions.shapley != other.contributions.shapley
    assert first.contributions.alone == other.contributions.alone


def test_two_senses_by_hand() -> None:
    learner, rollout = make(("rgb", "speech"))
    found = diagnosed(learner.policy, rollout).contributions.shapley
    both, rgb, speech, none = (
        worth(learner.policy, rollout, kept) for kept in (("rgb", "speech"), ("rgb",), ("speech",), ())
    )
    assert found["rgb"] == pytest.approx((rgb - none + both - speech) / 2, abs=1e-5)
    assert found["speech"] == pytest.approx((speech - none + both - rgb) / 2, abs=1e-5)


def test_a_sense_that_was_absent_throughout_has_no_contribution() -> None:
    learner, rollout = make(("rgb", "depth", "speech"))
    rollout.present[..., 1] = False
    found = diagnosed(learner.policy, rollout)
    assert set(found.contributions.shapley) == set(found.contributions.alone) == {"rgb", "speech"}
    assert "contribution/depth" not in found.metrics
    assert "attention/depth->rgb" not in found.metrics
    assert "similarity/effective_rank/depth" not in found.metrics
    assert {name for name in found.metrics if name.startswith("similarity/cka")} == {
        "similarity/cka/rgb+speech"
    }
    assert "similarity/cosine/depth+speech" not in found.metrics
    whole, nothing = (worth(learner.policy, rollout, kept) for kept in (("rgb", "depth", "speech"), ()))
    assert sum(found.contributions.shapley.values()) == pytest.approx(whole - nothing, abs=1e-5)
    rollout.present[:] = False
    assert diagnosed(learner.policy, rollout).contributions.shapley == {}


def test_attention_is_shared_out_completely() -> None:
    sensors = ("rgb", "depth", "speech", "proprio")
    learner, rollout = make(sensors, dropout=0.3)
    assert not rollout.present.all()
    metrics = diagnosed(learner.policy, rollout).metrics
    for name in sensors:
        row = [float(metrics[f"attention/{name}->{to}"].value) for to in (*sensors, "nothing")]  # type: ignore[arg-type]
        assert all(0 <= share <= 1 for share in row)
        assert sum(row) == pytest.approx(1, abs=1e-5)
        assert 0 < float(metrics[f"attention/entropy/{name}"].value) <= 1  # type: ignore[arg-type]


def test_everything_that_is_measured_is_explained() -> None:
    learner, rollout = make(("rgb", "speech"))
    metrics = diagnosed(learner.policy, rollout).metrics
    assert {"similarity/cka/rgb+speech", "similarity/cosine/rgb+speech"} <= set(metrics)
    assert {"similarity/effective_rank/rgb", "contribution/speech"} <= set(metrics)
    assert all(meaning(name) for name in metrics)
    assert all(np.isfinite(metric.value) for metric in metrics.values())  # type: ignore[arg-type]


def test_no_random_generator_is_touched() -> None:
    """Python's own is left out: the type checker of the tests draws from it."""
    learner, rollout = make(ALL_SENSORS)
    states = [torch.get_rng_state(), learner.generator.get_state()]
    numpy_state = np.random.get_state()
    diagnosed(learner.policy, rollout)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert torch.equal(learner.generator.get_state(), states[1])
    now = np.random.get_state()
    assert all(np.array_equal(a, b) for a, b in zip(now, numpy_state, strict=True))


def test_nothing_is_said_about_numbers_that_are_not_finite() -> None:
    learner, rollout = make(("rgb", "speech"))
    returns = returns_of(rollout)
    returns[0, 0] = torch.nan
    assert diagnose(learner.policy, rollout, returns, rows=64, seed=0) is None


def test_rows_bound_what_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, rollout = make(("rgb", "speech"))
    looked: list[list[int]] = []
    sequences = Rollout.sequences

    def watched(self: Rollout, envs: torch.Tensor) -> SequenceBatch:
        looked.append(envs.tolist())
        return sequences(self, envs)

    monkeypatch.setattr(Rollout, "sequences", watched)
    for rows in (1, 16, 30, 10_000):
        diagnose(learner.policy, rollout, returns_of(rollout), rows=rows, seed=0)
    assert looked == [[0], [0, 4], [0, 2, 5], list(range(8))]


@pytest.mark.parametrize(
    ("algo", "extra"),
    [
        ({"diagnostics_every": 0}, (0, 0)),
        ({"diagnostics_every": 2}, (1, 0)),
        ({"type": "dapo", "gate": {"type": "none"}, "diagnostics_every": 0}, (0, 0)),
        ({"type": "dapo", "gate": {"type": "none"}, "diagnostics_every": 2}, (1, 0)),
        ({"type": "dapo", "diagnostics_every": 0}, (1, 1)),
    ],
)
def test_encoders_run_once_per_minibatch_and_once_per_diagnosis(
    algo: dict[str, Any], extra: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, rollout = make(("rgb", "speech", "proprio"), num_epochs=3, num_minibatches=2, **algo)
    calls = 0
    encode = learner.policy.encode

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return encode(*args)

    monkeypatch.setattr(learner.policy, "encode", counted)
    found = []
    for _ in range(2):
        calls = 0
        learner.update(rollout, progress=0.0)
        found.append(calls - 3 * 2)
    assert tuple(found) == extra


def test_with_gating_only_contributions_are_measured_at_every_rollout() -> None:
    learner, rollout = make(("rgb", "speech"), type="dapo", diagnostics_every=2)
    first, second = (learner.update(rollout, progress=0.0).keys() for _ in range(2))
    assert {"contribution/rgb", "gate/rgb", "attention/rgb->speech", "similarity/cka/rgb+speech"} <= first
    assert {"contribution/rgb", "gate/rgb"} <= second
    assert not [name for name in second if name.startswith(("attention/", "similarity/"))]
