"""What went wrong in other trainers of agents, and does not here.

Turns that earned nothing, also the last: tests/algorithms/test_token_gae.py. A batch that loses its pictures:
test_pictures.py. Sampling without end: test_grpo.py. Samples of weights that are too old: test_staleness.py.
"""

import asyncio
import json
import random
import threading
import types

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stopped_training import stop_after

from sensorium.core import ConfigError, EpisodeStatus, TrainingError
from sensorium.envs.letters.definition import Letters, LettersEnv
from sensorium.llm.base import Completion
from sensorium.llm.local import tiny_model
from sensorium.presets import find_preset
from sensorium.trainers.language.config import GRPOConfig
from sensorium.trainers.language.credit import credit
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.language.learner import Learner, Rows
from sensorium.trainers.language.samples import Sample, samples_of

VOCABULARY = 23


def settings(**algo):
    small = {"total_updates": 1, "tasks_per_update": 2, "group_size": 4}
    return find_preset("grpo_toy").updated({"algo": small | algo, "evaluation": {"tasks": 2}})


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Unconditional(torch.nn.Module):
    """Says the same of every next token, whatever was before: only targets can change its loss."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.logits = torch.nn.Parameter(torch.randn(VOCABULARY, generator=generator))
        self.config = types.SimpleNamespace()

    def forward(self, input_ids, attention_mask, position_ids, logits_to_keep, use_cache):
        shape = (len(input_ids), logits_to_keep, VOCABULARY)
        return types.SimpleNamespace(logits=self.logits.expand(shape))


def loss_and_gradient(samples, **algo):
    model = Unconditional()
    learner = Learner(model, GRPOConfig(**algo), pad=0, temperature=1.0, answer_tokens=8)
    taken = {}
    learner.optimizer.step = lambda: taken.update(gradient=model.logits.grad.clone())
    advantages = torch.tensor([1.0, -0.5, 2.0])
    told = learner.step(Rows(samples, advantages, torch.tensor([0, 0, 1])), is_on_policy=False)
    return told["loss/policy"], taken["gradient"]


TOKENS = st.lists(st.integers(1, VOCABULARY - 1), min_size=3, max_size=6)


@pytest.fixture(autouse=True)
def whole_prompts(monkeypatch):
    monkeypatch.setattr("sensorium.trainers.language.learner.takes_shared_prompts", lambda model: False)
    monkeypatch.setattr("sensorium.trainers.language.model.takes_shared_prompts", lambda model: False)


def sample(prompt, answer, counts):
    return Sample(
        prompt=tuple(prompt),
        answer=tuple(answer),
        logprobs=(-3.0,) * len(answer),
        counts=tuple(counts),
        trajectory=0,
        step=0,
        is_cut=False,
        version=0,
    )


def same(one, other):
    """Up to the order of sums: samples are read in the order of their prompts."""
    assert one[0] == pytest.approx(other[0], abs=1e-6)
    torch.testing.assert_close(one[1], other[1], rtol=1e-5, atol=1e-6)


class TestTextOfToolsIsNotTrainedOn:
    @hypothesis.settings(max_examples=20)
    @given(prompts=st.tuples(TOKENS, TOKENS, TOKENS), others=st.tuples(TOKENS, TOKENS, TOKENS))
    def test_flipping_what_was_read_changes_nothing(self, prompts, others):
        answers = [[1, 2, 3], [4, 5], [6]]
        made = [
            loss_and_gradient([sample(p, a, [True] * len(a)) for p, a in zip(given, answers, strict=True)])
            for given in (prompts, others)
        ]
        same(made[0], made[1])

    @hypothesis.settings(max_examples=20)
    @given(flips=TOKENS, normaliser=st.sampled_from(["sequence", "token", "token_group", "constant"]))
    def test_flipping_what_a_grammar_wrote_changes_nothing(self, flips, normaliser):
        def loss(forced, chosen):
            first = sample([1], [forced[0], chosen, forced[1]], [False, True, False])
            second = sample([2, 3], [forced[2], 8], [False, True])
            return loss_and_gradient([first, second, sample([4], [9], [True])], normaliser=normaliser)

        plain, flipped, other = loss([1, 1, 1], 5), loss(flips, 5), loss([1, 1, 1], 6)
        same(plain, flipped)
        assert plain[0] != pytest.approx(other[0], abs=1e-4)  # what was chosen counts


def test_the_loss_does_not_change_with_the_split_of_a_batch():
    picks = random.Random(3)
    samples = []
    for length in (1, 7, 3):
        answer = [picks.randrange(1, VOCABULARY) for _ in range(length)]
        samples.append(sample([1] * picks.randrange(1, 9), answer, [True] * length))
    for name in ("sequence", "token", "token_group", "constant"):
        whole = loss_and_gradient(samples, normaliser=name, micro_batch_tokens=4096)
        same(whole, loss_and_gradient(samples, normaliser=name, micro_batch_tokens=1))


class Counted(LettersEnv):
    """Counts how often it is opened and closed; fails as a test says."""

    opened = 0
    closed = 0
    fails = staticmethod(lambda number: False)

    async def _reset(self, task, seed):
        await super()._reset(task, seed)
        self._number = Counted.opened
        Counted.opened += 1

    async def _said(self, text):
        if Counted.fails(self._number):
            raise OSError("the disk is gone")
        return await super()._said(text)

    async def _close(self):
        Counted.closed += 1


class Counting(Letters):
    """Its environments are counted."""

    def make(self, config):
        return Counted()


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Counted, "opened", 0)
    monkeypatch.setattr(Counted, "closed", 0)
    return settings(max_retries=1).updated({"env": f"{__name__}:Counting"})


def test_every_environment_is_closed(tmp_path, counted, monkeypatch):
    monkeypatch.setattr(Counted, "fails", staticmethod(lambda number: number % 3 == 0))
    assert GRPOTraining(counted, tmp_path).run()
    assert Counted.opened > 8 + 2  # new tries are among them
    assert Counted.closed == Counted.opened


def test_environments_are_closed_also_when_a_round_is_given_up(tmp_path, counted, monkeypatch):
    said = Counted._said
    begun = threading.Event()

    async def forever(self, text):
        if self._number < 8:  # of the first round
            return await said(self, text)
        begun.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(Counted, "_said", forever)
    training = GRPOTraining(counted.updated({"algo": {"max_staleness": 1, "total_updates": 3}}), tmp_path)

    def until_the_next_round_is_under_way():
        assert begun.wait(60)

    stop_after(training, 1, until_the_next_round_is_under_way)
    assert not training.run()
    assert Counted.opened > 8
    assert Counted.closed == Counted.opened


def test_a_failure_of_the_environment_is_not_a_score_of_zero(tmp_path, counted, monkeypatch):
    monkeypatch.setattr(Counted, "fails", staticmethod(lambda number: number % 2 == 0))
    config = counted.updated({"algo": {"max_retries": 0}})
    training = GRPOTraining(config, tmp_path)
    seen, compared = [], training._compared

    def watched(collected):
        seen.append(collected)
        return compared(collected)

    training._compared = watched
    training.run()
    (collected,) = seen
    assert collected.num_failed == 4
    assert len(collected.trajectories) == len(collected.outcomes) == 4
    assert all(t.verdict.status is not EpisodeStatus.ERROR for t in collected.trajectories)
    assert all(t.verdict.reward is not None for t in collected.trajectories)
    assert rows(tmp_path)[0]["env/failed_episodes"] == 4
    rewards = torch.tensor([t.verdict.reward for t in collected.trajectories])
    assert rows(tmp_path)[0]["rollout/return_mean"] == pytest.approx(float(rewards.mean()), abs=1e-6)
    made = credit(collected.trajectories, samples_of(collected.trajectories), config.algo)
    for group in set(made.groups.tolist()):  # failed ones are no part of a baseline
        of_group = made.advantages[made.groups == group]
        assert float(of_group.sum()) == pytest.approx(0, abs=1e-4)


def test_answers_are_never_written_out_and_read_again(tmp_path):
    training = GRPOTraining(settings(total_updates=1), tmp_path)
    vocabulary = training.chat.tokenizer
    fed, differs = [], 0
    submit = training.chat.engine.submit

    def watched(request):
        future = submit(request)
        fed.append((request, future))
        return future

    training.chat.engine.submit = watched
    compared = training._compared
    made = []

    def kept(collected):
        made.extend(compared(collected).rows.samples)
        return compared(collected)

    training._compared = kept
    training.run()
    sampled = {(request.prompt, tuple(future.result().token_ids)) for request, future in fed}
    for one in made:
        assert (one.prompt, one.answer) in sampled
        text = vocabulary.decode(list(one.answer))
        differs += tuple(vocabulary.tokenizer(text).input_ids) != one.answer
    assert differs  # writing and reading would have given other tokens


def test_a_model_that_does_not_tell_its_tokens_cannot_be_trained(tmp_path):
    training = GRPOTraining(settings(), tmp_path)
    task = training.sampler.take(1)[0]
    played = asyncio.run(training.collector.play(task, seed=1, temperature=1.0))
    training.chat.engine.close()
    bare = Completion(message=played.steps[0].completion.message)
    step = played.steps[0].model_copy(update={"completion": bare})
    with pytest.raises(TrainingError, match="lacks the tokens that were sampled"):
        samples_of([played.model_copy(update={"steps": (step,)})])


@pytest.mark.parametrize("offers", [True, False])
def test_tools_are_told_only_where_they_are_offered(tmp_path, offers):
    config = settings().updated({"env": "lookup", "agent": {"offer_tools": offers, "max_tokens": 2}})
    training = GRPOTraining(config.updated({"episode": {"max_steps": 1}}), tmp_path)
    task = training.sampler.take(1)[0]
    played = asyncio.run(training.collector.play(task, seed=1, temperature=1.0))
    training.chat.engine.close()
    assert {tool["function"]["name"] for tool in played.tools} >= {"lookup"}
    read = training.chat.tokenizer.decode(list(played.steps[0].completion.prompt_token_ids))
    assert ('"name": "lookup"' in read) is offers


TEMPLATE_FORGETS = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' }}{% if m.role == 'assistant' %}"
    "{{ m.content.split('</think>')[-1].lstrip() }}{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}"
)


@pytest.mark.parametrize("agent", [{}, {"rewritten_history": "allow"}])
def test_a_conversation_that_is_written_anew_is_refused_at_the_start(tmp_path, agent):
    folder = tiny_model(tmp_path / "model", template=TEMPLATE_FORGETS)
    goes_on = {"context_management": {"drop_full_history": False}}
    config = settings().updated({"model": {"model": str(folder)}, "agent": agent})
    GRPOTraining(config, tmp_path / "short").chat.engine.close()  # every prompt is whole: nothing to refuse
    if agent:
        GRPOTraining(config.updated({"observation": goes_on}), tmp_path / "run").chat.engine.close()
        return
    with pytest.raises(ConfigError, match=r"message 2 \(assistant\).*First thought"):
        GRPOTraining(config.updated({"observation": goes_on}), tmp_path / "run")
