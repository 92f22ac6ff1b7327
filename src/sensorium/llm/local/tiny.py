"""A language model of a few ten thousand random weights, for tests: nothing is downloaded."""

import os
from pathlib import Path
from typing import Any

from sensorium.core import require

_MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def tiny_model(
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    context_tokens: int = 2048,
    spread: float = 0.5,
    template: str = _TEMPLATE,
) -> Path:
    """Save a random Llama with two layers and a vocabulary of bytes, in Hugging Face format.

    Its answers mean nothing, but it is a whole model: any engine, server and trainer takes it.

    Args:
        folder: Made if need be.
        seed: Of the weights.
        context_tokens: Positions it is made for.
        spread: Standard deviation of the weights; large ones give distributions with clear peaks.
        template: Chat template (jinja).

    Returns:
        The folder.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
    """
    torch = require("torch", extra="rl", purpose="a tiny language model")
    transformers = require("transformers", extra="language", purpose="a tiny language model")
    path = Path(folder)
    tokenizer = _tokenizer(transformers, context_tokens, template)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context_tokens,
        initializer_range=spread,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.LlamaForCausalLM(config)
    tokenizer.save_pretrained(path)
    model.save_pretrained(path)
    return path


def _tokenizer(transformers: Any, context_tokens: int, template: str) -> Any:
    """One token for every byte, and three marks."""
    tokenizers = require("tokenizers", extra="language", purpose="a tiny language model")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {mark: place for place, mark in enumerate((*_MARKS, *alphabet))}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    end, begin, close = _MARKS
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=begin,
        eos_token=close,
        pad_token=end,
        unk_token=end,
        model_max_length=context_tokens,
    )
    made.chat_template = template
    return made
