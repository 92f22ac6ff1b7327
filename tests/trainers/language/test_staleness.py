"""Collecting while learning: it overlaps, samples know their weights, and none is too old."""

import asyncio
import itertools
import json
import threading

import pytest
import torch
from stopped_training import stop_after

from sensorium.core import TrainingError
from sensorium.envs.letters.definition import Letters, LettersEnv
from sensorium.presets import find_preset
from sensorium.trainers.language.ahead import CollectingAhead
from sensorium.trainers.language.checkpoint import load_run
from sensorium.trainers.language.collect import Collected
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.language.samples import samples_of
from sensorium.trainers.tensor_files import latest_checkpoint

_PATIENCE_S = 60
EPISODES = 8
"""Of a round: two tasks, four of each."""


class TwoAnswers(LettersEnv):
    """Two answers; before the second, a tool of the environment takes its time."""

    async def _reset(self, task, seed):
        await super()._reset(task, seed)
        self._first = None
        self._number = next(Slow.numbers)

    async def _said(self, text):
        if self._first is None:
            self._first = text
            await Slow.wait(self._number)
            return "and?"
        return await super()._said(self._first + text)


class Slow(Letters):
    """Waits as a test says."""

    numbers = itertools.count()
    wait = None

    def make(self, config):
        return TwoAnswers()


async def until(event):
    """Wait for an event of threads in a coroutine."""
    assert await asyncio.to_thread(event.wait, _PATIENCE_S)


def settings(max_staleness, **algo):
    small = {"total_updates": 4, "tasks_per_update": 2, "group_size": 4, "max_staleness": max_staleness}
    changes = {
        "env": f"{__name__}:Slow",
        "algo": small | algo,
        "evaluation": {"tasks": 2},
        "checkpoint_every": 100,
        "num_tasks": 16,
    }
    return find_preset("grpo_toy").updated(changes)


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    async def at_once(number):
        await asyncio.sleep(0)

    monkeypatch.setattr(Slow, "numbers", itertools.count())
    monkeypatch.setattr(Slow, "wait", at_once)


def test_episodes_go_on_while_the_learner_learns(tmp_path, monkeypatch):
    learning, came_back = threading.Event(), threading.Event()

    async def wait(number):
        if number >= EPISODES:  # of the second round
            await until(learning)
            came_back.set()

    monkeypatch.setattr(Slow, "wait", wait)
    training = GRPOTraining(settings(1, total_updates=2), tmp_path)
    step = training.learner.step

    def held(*args, **kwargs):
        learning.set()  # only now the environments of the next round answer, and only then we go on
        assert came_back.wait(_PATIENCE_S)
        return step(*args, **kwargs)

    training.learner.step = held
    assert training.run()
    assert [row["staleness/max"] for row in rows(tmp_path)] == [0, 1]


def test_an_episode_that_outlasts_an_update_knows_the_weights_of_every_step(tmp_path, monkeypatch):
    asked, updated = threading.Event(), threading.Event()

    async def wait(number):
        if number >= EPISODES:
            asked.set()
            await until(updated)

    monkeypatch.setattr(Slow, "wait", wait)
    training = GRPOTraining(settings(1, total_updates=2), tmp_path)
    step, compared, seen = training.learner.step, training._compared, []

    def held(*args, **kwargs):
        assert asked.wait(_PATIENCE_S)  # a first answer of the next round was sampled
        return step(*args, **kwargs)

    def watched(collected):
        seen.append(samples_of(collected.trajectories))
        return compared(collected)

    training.learner.step, training._compared = held, watched
    assert training.run(lambda progress: updated.set())
    assert {sample.version for sample in seen[0]} == {0}
    assert {sample.version for sample in seen[1]} == {0, 1}
    assert {sample.version for sample in seen[1] if sample.step == 1} == {1}
    second = rows(tmp_path)[1]
    assert second["staleness/max"] == 1
    assert 0 < second["staleness/mean"] < 1
    assert second["policy/first_ratio_deviation"] > 1e-3  # not rounding: the weights have moved


@pytest.mark.parametrize("limit", [1, 3])
def test_no_sample_is_older_than_allowed(tmp_path, monkeypatch, limit):
    async def wait(number):
        await asyncio.sleep(0.003 * (number % 5))

    monkeypatch.setattr(Slow, "wait", wait)
    training = GRPOTraining(settings(limit, total_updates=6, num_minibatches=2), tmp_path)
    step = training.learner.step

    def slow(*args, **kwargs):
        assert len(training._ahead.waiting()) <= limit
        threading.Event().wait(0.05)
        return step(*args, **kwargs)

    training.learner.step = slow
    training.run()
    ages = [row["staleness/max"] for row in rows(tmp_path)]
    assert max(ages) <= limit
    assert ages[-1] >= 1


def test_without_staleness_samples_are_of_the_weights_that_learn(tmp_path):
    GRPOTraining(settings(0), tmp_path).run()
    assert [row["staleness/max"] for row in rows(tmp_path)] == [0, 0, 0, 0]
    assert [row["policy/ratio_deviation"] for row in rows(tmp_path)] == [0, 0, 0, 0]


def test_importance_is_weighed_and_the_ratio_is_then_that_of_the_update(tmp_path):
    GRPOTraining(settings(2, importance_cap=1.5), tmp_path).run()
    for row in rows(tmp_path):
        assert row["policy/ratio_deviation"] == 0
        assert 0 < row["policy/importance"] <= 1.5
    assert rows(tmp_path)[0]["policy/importance"] == pytest.approx(1, abs=1e-4)
    assert rows(tmp_path)[-1]["policy/importance"] != pytest.approx(1, abs=1e-4)


def test_a_stopped_run_keeps_the_rounds_that_wait(tmp_path):
    config = settings(2, total_updates=5, num_minibatches=2)
    training = GRPOTraining(config, tmp_path)

    def until_a_round_waits():
        while not training._ahead.waiting():
            threading.Event().wait(0.005)

    stop_after(training, 3, until_a_round_waits)
    assert not training.run()
    again = GRPOTraining(config, tmp_path)
    kept = again._waiting
    assert again._pending.position == 1
    assert kept
    assert again.sampler.cursor == kept[-1].cursor == 2 * (2 + len(kept))
    loaded = load_run(latest_checkpoint(tmp_path), again.learner)
    assert loaded.waiting == kept
    assert all(step.completion.token_ids for one in kept for t in one.trajectories for step in t.steps)
    assert again.run()
    assert [row["step"] for row in rows(tmp_path)] == [1, 2, 3, 4, 5]
    assert max(row["staleness/max"] for row in rows(tmp_path)) <= 2
    played = [json.loads(file.read_text()) for file in sorted((tmp_path / "episodes").iterdir())]
    order = GRPOTraining(config, tmp_path / "other").sampler
    for episodes in played:  # no task is passed over or played for two rounds
        assert {one["task"]["id"] for one in episodes} == {task.id for task in order.take(2)}


def test_what_was_recorded_is_at_the_temperature_of_sampling_and_free_of_constraints(tmp_path):
    config = settings(0).updated(
        {
            "agent": {
                "temperature": 0.6,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"enum": ["aei", "12"]}},
                },
            }
        }
    )
    training = GRPOTraining(config, tmp_path)
    try:
        task = training.sampler.take(1)[0]
        played = asyncio.run(training.collector.play(task, seed=1, temperature=0.6))
        samples = samples_of([played])
        scored = training.learner.rescored(samples)
        assert sum(samples[0].counts) == 1  # the grammar leaves one choice
        for before, after in zip(samples, scored, strict=True):
            assert after.logprobs == pytest.approx(before.logprobs, abs=1e-4)
    finally:
        training.chat.engine.close()


def collected(number):
    return Collected([], [float(number)], 0, 1, 0, number)


def test_rounds_begin_in_order_and_no_earlier_than_allowed():
    began, done = [], 0

    async def collect(number):
        began.append((number, done))
        return collected(number)

    ahead = CollectingAhead(collect, max_staleness=2, first=0, last=6)
    try:
        for update in range(6):
            done = update
            ahead.updated(update)
            assert ahead.take(lambda: False) == collected(update)
            while len(began) < min(6, update + 3):
                threading.Event().wait(0.001)
            assert len(began) == min(6, update + 3)
    finally:
        ahead.close()
    assert [number for number, _ in began] == list(range(6))
    assert all(number - seen <= 2 for number, seen in began)


def test_a_round_under_way_is_cancelled_and_an_interrupted_trainer_does_not_wait():
    began, ended = threading.Event(), []

    async def collect(number):
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(number)

    ahead = CollectingAhead(collect, max_staleness=1, first=4, last=9)
    ahead.updated(4)
    assert began.wait(_PATIENCE_S)
    assert ahead.take(lambda: True) is None
    ahead.close()
    ahead.close()
    assert ended == [4]


def test_a_failure_is_told_after_the_rounds_before_it():
    async def collect(number):
        if number == 2:
            raise TrainingError("all episodes failed")
        return collected(number)

    ahead = CollectingAhead(collect, max_staleness=5, first=1, last=9, waiting=[collected(0)])
    ahead.updated(1)
    assert ahead.take(lambda: False) == collected(0)
    with pytest.raises(TrainingError, match="all episodes failed"):
        ahead.take(lambda: False)
    ahead.close()


def test_the_weights_have_the_version_that_they_are_given(tmp_path):
    training = GRPOTraining(settings(0), tmp_path)
    engine = training.chat.engine
    try:
        with engine.paused(version=7), torch.no_grad():
            next(iter(training.learner.parameters.values())).mul_(1.0)
        task = training.sampler.take(1)[0]
        played = asyncio.run(training.collector.play(task, seed=1, temperature=1.0))
        assert {step.completion.weights_version for step in played.steps} == {7}
        with engine.paused():
            pass
        assert engine.weights_version == 8
    finally:
        engine.close()
