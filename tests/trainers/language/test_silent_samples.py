import copy

import pytest
import torch
from transformers import AutoModelForCausalLM

from sensorium.llm.local import tiny_model
from sensorium.trainers.language.config import GRPOConfig
from sensorium.trainers.language.learner import Learner, Rows
from sensorium.trainers.language.samples import Sample

LENGTHS = (3, 6, 2, 5)
GROUPS = torch.tensor([0, 0, 1, 1])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_model(tmp_path_factory.mktemp("tiny"), seed=1)
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def samples():
    return [
        Sample(
            prompt=(*range(10, 40), 50 + int(group)),
            answer=tuple(range(row, row + length)),
            logprobs=(-1.5,) * length,
            counts=(True,) * length,
            trajectory=row,
            step=0,
            is_cut=False,
            version=0,
        )
        for row, (group, length) in enumerate(zip(GROUPS, LENGTHS, strict=True))
    ]


def stepped(model, advantages, steps=1, **algo):
    """A learner after some steps, what it told last, and the rows that were read with a gradient."""
    own = copy.deepcopy(model)
    config = GRPOConfig(lr=1e-2, **algo)
    frozen = copy.deepcopy(model) if algo.get("kl_coef") else None
    learner = Learner(own, config, pad=0, temperature=1.0, answer_tokens=8, frozen=frozen)
    with_gradient = []
    own.lm_head.register_forward_hook(
        lambda module, inputs, output: with_gradient.append(output.requires_grad * output.shape[0])
    )
    for _ in range(steps):
        told = learner.step(Rows(samples(), torch.tensor(advantages), GROUPS), is_on_policy=True)
    return learner, told, with_gradient


def test_samples_that_teach_nothing_take_no_gradient_and_change_nothing(model):
    one, told, with_gradient = stepped(model, [1.0, -1.0, 0.0, 0.0])
    two, wanted, all_rows = stepped(model, [1.0, -1.0, 1e-30, -1e-30])
    assert (max(with_gradient), max(all_rows)) == (2, 4)
    assert told == pytest.approx(wanted, abs=1e-5)
    assert told["policy/entropy"] > 0
    for name, parameter in one.parameters.items():
        torch.testing.assert_close(parameter, two.parameters[name], atol=1e-5, rtol=0)


def test_where_nobody_teaches_anything_the_optimiser_still_goes_on(model):
    learner, told, with_gradient = stepped(model, [0.0] * 4)
    assert told["gradient/norm"] == 0.0
    assert not any(with_gradient)
    assert len(learner.optimizer.state) == len(learner.parameters)


def test_a_divergence_is_learnt_from_in_every_sample(model):
    _, _, with_gradient = stepped(model, [0.0] * 4, steps=2, kl_coef=0.1)
    assert max(with_gradient) == 4
