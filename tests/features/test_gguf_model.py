from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sensorium.core import FeatureError
from sensorium.features.gguf_model import convert_gguf

HEADS, KEY_HEADS, HIDDEN, INNER, LAYERS, CONTEXT = 4, 2, 32, 64, 2, 128
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def interleaved(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Rows of a query or key projection in the order in which GGUF files have them."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(path: Path, model: Any, tokens: list[str], merges: list[str]) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, value in model.state_dict().items():
        weight = value.numpy()
        if name == "model.embed_tokens.weight":
            writer.add_tensor("token_embd.weight", weight)
        elif name == "model.norm.weight":
            writer.add_tensor("output_norm.weight", weight)
        elif name.startswith("model.layers."):
            layer, _, kind = name.removeprefix("model.layers.").removesuffix(".weight").partition(".")
            if kind.endswith(("q_proj", "k_proj")):
                weight = interleaved(weight, HEADS if kind.endswith("q_proj") else KEY_HEADS)
            writer.add_tensor(f"blk.{layer}.{NAMES[kind]}.weight", np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_becomes_a_folder_that_transformers_loads(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet, "he"]
    config = transformers.LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        max_position_embeddings=CONTEXT,
        initializer_range=0.5,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config).eval()
    write_gguf(tmp_path / "tiny.gguf", model, tokens, ["h e"])

    convert_gguf(tmp_path)

    assert not list(tmp_path.glob("*.gguf"))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.convert_ids_to_tokens(tokenizer("he he").input_ids) == ["he", "Ġ", "he"]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    ids = torch.tensor([[5, 9, 200, 31, 77]])
    with torch.inference_mode():
        assert torch.allclose(loaded(ids).logits, model(ids).logits, atol=1e-5)


def test_exactly_one_file_is_converted(tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="found: none"):
        convert_gguf(tmp_path)
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(FeatureError, match=r"a\.gguf, b\.gguf"):
        convert_gguf(tmp_path)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "a.gguf").write_bytes(b"no model")
    with pytest.raises(FeatureError, match=r"cannot read a\.gguf"):
        convert_gguf(tmp_path)
    assert (tmp_path / "a.gguf").exists()
