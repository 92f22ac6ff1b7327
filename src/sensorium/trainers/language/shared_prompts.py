"""Answers to prompts that have much in common: what is common goes through the model once.

The samples of a group answer one prompt, and prompts of different tasks begin with the same instructions.
Read by itself, each sample pays for its whole prompt again, forwards and backwards. Here a batch is read in
three passes, each going on from the keys and values of the one before:

    what all prompts begin with     one row
    the rest of each prompt         one row for each different prompt
    answers                         one row for each sample

Gradients flow back through all of it, so losses and gradients are those of the plain pass, up to rounding.
"""

import functools
import inspect
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import require
from sensorium.trainers.language.samples import Batch

_MIN_SAVING = 0.1
"""Share of the tokens that must be saved before three short passes are taken instead of a long one."""
_TAKES: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
"""Model -> what `takes_shared_prompts` found."""


class Plan(NamedTuple):
    """How a batch is read."""

    first: Int[Tensor, " prompts"]
    """Row of the first sample of each different prompt."""
    prompt_of: Int[Tensor, " rows"]
    """Number of the prompt that each sample answers."""
    common: int
    """Tokens that all prompts begin with; the last token of a prompt is never among them."""
    rest: int
    """Longest rest of a prompt, without its last token, which is read with the answer."""


def plan(batch: Batch) -> Plan | None:
    """How the prompts of a batch are shared; None where that saves little."""
    left, width = batch.ids.shape[1] - batch.answer_tokens, batch.answer_tokens
    prompts = torch.where(batch.attention[:, :left], batch.ids[:, :left], -1)
    different, prompt_of = torch.unique(prompts, dim=0, return_inverse=True)
    rows, count = len(prompts), len(different)
    first = torch.full((count,), rows, device=prompts.device)
    first = first.scatter_reduce(0, prompt_of, torch.arange(rows, device=prompts.device), "amin")
    common, longest = _common(different), int((different >= 0).sum(1).max())
    rest = max(0, longest - 1 - common)
    shared = common + count * rest + rows * width
    if shared > (1 - _MIN_SAVING) * rows * (left + width):
        return None
    return Plan(first, prompt_of, common, rest)


def takes_shared_prompts(model: Any) -> bool:
    """Whether every layer keeps the keys and values of all tokens; others are given whole prompts."""
    if model not in _TAKES:
        kind = _caches().DynamicLayer
        layers = _caches().DynamicCache(config=model.config).layers
        _TAKES[model] = all(type(layer) is kind for layer in layers)
    return _TAKES[model]


def shared_logits(model: Any, batch: Batch, plan: Plan) -> Float[Tensor, "rows answer vocabulary"]:
    """Logits of the answers' tokens.

    Args:
        model: A causal language model of transformers, for which `takes_shared_prompts` holds.
        batch: Answers beside their prompts.
        plan: How it is read, from `plan`.
    """
    left = batch.ids.shape[1] - batch.answer_tokens
    cache, seen = _caches().DynamicCache(config=model.config), batch.attention[plan.first, :0]
    lengths = batch.attention[plan.first, :left].sum(1)
    if plan.common:
        begin = left - int(lengths[0])
        ids = batch.ids[plan.first[:1], begin : begin + plan.common]
        everywhere = torch.ones_like(ids, dtype=torch.bool)
        _read(model, cache, ids, everywhere, seen[:1])
        cache.batch_select_indices(torch.zeros_like(plan.first))
        seen = everywhere.expand(len(plan.first), -1)
    if plan.rest:
        places = torch.arange(left - 1 - plan.rest, left - 1, device=batch.ids.device)
        attention = places >= (left - lengths + plan.common)[:, None]
        _read(model, cache, batch.ids[plan.first][:, places], attention, seen)
        seen = torch.cat((seen, attention), 1)
    cache.batch_select_indices(plan.prompt_of)
    answers = slice(left - 1, -1)  # each token is foretold by the one before it
    ids, attention = batch.ids[:, answers], batch.attention[:, answers]
    return _read(model, cache, ids, attention, seen[plan.prompt_of], is_answer=True)


def _read(
    model: Any,
    cache: Any,
    ids: Int[Tensor, "rows tokens"],
    attention: Bool[Tensor, "rows tokens"],
    seen: Bool[Tensor, "rows earlier"],
    *,
    is_answer: bool = False,
) -> Float[Tensor, "rows logits vocabulary"]:
    """Read tokens after those that are in the cache; prompts need no logits but the one that is cheapest."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    kind: Any = type(base)  # adapters hide its arguments
    earlier = seen.long().sum(1, keepdim=True)
    positions = (earlier + attention.long().cumsum(1) - 1).clamp(min=0)
    logits: Tensor = model(
        input_ids=ids,
        attention_mask=torch.cat((seen, attention), 1).long(),
        position_ids=positions,
        use_cache=True,
        logits_to_keep=ids.shape[1] if is_answer else 1,
        **{_name_of_cache(kind): cache},
    ).logits
    return logits


@functools.cache
def _name_of_cache(kind: Any) -> str:
    """What a model calls its keys and values, which differs between releases of transformers."""
    return "cache" if "cache" in inspect.signature(kind.forward).parameters else "past_key_values"


def _caches() -> Any:
    return require("transformers.cache_utils", extra="language", purpose="training a language model")


def _common(prompts: Int[Tensor, "prompts tokens"]) -> int:
    """Tokens that left-padded prompts, -1 where nothing is, have in common at their beginning.

    At most all but the last of the shortest.
    """
    lengths = (prompts >= 0).sum(1)
    shortest = int(lengths.min())
    if shortest == 0:
        return 0
    begins = prompts.shape[1] - lengths
    places = begins[:, None] + torch.arange(shortest, device=prompts.device)
    aligned = prompts.gather(1, places)
    same = (aligned == aligned[:1]).all(0)
    return min(int(same.long().cumprod(0).sum()), shortest - 1)
