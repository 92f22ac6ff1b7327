import pytest
import torch
from cue_agents import perturb
from torch import Tensor

from sensorium.nn import ConvEncoder, SpaceTimeEncoder
from sensorium.nn.config import ConvConfig, SpaceTimeConfig

SPACE_TIME = SpaceTimeConfig(patch_size=4, num_frames=4, depth=2, embed_dim=16, num_heads=2)


def space_time() -> SpaceTimeEncoder:
    torch.manual_seed(0)
    return SpaceTimeEncoder(SPACE_TIME, (8, 12), 3, 10)


def clips(dtype: torch.dtype = torch.float32) -> Tensor:
    g = torch.Generator().manual_seed(1)
    if dtype == torch.uint8:
        return torch.randint(0, 256, (2, 4, 8, 12, 3), generator=g, dtype=dtype)
    return torch.randn(2, 4, 8, 12, 3, generator=g)


def test_frames_that_are_not_valid_never_matter() -> None:
    encoder = space_time()
    perturb(encoder)
    valid = torch.tensor([[False, False, True, True], [False, False, False, True]])
    changed = clips()
    changed[~valid] = 50.0
    before, after = encoder(clips(), valid), encoder(changed, valid)
    assert torch.equal(before.values, after.values)
    assert torch.equal(before.summary, after.summary)


def test_valid_frames_matter_once_time_is_learnt() -> None:
    encoder = space_time()
    valid = torch.ones(2, 4, dtype=torch.bool)
    changed = clips()
    changed[:, 0] += 1.0
    assert torch.equal(
        encoder(clips(), valid).values, encoder(changed, valid).values
    )  # projection starts at 0
    perturb(encoder)
    assert not torch.allclose(encoder(clips(), valid).values, encoder(changed, valid).values)


def test_a_new_encoder_is_an_image_transformer() -> None:
    """The temporal projection starts at zero: a clip gives what its last frame alone gives."""
    encoder = space_time()
    config = SPACE_TIME.model_copy(update={"num_frames": 1})
    single = SpaceTimeEncoder(config, (8, 12), 3, 10)
    weights = encoder.state_dict()
    weights["time"] = weights["time"][-1:]
    single.load_state_dict(weights)
    alone = single(clips()[:, -1:], torch.ones(2, 1, dtype=torch.bool))
    clip = encoder(clips(), torch.ones(2, 4, dtype=torch.bool))
    torch.testing.assert_close(clip.values, alone.values, atol=1e-6, rtol=1e-5)


def other(**changes: object) -> SpaceTimeEncoder:
    torch.manual_seed(0)
    return SpaceTimeEncoder(SPACE_TIME.model_copy(update=changes), (8, 12), 3, 10)


@pytest.mark.parametrize("cls_token", ["frame", "clip"])
def test_a_cls_token_speaks_for_the_whole(cls_token: str) -> None:
    """It is no token that other senses attend to, but the patches and the summary hear of it."""
    encoder = other(cls_token=cls_token, summary_channels=2)
    valid = torch.ones(2, 4, dtype=torch.bool)
    before = encoder(clips(), valid)
    assert before.values.shape == (2, *encoder.token_shape) == (2, 6, 16)
    assert encoder.summarise.weight.shape == (10, 6 * 2 + 16)
    with torch.no_grad():
        encoder.cls += 1.0
    after = encoder(clips(), valid)
    assert not torch.allclose(before.values, after.values)
    assert not torch.allclose(before.summary, after.summary)


@pytest.mark.parametrize("cls_token", ["frame", "clip"])
def test_frames_that_are_not_valid_never_reach_the_cls_token(cls_token: str) -> None:
    encoder = other(cls_token=cls_token)
    perturb(encoder)
    valid = torch.tensor([[False, False, True, True], [False, False, False, True]])
    changed = clips()
    changed[~valid] = 50.0
    before, after = encoder(clips(), valid), encoder(changed, valid)
    assert torch.equal(before.values, after.values)
    assert torch.equal(before.summary, after.summary)


def test_only_a_cls_token_of_the_clip_joins_frames_without_attention_over_time() -> None:
    valid = torch.ones(2, 4, dtype=torch.bool)
    changed = clips()
    changed[:, 0] += 1.0
    frame, clip = other(cls_token="frame"), other(cls_token="clip")
    assert torch.equal(frame(clips(), valid).values, frame(changed, valid).values)
    assert not torch.equal(clip(clips(), valid).values, clip(changed, valid).values)


def backward(encoder: SpaceTimeEncoder) -> tuple[list[Tensor], int]:
    """Gradients, and bytes kept for the way back, parameters not counted."""
    kept: dict[int, int] = {}
    own = {p.data_ptr() for p in encoder.parameters()}

    def pack(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        tokens = encoder(clips(), torch.tensor([[False, True, True, True], [True] * 4]))
    (tokens.values.square().sum() + tokens.summary.square().sum()).backward()
    gradients = [p.grad.clone() for p in encoder.parameters() if p.grad is not None]
    return gradients, sum(kept.values())


@pytest.mark.parametrize("cls_token", ["none", "clip"])
def test_gradient_checkpointing_changes_memory_and_nothing_else(cls_token: str) -> None:
    plain = other(cls_token=cls_token, depth=4)
    perturb(plain)
    cheap = other(cls_token=cls_token, depth=4, gradient_checkpointing=True)
    cheap.load_state_dict(plain.state_dict())
    (expected, much), (found, little) = backward(plain), backward(cheap)
    assert len(expected) == len(found) == len(list(plain.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert little < 0.3 * much


def conv(channels: tuple[int, ...] = (6, 7), merge_size: int = 1) -> ConvEncoder:
    torch.manual_seed(0)
    return ConvEncoder(ConvConfig(channels=channels, patch_size=4, merge_size=merge_size), (8, 12), 3, 10)


@pytest.mark.parametrize("place", range(6))
def test_a_patch_is_its_own_token(place: int) -> None:
    """Rows first: a pattern in patch (r, c) shows in token r * columns + c, and moves with the patch."""
    encoder = conv()
    pattern = torch.rand(4, 4, 3, generator=torch.Generator().manual_seed(5))
    row, column = divmod(place, 3)
    frame = torch.zeros(1, 8, 12, 3)
    frame[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = pattern
    first = torch.zeros(1, 8, 12, 3)
    first[0, :4, :4] = pattern
    blank = encoder(torch.zeros(1, 8, 12, 3)).values[0]
    tokens = encoder(frame).values[0]
    assert (tokens != blank).any(-1).nonzero().squeeze(-1).tolist() == [place]
    torch.testing.assert_close(tokens[place], encoder(first).values[0, 0])


def test_merging_gives_a_token_per_square_of_neighbours() -> None:
    encoder = ConvEncoder(ConvConfig(channels=(6, 7), patch_size=2, merge_size=2), (8, 12), 3, 10)
    assert encoder.token_shape == (6, 7)
    frame, other = torch.zeros(1, 8, 12, 3), torch.zeros(1, 8, 12, 3)
    other[0, 6:8, 10:12] = 1.0
    changed = (encoder(other).values != encoder(frame).values).any(-1)[0]
    assert changed.nonzero().squeeze(-1).tolist() == [5]


@pytest.mark.parametrize("kind", ["conv", "space_time"])
def test_bytes_are_pixels_about_zero(kind: str) -> None:
    """uint8 x counts as (x - 127.5) / 127.5, computed without a float copy of the frame."""
    pixels = clips(torch.uint8)
    floats = (pixels.float() - 127.5) / 127.5
    valid = torch.ones(2, 4, dtype=torch.bool)
    if kind == "conv":
        encoder = conv()
        a, b = encoder(pixels[:, 0]), encoder(floats[:, 0])
    else:
        vit = space_time()
        a, b = vit(pixels, valid), vit(floats, valid)
    torch.testing.assert_close(a.values, b.values, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(a.summary, b.summary, atol=1e-5, rtol=1e-4)


def test_tokens_have_the_announced_shape() -> None:
    for tokens, shape in (
        (conv()(clips()[:, 0]), conv().token_shape),
        (space_time()(clips(), torch.ones(2, 4, dtype=torch.bool)), space_time().token_shape),
    ):
        assert tokens.values.shape == (2, *shape)
        assert tokens.summary.shape == (2, 10)
