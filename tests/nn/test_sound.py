import pytest
import torch

from sensorium.nn import SoundEncoder, TextProjection, VectorEncoder
from sensorium.nn.config import SoundConfig


@pytest.mark.parametrize(("frames", "tokens"), [(4, 4), (8, 8), (9, 5), (40, 5), (100, 7)])
def test_layers_halve_until_few_tokens_remain(frames: int, tokens: int) -> None:
    encoder = SoundEncoder(SoundConfig(channels=(5, 6, 7, 8)), (2, frames, 3), 10)
    out = encoder(torch.randn(2, 2, frames, 3))
    assert encoder.token_shape == (tokens, 8)
    assert out.values.shape == (2, tokens, 8)
    assert out.summary.shape == (2, 10)


def test_both_ears_and_the_order_of_time_are_heard() -> None:
    torch.manual_seed(0)
    encoder = SoundEncoder(SoundConfig(channels=(6,)), (2, 6, 3), 10)
    sound = torch.randn(1, 2, 6, 3)
    assert not torch.allclose(encoder(sound).summary, encoder(sound.flip(1)).summary)
    assert not torch.allclose(encoder(sound).summary, encoder(sound.flip(2)).summary)


def test_padding_of_a_text_is_not_read() -> None:
    torch.manual_seed(0)
    encoder = TextProjection((4, 6), 8)
    words, mask = torch.randn(2, 4, 6), torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    other = words.clone()
    other[~mask] = 9.0
    assert torch.equal(encoder(words, mask).summary, encoder(other, mask).summary)
    empty = encoder(words, mask).summary[1]
    torch.testing.assert_close(empty, encoder.summarise(torch.zeros(6)))


def test_a_vector_is_one_token() -> None:
    out = VectorEncoder(3, 8)(torch.randn(5, 3))
    assert out.values.shape == (5, 1, 8)
    assert torch.equal(out.values[:, 0], out.summary)
