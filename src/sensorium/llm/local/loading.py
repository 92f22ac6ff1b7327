"""From a name to a model and its tokenizer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sensorium.core import ConfigError, boundary, require
from sensorium.core.quiet import without_progress_bars
from sensorium.llm.local.config import LocalModelConfig
from sensorium.llm.local.grammars import CALL_CLOSES, CALL_OPENS

_SHOWN_MARKS = frozenset({CALL_OPENS, CALL_CLOSES})
_UNLIMITED = 10**7
"""Tokenizers of models without a limit name an absurd one."""


class LocalTokenizer:
    """A tokenizer of transformers, as the engine needs it.

    Args:
        tokenizer: A fast tokenizer.
        end_ids: Tokens that end an answer.
        size: Entries of the vocabulary, those without a token included.
    """

    def __init__(self, tokenizer: Any, end_ids: frozenset[int], size: int) -> None:
        self.tokenizer = tokenizer
        self.end_ids = end_ids
        self.size = size
        ids = tokenizer.all_special_ids
        self._left_out = {
            token for token in ids if tokenizer.convert_ids_to_tokens(token) not in _SHOWN_MARKS
        }

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens; special ones are left out, but for marks of calls."""
        shown = [token for token in tokens if token not in self._left_out]
        text: str = self.tokenizer.decode(
            shown, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text


def load_model(config: LocalModelConfig, find: Callable[[str], Path | str] | None = None) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer, or a model that sees and its processor.

    Args:
        config: Which, and onto which device.
        find: Turns the name of a packaged model into its folder (`sensorium.features.find_model`); without it
            models are folders and hub names.

    Returns:
        Model in evaluation mode, and its tokenizer; the processor, which has one, where `config.pictures`
        asks for pictures or leaves it to the kind of the model.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        ConfigError: There is no such model or device, it is not a causal language model with a fast
            tokenizer, or its processor needs what is not installed.
    """
    torch = require("torch", extra="rl", purpose="a language model in this process")
    transformers = require("transformers", extra="language", purpose="a language model in this process")
    where = str(config.model if find is None else find(config.model))
    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    loading = boundary(ConfigError, f"Cannot load the language model {config.model!r} ({where})")
    with loading, without_progress_bars(transformers):
        kind = type(transformers.AutoConfig.from_pretrained(where))
        can_see = kind in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        if config.pictures and not can_see:
            raise ConfigError(f"The model {config.model!r} takes no pictures. Leave pictures out.")
        sees = can_see and config.pictures is not False
        reader = _processor(transformers, where) if sees else _tokenizer(transformers, where)
        load = transformers.AutoModelForImageTextToText
        if not can_see or (not sees and kind in transformers.MODEL_FOR_CAUSAL_LM_MAPPING):
            load = transformers.AutoModelForCausalLM
        model = load.from_pretrained(where, dtype=_dtype(torch, config, device))
    if not getattr(reader, "tokenizer", reader).is_fast:
        raise ConfigError(f"The tokenizer of {config.model!r} has no tokenizer.json, which the engine needs.")
    with boundary(ConfigError, f"Cannot use the device {device!r}"):
        return model.to(device).eval(), reader


def _tokenizer(transformers: Any, where: str) -> Any:
    return transformers.AutoTokenizer.from_pretrained(where)


def _processor(transformers: Any, where: str) -> Any:
    try:
        return transformers.AutoProcessor.from_pretrained(where)
    except ImportError as error:  # many processors, also of pictures alone, are written for torchvision
        raise ConfigError(
            f"The processor of {where} needs a package that is not installed: {error} Install it (for "
            "torchvision: the build that belongs to your torch), or set pictures: false."
        ) from error


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end an answer: those of generation config, config and tokenizer."""
    configs = (model.generation_config, model.config, model.config.get_text_config())
    named = [getattr(config, "eos_token_id", None) for config in configs]
    named.append(tokenizer.eos_token_id)
    found: set[int] = set()
    for value in named:
        found.update(value if isinstance(value, list | tuple) else () if value is None else (int(value),))
    if not found:
        raise ConfigError(
            "Neither the model's config nor its tokenizer names a token that ends an answer. Set "
            "eos_token_id in generation_config.json."
        )
    return frozenset(found)


def context_length(model: Any, tokenizer: Any) -> int:
    """Tokens that prompt and answer may have together.

    Raises:
        ConfigError: Neither the model's config nor its tokenizer names a limit.
    """
    text = model.config.get_text_config()
    limits = [getattr(text, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len")]
    limits.append(tokenizer.model_max_length)
    known = [int(limit) for limit in limits if limit is not None and 1 < limit < _UNLIMITED]
    if not known:
        raise ConfigError("The model does not say how long its context is. Set engine.context_tokens.")
    return min(known)


def _dtype(torch: Any, config: LocalModelConfig, device: str) -> Any:
    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    if device == "cpu":
        return torch.float32
    return torch.bfloat16 if not device.startswith("mps") else torch.float16
