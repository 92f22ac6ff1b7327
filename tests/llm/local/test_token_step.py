import inspect
from typing import Any

import peft
import pytest
import torch
import transformers

from sensorium.llm.local.key_values import KeyValueRows
from sensorium.llm.local.token_step import TokenStep, token_step_of

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,
}
LONG, SHORT, NEXT = (5, 6, 7, 8, 9, 10), (11, 12, 13), (3, 4)


def made(family: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES | settings)
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


def read(model: Any, tokens: tuple[int, ...], count: int = 1) -> KeyValueRows:
    """So many requests of the same tokens, in a cache."""
    rows = KeyValueRows(2, len(tokens), count)
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    with torch.inference_mode():
        model(input_ids=torch.tensor([tokens] * count), use_cache=True, **{name: rows.cache})
    rows.advance(len(tokens))
    return rows


def stepped(model: Any) -> TokenStep:
    step = token_step_of(model)
    assert step is not None
    return step


def after(model: Any, *tokens: int) -> torch.Tensor:
    """Logits after tokens that are read from the beginning, without a cache."""
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=torch.tensor([tokens]), use_cache=False).logits
    return logits[0, -1]


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3"])
def test_requests_of_different_lengths_have_the_logits_of_the_whole_model(family: str) -> None:
    model = made(family, **({"sliding_window": None} if family == "Mistral" else {}))
    step, rows = stepped(model), read(model, LONG)
    rows.join(read(model, SHORT))
    said: list[int] = []
    for token in NEXT:
        said.append(token)
        with torch.inference_mode():
            logits = step(rows, torch.tensor([[token], [token]]))
        rows.advance(1)
        expected = torch.stack([after(model, *LONG, *said), after(model, *SHORT, *said)])
        torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-5)
    assert rows.lengths == [len(LONG) + 2, len(SHORT) + 2]


def test_requests_of_one_length_need_no_mask() -> None:
    model = made("Llama")
    rows = read(model, LONG, 3)
    with torch.inference_mode():
        logits = stepped(model)(rows, torch.tensor([[3], [4], [20]]))
    expected = torch.stack([after(model, *LONG, token) for token in (3, 4, 20)])
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-5)


def test_adapters_in_the_layers_are_heard() -> None:
    plain = after(made("Llama"), *LONG, 3)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    model = peft.get_peft_model(made("Llama"), config).eval()
    expected = after(model, *LONG, 3)
    assert not torch.allclose(expected, plain, atol=0.1)
    with torch.inference_mode():
        logits = stepped(model)(read(model.get_base_model(), LONG), torch.tensor([[3]]))
        with model.disable_adapter():
            without = stepped(model)(read(model.get_base_model(), LONG), torch.tensor([[3]]))
    torch.testing.assert_close(logits[0], expected, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(without[0], plain, atol=2e-5, rtol=1e-5)


def test_half_precision_is_rounded_where_the_model_rounds() -> None:
    model = made("Llama").to(torch.bfloat16)
    with torch.inference_mode():
        logits = stepped(model)(read(model, LONG), torch.tensor([[3]]))
    torch.testing.assert_close(logits[0], after(model, *LONG, 3), atol=0.05, rtol=0.02)


def test_models_that_do_more_are_not_taken() -> None:
    assert not token_step_of(made("Gemma"))  # scales its embeddings
    assert not token_step_of(made("Mistral", sliding_window=4))
    assert not token_step_of(made("Llama", attn_implementation="eager"))

    learnt = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    assert not token_step_of(peft.get_peft_model(made("Llama"), learnt))

    class Own(transformers.LlamaForCausalLM):  # type: ignore[misc]
        pass

    assert not token_step_of(Own(made("Llama").config))


def test_whoever_looks_at_layers_is_noticed() -> None:
    model = made("Llama")
    step = stepped(model)
    assert step.is_plain
    layer = model.model.layers[1]
    for looked_at in (layer, layer.self_attn.q_proj, layer.mlp, layer.mlp.down_proj, model.lm_head):
        hook = looked_at.register_forward_hook(lambda *_: None)
        assert not step.is_plain
        hook.remove()
        assert step.is_plain
    model.model.norm.forward = lambda states: states
    assert not step.is_plain
