import gc

import numpy as np
import psutil
import pytest
import torch
from cue_agents import CONV, IMAGE_SIZE, KINDS, SPACE_TIME, cue_config, cue_round, perturb

from sensorium.core import ActionKind, EpisodeStatus
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.nn.config import ConvConfig, SpaceTimeConfig
from sensorium.representations.tensors import MAX_TABLE_ROWS
from sensorium.rollouts.embodied import FinishedEpisode

pytestmark = pytest.mark.usefixtures("cue_backend")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vision", [CONV, SPACE_TIME], ids=lambda v: v.type)
def test_first_epoch_ratio_is_one(vision: ConvConfig | SpaceTimeConfig, kind: ActionKind) -> None:
    """The log-probabilities that training computes are those under which the policy acted."""
    made = cue_round(cue_config(("rgb", "speech", "proprio"), kind, vision=vision))
    policy = made.agent.policy
    perturb(policy, scale=0.1)
    for _ in range(3):
        rollout = made.collector.collect(8)
        envs = torch.randperm(8)[:5]
        with torch.no_grad():
            output = policy(rollout.sequences(envs))
        new = output.distribution.logprobs(rollout.actions(envs))
        old = rollout.logprobs[:, envs].flatten()
        assert (new - old).abs().max() < 1e-5
        assert (output.values - rollout.values[:-1, envs].flatten()).abs().max() < 1e-5
        kl = output.distribution.kl_from(rollout.distribution(envs, output.distribution))
        assert kl.abs().max() < 1e-5
        assert rollout.starts[1:].any()


def test_frames_are_stored_once_in_their_own_dtype() -> None:
    made = cue_round(cue_config(("rgb", "depth", "speech"), vision=SPACE_TIME))
    rollout = made.collector.collect(8)
    pixels = 8 * 8 * IMAGE_SIZE * IMAGE_SIZE
    assert rollout.dense["rgb"].dtype == torch.uint8
    assert rollout.dense["rgb"].nbytes == pixels * 3
    assert rollout.dense["depth"].dtype == torch.float32
    assert rollout.dense["depth"].nbytes == pixels * 4
    # what is spoken is stored once per distinct utterance, not per step
    assert set(rollout.dense) == {"rgb", "depth"}
    assert len(rollout.tables["speech"].values) <= 8 * 3
    storage = rollout.dense["rgb"].untyped_storage()
    assert storage.nbytes() == pixels * 3


def test_the_record_is_what_happened() -> None:
    """Play the recorded actions again: the same readings, rewards, ends and statuses come back."""
    made = cue_round(cue_config(("rgb", "proprio"), length=3))
    rollout = made.collector.collect(12)
    env = MultiModalVectorEnv(made.config.env, 8)
    observation, _ = env.reset(seed=7)
    ended_before = np.zeros(8, np.bool_)
    assert rollout.discrete is not None
    for t in range(12):
        np.testing.assert_array_equal(rollout.dense["rgb"][t], observation["rgb"])
        np.testing.assert_array_equal(rollout.dense["proprio"][t], observation["proprio"])
        observation, reward, terminated, truncated, _ = env.step(rollout.discrete[t].numpy())
        np.testing.assert_array_equal(rollout.rewards[t], reward)
        np.testing.assert_array_equal(rollout.terminated[t], terminated)
        np.testing.assert_array_equal(rollout.ended[t], terminated | truncated)
        np.testing.assert_array_equal(rollout.valid[t], ~ended_before)
        if t + 1 < 12:
            np.testing.assert_array_equal(rollout.starts[t + 1], ended_before)
        ended_before = terminated | truncated
    assert rollout.starts[0].all()


def test_reset_steps_are_not_valid() -> None:
    rollout = cue_round(cue_config(length=3)).collector.collect(8)
    # 3 steps, then one in which the world is started again, in every world
    expected = [True, True, True, False, True, True, True, False]
    assert rollout.valid.t().tolist() == [expected] * 8
    assert rollout.num_valid == 8 * 6
    assert rollout.starts.t().tolist() == [[True, False, False, False] * 2] * 8


def test_memory_is_carried_from_round_to_round() -> None:
    made = cue_round(cue_config(length=6))
    first = made.collector.collect(4)
    assert torch.equal(first.state.lstm.hidden, torch.zeros(8, 16))
    second = made.collector.collect(4)
    assert not second.starts[0].any()
    assert second.state.lstm.hidden.abs().sum() > 0
    assert second.state.steps.tolist() == [3] * 8
    torch.testing.assert_close(second.values[0], first.values[4])


def test_a_broken_world_is_never_trained_on_nor_counted() -> None:
    rollout = cue_round(cue_config(length=4, break_at=2)).collector.collect(9)
    # world 0: one good step, one that broke, one reset
    assert rollout.valid[:, 0].tolist() == [True, False, False] * 3
    assert rollout.ended[:, 0].tolist() == [False, True, False] * 3
    assert rollout.rewards[rollout.ended[:, 0], 0].tolist() == [0.0] * 3
    assert rollout.valid[:, 1].tolist() == [True] * 4 + [False] + [True] * 4
    failed = [e for e in rollout.episodes if e.status is EpisodeStatus.ERROR]
    assert len(failed) == 3
    others = [e.status for e in rollout.episodes if e.status is not EpisodeStatus.ERROR]
    assert rollout.success_rate() == np.mean([s is EpisodeStatus.SUCCESS for s in others])


def test_success_counts_outcomes_only() -> None:
    rollout = cue_round(cue_config()).collector.collect(1)
    assert np.isnan(rollout.success_rate())

    def episode(status: EpisodeStatus) -> FinishedEpisode:
        return FinishedEpisode(status=status, episode_return=0.0, length=1, seed=0)

    rollout.episodes = [episode(EpisodeStatus.ERROR)] * 5
    assert np.isnan(rollout.success_rate())
    rollout.episodes += [episode(EpisodeStatus.SUCCESS), episode(EpisodeStatus.TRUNCATED)]
    rollout.episodes += [episode(EpisodeStatus.FAILURE)] * 2
    assert rollout.success_rate() == 0.25


def test_seed_and_generator_decide_the_rollout() -> None:
    a, b, c = (
        cue_round(cue_config(("rgb", "instruction"), ActionKind.HYBRID), generator_seed=s).collector.collect(
            10
        )
        for s in (0, 0, 1)
    )
    assert a.continuous is not None
    assert b.continuous is not None
    assert c.continuous is not None
    assert torch.equal(a.continuous, b.continuous)
    assert torch.equal(a.logprobs, b.logprobs)
    assert not torch.equal(a.continuous, c.continuous)


def test_restart_forgets_what_was_before() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    first = made.collector.collect(5)
    made.collector.collect(5)
    made.collector.restart(7)
    made.collector.generator.manual_seed(0)
    again = made.collector.collect(5)
    assert torch.equal(first.values, again.values)
    assert torch.equal(first.rows["speech"], again.rows["speech"])


def rss_mb() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss / 2**20)


def test_memory_is_flat_over_100_000_steps() -> None:
    """Speech differs from episode to episode, so tables that are never emptied would grow."""
    config = cue_config(("rgb", "speech", "instruction"), length=5, algo={"num_envs": 128})
    made = cue_round(config)
    for _ in range(10):
        made.collector.collect(16)
    before = rss_mb()
    for _ in range(49):
        made.collector.collect(16)
    assert rss_mb() - before < 20
    assert len(made.agent.representer.tables()["speech"].values) < MAX_TABLE_ROWS + 128 * 4
