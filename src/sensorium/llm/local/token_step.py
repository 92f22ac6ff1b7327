"""One token of every request through a model of Llama's kind, its layers called one after the other.

transformers makes masks, records of outputs and lists of modules anew for every token. With a small model
that takes about as long as the arithmetic, which is the same here.
"""

from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from sensorium.llm.local.key_values import KeyValueRows, RowsLayer

_KINDS = {
    f"transformers.models.{family}.modeling_{family}.{name}ForCausalLM"
    for family, name in (("llama", "Llama"), ("mistral", "Mistral"), ("qwen2", "Qwen2"), ("qwen3", "Qwen3"))
}
"""Models that are embeddings, layers of attention and a gated network, a norm, and a head: nothing else."""


class TokenStep:
    """Reads one further token of every request.

    Args:
        model: For which `token_step_of` says so.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._base = model, model.model
        layers = list(self._base.layers)
        parts = [module for layer in layers for module in (layer.self_attn, layer.mlp)]
        self._passed_by = [model, self._base, self._base.norm, *layers, *parts]
        self._passed_by += [
            norm for one in layers for norm in (one.input_layernorm, one.post_attention_layernorm)
        ]
        self._passed_by += [one for module in (model, *parts) for one in module.children() if _is_linear(one)]

    @property
    def is_plain(self) -> bool:
        """Whether nobody looks at or changes what goes through the modules that are not called here."""
        return not any(
            module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__
            for module in self._passed_by
        )

    def __call__(
        self, rows: KeyValueRows, ids: Int[Tensor, "requests 1"]
    ) -> Float[Tensor, "requests vocabulary"]:
        """Logits after the tokens, whose keys and values are added.

        Args:
            rows: With room for one more token.
            ids: Of the tokens.
        """
        device, base = ids.device, self._base
        mask = rows.mask(1, device)
        seen = None if mask is None else mask[:, None, None].bool()
        states = base.embed_tokens(ids)
        positions = torch.tensor(rows.lengths, device=device)[:, None]
        turns = base.rotary_emb(states, position_ids=positions)
        for layer, kept in zip(base.layers, rows.cache.layers, strict=True):
            normed = _normed(layer.input_layernorm, states)
            states = states + _attended(layer.self_attn, normed, turns, kept, seen)
            states = states + _gated(layer.mlp, _normed(layer.post_attention_layernorm, states))
        return _linear(self._model.lm_head, _normed(base.norm, states))[:, -1]


def token_step_of(model: Any) -> TokenStep | None:
    """The step of a model, None unless it is of a kind that is known here and looks at all that was before.

    Adapters that sit in the layers (LoRA) are part of them, so that the model inside is stepped.
    """
    if hasattr(model, "get_base_model"):
        if model.active_peft_config.is_prompt_learning:
            return None
        model = model.get_base_model()
    kind, config = type(model), model.config
    is_known = (
        f"{kind.__module__}.{kind.__qualname__}" in _KINDS
        and config._attn_implementation == "sdpa"
        and all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)
    )
    return TokenStep(model) if is_known else None


def _normed(norm: Any, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
    """The root mean square norm; in other precisions than float32 models round on the way to it."""
    if states.dtype != torch.float32:
        normed: Tensor = norm(states)
        return normed
    return functional.rms_norm(states, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _is_linear(module: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether it is nothing more: layers with adapters, or of few bits, are of a class of their own."""
    return type(module) is nn.Linear


def _linear(module: nn.Module, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows out"]:
    """What a linear layer makes of states; a plain one without the detour through its call."""
    if _is_linear(module):
        return functional.linear(states, module.weight, module.bias)
    found: Tensor = module(states)
    return found


def _gated(mlp: Any, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
    """What the gated network adds."""
    opened = mlp.act_fn(_linear(mlp.gate_proj, states))
    return _linear(mlp.down_proj, opened * _linear(mlp.up_proj, states))


def _attended(
    attention: Any,
    states: Float[Tensor, "requests 1 width"],
    turns: tuple[Tensor, Tensor],
    kept: RowsLayer,
    seen: Bool[Tensor, "requests 1 1 columns"] | None,
) -> Float[Tensor, "requests 1 width"]:
    """What attention adds. The heads that share keys are taken as so many queries of one head."""
    count, size = len(states), attention.head_dim
    queries, keys, values = (
        _linear(project, states).view(count, 1, -1, size)
        for project in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    if hasattr(attention, "q_norm"):
        queries, keys = _normed(attention.q_norm, queries), _normed(attention.k_norm, keys)
    queries, keys = apply_rotary_pos_emb(queries.transpose(1, 2), keys.transpose(1, 2), *turns)
    all_keys, all_values = kept.update(keys, values.transpose(1, 2))
    found = functional.scaled_dot_product_attention(
        queries.reshape(count, all_keys.shape[1], -1, size),
        all_keys,
        all_values,
        attn_mask=seen,
        scale=attention.scaling,
    )
    return _linear(attention.o_proj, found.reshape(count, 1, -1))
