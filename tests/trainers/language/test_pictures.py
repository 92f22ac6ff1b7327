"""Training on what is seen: pictures reach the learner, each at its place, and none is taken for another."""

import asyncio
import json

import pytest
import torch
from stopped_training import stop_after

from sensorium.llm.local import PictureError
from sensorium.presets import find_preset
from sensorium.trainers.language.credit import credit
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.language.learner import Rows
from sensorium.trainers.language.model import answer_scores
from sensorium.trainers.language.samples import pictures_of, samples_of
from sensorium.trainers.tensor_files import latest_checkpoint


def settings(**algo):
    small = {"total_updates": 2, "tasks_per_update": 2, "group_size": 4}
    changes = {
        "env": "colour_env:Colours",
        "model": {"model": "tiny-vlm"},
        "algo": small | algo,
        "evaluation": {"tasks": 2},
        "checkpoint_every": 100,
    }
    return find_preset("grpo_toy").updated(changes)


@pytest.fixture
def training(tmp_path):
    made = GRPOTraining(settings(), tmp_path)
    yield made
    made.chat.engine.close()


def played(training, count=2):
    async def all_of_them():
        tasks = training.collector.tasks("train", count)
        return [await training.collector.play(task, seed=3, temperature=1.0) for task in tasks]

    return asyncio.run(all_of_them())


@pytest.mark.learning
def test_a_tiny_model_learns_to_say_what_it_sees(tmp_path):
    config = settings(total_updates=80, tasks_per_update=4, group_size=8).updated(
        {"evaluation": {"tasks": 32}}
    )
    GRPOTraining(config, tmp_path).run()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["rollout/return_mean"] < 0.15
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["success_rate"] >= 0.9  # who does not look is right half of the time at best


def test_the_learner_sees_what_the_sampler_saw(training):
    trajectories = played(training)
    samples = samples_of(trajectories, sees=True)
    assert [len(sample.pictures) for sample in samples] == [1, 1]
    assert samples[0].pictures != samples[1].pictures
    assert samples[0].prompt == samples[1].prompt  # placeholders are alike, pictures are not
    scored = training.learner.rescored(samples, pictures_of(trajectories))
    for before, after in zip(samples, scored, strict=True):
        assert after.logprobs == pytest.approx(before.logprobs, abs=1e-4)
    swapped = [
        one._replace(pictures=other.pictures) for one, other in zip(samples, samples[::-1], strict=True)
    ]
    others = training.learner.rescored(swapped, pictures_of(trajectories))
    assert others[0].logprobs != pytest.approx(samples[0].logprobs, abs=1e-4)


def test_gradients_reach_the_eyes(training):
    trajectories = played(training)
    samples = samples_of(trajectories, sees=True)
    before = {name: value.detach().clone() for name, value in training.learner.parameters.items()}
    rows = Rows(samples, torch.tensor([1.0, -1.0]), torch.tensor([0, 1]), pictures_of(trajectories))
    training.learner.step(rows, is_on_policy=True)
    moved = {
        name for name, value in training.learner.parameters.items() if not torch.equal(before[name], value)
    }
    assert any("vision_tower" in name for name in moved)
    assert any("multi_modal_projector" in name for name in moved)


def test_a_truncated_sample_is_named_and_costs_the_others_nothing(training):
    trajectories = played(training)
    samples, urls = samples_of(trajectories, sees=True), pictures_of(trajectories)
    place = training.chat.vision.token_id
    cut = list(samples[1].prompt)
    cut.remove(place)
    broken = [samples[0], samples[1]._replace(prompt=tuple(cut))]
    with pytest.raises(PictureError, match=r"Text 1 has 3 placeholder tokens .* have 4 rows"):
        answer_scores(training.learner.model, training.learner._batch(broken, urls))
    rows = Rows(broken, torch.ones(2), torch.tensor([0, 1]), urls)
    before = {name: value.detach().clone() for name, value in training.learner.parameters.items()}
    with pytest.raises(PictureError):
        training.learner.step(rows)
    assert all(torch.equal(before[name], value) for name, value in training.learner.parameters.items())
    alone = answer_scores(training.learner.model, training.learner._batch(samples[:1], urls))
    both = answer_scores(training.learner.model, training.learner._batch(samples, urls))
    width = alone.logprobs.shape[1]
    torch.testing.assert_close(both.logprobs[0, :width], alone.logprobs[0], atol=1e-5, rtol=1e-5)


def test_samples_with_and_without_pictures_share_a_batch(training):
    trajectories = played(training)
    samples, urls = samples_of(trajectories, sees=True), pictures_of(trajectories)
    blind = samples[1]._replace(prompt=samples[1].prompt[:6], pictures=())
    batch = training.learner._batch([samples[0], blind], urls)
    together = answer_scores(training.learner.model, batch).logprobs
    for row, sample in enumerate((samples[0], blind)):
        alone = answer_scores(training.learner.model, training.learner._batch([sample], urls)).logprobs
        torch.testing.assert_close(together[row, : alone.shape[1]], alone[0], atol=1e-5, rtol=1e-5)


def test_a_placeholder_that_the_model_says_is_learnt_like_any_token(training):
    trajectories = played(training)
    samples, urls = samples_of(trajectories, sees=True), pictures_of(trajectories)
    place = training.chat.vision.token_id
    says = samples[0]._replace(answer=(place, *samples[0].answer[1:]))
    assert torch.isfinite(
        answer_scores(training.learner.model, training.learner._batch([says], urls)).logprobs
    ).all()


@pytest.mark.parametrize("unit", ["trajectory", "step", "gigpo"])
def test_equal_text_with_other_pictures_is_another_group(training, unit):
    trajectories = played(training, count=4)  # red, blue, red, blue; every text is the same
    samples = samples_of(trajectories, sees=True)
    assert len({sample.prompt for sample in samples}) == 1
    made = credit(trajectories, samples, settings(unit=unit).algo)
    assert len(set(made.groups.tolist())) == 4
    assert made.advantages.tolist() == [0.0] * 4  # each is alone: nothing is compared across pictures
    assert len({step.state_key for one in trajectories for step in one.steps}) == 4


def test_a_stopped_round_keeps_its_pictures(tmp_path):
    config = settings(num_minibatches=2)
    training = GRPOTraining(config, tmp_path / "parts")
    stop_after(training, 1)
    assert not training.run()
    again = GRPOTraining(config, tmp_path / "parts")
    pending = again._pending
    shown = {digest for sample in pending.rows.samples for digest in sample.pictures}
    assert shown == set(pending.rows.pictures)
    assert all(url.startswith("data:image/") for url in pending.rows.pictures.values())
    assert again.run()
    GRPOTraining(config, tmp_path / "whole").run()
    ends = [
        (latest_checkpoint(tmp_path / name) / "model.safetensors").read_bytes() for name in ("parts", "whole")
    ]
    assert ends[0] == ends[1]


def test_adapters_see_too(tmp_path):
    training = GRPOTraining(settings(kl_coef=0.1).updated({"lora": {"rank": 2}}), tmp_path)
    assert training.run()
    assert all("lora" in name for name in training.learner.parameters)
