import asyncio
import json

import pytest
import torch
from safetensors.torch import load_file
from stopped_training import stop_after

from sensorium.core import EpisodeStatus, TrainingError
from sensorium.envs.letters.definition import Letters, LettersEnv
from sensorium.presets import find_preset
from sensorium.trainers.language.collect import TaskSampler
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.tensor_files import latest_checkpoint


def settings(**algo):
    small = {"total_updates": 3, "tasks_per_update": 2, "group_size": 4}
    return find_preset("grpo_toy").updated(
        {"algo": small | algo, "evaluation": {"tasks": 4}, "checkpoint_every": 100}
    )


def train(config, folder, stop_at=None):
    """Train until the end, or until so many optimiser steps were taken."""
    training = GRPOTraining(config, folder)
    if stop_at is not None:
        stop_after(training, stop_at)
    training.run()
    return training


def weights(folder):
    return load_file(latest_checkpoint(folder) / "model.safetensors")


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.learning
def test_a_tiny_model_learns_to_write_vowels(tmp_path):
    config = find_preset("grpo_toy")
    train(config, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert rows(tmp_path)[0]["rollout/return_mean"] < 0.1
    assert summary["success_rate"] >= 0.9
    assert summary["last_return"] >= 0.9


@pytest.mark.parametrize("stop_at", [2, 4, 5])
def test_a_run_stopped_in_the_middle_of_a_round_goes_on_bit_for_bit(tmp_path, stop_at):
    config = settings(num_epochs=2, num_minibatches=2)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", stop_at=stop_at)
    assert not (tmp_path / "parts" / "summary.json").exists()
    train(config, tmp_path / "parts")
    one, two = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert [row["step"] for row in rows(tmp_path / "parts")] == [1, 2, 3]


def test_the_first_step_of_a_round_is_on_policy(tmp_path):
    train(settings(num_epochs=2), tmp_path)
    for row in rows(tmp_path):
        assert row["policy/first_ratio_deviation"] < 1e-5
        assert row["policy/ratio_deviation"] > 0
    train(settings(), tmp_path / "once")
    assert all(row["policy/ratio_deviation"] == 0 for row in rows(tmp_path / "once"))
    assert all(row["policy/logprob_change"] < 1e-3 for row in rows(tmp_path / "once"))


@pytest.mark.parametrize(
    "algo",
    [
        {"unit": "step", "group_by": "task_step", "estimator": "rloo"},
        {"unit": "gigpo", "normaliser": "token_group"},
        {"kl_coef": 0.1, "normaliser": "constant", "dual_clip": 3.0},
        {"normaliser": "sequence", "ratio_of": "sequence", "mask_cut_answers": True},
        {"overlong": {"max_tokens": 8, "cache_tokens": 4}},
    ],
)
def test_every_way_of_learning_runs(tmp_path, algo):
    train(settings(**algo), tmp_path)
    assert len(rows(tmp_path)) == 3
    if "kl_coef" in algo:
        assert rows(tmp_path)[0]["policy/reference_kl"] == pytest.approx(0, abs=1e-6)
        assert rows(tmp_path)[2]["policy/reference_kl"] > 0
    if "overlong" in algo:
        assert rows(tmp_path)[0]["reward/overlong"] < -0.5


def test_micro_batches_do_not_change_what_is_learnt(tmp_path):
    for tokens in (60, 4096):
        train(settings(total_updates=1, micro_batch_tokens=tokens), tmp_path / str(tokens))
    one, two = weights(tmp_path / "60"), weights(tmp_path / "4096")
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=1e-3, rtol=1e-3)


def test_adapters_train_alone(tmp_path):
    config = settings().updated({"lora": {"rank": 4}})
    training = train(config, tmp_path)
    assert all("lora" in name for name in training.learner.parameters)
    assert weights(tmp_path).keys() == training.learner.parameters.keys()


class AlwaysFull(LettersEnv):
    async def _said(self, text):
        self.finish(1.0)
        return ""


class Breaks(LettersEnv):
    async def _said(self, text):
        raise OSError("the disk is gone")


class Solved(Letters):
    """Every task is solved by anything."""

    def make(self, config):
        return AlwaysFull()


class Broken(Letters):
    """Every episode breaks."""

    def make(self, config):
        return Breaks()


@pytest.mark.parametrize("on_exhausted", ["keep", "skip", "error"])
def test_sampling_ends_also_when_every_group_is_solved(tmp_path, on_exhausted):
    config = settings(dynamic_sampling={"max_rounds": 2, "on_exhausted": on_exhausted}).updated(
        {"env": f"{__name__}:Solved"}
    )
    if on_exhausted == "error":
        with pytest.raises(TrainingError, match="2 of 2 groups are missing"):
            train(config, tmp_path)
        return
    train(config, tmp_path)
    row = rows(tmp_path)[0]
    assert row["groups/rounds"] == 2
    assert row["groups/left_out"] == 4
    assert row["rollout/outcome"] == 1.0  # success is told before groups are left out


def test_failed_episodes_are_tried_again_and_never_scored(tmp_path):
    config = settings(max_retries=1).updated({"env": f"{__name__}:Broken"})
    with pytest.raises(TrainingError, match=r"All 8 episodes .* after 16 tries.*OSError"):
        train(config, tmp_path)


def test_tasks_come_once_before_any_comes_again():
    tasks = Letters().tasks(Letters.config_type(), count=5)
    sampler = TaskSampler(tasks, seed=3)
    lap = sampler.take(2) + sampler.take(3)
    assert {task.id for task in lap} == {task.id for task in tasks}
    again = TaskSampler(tasks, seed=3, cursor=2)
    assert again.take(3) == lap[2:]


def test_an_episode_keeps_exactly_what_was_sampled(tmp_path):
    training = GRPOTraining(settings(), tmp_path)
    task = training.sampler.take(1)[0]
    played = asyncio.run(training.collector.play(task, seed=5, temperature=1.0))
    again = asyncio.run(training.collector.play(task, seed=5, temperature=1.0))
    training.chat.engine.close()
    assert played.verdict.status in (EpisodeStatus.SUCCESS, EpisodeStatus.FAILURE)
    made = played.steps[0].completion
    assert made.token_ids == again.steps[0].completion.token_ids
    assert len(made.token_ids) == len(made.logprobs) <= 8
    assert made.prompt_token_ids
