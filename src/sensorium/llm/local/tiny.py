"""A language model of a few ten thousand random weights, for tests: nothing is downloaded."""

import os
from pathlib import Path
from typing import Any

from sensorium.core import require
from sensorium.core.quiet import without_progress_bars

_MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_PICTURE = "<image>"
_SIDE, _PATCH = 32, 16
"""Pixels of a picture, and of each of its parts, that the tiny model sees."""
_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

_SEEING_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}{% for part in "
    "message['content'] %}{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.LlamaForCausalLM(_llama(transformers, tokenizer, context_tokens, spread))
    with without_progress_bars(transformers):
        tokenizer.save_pretrained(path)
        model.save_pretrained(path)
    return path


def tiny_seeing_model(
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    context_tokens: int = 2048,
    spread: float = 0.5,
    template: str = _SEEING_TEMPLATE,
) -> Path:
    """Save a random LLaVA in Hugging Face format: the `tiny_model`, and a picture becomes four tokens of it.

    Args:
        folder: Made if need be.
        seed: Of the weights.
        context_tokens: Positions it is made for.
        spread: Standard deviation of the language model's weights.
        template: Chat template (jinja), for content in parts.

    Returns:
        The folder.

    Raises:
        MissingDependencyError: torch, transformers or Pillow is not installed.
    """
    torch = require("torch", extra="rl", purpose="a tiny language model")
    transformers = require("transformers", extra="language", purpose="a tiny language model")
    require("PIL.Image", extra="observe", purpose="a model that sees")
    clip = require("transformers.models.clip.image_processing_pil_clip", extra="language", purpose="pictures")
    path = Path(folder)
    tokenizer = _tokenizer(transformers, context_tokens, template, (_PICTURE,))
    eyes = transformers.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        image_size=_SIDE,
        patch_size=_PATCH,
    )
    config = transformers.LlavaConfig(
        text_config=_llama(transformers, tokenizer, context_tokens, spread),
        vision_config=eyes,
        image_token_id=tokenizer.convert_tokens_to_ids(_PICTURE),
        image_seq_length=(_SIDE // _PATCH) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.LlavaForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    pixels = clip.CLIPImageProcessorPil(
        size={"shortest_edge": _SIDE}, crop_size={"height": _SIDE, "width": _SIDE}
    )
    processor = transformers.LlavaProcessor(
        image_processor=pixels,
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=_PICTURE,
        chat_template=template,
    )
    with without_progress_bars(transformers):
        processor.save_pretrained(path)
        model.save_pretrained(path)
    return path


def _llama(transformers: Any, tokenizer: Any, context_tokens: int, spread: float) -> Any:
    return transformers.LlamaConfig(
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


def _tokenizer(transformers: Any, context_tokens: int, template: str, more: tuple[str, ...] = ()) -> Any:
    """One token for every byte, three marks, and what else has to be one."""
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
    if more:
        made.add_special_tokens({"additional_special_tokens": list(more)})
    made.chat_template = template
    return made
