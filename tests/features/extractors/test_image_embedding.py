import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from media_parts import photo, picture_part, sound_part, text_part, weights
from PIL import Image

from sensorium.core import FeatureError, MissingDependencyError, SensoriumError
from sensorium.features.extractors.base import Extractor
from sensorium.features.extractors.image_embedding import ImageEmbedding
from sensorium.features.extractors.vision_config import ImageEmbeddingConfig

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOWER: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
VISION = TOWER | {"image_size": 32, "patch_size": 8}
PROCESSOR: dict[str, Any] = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.25, 0.3],
    "resample": 3,
}
WORDS = [
    "<|startoftext|>",
    "<|endoftext|>",
    "a</w>",
    "cat</w>",
    "red</w>",
    "ca",
    "re",
    "t</w>",
    "d</w>",
    *"acdert",
]
MERGES = "#version: 0.2\nc a\nca t</w>\nr e\nre d</w>\n"


def random_pictures(count: int, height: int = 40, width: int = 56) -> list[np.ndarray]:
    generator = np.random.default_rng(7)
    return [generator.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]


def clip_folder(folder: Path) -> Path:
    """A tiny CLIP with random weights, both towers, its image processor and its tokenizer."""
    torch.manual_seed(0)
    ids = {word: number for number, word in enumerate(WORDS)}
    config = transformers.CLIPConfig(
        text_config=TOWER | {"vocab_size": len(ids), "max_position_embeddings": 12, "eos_token_id": 1},
        vision_config=VISION,
        projection_dim=12,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    settings = PROCESSOR | {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 32},
        "crop_size": {"height": 32, "width": 32},
        "do_center_crop": True,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "vocab.json").write_text(json.dumps(ids))
    (folder / "merges.txt").write_text(MERGES)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer"}))
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clip_folder(tmp_path_factory.mktemp("clip"))


def embedding(model: Path | str, **settings: Any) -> ImageEmbedding:
    return ImageEmbedding(ImageEmbeddingConfig(model=str(model), **settings))


def by_hand(clip: Path, picture: np.ndarray) -> np.ndarray:
    """What CLIP's paper says: shortest edge to 32, middle, normalise, tower, project, length 1."""
    image = Image.fromarray(picture).resize((44, 32), Image.Resampling.BICUBIC)  # 56 x 40 keeps its shape
    middle = np.asarray(image)[:, 6:38].astype(np.float32) / 255.0
    pixels = (middle - np.array(PROCESSOR["image_mean"])) / np.array(PROCESSOR["image_std"])
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    with torch.no_grad():
        tensor = torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)[None]
        vector = model.visual_projection(model.vision_model(tensor).pooler_output)[0].numpy()
    return vector / np.linalg.norm(vector)


def test_a_clip_gives_its_own_vectors_in_any_batch(clip: Path) -> None:
    pictures = random_pictures(3)
    parts = [picture_part(picture, f"p{number}") for number, picture in enumerate(pictures)]
    extractor = embedding(clip, batch_size=2)
    assert isinstance(extractor, Extractor)
    results = extractor(parts)
    assert [one.part_id for one in results] == ["p0", "p1", "p2"]
    for one, picture in zip(results, pictures, strict=True):
        assert one.vector is not None
        assert one.vector.shape == (12,)
        np.testing.assert_allclose(one.vector, by_hand(clip, picture), atol=2e-5)
        assert one.data["dim"] == 12
    alone = extractor(parts[2:])[0].vector
    assert alone is not None
    np.testing.assert_allclose(alone, results[2].vector, atol=1e-5)


def test_texts_and_pictures_share_a_space(clip: Path) -> None:
    extractor = embedding(clip)
    texts = ["a cat", "a red cat", "a cat a cat a cat a cat a cat a cat a cat a cat"]  # the last is too long
    vectors = extractor.embed_texts(texts)
    assert vectors.shape == (3, 12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    pictures = random_pictures(2)
    with torch.no_grad():
        tokens = torch.tensor([[0, 2, 3, 1]])  # begin, "a", "cat", end
        text = model.get_text_features(input_ids=tokens).pooler_output[0].numpy()
    expected = text / np.linalg.norm(text)
    np.testing.assert_allclose(vectors[0], expected, atol=2e-5)
    found = extractor([picture_part(picture) for picture in pictures])
    cosines = np.stack([one.vector for one in found if one.vector is not None]) @ vectors.T
    assert cosines.shape == (2, 3)
    np.testing.assert_allclose(cosines[0, 0], by_hand(clip, pictures[0]) @ expected, atol=2e-5)


@pytest.mark.parametrize("kind", ["siglip", "vit", "blip"])
def test_other_vision_models_load_too(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    text = TOWER | {"vocab_size": 20, "max_position_embeddings": 8}
    if kind == "siglip":
        config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
        model, width = transformers.SiglipModel(config), 16
    elif kind == "blip":
        config = transformers.BlipConfig(text_config=text, vision_config=VISION, projection_dim=12)
        model, width = transformers.BlipModel(config), 12
    else:
        model, width = transformers.ViTModel(transformers.ViTConfig(**VISION)), 16
    with torch.no_grad():
        for parameter in model.parameters():  # some start so near to 0 that pictures make no difference
            parameter += 0.2 * torch.randn(parameter.shape)
    model.save_pretrained(tmp_path)
    name = {"siglip": "SiglipImageProcessor", "vit": "ViTImageProcessor", "blip": "BlipImageProcessor"}[kind]
    settings = PROCESSOR | {"image_processor_type": name, "size": {"height": 32, "width": 32}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    first, second = embedding(tmp_path)([picture_part(picture) for picture in random_pictures(2)])
    assert first.vector is not None
    assert first.vector.shape == (width,)
    assert np.linalg.norm(first.vector) == pytest.approx(1.0, abs=1e-5)
    assert not np.allclose(first.vector, second.vector, atol=1e-4)


def test_a_broken_picture_does_not_hinder_the_others(clip: Path) -> None:
    good = picture_part(random_pictures(1)[0])
    broken = picture_part(good.value.data[:60], "broken")  # type: ignore[union-attr]
    huge = picture_part(np.zeros((30, 40, 3), np.uint8), "huge")
    results = embedding(clip, max_pixels=40 * 56)([broken, good, huge])
    assert results[0].vector is None
    assert "cannot be decoded" in str(results[0].unavailable)
    assert results[1].vector is not None
    assert results[1].unavailable is None
    small = embedding(clip, max_pixels=1000)([huge])[0]
    assert "30" in str(small.unavailable)
    assert "max_pixels" in str(small.unavailable)


def test_what_it_accepts() -> None:
    extractor = ImageEmbedding()
    assert extractor.accepts(picture_part(np.zeros((4, 4, 3), np.uint8)))
    assert not extractor.accepts(text_part())
    assert not extractor.accepts(sound_part(np.zeros(10)))


def test_the_version_follows_weights_and_settings(clip: Path, tmp_path: Path) -> None:
    other = clip_folder(tmp_path / "other")
    versions = {embedding(clip).version, embedding(other).version, ImageEmbedding().version}
    assert len(versions) == 3
    assert embedding(clip, batch_size=2).version == embedding(clip).version


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MissingDependencyError, match="preprocessor_config"):
        embedding(tmp_path)([picture_part(np.zeros((4, 4, 3), np.uint8))])
    with pytest.raises(SensoriumError, match="no such folder"):
        embedding(tmp_path / "nowhere")([picture_part(np.zeros((4, 4, 3), np.uint8))])


def test_the_packaged_backbone_knows_alike_from_different() -> None:
    weights("efficientnet-lite0")
    names = ("motorcycle_left.png", "motorcycle_right.png", "chelsea.png", "coffee.png", "gravel.png")
    results = ImageEmbedding()([picture_part(photo(name), name) for name in names])
    vectors = np.stack([one.vector for one in results if one.vector is not None])
    assert vectors.shape == (5, 1280)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.85  # the same motorcycle from two sides
    others = cosines[~np.eye(5, dtype=bool) & ~np.isclose(cosines, cosines[0, 1])]
    assert others.max() < 0.45
    with pytest.raises(FeatureError, match="CLIP"):
        ImageEmbedding().embed_texts(["a cat"])


def test_the_packaged_backbone_classifies_as_published() -> None:
    from sensorium.features.extractors.vision_backbone import load_lite0

    folder = weights("efficientnet-lite0")
    model = load_lite0(folder / "efficientnet-lite0-57934424.pth", "cpu")
    pixels = []
    for name in ("chelsea.png", "coffee.png"):
        image = Image.open(io.BytesIO(photo(name))).convert("RGB").resize((224, 224), 3)
        pixels.append((np.asarray(image).astype(np.float32) - 127.0) / 128.0)
    with torch.inference_mode():
        features = model(torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2))
        classes = model._fc(features).argmax(dim=1).tolist()
    assert classes[0] in (281, 282, 285)  # tabby, tiger cat, Egyptian cat
    assert classes[1] == 967  # espresso
