import hashlib
import subprocess
import sys

import numpy as np
import pytest

from sensorium.core import ConfigError
from sensorium.features import FrozenTextEncoder, HashedTextEncoder

TEXTS = ["Go to the red ball", "go to the BLUE ball!", ""]


def test_shapes_and_mask() -> None:
    encoder = HashedTextEncoder(32, max_tokens=8)
    embedding = encoder.encode(TEXTS)
    assert isinstance(encoder, FrozenTextEncoder)
    assert embedding.tokens.shape == (3, 8, 32)
    assert embedding.tokens.dtype == np.float32
    assert embedding.mask.sum(axis=1).tolist() == [5, 5, 0]
    assert (embedding.tokens[~embedding.mask] == 0).all()
    assert (embedding.pooled()[2] == 0).all()


def test_a_word_is_a_word_wherever_it_stands() -> None:
    tokens = HashedTextEncoder().encode(TEXTS).tokens
    same = (tokens[0] == tokens[1]).all(axis=1)[:5]
    assert same.tolist() == [True, True, True, False, True]


def test_vectors_have_unit_variance_and_are_nearly_orthogonal() -> None:
    words = [f"word{number}" for number in range(200)]
    vectors = HashedTextEncoder(256, max_tokens=1).encode(words).tokens[:, 0]
    assert vectors.mean() == pytest.approx(0.0, abs=0.02)
    assert vectors.var() == pytest.approx(1.0, abs=0.02)
    assert np.abs(vectors).max() <= np.sqrt(3) + 1e-6
    cosines = np.corrcoef(vectors) - np.eye(200)
    assert np.abs(cosines).max() < 0.35


def test_another_process_gives_the_same_vectors_without_torch() -> None:
    here = hashlib.sha256(HashedTextEncoder().encode(TEXTS).tokens.tobytes()).hexdigest()
    program = (
        "import hashlib, sys; from sensorium.features import HashedTextEncoder; "
        f"tokens = HashedTextEncoder().encode({TEXTS!r}).tokens; "
        "assert not {'torch', 'transformers'} & set(sys.modules); "
        "print(hashlib.sha256(tokens.tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == here


def test_vectors_never_change_between_versions() -> None:
    golden = [-0.4029734, -1.5617714, 0.5530654, 0.2693636]
    np.testing.assert_allclose(HashedTextEncoder(4).encode(["red"]).tokens[0, 0], golden, rtol=1e-5)


def test_long_text_is_cut_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="5 words was cut to 3"):
        embedding = HashedTextEncoder(max_tokens=3).encode(["one two three four five"])
    assert embedding.mask.all()


def test_many_long_texts_are_one_warning() -> None:
    encoder = HashedTextEncoder(max_tokens=3)
    with pytest.warns(UserWarning, match="and so will be others") as caught:
        encoder.encode(["go to the red ball", "go to the blue box"])
    assert len(caught) == 1
    encoder.encode(["find the grey cone, please"])  # a warning would be an error here


def test_sizes_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        HashedTextEncoder(0)
