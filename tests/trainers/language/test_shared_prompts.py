import itertools
import random

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from sensorium.llm.local import tiny_model
from sensorium.trainers.language.config import LoraConfig
from sensorium.trainers.language.model import answer_scores, trained_parameters, with_adapters
from sensorium.trainers.language.samples import Sample, as_batch, micro_batches
from sensorium.trainers.language.shared_prompts import plan, shared_logits, takes_shared_prompts

VOCABULARY = 250
HEAD = tuple(range(100, 130))


def sample(prompt, answer):
    return Sample(
        prompt=tuple(prompt),
        answer=tuple(answer),
        logprobs=(-1.0,) * len(answer),
        counts=(True,) * len(answer),
        trajectory=0,
        step=0,
        is_cut=False,
        version=0,
    )


def group(tail, lengths, seed=0):
    rng = random.Random(seed)
    return [sample((*HEAD, *tail), [rng.randrange(VOCABULARY) for _ in range(n)]) for n in lengths]


BATCHES = {
    "one prompt": group((7, 8), (3, 5, 1)),
    "several prompts": group((7,), (3, 4)) + group((9, 8, 7, 6), (2, 6)) + group((), (1, 1)),
    "nothing in common": [sample([k, *range(40)], [1, 2]) for k in (5, 5, 5, 6, 6, 6)],
    "one prompt begins another": group((), (3, 3)) + group((1,), (3, 3)),
    "one token": [sample([3], [4, 5]), sample([3], [6])],
}


def batch_of(samples):
    return as_batch(samples, pad=0, device=torch.device("cpu"))


def gradients(model, batch, logits=None):
    """Of a loss that weighs every token of every answer differently."""
    model.zero_grad()
    scores = answer_scores(model, batch).logprobs
    weights = torch.linspace(0.5, 2.0, batch.mask.numel()).reshape(batch.mask.shape)
    torch.where(batch.mask, scores * weights, 0.0).sum().backward()
    made = {name: p.grad.clone() for name, p in trained_parameters(model).items()}
    return scores.detach()[batch.mask], made


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    folder = tiny_model(tmp_path_factory.mktemp("tiny"), seed=3)
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    made = with_adapters(base, LoraConfig(rank=4), seed=0)
    with torch.no_grad():  # adapters begin at 0, where half of their gradients are 0, too
        for parameter in trained_parameters(made).values():
            parameter.normal_(std=0.3)
    return made


@pytest.mark.parametrize("name", BATCHES)
def test_scores_and_gradients_are_those_of_the_plain_pass(model, name, monkeypatch):
    batch = batch_of(BATCHES[name])
    made = plan(batch)
    assert made is not None
    scores, grads = gradients(model, batch)
    monkeypatch.setattr("sensorium.trainers.language.model.plan", lambda batch: None)
    plain_scores, plain_grads = gradients(model, batch)
    torch.testing.assert_close(scores, plain_scores, rtol=1e-5, atol=1e-5)
    for parameter, grad in plain_grads.items():
        torch.testing.assert_close(grads[parameter], grad, rtol=1e-4, atol=1e-4)


def test_what_is_common_goes_through_the_model_once(model):
    batch = batch_of(BATCHES["several prompts"])
    made = plan(batch)
    assert (made.common, made.rest) == (len(HEAD) - 1, 4)
    assert len(made.first) == 3
    read = []
    base = model.get_base_model()
    hook = base.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: read.append(tuple(inputs[0].shape))
    )
    shared_logits(model, batch, made)
    hook.remove()
    assert read == [(1, 29), (3, 4), (6, 6)]


def test_prompts_that_share_little_are_read_whole():
    assert plan(batch_of([sample(range(k, k + 50), [1, 2]) for k in range(4)])) is None
    assert plan(batch_of([sample(range(50), [1, 2])])) is None


def test_sliding_windows_are_given_whole_prompts():
    sizes = {"vocab_size": 99, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    assert not takes_shared_prompts(MistralForCausalLM(MistralConfig(sliding_window=8, **sizes, **heads)))
    assert takes_shared_prompts(LlamaForCausalLM(LlamaConfig(**sizes, **heads)))


@pytest.mark.parametrize("share_prompts", [True, False])
def test_pieces_keep_to_the_limit_and_groups_stay_together(share_prompts):
    samples = list(itertools.chain.from_iterable(group((k,), (6,) * 8, seed=k) for k in range(4)))
    mixed = samples[::2] + samples[1::2]
    pieces = list(micro_batches(mixed, range(len(mixed)), 300, share_prompts=share_prompts))
    assert sorted(itertools.chain.from_iterable(pieces)) == list(range(32))
    for piece in pieces:
        batch = batch_of([mixed[row] for row in piece])
        made = plan(batch)
        padded = batch.ids.numel()
        if share_prompts:
            assert made.common + len(made.first) * made.rest + len(piece) * 6 <= 300
        else:
            assert padded <= 300
        assert len(made.first) == len({mixed[row].prompt for row in piece})
    assert len(pieces) == (2 if share_prompts else 4)


def test_a_sample_longer_than_the_limit_is_a_piece_of_its_own():
    samples = [sample(range(50), [1] * 5), sample(range(60), [1] * 5)]
    assert list(micro_batches(samples, range(2), 20)) == [[0], [1]]
