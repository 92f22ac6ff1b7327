import base64
import concurrent.futures
import io
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import gymnasium
import networkx
import numpy as np
import pytest
from drawn_pictures import chart, decoded, encoded, photo
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from sensorium.core import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode_data_url
from sensorium.observations.image import MAX_COUNTED_FRAMES, read_image
from sensorium.observations.values import ImageValue, ProblemValue, TextValue


def read(raw: Any, **settings: Any) -> tuple[ImageValue, Part]:
    """Read what must give exactly one picture."""
    (part,) = read_image(raw, part_id="figure", **settings)
    assert isinstance(part.value, ImageValue), part.value
    assert part.id == "figure"
    assert part.modality is Modality.IMAGE
    return part.value, part


def refused(raw: Any, **settings: Any) -> ProblemValue:
    (part,) = read_image(raw, part_id="figure", **settings)
    assert isinstance(part.value, ProblemValue), part.value
    assert part.is_error
    return part.value


@pytest.mark.parametrize(
    ("form", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")]
)
def test_a_picture_that_needs_no_change_keeps_its_bytes(form: str, mime: str) -> None:
    data = encoded(photo(), form)
    value, part = read(data, alt="a view", url="https://example.org/a")
    assert value.data == data
    assert (value.mime, value.width, value.height) == (mime, 320, 240)
    assert (value.alt, value.url) == ("a view", "https://example.org/a")
    assert part.notes == ()
    assert Part.model_validate_json(part.model_dump_json()) == part


@pytest.mark.parametrize("form", ["BMP", "TIFF", "GIF", "PPM", "ICO"])
def test_other_formats_become_png_with_the_same_pixels(form: str) -> None:
    picture = Image.new("RGB", (64, 64), (200, 30, 60))
    value, _ = read(encoded(picture, form))
    assert value.mime == "image/png"
    np.testing.assert_array_equal(decoded(value.data), np.asarray(picture))


def test_the_same_picture_has_one_hash_in_every_lossless_form() -> None:
    picture = chart(50, 70)
    turned = picture.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by 90 degrees
    forms: list[Any] = [
        encoded(picture),
        encoded(picture, "BMP"),
        encoded(picture, "TIFF"),
        encoded(picture, "WEBP", lossless=True),
        encoded(turned, "PNG", exif=exif),
        picture,
        np.asarray(picture),
        np.moveaxis(np.asarray(picture), -1, 0),
        np.asarray(picture) / 255.0,
    ]
    hashes = {read(form)[0].sha256 for form in forms}
    assert len(hashes) == 1
    assert read(encoded(picture.crop((0, 0, 50, 69))))[0].sha256 not in hashes
    # The size counts: the same bytes in another shape are another picture.
    flat = np.zeros((4, 6), np.uint8)
    assert read(flat)[0].sha256 != read(flat.reshape(6, 4))[0].sha256


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_honoured(orientation: int) -> None:
    corner = Image.new("RGB", (40, 24), "white")
    corner.paste((255, 0, 0), (0, 0, 8, 8))
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = corner.transpose(back[orientation]) if orientation > 1 else corner
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(stored, "JPEG", exif=exif, quality=100, subsampling=0)
    value, _ = read(data)
    assert (value.width, value.height) == (40, 24)
    pixels = decoded(value.data).astype(int)
    assert np.abs(pixels[2:6, 2:6] - [255, 0, 0]).max() < 40
    assert np.abs(pixels[12:, 20:] - 255).max() < 40
    assert value.mime == "image/jpeg"
    assert (value.data == data) == (orientation == 1)


def test_transparency_is_laid_on_white_and_noted() -> None:
    ink = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    ink.paste((255, 0, 0, 255), (0, 0, 5, 10))
    ink.paste((0, 0, 0, 128), (5, 0, 6, 10))
    value, part = read(encoded(ink))
    pixels = decoded(value.data)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[0, 9].tolist() == [255, 255, 255]
    assert 120 <= pixels[0, 5, 0] <= 130
    assert any("white" in note for note in part.notes)
    # A palette with a transparent colour, too.
    palette = ink.quantize(8)
    value, _ = read(encoded(palette))
    assert decoded(value.data)[0, 9].tolist() == [255, 255, 255]
    # An alpha channel that hides nothing is no reason to change the file.
    opaque = encoded(chart().convert("RGBA"))
    assert read(opaque)[0].data == opaque


def test_deep_pictures_are_scaled_by_their_range_and_noted() -> None:
    ramp = np.linspace(1000, 5000, 64).astype(np.uint16).reshape(8, 8)
    for raw in (encoded(Image.fromarray(ramp)), encoded(Image.fromarray(ramp), "TIFF"), ramp):
        value, part = read(raw)
        pixels = decoded(value.data)
        assert (pixels.min(), pixels.max()) == (0, 255)
        assert pixels[0, 0, 0] < pixels[4, 4, 0] < pixels[7, 7, 0]
        assert any("1000 to 5000" in note for note in part.notes)
    value, part = read(encoded(Image.fromarray(np.full((4, 4), -2.5, np.float32)), "TIFF"))
    assert decoded(value.data).max() == 0
    assert part.notes


def test_cmyk_palette_and_bilevel_pictures_are_shown_as_rgb() -> None:
    ink = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    value, _ = read(encoded(ink, "JPEG", quality=100))
    assert np.abs(decoded(value.data).astype(int)[8, 8] - [255, 0, 0]).max() < 12
    value, _ = read(encoded(ink, "TIFF"))
    assert decoded(value.data)[8, 8].tolist() == [255, 0, 0]
    bilevel = Image.new("1", (16, 16), 1)
    data = encoded(bilevel)
    assert read(data)[0].data == data
    assert decoded(read(encoded(bilevel, "TIFF"))[0].data).min() == 255
    lab = Image.new("LAB", (4, 4), (128, 128, 128))
    assert read(encoded(lab, "TIFF"))[0].width == 4


def test_a_colour_profile_is_applied() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(chart(), icc_profile=srgb)
    assert read(data)[0].data == data
    # A profile with linear light: a middle value is much lighter in sRGB.
    swapped = _profile_with_gamma(srgb, 1.0)
    value, part = read(encoded(Image.new("RGB", (8, 8), (128, 128, 128)), icc_profile=swapped))
    assert decoded(value.data)[4, 4, 0] == pytest.approx(188, abs=4)
    assert part.notes == ()
    value, part = read(encoded(Image.new("RGB", (8, 8), (128, 128, 128)), icc_profile=b"no profile at all"))
    assert decoded(value.data)[4, 4, 0] == 128
    assert "profile" in part.notes[0]


def _profile_with_gamma(profile: bytes, gamma: float) -> bytes:
    """The same profile under another name, with its tone curves replaced by a power law."""
    count = int.from_bytes(profile[128:132], "big")
    data = bytearray(profile)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, int(gamma * 256))
    for i in range(count):
        name, offset, size = struct.unpack_from(">4sII", profile, 132 + 12 * i)
        if name in (b"rTRC", b"gTRC", b"bTRC"):
            assert size >= len(curve)
            data[offset : offset + size] = curve.ljust(size, b"\0")
            struct.pack_into(">I", data, 132 + 12 * i + 8, len(curve))
        if name == b"desc":
            data[offset : offset + size] = (
                profile[offset : offset + size]
                .replace("sRGB".encode("utf-16-be"), "line".encode("utf-16-be"))
                .replace(b"sRGB", b"line")
            )
    return bytes(data)


@pytest.mark.parametrize(
    ("form", "settings_"), [("JPEG", {}), ("JPEG", {"progressive": True}), ("PNG", {}), ("BMP", {})]
)
def test_of_a_file_that_is_cut_off_as_much_as_there_is_is_shown(form: str, settings_: dict[str, Any]) -> None:
    picture = photo(200, 200)
    data = encoded(picture, form, **settings_)
    value, part = read(data[: len(data) * 6 // 10])
    assert (value.width, value.height) == (200, 200)
    shown, original = decoded(value.data).astype(int), np.asarray(picture).astype(int)
    near = np.abs(shown - original).mean(axis=(1, 2)) < 25
    assert near.mean() > 0.3  # progressive: everywhere, in less detail
    assert any("cut off" in note for note in part.notes)
    # Where not one row came through, there is nothing to show.
    assert "cannot be decoded" in refused(encoded(picture)[:60]).what


def test_an_animation_shows_first_middle_and_last_frame() -> None:
    frames = [Image.new("RGB", (20, 20), (i * 20, 0, 255 - i * 20)) for i in range(9)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50)
    parts = read_image(data, part_id="clip")
    assert [part.id for part in parts] == ["clip", "clip/frame-4", "clip/frame-8"]
    assert [part.notes for part in parts] == [(f"picture {n} of 9 in the file",) for n in (1, 5, 9)]
    reds = [int(decoded(part.value.data)[10, 10, 0]) for part in parts]  # type: ignore[union-attr]
    assert reds == pytest.approx([0, 80, 160], abs=6)
    # When decoding all frames would cost too much, the first stands alone.
    (part,) = read_image(data, part_id="clip", config=ReadConfig(max_pixels=20 * 20))
    assert part.notes == ("the first of several pictures in the file",)
    for form in ("WEBP", "PNG", "TIFF"):
        data = encoded(frames[0], form, save_all=True, append_images=frames[1:3])
        assert len(read_image(data, part_id="clip")) == 3
    two = encoded(frames[0], "MPO", save_all=True, append_images=frames[1:2])
    value, _ = read(two)
    assert (value.mime, value.data) == ("image/jpeg", two)


@pytest.mark.parametrize(
    "array",
    [
        np.full((6, 9), 200, np.uint8),
        np.full((6, 9, 1), 200, np.uint8),
        np.full((6, 9, 3), 200, np.uint8),
        np.full((1, 6, 9), 200, np.uint8),
        np.full((3, 6, 9), 200, np.uint8),
        np.full((1, 1, 6, 9, 3), 200, np.uint8),
        np.full((6, 9), 200, np.int64),
        np.full((6, 9), 200.0),
        np.full((6, 9), 200 / 255, np.float32),
        np.full((6, 9), 200 / 255, np.float16),
    ],
)
def test_arrays_of_every_shape_and_type(array: np.ndarray) -> None:
    value, part = read(array)
    assert (value.width, value.height) == (9, 6)
    assert np.abs(decoded(value.data).astype(int) - 200).max() <= 1
    assert part.notes == ()


def test_odd_arrays() -> None:
    value, _ = read(np.array([[True, False]]))
    assert decoded(value.data)[0, :, 0].tolist() == [255, 0]
    value, part = read(np.array([[np.nan, 0.0, 1.0, np.inf]]))
    assert decoded(value.data)[0, :, 0].tolist() == [0, 0, 255, 0]
    assert "2 values that are not finite" in part.notes[0]
    assert "not finite" in read(np.full((2, 2), np.nan))[1].notes[0]
    value, part = read(np.array([[-1.0, 0.0, 1.0]]))
    assert decoded(value.data)[0, :, 0].tolist() == [0, 128, 255]
    assert "-1 to 1" in part.notes[0]
    alpha = np.zeros((2, 2, 4), np.uint8)
    assert decoded(read(alpha)[0].data).min() == 255
    # A tensor of any device is brought here by its own methods.
    import torch

    value, _ = read(torch.full((3, 5, 7), 0.5, requires_grad=True))
    assert (value.width, value.height) == (7, 5)
    value, part = read(np.zeros((100, 100), np.uint8), config=ReadConfig(max_pixels=2_600))
    assert (value.width, value.height) == (50, 50)
    assert part.notes == ("one of every 2 rows and columns of 100x100",)
    for bad in (
        np.zeros((2, 3, 5)),
        np.zeros((0, 4)),
        np.zeros(7),
        np.array(["a"]),
        np.zeros((2, 2), complex),
        3.5,
        None,
    ):
        assert refused(bad).what


def test_bombs_are_refused_before_they_are_decoded() -> None:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    def bomb(width: int, height: int) -> bytes:
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")

    for width, height in ((8_000, 8_000), (12_000, 12_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)):
        problem = refused(bomb(width, height))
        assert "at most" in problem.what or "too large" in problem.what, problem
        assert "max_pixels" in problem.mend
    problem = refused(encoded(photo()), config=ReadConfig(max_bytes=100))
    assert "100 bytes" in problem.what
    assert "max_pixels" in refused(Image.new("1", (400, 400)), config=ReadConfig(max_pixels=1_000)).mend
    assert refused(bomb(0, 5)).what


def test_svg_is_told_in_words() -> None:
    source = b"<?xml version='1.0'?>\n<!-- made by hand -->\n<svg xmlns='http://www.w3.org/2000/svg'><title>Loss</title>"
    (part,) = read_image(source + b"<text x='1'>epoch 3</text></svg>", part_id="figure")
    assert isinstance(part.value, TextValue)
    assert part.modality is Modality.TEXT
    assert "Loss; epoch 3" in part.value.text
    assert "<text" in part.value.text
    (part,) = read_image(
        source + b"<text>epoch 3</text>" + b"<path d='M0 0'/>" * 9_000 + b"</svg>", part_id="figure"
    )
    assert isinstance(part.value, TextValue)
    assert "epoch 3" in part.value.text
    assert len(part.value.text) < 300


def test_hostile_svg_costs_no_time() -> None:
    for source in (
        b"<!--" + b"--> <!--" * 500,  # comments that could end in many places
        b"<svg>" + b"<text " * 300_000,
        b"<svg>" + b"<!-- " * 300_000,
        b"<svg>" + b"<!--" + b" " * 1_000_000,
        b"<svg>" + b"<text>" + b"word " * 300_000,
    ):
        assert len(read_image(source, part_id="figure")) == 1


def test_text_that_has_no_utf8_form_is_mended() -> None:
    for raw in ("https://example.org/\ud800.png", "\ud800", Path("/nowhere/\udc80.png")):
        (part,) = read_image(raw, part_id="figure", alt="\ud800", url="x\ud800")
        assert Part.model_validate_json(part.model_dump_json()) == part


def test_warnings_are_as_before_when_several_threads_have_read() -> None:
    before = list(warnings.filters)
    damaged = encoded(photo(64, 64), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: read(damaged)[1], range(24)))
    assert len({part.digest for part in parts}) == 1
    assert list(warnings.filters) == before


def test_nothing_heavy_is_loaded_before_a_picture_comes() -> None:
    modules = ["observations.image", "observations.audio", "observations.urls", "representations.align"]
    modules += [f"representations.media.{name}" for name in ("image", "audio", "phash", "store", "words")]
    imports = "; ".join(f"import sensorium.{name}" for name in modules)
    heavy = "{'PIL', 'soundfile', 'torch', 'pandas', 'http.client'}"
    code = f"import sys; {imports}; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in ("[]", "['http.client']")


def test_files_paths_and_addresses(tmp_path: Path) -> None:
    data = encoded(chart())
    (tmp_path / "a.png").write_bytes(data)
    assert read(tmp_path / "a.png")[0].data == data
    assert read(io.BytesIO(data))[0].data == data
    assert read(bytearray(data))[0].data == data
    assert "rb" in refused(io.StringIO("text")).what
    assert "No such file" in refused(tmp_path / "none.png").what
    text = base64.b64encode(data).decode()
    assert read(f"data:image/png;base64,{text}")[0].data == data
    assert read(f"DATA:;base64,{text[:40]}\n{text[40:]}")[0].data == data
    assert "pathlib" in refused("figure.png").what
    assert refused("file:///etc/passwd").what
    assert refused("data:image/png;base64").what
    assert (
        "at most 10 bytes" in refused(f"data:image/png;base64,{text}", config=ReadConfig(max_bytes=10)).what
    )
    assert decode_data_url("data:,a%20b", max_bytes=9) == b"a b"


def test_an_address_that_may_not_be_loaded_is_kept_as_a_reference() -> None:
    value, part = read("https://example.org/cat.png", alt="a cat")
    assert value == ImageValue(url="https://example.org/cat.png", alt="a cat")
    assert "allow_urls" in part.notes[0]
    problem = refused("http://127.0.0.1:9/cat.png", config=ReadConfig(allow_urls=True))
    assert "public internet" in problem.what
    assert problem.where == "http://127.0.0.1:9/cat.png"


def test_a_file_of_endless_frames_is_not_counted_to_its_end() -> None:
    frames = [Image.new("L", (1, 1), i % 255) for i in range(MAX_COUNTED_FRAMES + 1)]
    (part,) = read_image(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]), part_id="f")
    assert part.notes == ("the first of several pictures in the file",)
    three = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:3])
    assert len(read_image(three[:-4], part_id="f")) >= 2  # the last frame is damaged
    # A later frame that is larger than the limit, in a file whose first frame is not.
    pages = [Image.new("L", (10, 10)), Image.new("L", (100, 100))]
    data = encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    (part,) = read_image(data, part_id="f", config=ReadConfig(max_pixels=5_000))
    assert part.notes == ("the first of several pictures in the file",)


def test_a_pillow_picture_is_left_as_it_was() -> None:
    frames = [Image.new("RGB", (9, 9), (i * 50, 0, 0)) for i in range(3)]
    picture = Image.open(io.BytesIO(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])))
    picture.seek(1)
    value, _ = read(picture)
    assert picture.tell() == 1
    assert decoded(value.data)[4, 4, 0] == pytest.approx(50, abs=4)


def test_real_pictures_of_installed_packages() -> None:
    folders = [Path(gymnasium.__file__).parent, Path(networkx.__file__).parent]
    files = [path for folder in folders for path in sorted(folder.rglob("*.png"))]
    assert len(files) >= 10
    for path in files:
        (part,) = read_image(path, part_id=path.name)
        assert isinstance(part.value, ImageValue)
        with Image.open(path) as picture:
            assert picture.size == (part.value.width, part.value.height)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from(["", "PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"]), st.randoms()
)
def test_arbitrary_and_damaged_bytes_never_raise(noise: bytes, form: str, random: Any) -> None:
    data = noise
    if form:
        good = bytearray(encoded(chart(24, 24), form))
        for byte in noise[:12]:
            good[random.randrange(len(good))] = byte
        data = bytes(good[: random.randrange(len(good) + 1)])
    for part in read_image(data, part_id="figure"):
        assert Part.model_validate_json(part.model_dump_json()) == part
        if isinstance(part.value, ImageValue):
            pixels = decoded(part.value.data)
            assert pixels.shape[:2] == (part.value.height, part.value.width)


def test_a_picture_met_again_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(7).integers(0, 256, (33, 21, 3), dtype=np.uint8)
    (first,) = read_image(pixels, part_id="a")
    saved: list[str] = []
    monkeypatch.setattr(Image.Image, "save", lambda *_, **__: saved.append("again"))
    (second,) = read_image(pixels.copy(), part_id="b")

    assert second.value == first.value
    assert saved == []
