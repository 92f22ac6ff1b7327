from pathlib import Path

import numpy as np
import pytest

from sensorium.core import ConfigError, FeatureError, MissingDependencyError, Modality
from sensorium.features import fetch_model
from sensorium.features.extractors.sentence import Sentence, SentenceConfig, _windows
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue, TextValue


def part(part_id: str, text: str) -> Part:
    return Part(id=part_id, modality=Modality.TEXT, value=TextValue(text=text))


@pytest.fixture(scope="module")
def sentence() -> Sentence:
    """The real MiniLM."""
    try:
        fetch_model("minilm")
    except FeatureError as error:
        pytest.skip(str(error))
    return Sentence()


def test_near_in_meaning_is_near_in_space(sentence: Sentence) -> None:
    vectors = sentence.embed(
        ["The backup fails at night.", "At night, the backup does not work.", "Bananas are yellow."]
    )
    assert vectors.shape == (3, sentence.dim) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.8
    assert abs(vectors[0] @ vectors[2]) < 0.2


def test_it_is_the_mean_over_all_tokens_of_the_model(sentence: Sentence) -> None:
    import torch

    tokenizer, model = sentence._model().load()
    inputs = tokenizer("A short sentence.", return_tensors="pt")
    with torch.inference_mode():
        mean = model(**inputs).last_hidden_state[0].mean(0)
    expected = (mean / mean.norm()).numpy()
    assert sentence.embed(["A short sentence."])[0] == pytest.approx(expected, abs=1e-5)


def test_a_batch_gives_what_each_gives_alone(sentence: Sentence) -> None:
    texts = ["one", "a much longer sentence with many more words in it than the others have", "", "two words"]
    together = sentence.embed(texts)
    alone = np.concatenate([sentence.embed([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert not together[2].any()


def test_a_long_text_is_the_mean_of_its_pieces_by_their_tokens(sentence: Sentence) -> None:
    small = Sentence(SentenceConfig(max_tokens=10))
    small._encoder, small._marks = sentence._model(), None
    words = ["alpha", "beta", "gamma", "delta", "river", "stone", "cloud", "grass"]
    text = " ".join([*words, "moon", "sun"])
    tokenizer, _ = sentence._model().load()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    pieces = small._pieces(text).ids
    assert [len(piece) - 2 for piece in pieces] == [8] * (len(ids) // 8) + [len(ids) % 8] * bool(len(ids) % 8)
    assert [token for piece in pieces for token in piece[1:-1]] == ids
    each = np.stack([small._compute([piece])[0] for piece in pieces])
    expected = sum(len(piece) * vector for piece, vector in zip(pieces, each, strict=True))
    expected = expected / np.linalg.norm(expected)
    assert small.embed([text])[0] == pytest.approx(expected, abs=1e-5)


def test_a_huge_text_is_read_at_evenly_spread_places(sentence: Sentence) -> None:
    small = Sentence(SentenceConfig(max_tokens=16, max_chunks=4))
    small._encoder = sentence._model()
    (found,) = small([part("a", "word " * 100_000)])
    assert found.data["pieces"] <= 4
    assert found.data["is_partial"] is True
    assert found.data["tokens"] == pytest.approx(100_000, rel=0.3)
    text = "".join(chr(48 + n // 100) for n in range(1000))
    windows = _windows(text, 80)
    assert [len(window) for window in windows] == [10] * 8
    assert windows[0] == text[:10]
    assert windows[-1] == text[-10:]


def test_features_of_parts(sentence: Sentence) -> None:
    found = sentence([part("a", "Hello there."), part("b", " \n")])
    assert [features.part_id for features in found] == ["a", "b"]
    assert found[0].vector is not None
    assert found[0].vector.shape == (384,)
    assert found[0].data == {"tokens": 3, "pieces": 1}
    assert found[1].vector is None
    assert found[0].version == sentence.version
    assert "minilm" in sentence.version


def test_what_it_reads() -> None:
    assert Sentence().accepts(part("a", "x"))
    assert not Sentence().accepts(
        Part(id="i", modality=Modality.IMAGE, value=ImageValue(url="http://x/y.png"))
    )


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match="not a model folder"):
        Sentence(SentenceConfig(model=str(tmp_path)))([part("a", "x")])
    with pytest.raises(ConfigError, match="between 1 and 512"):
        Sentence(SentenceConfig(max_tokens=4096)).embed(["x"])
