import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from media_parts import photo, picture_part, sound_part, text_part, weights
from PIL import Image, ImageDraw

from sensorium.core import FeatureError
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.detection import Detection
from sensorium.features.extractors.vision_config import DetectionConfig

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")


@pytest.fixture(scope="module")
def detection() -> Detection:
    weights("ssd-mobilenet")
    return Detection()


def look(detection: Detection, *pictures: Any) -> list[Features]:
    return list(detection([picture_part(picture, f"p{n}") for n, picture in enumerate(pictures)]))


def labels(features: Features) -> list[str]:
    return [one["label"] for one in features.data["objects"]]


def bar_chart(seed: int, *, quality: int | None = None) -> bytes:
    """Bars, axes and a frame, as PNG or as JPEG."""
    generator = np.random.default_rng(seed)
    image = Image.new("RGB", (480, 360), "white")
    draw = ImageDraw.Draw(image)
    for number, height in enumerate(generator.integers(20, 260, 8).tolist()):
        draw.rectangle((70 + 48 * number, 320 - height, 100 + 48 * number, 320), fill=(31, 119, 180))
    draw.line((60, 320, 460, 320), fill="black")
    draw.line((60, 40, 60, 320), fill="black")
    buffer = io.BytesIO()
    if quality is None:
        image.save(buffer, "PNG")
    else:
        image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("chelsea.png", "cat"),
        ("coffee.png", "cup"),
        ("astronaut.png", "person"),
        ("camera.png", "person"),
        ("motorcycle_left.png", "motorcycle"),
    ],
)
def test_photos_show_what_they_show(name: str, label: str, detection: Detection) -> None:
    (features,) = look(detection, photo(name))
    assert features.unavailable is None
    assert labels(features)[0] == label
    assert f"a {label}" in features.summary
    assert features.data["kind"] == "photo"
    scores = [one["score"] for one in features.data["objects"]]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.5


def test_boxes_are_in_pixels_of_the_picture(detection: Detection) -> None:
    """A photo beside grey noise: the box lies where the photo does, whatever the size."""
    cat = Image.open(io.BytesIO(photo("chelsea.png"))).convert("RGB")
    noise = np.random.default_rng(0).integers(110, 140, (600, 900, 3), dtype=np.uint8)
    canvas = Image.fromarray(noise)
    canvas.paste(cat, (440, 290))  # 451 x 300: to 891, 590
    (features,) = look(detection, canvas)
    found = next(one for one in features.data["objects"] if one["label"] == "cat")
    left, top, right, bottom = found["box"]
    assert 400 <= left < right <= 900
    assert 250 <= top < bottom <= 600
    assert right - left > 225
    assert found["place"] in ("at the bottom right", "on the right")


@pytest.mark.parametrize(
    "name", ["gravel.png", "grass.png", "brick.png", "hubble_deep_field.jpg", "moon.png"]
)
def test_photos_without_known_things(name: str, detection: Detection) -> None:
    (features,) = look(detection, photo(name))
    assert labels(features) == []
    assert features.data["kind"] == "photo"
    assert "no object" in features.summary


@pytest.mark.parametrize("quality", [None, 80])
@pytest.mark.parametrize("seed", range(4))
def test_charts_have_no_objects(seed: int, quality: int | None, detection: Detection) -> None:
    (features,) = look(detection, bar_chart(seed, quality=quality))
    assert labels(features) == []
    assert features.data["kind"] == "graphic"
    assert features.data["chart_likeness"] >= 0.6
    assert "probably a chart" in features.summary
    assert "white" in features.summary


def test_blank_and_tiny_pictures(detection: Detection) -> None:
    blank, tiny, line = look(
        detection,
        np.full((200, 300, 3), 255, np.uint8),
        np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8),
        np.zeros((1, 400, 3), np.uint8),
    )
    assert blank.summary == "a blank picture, white all over"
    assert blank.data["objects"] == tiny.data["objects"] == line.data["objects"] == []
    assert line.data["kind"] == "blank"
    assert tiny.unavailable is None


def test_a_transparent_picture_lies_on_white(detection: Detection) -> None:
    (features,) = look(detection, Image.new("RGBA", (64, 64), (255, 0, 0, 0)))
    assert features.data["colours"] == [{"name": "white", "share": 1.0}]


def test_a_broken_picture_does_not_hinder_the_others(detection: Detection) -> None:
    results = look(detection, b"not a picture", photo("chelsea.png"), photo("coffee.png")[:5000])
    assert "cannot be decoded" in str(results[0].unavailable)
    assert " at 0x" not in str(results[0].unavailable)
    assert labels(results[1])[0] == "cat"
    assert "cannot be decoded" in str(results[2].unavailable)


def test_the_protocol(detection: Detection) -> None:
    assert isinstance(detection, Extractor)
    assert detection.accepts(picture_part(np.zeros((4, 4, 3), np.uint8)))
    assert not detection.accepts(text_part())
    assert not detection.accepts(sound_part(np.zeros(10)))
    assert Detection(DetectionConfig(min_score=0.3)).version != detection.version


def test_settings_change_what_is_kept(detection: Detection) -> None:
    cat = photo("chelsea.png")
    strict = Detection(DetectionConfig(min_score=0.95))
    assert labels(look(strict, cat)[0]) == []
    loose = Detection(DetectionConfig(min_score=0.2))
    assert len(labels(look(loose, cat)[0])) > len(labels(look(detection, cat)[0]))
    one = Detection(DetectionConfig(min_score=0.2, max_objects=1))
    assert labels(look(one, cat)[0]) == ["cat"]


def test_a_folder_without_a_detector(tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="frozen_inference_graph"):
        look(Detection(DetectionConfig(model=str(tmp_path))), bar_chart(0))
    (tmp_path / "frozen_inference_graph.pb").write_bytes(b"nonsense")
    with pytest.raises(FeatureError, match="pbtxt"):
        look(Detection(DetectionConfig(model=str(tmp_path))), bar_chart(0))
    (tmp_path / "graph.pbtxt").write_text("nonsense")
    with pytest.raises(FeatureError, match="cannot be loaded"):
        look(Detection(DetectionConfig(model=str(tmp_path))), bar_chart(0))
    with pytest.raises(FeatureError, match="not loaded from a hub"):
        look(Detection(DetectionConfig(model="some-org/detector")), bar_chart(0))
