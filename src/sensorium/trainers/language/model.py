"""The model that is trained: its weights, adapters, and the log-probabilities it gives to answers."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sensorium.core import ConfigError, require
from sensorium.llm.local.vision import picture_rows, with_pictures
from sensorium.trainers.language.config import LoraConfig
from sensorium.trainers.language.samples import Batch
from sensorium.trainers.language.shared_prompts import plan, shared_logits, takes_shared_prompts


class AnswerScores(NamedTuple):
    """What a model says of answers."""

    logprobs: Float[Tensor, "rows answer"]
    entropy: Float[Tensor, "rows answer"]
    """Of the distribution each token was drawn from, nats; without gradient."""


def with_adapters(model: Any, lora: LoraConfig, *, seed: int) -> Any:
    """The model with low-rank adapters; only they are trained.

    Raises:
        ConfigError: The model has none of the layers.
        MissingDependencyError: peft is not installed.
    """
    peft = require("peft", extra="language", purpose="low-rank adapters")
    names = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
    targets = [target for target in lora.targets if target in names]
    if not targets:
        raise ConfigError(
            f"The model has none of the layers of lora.targets ({', '.join(lora.targets)}). Its linear "
            f"layers are: {', '.join(sorted(_linear_names(model)))}."
        )
    settings = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, target_modules=targets, lora_dropout=0.0, task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # peft asks transformers by a name that is going to be removed; nothing that a user could change.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        torch.manual_seed(seed)
        return peft.get_peft_model(model, settings)


def answer_scores(model: Any, batch: Batch, *, temperature: float = 1.0) -> AnswerScores:
    """Log-probabilities of the tokens of answers, given what stands before them.

    Args:
        model: A causal language model of transformers.
        batch: Answers beside their prompts.
        temperature: Logits are divided by it.

    Raises:
        PictureError: A prompt has more or fewer places for pictures than it shows.
    """
    shared = plan(batch) if takes_shared_prompts(model) and not batch.pictures else None
    logits = _plain_logits(model, batch) if shared is None else shared_logits(model, batch, shared)
    logits = logits.float() if temperature == 1.0 else logits.float() / temperature
    logp = torch.log_softmax(logits, dim=-1)
    chosen = logp.gather(2, batch.ids[:, -batch.answer_tokens :, None])[:, :, 0]
    with torch.no_grad():
        # In one piece of memory: with many tokens it is as large as all that is learnt from.
        entropy = -logp.exp().mul_(logp).nan_to_num_(nan=0.0).sum(-1)
    return AnswerScores(chosen, entropy)


def _plain_logits(model: Any, batch: Batch) -> Float[Tensor, "rows answer vocabulary"]:
    """Logits of the answers' tokens, each row read by itself."""
    inputs = {"inputs_embeds": _seen(model, batch)} if batch.pictures else {"input_ids": batch.ids}
    logits: Tensor = model(
        **inputs,
        attention_mask=batch.attention.long(),
        position_ids=(batch.attention.long().cumsum(1) - 1).clamp(min=0),
        logits_to_keep=batch.answer_tokens + 1,
        use_cache=False,
    ).logits
    return logits[:, :-1]


def _seen(model: Any, batch: Batch) -> Float[Tensor, "rows tokens width"]:
    """Embeddings of a batch with pictures; each picture goes through the model once."""
    different = {picture.digest: picture for row in batch.pictures for picture in row}
    rows = {digest: picture_rows(model, picture) for digest, picture in different.items()}
    of_row = [torch.cat([rows[one.digest] for one in row]) if row else None for row in batch.pictures]
    is_prompt = batch.attention.clone()
    is_prompt[:, -batch.answer_tokens :] = False
    return with_pictures(model, batch.ids, is_prompt, of_row)


@contextmanager
def as_before_training(model: Any, frozen: nn.Module | None) -> Iterator[Any]:
    """The model as it was: the frozen copy, or this one without its adapters."""
    if frozen is not None:
        yield frozen
        return
    with model.disable_adapter():
        yield model


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name -> parameter of all that is trained."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _linear_names(model: nn.Module) -> set[str]:
    linear = (name for name, module in model.named_modules() if isinstance(module, nn.Linear))
    return {name.rsplit(".", 1)[-1] for name in linear}
