import base64
import io

import pytest
from PIL import Image

from sensorium.llm.embedded_pictures import content, encoded, picture


def url_of(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def png(size=(4, 3)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGBA", size, (255, 0, 0, 128)).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_picture_comes_back():
    url = url_of(png())
    assert content(url) == png()
    read = picture(url)
    assert (read.mode, read.size, read.getpixel((0, 0))) == ("RGB", (4, 3), (255, 0, 0))


@pytest.mark.parametrize(
    "url", ["https://example.org/a.png", "data:image/png,abc", "data:image/png;base64", "", "data:,"]
)
def test_what_is_not_embedded_is_none(url):
    assert encoded(url) is None
    assert content(url) is None
    with pytest.raises(ValueError, match="no data: URL"):
        picture(url)


def test_what_is_no_base64_is_none():
    assert content("data:image/png;base64,a") is None
    assert content("data:image/png;base64,ü") is None


@pytest.mark.parametrize("cut", [8, 20, 30, 45, 60])
def test_a_broken_picture_is_one_kind_of_error(cut):
    whole = png((200, 200))
    for broken in (whole[:cut], whole[:cut] + b"\0\0\0\0" + whole[cut + 4 :], b"no picture"):
        with pytest.raises(ValueError, match=r"\w"):  # it says something
            picture(url_of(broken))


def test_a_bomb_is_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match="decompression bomb"):
        picture(url_of(png((20, 20))))
