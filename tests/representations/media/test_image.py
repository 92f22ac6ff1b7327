import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_pictures import chart, decoded, encoded, photo
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_counter import PlainCounter

from sensorium.core import Modality, ObservationError
from sensorium.features.extractors.base import Features
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import ImageBlock, TextBlock
from sensorium.observations.base import Part
from sensorium.observations.image import read_image
from sensorium.observations.values import ImageValue, TextValue
from sensorium.representations.base import Level, Variant
from sensorium.representations.config import ImageConfig
from sensorium.representations.media import encode
from sensorium.representations.media.image import crop, image_variants
from sensorium.representations.media.store import MediaStore

COUNTER: TokenCounter = PlainCounter()


def part_of(raw: Any, **known: Any) -> Part:
    (part,) = read_image(raw, part_id="figure", **known)
    return part


def variants_of(part: Part, ratio: float = 0.05, **settings_: Any) -> list[Variant]:
    given_ = {name: settings_.pop(name) for name in ("serve", "features") if name in settings_}
    return image_variants(part, ImageConfig(**settings_), COUNTER, compression_ratio=ratio, **given_)


def picture_block(variant: Variant) -> ImageBlock:
    (block,) = [block for block in variant.blocks if isinstance(block, ImageBlock)]
    return block


def embedded(variant: Variant) -> bytes:
    head, _, content = picture_block(variant).url.partition(";base64,")
    assert head in ("data:image/png", "data:image/jpeg", "data:image/webp")
    return base64.b64decode(content, validate=True)


def feature(name: str, summary: str = "", unavailable: str | None = None, **data: Any) -> Features:
    return Features(
        part_id="figure", extractor=name, version="1", data=data, summary=summary, unavailable=unavailable
    )


def test_a_picture_within_its_limits_is_sent_as_it_is() -> None:
    data = encoded(photo(), "JPEG")
    full = variants_of(part_of(data))[0]
    assert full.level is Level.FULL
    assert embedded(full) == data
    assert (full.retained, full.why, full.tokens) == (1.0, "", 10 * 8)
    block = picture_block(full)
    assert (block.width, block.height) == (320, 240)


def test_thumbnails_cost_less_and_less_and_not_less_than_the_ratio() -> None:
    part = part_of(photo(1024, 512))
    sizes = lambda found: [(picture_block(v).width, picture_block(v).height) for v in found]  # noqa: E731
    found = variants_of(part, 0.001)
    assert [v.level for v in found] == [Level.FULL, *[Level.THUMBNAIL] * 3]
    assert sizes(found) == [(1024, 512), (512, 256), (256, 128), (128, 64)]
    assert [v.tokens for v in found] == [512, 128, 32, 8]
    assert [v.retained for v in found] == pytest.approx([1.0, 0.5**0.5, 0.5, 0.125**0.5])
    assert found[2].why == "256x128 of 1024x512"
    for variant in found:
        assert decoded(embedded(variant)).shape[:2] == sizes([variant])[0][::-1]
    assert sizes(variants_of(part, 0.0625))[1:] == [(512, 256), (256, 128)]  # exactly 32 of 512
    assert sizes(variants_of(part, 0.1))[1:] == [(512, 256)]
    assert sizes(variants_of(part, 1.0)) == [(1024, 512)]


def test_flat_graphics_stay_sharp_and_photos_become_jpeg() -> None:
    sheet = chart(1600, 1200)
    data = encoded(sheet, compress_level=0)
    full = variants_of(part_of(data), max_size_kb=100)[0]
    np.testing.assert_array_equal(decoded(embedded(full)), np.asarray(sheet))
    assert "PNG" in full.why
    view = photo(800, 600)
    full = variants_of(part_of(view), max_size_kb=150)[0]
    assert embedded(full)[:2] == b"\xff\xd8"
    assert (picture_block(full).width, picture_block(full).height) == (800, 600)
    error = np.abs(decoded(embedded(full)).astype(float) - np.asarray(view)).mean()
    assert error < 12
    assert encode.is_flat(sheet)
    assert not encode.is_flat(view)


def test_quality_is_where_jpeg_begins() -> None:
    part = part_of(photo(800, 600))
    sizes = [len(embedded(variants_of(part, quality=q, max_size_kb=600)[0])) for q in (95, 60, 20)]
    assert sizes[0] > sizes[1] > sizes[2]
    # A limit below what MIN_QUALITY reaches is met by scaling.
    small = variants_of(part, max_size_kb=10)[0]
    assert len(embedded(small)) <= 10 * 1024
    assert picture_block(small).width < 800
    assert "of 800x600" in small.why


def test_the_longest_side_is_met() -> None:
    part = part_of(encoded(chart(900, 300)))
    full = variants_of(part, max_side_px=300)[0]
    assert (picture_block(full).width, picture_block(full).height) == (300, 100)
    line = part_of(np.zeros((1, 5000), np.uint8))
    full = variants_of(line, max_side_px=64)[0]
    assert (picture_block(full).width, picture_block(full).height) == (64, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400),
    st.integers(1, 400),
    st.sampled_from([chart, photo]),
    st.floats(0.03, 60),
    st.integers(16, 500),
    st.integers(1, 100),
    st.floats(0.001, 1.0),
)
def test_size_limits_are_met_or_it_is_said_that_they_cannot_be(
    width: int,
    height: int,
    draw: Callable[..., Any],
    max_size_kb: float,
    max_side_px: int,
    quality: int,
    ratio: float,
) -> None:
    part = part_of(draw(400, 400).crop((0, 0, width, height)))
    found = variants_of(part, ratio, max_size_kb=max_size_kb, max_side_px=max_side_px, quality=quality)
    assert found
    assert [v.tokens for v in found] == sorted((v.tokens for v in found), reverse=True)
    for variant in found:
        if variant.level is Level.SUMMARY:
            assert "max_size_kb" in variant.why
            assert max_size_kb < 0.2
            continue
        block, data = picture_block(variant), embedded(variant)
        assert len(data) <= max_size_kb * 1024
        assert max(block.width, block.height) <= max_side_px
        assert decoded(data).shape[:2] == (block.height, block.width)
        assert variant.tokens == COUNTER.image(block.width, block.height) >= ratio * found[0].tokens
        assert 0 < variant.retained <= 1


def test_urls_are_the_pictures_own_or_those_of_a_store() -> None:
    data = encoded(photo(), "JPEG")
    store = MediaStore()
    serve = store.server("http://localhost:8000/media/")
    own = part_of(data, url="https://example.org/a.jpg")
    found = variants_of(own, encoding="url", serve=serve)
    assert picture_block(found[0]).url == "https://example.org/a.jpg"
    for thumbnail in found[1:]:
        url = picture_block(thumbnail).url
        media = store.get(url.removeprefix("http://localhost:8000/media/"))
        assert media is not None
        assert decoded(media.data).shape[1] == picture_block(thumbnail).width
    served = picture_block(variants_of(part_of(data), encoding="url", serve=serve)[0]).url
    kept = store.get(served.rpartition("/")[2])
    assert kept is not None
    assert kept == (data, "image/jpeg")
    full = variants_of(part_of(data), encoding="url")[0]
    assert embedded(full) == data
    assert "no media store" in full.why


def test_a_picture_known_by_its_address_only() -> None:
    part = part_of("https://example.org/cat.png", alt="a cat on a mat")
    full, words = variants_of(part, encoding="url")
    assert picture_block(full).url == "https://example.org/cat.png"
    assert full.tokens == 32 * 32 + COUNTER.text("Shows: a cat on a mat")
    assert "counted as 1024x1024" in full.why
    assert words.level is Level.SUMMARY
    (told,) = variants_of(part)
    assert told.level is Level.SUMMARY
    assert "allow_urls" in told.why
    assert isinstance(told.blocks[0], TextBlock)
    assert "a cat on a mat" in told.blocks[0].text


def test_what_extractors_found_stands_beside_the_picture_and_instead_of_it() -> None:
    found = variants_of(
        part_of(chart(800, 600)),
        features={
            "detection": feature("detection", "a bar chart with 8 bars"),
            "ocr": feature("ocr", "3 words", text="errors\nper hour"),
            "image_embedding": feature("image_embedding"),
            "caption": feature("caption", "never said", unavailable="timed out"),
        },
    )
    line = "Shows: a bar chart with 8 bars. Text in it: errors per hour"
    for variant in found[:-1]:
        assert variant.blocks[0] == TextBlock(text=line)
        block = picture_block(variant)
        assert variant.tokens == COUNTER.image(block.width, block.height) + COUNTER.text(line)
    words = found[-1]
    assert (words.level, words.retained) == (Level.SUMMARY, 0.4)
    assert words.blocks == (
        TextBlock(
            text="[picture, 800x600, told in words]\nShows: a bar chart with 8 bars\n"
            "Text in it:\nerrors\nper hour"
        ),
    )
    long = variants_of(part_of(chart()), features={"ocr": feature("ocr", text="word " * 5_000)})
    assert all(v.tokens < 1_200 for v in long)


def test_what_cannot_be_shown_is_said() -> None:
    broken = ImageValue(data=b"no picture", width=None, height=None)
    part = Part(id="figure", modality=Modality.IMAGE, value=broken)
    (told,) = variants_of(part)
    assert told.level is Level.SUMMARY
    assert told.retained == 0.0
    assert "no picture that can be read" in told.why
    (told,) = variants_of(part.model_copy(update={"value": ImageValue()}))
    assert "neither bytes nor an address" in told.why
    with pytest.raises(TypeError, match="not a picture"):
        variants_of(part.model_copy(update={"value": TextValue(text="x")}))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.randoms())
def test_arbitrary_bytes_in_a_value_never_raise(noise: bytes, damages: bool, random: Any) -> None:
    if damages:
        good = bytearray(encoded(chart(40, 30), "JPEG"))
        for byte in noise[:8]:
            good[random.randrange(len(good))] = byte
        noise = bytes(good)
    part = Part(id="f", modality=Modality.IMAGE, value=ImageValue(data=noise, mime="image/jpeg"))
    for variant in variants_of(part, max_size_kb=0.5):
        assert variant.tokens > 0


def test_equal_pictures_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(photo(640, 480, seed=5))
    first = variants_of(part, max_size_kb=40)
    monkeypatch.setattr(encode, "_fit", None)
    assert variants_of(part, max_size_kb=40) == first


def test_a_region_is_cut_out_at_full_resolution() -> None:
    sheet = chart(400, 300)
    part = part_of(encoded(sheet), alt="errors")
    piece = crop(part, (30, 40, 130, 90))
    assert isinstance(piece.value, ImageValue)
    np.testing.assert_array_equal(decoded(piece.value.data), np.asarray(sheet)[40:90, 30:130])
    assert piece.id == "figure/region-30-40-130-90"
    assert piece.notes == ("pixels 30-130 x 40-90 of 400x300",)
    assert piece.value.sha256 == part_of(sheet.crop((30, 40, 130, 90)), alt="errors").value.sha256  # type: ignore[union-attr]
    assert piece.value.alt == "errors"
    edge = crop(part, (-10, 290, 9_999, 9_999))
    assert isinstance(edge.value, ImageValue)
    assert (edge.value.width, edge.value.height) == (400, 10)
    for empty in ((400, 0, 500, 10), (5, 5, 5, 9), (9, 0, 3, 4)):
        with pytest.raises(ValueError, match="0, 0, 400, 300"):
            crop(part, empty)
    assert crop(part_of(encoded(sheet, "JPEG")), (0, 0, 9, 9)).value.mime == "image/jpeg"  # type: ignore[union-attr]
    with pytest.raises(ObservationError, match="address"):
        crop(part_of("https://example.org/a.png"), (0, 0, 1, 1))
