"""Weights of Hugging Face models, made from a config here, compute in our encoder what they compute there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sensorium.core import ConfigError
from sensorium.nn import SpaceTimeEncoder, load_pretrained, pretrained
from sensorium.nn.config import SpaceTimeConfig

transformers = pytest.importorskip("transformers")

ARCHITECTURE: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 60,
    "image_size": 12,
    "patch_size": 4,
}
OURS = SpaceTimeConfig(
    patch_size=4,
    num_frames=1,
    depth=2,
    embed_dim=24,
    num_heads=3,
    mlp_ratio=2.5,
    layer_norm_eps=1e-12,
    cls_token="frame",
)


def saved(folder: Path, kind: str, **changes: Any) -> tuple[Any, Path]:
    """A random model with every weight away from its start, and where it lies."""
    config_type, model_type = {
        "vit": (transformers.ViTConfig, transformers.ViTModel),
        "timesformer": (transformers.TimesformerConfig, transformers.TimesformerModel),
    }[kind]
    torch.manual_seed(0)
    model = model_type(config_type(**(ARCHITECTURE | changes))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape)
    model.save_pretrained(folder / kind)
    return model, folder / kind


def encoder(*, image: tuple[int, int] = (12, 12), channels: int = 3, **changes: Any) -> SpaceTimeEncoder:
    torch.manual_seed(1)
    return SpaceTimeEncoder(SpaceTimeConfig.model_validate(OURS.model_dump() | changes), image, channels, 10)


def frames(count: int, height: int = 12, width: int = 12) -> Tensor:
    """(2, count, height, width, 3) about zero, as our encoders read them."""
    return torch.randn(2, count, height, width, 3, generator=torch.Generator().manual_seed(3))


def tokens(ours: SpaceTimeEncoder, clips: Tensor) -> Tensor:
    with torch.no_grad():
        return ours(clips, torch.ones(clips.shape[:2], dtype=torch.bool)).values


def theirs(model: Any, pixels: Tensor, **options: Any) -> Tensor:
    with torch.no_grad():
        return model(pixels, **options).last_hidden_state[:, 1:]


@pytest.mark.parametrize("cls_token", ["frame", "clip"])
def test_a_frame_gives_the_tokens_of_the_vit(cls_token: str, tmp_path: Path) -> None:
    model, folder = saved(tmp_path, "vit")
    ours = encoder(cls_token=cls_token)
    load_pretrained(ours, str(folder))
    expected = theirs(model, frames(1)[:, 0].permute(0, 3, 1, 2))
    torch.testing.assert_close(tokens(ours, frames(1)), expected, atol=1e-5, rtol=1e-5)


def test_a_vit_is_the_starting_function_of_a_clip(tmp_path: Path) -> None:
    """Attention over time has no say yet: a clip gives what the ViT makes of its last frame."""
    model, folder = saved(tmp_path, "vit")
    ours = encoder(num_frames=4)
    with torch.no_grad():
        ours.time += 1.0
        for block in ours.blocks:
            block.time_project.weight += 1.0
    load_pretrained(ours, str(folder))
    expected = theirs(model, frames(4)[:, -1].permute(0, 3, 1, 2))
    torch.testing.assert_close(tokens(ours, frames(4)), expected, atol=1e-5, rtol=1e-5)


def test_positions_are_interpolated_as_the_model_does_it(tmp_path: Path) -> None:
    model, folder = saved(tmp_path, "vit")
    ours = encoder(image=(8, 20))
    load_pretrained(ours, str(folder))
    clips = frames(1, 8, 20)
    expected = theirs(model, clips[:, 0].permute(0, 3, 1, 2), interpolate_pos_encoding=True)
    torch.testing.assert_close(tokens(ours, clips), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_frames", [4, 3])
def test_a_clip_gives_the_tokens_of_the_timesformer(num_frames: int, tmp_path: Path) -> None:
    """Its images are normalised by 0.45 and 0.225; the time embedding is nearest-neighbour resized."""
    model, folder = saved(tmp_path, "timesformer", num_frames=4)
    if num_frames != 4:
        model.config.num_frames = num_frames
    ours = encoder(num_frames=num_frames, layer_norm_eps=1e-6, cls_token="clip")
    load_pretrained(ours, str(folder))
    clips = frames(num_frames)
    pixels = ((clips + 1) / 2 - 0.45) / 0.225
    # Their tokens lie patch by patch, frames within; ours are of the last frame.
    whole = theirs(model, pixels.permute(0, 1, 4, 2, 3)).unflatten(1, (9, num_frames))
    torch.testing.assert_close(tokens(ours, clips), whole[:, :, -1], atol=2e-5, rtol=1e-5)


def test_the_models_own_normalisation_is_folded_in(tmp_path: Path) -> None:
    model, folder = saved(tmp_path, "vit")
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_mean": mean, "image_std": std}))
    ours = encoder()
    load_pretrained(ours, str(folder))
    pixels = torch.randint(0, 256, (2, 1, 12, 12, 3), generator=torch.Generator().manual_seed(0)).byte()
    expected = theirs(
        model, ((pixels[:, 0].float() / 255 - torch.tensor(mean)) / torch.tensor(std)).permute(0, 3, 1, 2)
    )
    torch.testing.assert_close(tokens(ours, pixels), expected, atol=2e-5, rtol=1e-5)


def test_depth_is_read_as_a_grey_image(tmp_path: Path) -> None:
    model, folder = saved(tmp_path, "vit")
    ours = encoder(channels=1)
    load_pretrained(ours, str(folder), setting="network.depth")
    grey = frames(1)[..., :1]
    expected = theirs(model, grey[:, 0].permute(0, 3, 1, 2).expand(-1, 3, -1, -1))
    torch.testing.assert_close(tokens(ours, grey), expected, atol=1e-5, rtol=1e-5)


def test_a_model_without_biases_of_queries_and_keys(tmp_path: Path) -> None:
    model, folder = saved(tmp_path, "vit", qkv_bias=False)
    ours = encoder()
    load_pretrained(ours, str(folder))
    expected = theirs(model, frames(1)[:, 0].permute(0, 3, 1, 2))
    torch.testing.assert_close(tokens(ours, frames(1)), expected, atol=1e-5, rtol=1e-5)


def test_older_names_of_the_weights_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers has renamed the tensors of its ViT; both names give the same encoder."""
    _, folder = saved(tmp_path, "vit")
    new, old = encoder(), encoder()
    read = pretrained._read
    load_pretrained(new, str(folder))

    def renamed(source: str, setting: str) -> Any:
        found = read(source, setting)
        weights = {}
        for name, value in found.weights.items():
            if name.startswith("layers."):
                name = "encoder.layer." + name.removeprefix("layers.")
                for now, before in (
                    ("attention.q_proj", "attention.attention.query"),
                    ("attention.k_proj", "attention.attention.key"),
                    ("attention.v_proj", "attention.attention.value"),
                    ("attention.o_proj", "attention.output.dense"),
                    ("mlp.fc1", "intermediate.dense"),
                    ("mlp.fc2", "output.dense"),
                ):
                    name = name.replace(now, before)
            weights[name] = value
        assert weights.keys() != found.weights.keys()
        return found._replace(weights=weights)

    monkeypatch.setattr(pretrained, "_read", renamed)
    load_pretrained(old, str(folder))
    assert all(torch.equal(a, b) for a, b in zip(new.parameters(), old.parameters(), strict=True))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"network\.vision\.pretrained: there is no folder .*nowhere"):
        load_pretrained(encoder(), str(tmp_path / "nowhere"))


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no readable config"):
        load_pretrained(encoder(), str(tmp_path))


def test_a_folder_without_weights(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, "vit")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="cannot load"):
        load_pretrained(encoder(), str(folder))


def test_a_name_that_the_hub_does_not_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match="nobody-at-all/no-such-model has no readable config"):
        load_pretrained(encoder(), "nobody-at-all/no-such-model")


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=9
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="of type 'bert'; expected 'vit' or 'timesformer'"):
        load_pretrained(encoder(), str(tmp_path))


def test_every_size_that_differs_is_named_with_its_setting(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, "vit")
    with pytest.raises(ConfigError) as caught:
        load_pretrained(encoder(embed_dim=48, depth=3), str(folder))
    message = str(caught.value)
    assert "depth is 3 (the model's: 2)" in message
    assert "embed_dim is 48 (the model's: 24)" in message
    assert "Set --network.vision.depth 2 --network.vision.embed_dim 24" in message


def test_a_timesformer_needs_its_cls_token_and_its_attention(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, "timesformer", num_frames=4)
    with pytest.raises(ConfigError, match=r"--network\.vision\.cls_token clip"):
        load_pretrained(encoder(num_frames=4, layer_norm_eps=1e-6), str(folder))
    _, joint = saved(tmp_path / "joint", "timesformer", num_frames=4, attention_type="joint_space_time")
    with pytest.raises(ConfigError, match="attention_type 'joint_space_time'"):
        load_pretrained(encoder(num_frames=4, layer_norm_eps=1e-6, cls_token="clip"), str(joint))


def test_a_refused_model_changes_nothing(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, "vit", hidden_act="relu")
    ours = encoder()
    before = [p.clone() for p in ours.parameters()]
    with pytest.raises(ConfigError, match="hidden_act 'relu'"):
        load_pretrained(ours, str(folder))
    assert all(torch.equal(a, b) for a, b in zip(before, ours.parameters(), strict=True))


def test_weights_that_lack_a_tensor_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    _, folder = saved(tmp_path, "vit")
    stored = load_file(folder / "model.safetensors")
    name = next(n for n in stored if "layernorm_before" in n)
    del stored[name]
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"lack 1 tensors of a vit model, e\.g\. .*layernorm_before"):
        load_pretrained(encoder(), str(folder))


def test_pretrained_weights_need_a_cls_token() -> None:
    with pytest.raises(ValueError, match="set cls_token to `clip`"):
        SpaceTimeConfig(pretrained="somewhere")
