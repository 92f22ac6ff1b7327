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

    def pieces(self, tokens: list[int]) -> list[bytes]:
        """What each token stands for by itself, as bytes: a character may be spread over several."""
        backend = self.tokenizer.backend_tokenizer
        special = set(self.tokenizer.all_special_ids)
        return [_piece(backend, token, token in special) for token in tokens]


def load_model(config: LocalModelConfig, find: Callable[[str], Path | str] | None = None) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer.

    Args:
        config: Which, and onto which device.
        find: Turns the name of a packaged model into its folder (`sensorium.features.find_model`); without it
            models are folders and hub names.

    Returns:
        Model in evaluation mode, tokenizer.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        ConfigError: There is no such model or device, or it is not a causal language model with a fast
            tokenizer.
    """
    torch = require("torch", extra="rl", purpose="a language model in this process")
    transformers = require("transformers", extra="language", purpose="a language model in this process")
    where = str(config.model if find is None else find(config.model))
    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    loading = boundary(ConfigError, f"Cannot load the language model {config.model!r} ({where})")
    with loading, without_progress_bars(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(where)
        model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=_dtype(torch, config, device))
    if not tokenizer.is_fast:
        raise ConfigError(f"The tokenizer of {config.model!r} has no tokenizer.json, which the engine needs.")
    with boundary(ConfigError, f"Cannot use the device {device!r}"):
        return model.to(device).eval(), tokenizer


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end an answer: those of generation config, config and tokenizer."""
    named = [getattr(model.generation_config, "eos_token_id", None), model.config.eos_token_id]
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


def _piece(backend: Any, token: int, is_special: bool) -> bytes:
    """Bytes of a token: of byte-level vocabularies by their alphabet, of others by their decoder."""
    name: str | None = backend.id_to_token(token)
    if name is None or is_special:
        return (name or "").encode()
    if name.startswith("<0x") and name.endswith(">") and len(name) == 6:
        return bytes([int(name[3:5], 16)])
    table = _byte_alphabet()
    if all(character in table for character in name) and "ByteLevel" in type(backend.decoder).__name__:
        return bytes(table[character] for character in name)
    return name.replace("\u2581", " ").encode()


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte in byte-level vocabularies (Radford et al. 2019): unprintable ones are moved up."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + place): byte for place, byte in enumerate(others)}
