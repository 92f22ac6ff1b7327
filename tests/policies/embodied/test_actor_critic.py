from dataclasses import replace

import pytest
import torch
from cue_agents import ALL_SENSORS, CONV, KINDS, SPACE_TIME, cue_config, cue_round, perturb

from sensorium.core import ActionKind, PolicyError
from sensorium.nn.config import ConvConfig, SpaceTimeConfig
from sensorium.policies.embodied.batch import steps_since_start
from sensorium.representations.tensors import TensorObservation

VISIONS = [CONV, SPACE_TIME]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vision", VISIONS, ids=lambda v: v.type)
def test_whole_sequences_equal_repeated_steps(
    vision: ConvConfig | SpaceTimeConfig, kind: ActionKind, cue_backend: None
) -> None:
    """Over two rollouts, so that the second begins amid episodes, frames and memory carried."""
    config = cue_config(ALL_SENSORS, kind, vision=vision, length=5, algo={"num_envs": 4})
    made = cue_round(config)
    policy = made.agent.policy
    perturb(policy, scale=0.1)
    for _ in range(2):
        rollout = made.collector.collect(7)
        assert rollout.starts[1:].any()
        # absent sensors too; the same columns for both paths
        rollout.present &= torch.rand(rollout.present.shape, generator=torch.Generator().manual_seed(0)) < 0.8
        batch = rollout.sequences(torch.arange(4))
        with torch.no_grad():
            together = policy(batch)
            state, steps = batch.state, []
            for t in range(7):
                moment = TensorObservation(
                    dense={name: x[t] for name, x in batch.dense.items()},
                    rows={name: x[t] for name, x in batch.rows.items()},
                    tables=batch.tables,
                    present=batch.present[t],
                    age_s=batch.age_s[t],
                )
                step = policy.step(moment, state, batch.starts[t])
                state = step.state
                steps.append(step)
        close = {"atol": 1e-5, "rtol": 1e-5}
        torch.testing.assert_close(together.values, torch.cat([s.values for s in steps]), **close)
        for field in ("logits", "mean", "log_std"):
            whole = getattr(together.distribution, field)
            if whole is None:
                assert all(getattr(s.distribution, field) is None for s in steps)
            else:
                one = torch.cat([getattr(s.distribution, field) for s in steps])
                torch.testing.assert_close(whole, one, **close)
        torch.testing.assert_close(together.fused.gates, torch.cat([s.fused.gates for s in steps]), **close)


@pytest.mark.parametrize("kind", KINDS)
def test_heads_fit_the_action(kind: ActionKind, cue_backend: None) -> None:
    d = cue_round(cue_config(kind=kind)).collector.collect(1)
    assert (d.logits is None) == (kind is ActionKind.CONTINUOUS)
    assert (d.mean is None) == (kind is ActionKind.DISCRETE)


def test_a_fresh_policy_is_nearly_uniform(cue_backend: None) -> None:
    """So that exploration is not decided by the initialisation."""
    logits = cue_round(cue_config()).collector.collect(4).logits
    assert logits is not None
    assert (logits.softmax(-1) - 1 / 3).abs().max() < 0.05


def test_an_old_frame_never_crosses_an_episode_start(cue_backend: None) -> None:
    made = cue_round(cue_config(vision=SPACE_TIME, algo={"num_envs": 2}))
    policy = made.agent.policy
    perturb(policy)
    rollout = made.collector.collect(3)
    batch = rollout.sequences(torch.arange(2))
    for t in (1, 2):
        batch.starts[t] = False
    batch.starts[2, 0] = True
    with torch.no_grad():
        before = policy(batch).values.reshape(3, 2)
        batch.dense["rgb"][:2] = 255 - batch.dense["rgb"][:2]
        after = policy(batch).values.reshape(3, 2)
    assert before[2, 0] == after[2, 0]
    assert before[2, 1] != after[2, 1]


def test_steps_since_start() -> None:
    starts = torch.tensor([[0, 1, 0, 0, 1], [0, 0, 0, 0, 0]], dtype=torch.bool).t()
    steps = steps_since_start(starts, torch.tensor([4, -1]))
    assert steps.t().tolist() == [[5, 0, 1, 2, 0], [0, 1, 2, 3, 4]]


def test_an_image_that_does_not_fit_its_patches_is_refused(cue_backend: None) -> None:
    config = cue_config()
    odd = config.model_copy(update={"env": config.env.model_copy(update={"image_size": 20})})
    with pytest.raises(PolicyError, match=r"'rgb' is 20x20 pixels, not a multiple of 8"):
        cue_round(odd)


def test_a_sense_is_taken_away_without_encoding_again(
    cue_backend: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cue_round(cue_config(ALL_SENSORS, vision=SPACE_TIME))
    policy = made.agent.policy
    perturb(policy)
    batch = made.collector.collect(4).sequences(torch.arange(5))
    whole = policy(batch)
    prepared = policy.encode(batch)
    monkeypatch.setattr(policy.perception, "encode_dense", None)
    monkeypatch.setattr(policy.perception, "encode_tables", None)
    again = policy.fuse_sequences(prepared, batch)
    assert torch.equal(again.values, whole.values)
    present = batch.present.clone()
    present[..., 0] = False
    blind = policy.fuse_sequences(prepared, batch, present)
    assert not torch.allclose(blind.values, whole.values)
    assert (blind.fused.gates[:, 0] == 0).all()
    monkeypatch.undo()
    blind_batch = replace(batch, present=present)
    torch.testing.assert_close(policy(blind_batch).values, blind.values)
    sets = torch.stack([present, batch.present])
    for together, alone in zip(policy.fuse_sets(prepared, batch, sets), (blind, again), strict=True):
        torch.testing.assert_close(together.values, alone.values)
        torch.testing.assert_close(together.distribution.logits, alone.distribution.logits)
        torch.testing.assert_close(together.fused.attention, alone.fused.attention)
