import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sensorium.core import ConfigError, parse_config
from sensorium.llm.config import EstimateConfig, FixedRule, PatchesRule, PixelsRule, TilesRule
from sensorium.llm.image_rules import image_tokens
from sensorium.llm.image_size import data_url_size, image_size


def encoded(width: int, height: int, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((width, height), 80).convert("RGB").save(buffer, kind, **options)
    return buffer.getvalue()


KINDS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("WEBP", {"quality": 80}),
    ("WEBP", {"lossless": True}),
    ("GIF", {}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_sizes_are_read_from_headers(kind, options):
    data = encoded(123, 45, kind, **options)
    assert image_size(data) == (123, 45)
    url = f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"
    assert data_url_size(url) == (123, 45)


def test_webp_with_transparency_and_metadata():
    buffer = io.BytesIO()
    Image.new("RGBA", (301, 7), (1, 2, 3, 99)).save(buffer, "WEBP", exif=b"Exif\0\0" + b"x" * 40)
    assert buffer.getvalue()[12:16] == b"VP8X"
    assert image_size(buffer.getvalue()) == (301, 7)


def test_a_jpeg_whose_size_comes_after_a_long_preview():
    data = encoded(64, 32, "JPEG")
    previews = (b"\xff\xe2" + (60_002).to_bytes(2, "big") + bytes(60_000)) * 3
    url = "data:image/jpeg;base64," + base64.b64encode(data[:2] + previews + data[2:]).decode()
    assert data_url_size(url) == (64, 32)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_headers_cut_short_never_raise(kind, options):
    data = encoded(20, 10, kind, **options)
    for length in range(min(len(data), 700)):
        assert image_size(data[:length]) in (None, (20, 10))


@given(
    st.binary(max_size=64), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBPVP8L"])
)
def test_any_bytes_are_a_size_or_none(data, start):
    size = image_size(start + data)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    "url", ["https://x/y.png", "data:image/png;base64,???", "data:,x", "", "data:image/png"]
)
def test_urls_without_a_picture_inside(url):
    assert data_url_size(url) is None


@pytest.mark.parametrize(
    ("rule", "width", "height", "tokens"),
    [
        # OpenAI's own examples: 1024 x 1024 -> 768 x 768 -> 4 tiles; 2048 x 4096 -> 768 x 1536 -> 6 tiles.
        (TilesRule(), 1024, 1024, 765),
        (TilesRule(), 2048, 4096, 1105),
        (TilesRule(detail="low"), 4096, 8192, 85),
        (TilesRule(), 1, 1, 255),
        (TilesRule(), 512, 512, 255),
        (TilesRule(), 513, 512, 425),
        # 1000 / 28 = 35.7 -> 36 each way would be 1296 > 1280 tokens, so floor(1000 / 0.99825 / 28) = 35.
        (PatchesRule(), 1000, 1000, 35 * 35 + 2),
        (PatchesRule(), 280, 560, 10 * 20 + 2),
        (PatchesRule(), 28, 28, 4 + 2),
        (PatchesRule(size=16, merge=1, min_pixels=256, max_pixels=10**7, extra=0), 160, 320, 200),
        # Anthropic's own examples: 200 x 200 -> ~54, 1000 x 1000 -> ~1334, 1092 x 1092 -> ~1590.
        (PixelsRule(), 200, 200, 54),
        (PixelsRule(), 1000, 1000, 1334),
        (PixelsRule(), 1092, 1092, 1590),
        (PixelsRule(), 3136, 100, 105),
        (PixelsRule(), 8000, 8000, 1600),
        (FixedRule(), 5, 5000, 576),
    ],
)
def test_rules_against_values_worked_out_by_hand(rule, width, height, tokens):
    assert image_tokens(rule, width, height) == tokens
    assert image_tokens(rule, height, width) == tokens


@given(st.sampled_from([TilesRule(), PatchesRule(), PixelsRule(), FixedRule()]), st.data())
def test_a_picture_of_unknown_size_is_counted_at_the_worst(rule, data):
    width = data.draw(st.integers(1, 10_000))
    height = data.draw(st.integers(max(1, width // 20), min(10_000, width * 20)))
    assert 0 < image_tokens(rule, width, height) <= image_tokens(rule, 0, 0)


def test_a_rule_is_chosen_by_its_type():
    config = parse_config(EstimateConfig, {"image_rule": {"type": "fixed", "tokens": 9}})
    assert config.image_rule == FixedRule(tokens=9)
    with pytest.raises(ConfigError, match="min_pixels"):
        parse_config(EstimateConfig, {"image_rule": {"type": "patches", "min_pixels": 9, "max_pixels": 1}})
