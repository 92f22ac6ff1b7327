import base64
import importlib.util
import inspect
import json
import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sensorium.core import ConfigError
from sensorium.features import fetch_model, find_model
from sensorium.llm import counting
from sensorium.llm.base import TokenCounter
from sensorium.llm.config import (
    EstimateConfig,
    FixedRule,
    MistralConfig,
    TiktokenConfig,
    TokenizersConfig,
    TokensConfig,
)
from sensorium.llm.estimate import CUT_BOUND, EstimateCounter
from sensorium.llm.tokens import build_counter

needs_tekken = pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None,
    reason="mistral-common is not installed: pip install 'sensorium[mistral]'",
)
DRAW = random.Random(0)
CHINESE = "人人生而自由，在尊严和权利上一律平等。请检查第三个单元格的输出结果。"
ARABIC = "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. "
ROWS = [{"id": i, "name": "alice", "price": DRAW.random() * 1000, "active": True} for i in range(50)]

# Least and greatest ratio of the estimate to the real count, and texts of that kind.
KINDS: dict[str, tuple[float, float, str]] = {
    "english": (1.0, 1.3, (inspect.getdoc(random.Random) or "") + (inspect.getdoc(json) or "")),
    "code": (1.0, 1.35, inspect.getsource(random)),
    "json": (1.0, 1.3, json.dumps(ROWS, indent=2)),
    "compact json": (1.0, 1.3, json.dumps(ROWS, separators=(",", ":"))),
    "numbers": (0.95, 1.1, " ".join(f"{DRAW.gauss(0, 9):.4f}" for _ in range(300))),
    "base64": (0.85, 1.2, base64.b64encode(DRAW.randbytes(3000)).decode()),
    "hex": (0.9, 1.2, DRAW.randbytes(3000).hex()),
    "random letters": (0.85, 1.3, "".join(DRAW.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(3000))),
    "chinese": (1.0, 1.6, CHINESE * 20),
    "arabic": (1.0, 3.0, ARABIC * 20),
    "emoji": (0.85, 1.6, "😀🎉🚀🔥👍❤️🤖📈💡🥳👩‍💻🇩🇪✨✅❌" * 20),
    "white space": (0.9, 2.0, "\n".join(" " * DRAW.randint(1, 60) + "x" for _ in range(200))),
    "rules": (0.5, 2.5, ("-" * 80 + "\n" + "=" * 40 + "\n") * 20),
}


@pytest.fixture(scope="module")
def estimate() -> EstimateCounter:
    return EstimateCounter(EstimateConfig())


@pytest.fixture(scope="module")
def tekken() -> TokenCounter:
    return build_counter(MistralConfig())


@needs_tekken
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_against_a_real_vocabulary(kind, estimate, tekken):
    low, high, text = KINDS[kind]
    assert low <= estimate.text(text) / tekken.text(text) <= high


def test_the_estimate_against_word_pieces(estimate):
    counter = build_counter(TokenizersConfig(tokenizer="minilm"), find_model)
    for kind in ("english", "code", "json", "numbers", "chinese"):
        text = KINDS[kind][2]
        assert 0.85 <= estimate.text(text) / counter.text(text) <= 2.2, kind


pieces = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("aeAE1 9\n\t.,(_éß日ю😀\r\u1ea0"), max_size=60),
    st.sampled_from([text for _, _, text in KINDS.values()]).flatmap(
        lambda text: st.integers(0, len(text)).map(lambda at: text[at : at + 200])
    ),
)


@settings(max_examples=400)
@given(pieces, pieces, st.sampled_from([1, 2, 3]))
def test_two_pieces_are_never_counted_far_below_the_whole(first, second, digits):
    counter = EstimateCounter(EstimateConfig(digits_per_token=digits))
    apart = counter.text(first) + counter.text(second)
    assert counter.text(first + second) <= apart + CUT_BOUND


@given(st.lists(pieces.map(lambda text: text.replace("\r", "")), max_size=6))
def test_cut_at_line_ends_the_sum_is_exact(texts):
    counter = EstimateCounter(EstimateConfig())
    lines = [f"{text}\n" for text in texts]
    whole, apart = counter.text("".join(lines)), sum(map(counter.text, lines))
    assert whole <= apart < whole + max(1, len(lines))


@given(st.text())
def test_every_text_costs_something_and_is_counted_alike_twice(text):
    counter = EstimateCounter(EstimateConfig())
    count = counter.text(text)
    assert (count > 0) == bool(text)
    assert counter.text(text) == count
    assert count <= 4 * len(text)


def test_settings_of_the_estimate():
    digits = EstimateCounter(EstimateConfig(digits_per_token=3))
    assert digits.text("123456") == 2
    assert EstimateCounter(EstimateConfig()).text("123456") == 6
    assert EstimateCounter(EstimateConfig(scale=1.5)).text("123456") == 9
    assert EstimateCounter(EstimateConfig()).text("the cat") == 2


def test_memory_of_counts_is_bounded(monkeypatch):
    monkeypatch.setattr(counting, "_LONG_ENTRIES", 10)
    counter = EstimateCounter(EstimateConfig())
    for i in range(30):
        counter.text(f"{i} " * 600)
    assert len(counter._long) <= 10
    for i in range(counting._SHORT_ENTRIES + 10):
        counter.text(f"line {i}")
    assert 0 < len(counter._lines) <= counting._SHORT_ENTRIES
    counter.text("\n".join(f"another {i}" for i in range(counting._SHORT_ENTRIES + 10)))
    assert len(counter._lines) <= counting._SHORT_ENTRIES
    for i in range(60_000):
        counter._costs[f"a{chr(97 + i % 26)}{i}"]
    assert len(counter._costs) <= 50_000


def test_lone_surrogates_are_counted(estimate):
    assert estimate.text("a\ud800b") > 0
    assert build_counter(TokenizersConfig(tokenizer=str(fetch_model("minilm")))).text("a\ud800b") > 0


def test_the_config_chooses_the_counter(tmp_path):
    read = TypeAdapter(TokensConfig).validate_python
    assert isinstance(build_counter(read({"type": "estimate"})), EstimateCounter)
    folder = fetch_model("minilm")
    by_folder = build_counter(read({"type": "tokenizers", "tokenizer": str(folder)}))
    by_file = build_counter(read({"type": "tokenizers", "tokenizer": str(folder / "tokenizer.json")}))
    assert by_folder.text("Hello, world!") == by_file.text("Hello, world!") == 4
    long = "word " * 2000
    assert by_file.text(long) == 2000, "no truncation"


def test_identities_tell_counters_apart():
    same = [build_counter(EstimateConfig()).identity for _ in range(2)]
    other = build_counter(EstimateConfig(image_rule=FixedRule())).identity
    assert same[0] == same[1] != other


def test_counters_travel_to_other_processes():
    for counter in (
        build_counter(EstimateConfig(scale=1.5)),
        build_counter(TokenizersConfig(tokenizer="minilm"), find_model),
    ):
        counter.text("warm")
        again = pickle.loads(pickle.dumps(counter))
        assert again.identity == counter.identity
        assert again.text("Hello, world!") == counter.text("Hello, world!")


def test_sounds_and_overhead():
    counter = build_counter(EstimateConfig(audio_tokens_per_second=10, message_overhead=3))
    assert isinstance(counter, TokenCounter)
    assert (counter.audio(1.01), counter.audio(0.0), counter.message_overhead) == (11, 0, 3)


@pytest.mark.parametrize("name", ["/nowhere/tokenizer.json", "./nowhere", "missing.json"])
def test_a_tokenizer_that_is_not_there(name):
    with pytest.raises(ConfigError, match="There is no tokenizer"):
        build_counter(TokenizersConfig(tokenizer=name))


def test_files_that_are_no_vocabulary(tmp_path: Path):
    broken = tmp_path / "tokenizer.json"
    with pytest.raises(ConfigError, match=r"holds no tokenizer\.json"):
        build_counter(TokenizersConfig(tokenizer=str(tmp_path)))
    broken.write_text("{}")
    with pytest.raises(ConfigError, match=r"not a tokenizer\.json"):
        build_counter(TokenizersConfig(tokenizer=str(tmp_path)))
    with pytest.raises(ConfigError, match="not a Tekken vocabulary"):
        build_counter(MistralConfig(vocabulary=str(broken)))
    with pytest.raises(ConfigError, match="no vocabulary 'x'"):
        build_counter(MistralConfig(vocabulary="x"))


def test_tiktoken_by_name_and_its_errors(tmp_path, monkeypatch):
    tiktoken = pytest.importorskip("tiktoken")
    with pytest.raises(ConfigError, match=r"no encoding 'gpt-9'. Known: .*cl100k_base"):
        build_counter(TiktokenConfig(encoding="gpt-9"))
    letters = {bytes([value]): value for value in range(256)}
    made = tiktoken.Encoding(
        "x", pat_str=r"\S+|\s+", mergeable_ranks=letters, special_tokens={"<|end|>": 300}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: made)
    counter = build_counter(TiktokenConfig(encoding="x"))
    assert counter.text("<|end|> é") == 10, "special tokens are text, and é has two bytes"

    def offline(name: str) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(ConfigError, match="TIKTOKEN_CACHE_DIR"):
        build_counter(TiktokenConfig())
