import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from sensorium.core import ConfigError, FeatureError, MissingDependencyError
from sensorium.features import (
    FrozenTextEncoder,
    HashedTextConfig,
    HashedTextEncoder,
    PretrainedTextConfig,
    TextEncoder,
    TextEncoderConfig,
    build_text_encoder,
)
from sensorium.features.disk_cache import ArrayCache

TEXTS = ["red ball", "crimson sphere", "the stock market fell on Monday", ""]


@pytest.fixture(scope="module")
def encoder_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache of the shared encoder."""
    return tmp_path_factory.mktemp("encoder-cache")


@pytest.fixture(scope="module")
def encoder(minilm: Path, encoder_home: Path) -> TextEncoder:
    """MiniLM with a cache of its own, loaded once for the tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(encoder_home))
        return TextEncoder(str(minilm))


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_meaning_is_close(encoder: TextEncoder) -> None:
    red, crimson, market, _ = encoder.encode(TEXTS).pooled()
    assert cosine(red, crimson) > 0.3 > 0.2 > cosine(red, market)


def test_shapes_mask_and_empty_text(encoder: TextEncoder) -> None:
    embedding = encoder.encode([*TEXTS, "  "])
    assert isinstance(encoder, FrozenTextEncoder)
    assert embedding.tokens.shape == (5, 24, 384)
    assert embedding.tokens.dtype == np.float32
    assert embedding.mask.dtype == np.bool_
    assert embedding.mask.sum(axis=1).tolist() == [4, 4, 8, 0, 0]
    assert (embedding.tokens[~embedding.mask] == 0).all()
    assert encoder.encode([]).tokens.shape == (0, 24, 384)


def test_identity_names_the_weights(encoder: TextEncoder) -> None:
    name, _, digits = encoder.identity.rpartition("-")
    assert name == "minilm"
    assert len(digits) == 8


def test_vectors_equal_those_of_a_padded_batch(encoder: TextEncoder, minilm: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["red ball", "go to the small blue box behind the green door"]
    inputs = AutoTokenizer.from_pretrained(minilm)(
        texts, padding="max_length", max_length=24, return_tensors="pt"
    )
    with torch.no_grad():
        expected = AutoModel.from_pretrained(minilm).eval()(**inputs).last_hidden_state.numpy()
    embedding = encoder.encode(texts)
    np.testing.assert_array_equal(embedding.mask, inputs["attention_mask"].numpy().astype(bool))
    np.testing.assert_allclose(embedding.tokens[embedding.mask], expected[embedding.mask], atol=1e-5)


def test_a_vector_does_not_depend_on_its_company(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["red ball", "a much longer sentence about a yellow key", "blue box"]
    monkeypatch.setattr(encoder, "_cache", ArrayCache(Path("/proc/nowhere")))
    encoder._memory.clear()
    together = encoder.encode(texts).tokens
    encoder._memory.clear()
    np.testing.assert_array_equal(together, encoder.encode(texts[::-1]).tokens[::-1])
    encoder._memory.clear()
    np.testing.assert_array_equal(together[1:2], encoder.encode(texts[1:2]).tokens)


def test_the_model_is_frozen(encoder: TextEncoder) -> None:
    encoder.encode(["a sentence that nobody has said before"])
    assert encoder._loaded is not None
    model = encoder._loaded[1]
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_second_process_needs_neither_torch_nor_transformers(
    encoder: TextEncoder, minilm: Path, encoder_home: Path
) -> None:
    first = encoder.encode(TEXTS)
    program = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from sensorium.features import TextEncoder\n"
        f"tokens, mask = TextEncoder({str(minilm)!r}).encode({TEXTS!r})\n"
        "sys.stdout.buffer.write(tokens.tobytes() + mask.tobytes())"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(encoder_home)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment)
    assert done.stdout == first.tokens.tobytes() + first.mask.tobytes()


def test_a_new_sentence_without_transformers_names_the_extra(
    minilm: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"sensorium\[language\]"):
        TextEncoder(str(minilm)).encode(["red ball"])


def test_a_corrupt_entry_is_computed_again(
    encoder: TextEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "_cache", ArrayCache(tmp_path))
    encoder._memory.clear()
    first = encoder.encode(["red ball"])
    (path,) = tmp_path.rglob("*.npy")
    good = path.read_bytes()
    path.write_bytes(good[:100])
    encoder._memory.clear()
    np.testing.assert_array_equal(encoder.encode(["red ball"]).tokens, first.tokens)
    assert path.read_bytes() == good


def test_long_text_is_cut_with_a_warning(minilm: Path, cache_home: Path) -> None:
    short = TextEncoder(str(minilm), max_tokens=6)
    with pytest.warns(UserWarning, match="10 tokens was cut to 6"):
        embedding = short.encode(["go to the red ball near the door"])
    assert embedding.tokens.shape == (1, 6, 384)
    assert embedding.mask.all()


def test_max_tokens_has_limits(minilm: Path) -> None:
    with pytest.raises(ConfigError, match="between 1 and 512"):
        TextEncoder(str(minilm), max_tokens=513)


WORDS = ["[UNK]", "[CLS]", "[SEP]", "go", "to", "the", "red", "ball"]


def small_model(folder: Path, kind: str) -> Path:
    """A small random model with a word-level tokenizer that was made here."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind == "bert":
        marks = [("[CLS]", 1), ("[SEP]", 2)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=marks
        )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder / kind)
    sizes = {
        "vocab_size": len(WORDS),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    }
    torch.manual_seed(0)
    model = BertModel(BertConfig(**sizes)) if kind == "bert" else LlamaForCausalLM(LlamaConfig(**sizes))
    model.save_pretrained(folder / kind)
    return folder / kind


@pytest.mark.usefixtures("cache_home")
def test_a_causal_lm_in_a_local_folder(tmp_path: Path) -> None:
    encoder = TextEncoder(str(small_model(tmp_path, "llama")), max_tokens=8)
    embedding = encoder.encode(["go to the red ball", "go to"])
    assert encoder.dim == 32
    assert encoder.identity.startswith("llama-")
    assert embedding.mask.sum(axis=1).tolist() == [5, 2]
    np.testing.assert_allclose(embedding.tokens[0, :2], embedding.tokens[1, :2], atol=1e-5)  # causal


@pytest.mark.usefixtures("cache_home")
def test_a_bert_in_a_local_folder(tmp_path: Path) -> None:
    """Every token is read in both directions; the model's dropout stays off."""
    encoder = TextEncoder(str(small_model(tmp_path, "bert")), max_tokens=8)
    first = encoder.encode(["go to the red ball", "go to"])
    assert first.mask.sum(axis=1).tolist() == [7, 4]
    assert not np.allclose(first.tokens[0, :3], first.tokens[1, :3], atol=1e-3)
    again = TextEncoder(str(tmp_path / "bert"), max_tokens=8)
    np.testing.assert_array_equal(again._compute("go to"), first.tokens[1, :4])


@pytest.mark.usefixtures("cache_home")
@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_half_precision_has_an_identity_and_cache_entries_of_its_own(kind: str, tmp_path: Path) -> None:
    folder = str(small_model(tmp_path, kind))
    full, half = (TextEncoder(folder, max_tokens=8, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert half.identity == f"{full.identity}-bfloat16"
    assert half.weights_sha256 == full.weights_sha256
    assert len(full.weights_sha256) == 64
    a, b = full.encode(["the red ball"]), half.encode(["the red ball"])
    assert a.tokens.dtype == b.tokens.dtype == np.float32
    assert not np.array_equal(a.tokens, b.tokens)
    np.testing.assert_allclose(a.tokens, b.tokens, atol=0.1)
    assert half._loaded is not None
    assert {str(p.dtype) for p in half._loaded[1].parameters()} == {"torch.bfloat16"}
    assert half.trial is None


def test_an_unknown_precision_is_refused(minilm: Path) -> None:
    with pytest.raises(ConfigError, match="Unknown dtype 'bfloat'"):
        TextEncoder(str(minilm), dtype="bfloat")


@pytest.mark.usefixtures("cache_home")
def test_a_text_without_any_token_is_empty(tmp_path: Path) -> None:
    folder = small_model(tmp_path, "llama")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"String": "!"}, "content": ""}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    embedding = TextEncoder(str(folder), max_tokens=8).encode(["!!", "go"])
    assert embedding.mask.sum(axis=1).tolist() == [0, 1]


@pytest.mark.usefixtures("cache_home")
def test_a_model_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FeatureError, match="neither a local folder nor a packaged model"):
        TextEncoder("nobody-at-all/no-such-model")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"rubbish")
    with pytest.raises(FeatureError, match="hidden_size"):
        TextEncoder(str(tmp_path))
    (tmp_path / "config.json").write_text('{"d_model": 4, "model_type": "t5", "is_encoder_decoder": true}')
    with pytest.raises(FeatureError, match=r"encoder-decoder \(t5\)"):
        TextEncoder(str(tmp_path))
    (tmp_path / "config.json").write_text('{"hidden_size": 4, "model_type": "bert"}')
    with pytest.raises(FeatureError, match="failed on 'red'"):
        TextEncoder(str(tmp_path)).encode(["red"])


def test_configs_choose_the_encoder(minilm: Path) -> None:
    adapter: TypeAdapter[PretrainedTextConfig | HashedTextConfig] = TypeAdapter(TextEncoderConfig)
    hashed = build_text_encoder(adapter.validate_python({"type": "hashed", "dim": 16, "max_tokens": 5}))
    assert isinstance(hashed, HashedTextEncoder)
    assert (hashed.dim, hashed.max_tokens) == (16, 5)
    pretrained = build_text_encoder(adapter.validate_python({"type": "pretrained", "model": str(minilm)}))
    assert isinstance(pretrained, TextEncoder)
    assert pretrained.identity != hashed.identity
    with pytest.raises(ValueError, match="dim"):
        adapter.validate_python({"type": "pretrained", "dim": 3})


def test_importing_the_room_loads_neither_torch_nor_transformers() -> None:
    program = (
        "import sys, sensorium.features; "
        "print(sorted({'torch', 'transformers', 'espeakng_loader', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
