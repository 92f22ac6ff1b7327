import pytest

from sensorium.llm.local import LocalChatModel, LocalModelConfig, tiny_model
from sensorium.llm.local.loading import load_model
from sensorium.llm.messages import text_message


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    config = LocalModelConfig(model=str(tiny_model(tmp_path_factory.mktemp("tiny"), spread=0.2)))
    made = LocalChatModel(*load_model(config), config)
    yield made
    made.engine.close()


def ask(model, text, seed):
    messages = [text_message("user", text)]
    return model.complete_sync(messages, max_tokens=6, seed=seed, logprobs=True, return_token_ids=True)


def test_a_prompt_is_read_once_however_often_it_is_sampled(model):
    read = []
    hook = model.engine.model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: read.append(inputs[0].shape[1])
    )
    first = ask(model, "a prompt that is sampled again", 1)
    assert sum(read) == first.usage.prompt_tokens + len(first.token_ids) - 1
    read.clear()
    again, other = (ask(model, "a prompt that is sampled again", seed) for seed in (1, 2))
    hook.remove()
    assert sum(read) == len(again.token_ids) + len(other.token_ids) - 2
    assert again.token_ids == first.token_ids
    assert again.logprobs == pytest.approx(first.logprobs, abs=1e-5)
    assert other.token_ids != first.token_ids


def test_new_weights_read_it_anew(model):
    before = ask(model, "another prompt, before and after", 1)
    with model.engine.paused() as weights:
        table = weights.get_input_embeddings().weight
        table.data.mul_(1.5)
    after = ask(model, "another prompt, before and after", 1)
    assert after.reused_tokens == 0
    assert after.logprobs[0] != pytest.approx(before.logprobs[0], abs=1e-3)
