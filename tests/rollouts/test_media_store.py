import base64
import json

import pytest

from sensorium.core import ConfigError
from sensorium.rollouts.media_store import MediaReader, MediaStore, may_hold_media, media_folder

PNG = base64.b64encode(b"\x89PNG not really" * 20).decode()
URL = f"data:image/png;base64,{PNG}"
ROW = {
    "responses_create_params": {
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": URL, "detail": "auto"}]},
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}],
            },
        ]
    },
    "response": {
        "output": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": URL}]}]
    },
    "plain": "data: of 2024",
    "number": 3,
}


def test_media_are_kept_once_and_given_back_to_the_letter(tmp_path):
    store = MediaStore(media_folder(tmp_path / "out.jsonl"))
    stored = store.stored(ROW)
    store.sync()
    text = json.dumps(stored)
    assert PNG not in text
    assert may_hold_media(text.encode())
    image = stored["response"]["output"][0]["output"][0]["image_url"]
    assert image.startswith("media:out_media/")
    assert image.endswith(".png")
    assert len(list((tmp_path / "out_media").iterdir())) == 2, "the same bytes as picture and as sound"
    assert MediaReader(tmp_path).inlined(stored) == ROW
    assert MediaReader(tmp_path).read(image) == base64.b64decode(PNG)
    assert ROW["response"]["output"][0]["output"][0]["image_url"] == URL
    assert store.stored(ROW) == stored
    assert MediaStore(tmp_path / "out_media").stored(ROW) == stored


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,not base64!",
        "data:image/png;base64,QQ",
        "data:image/png;base64,QR==",
        "data:image/x-unknown;base64,QUJD",
        "data:image/png;charset=x;base64,QUJD",
        "data:image/png;base64,",
        "https://example.org/a.png",
    ],
)
def test_what_could_not_be_given_back_stays(tmp_path, url):
    store = MediaStore(tmp_path / "m")
    row = {"image_url": url}
    assert store.stored(row) == row
    assert not (tmp_path / "m").exists()


def test_missing_and_damaged_files_are_told(tmp_path):
    stored = MediaStore(tmp_path / "a_media").stored(ROW)
    reader = MediaReader(tmp_path)
    assert list(reader.problems(stored)) == []
    image = next((tmp_path / "a_media").glob("*.png"))
    image.write_bytes(b"other")
    with pytest.raises(ConfigError, match="damaged"):
        reader.inlined(stored)
    image.unlink()
    assert ["missing" in one for one in reader.problems(stored)] == [True]
    with pytest.raises(ConfigError, match="cannot be read"):
        MediaReader(tmp_path).inlined(stored)


@pytest.mark.parametrize(
    "reference",
    [
        "media:../secret/" + "0" * 64 + ".png",
        "media:../" + "0" * 64 + ".png",
        "media:.hidden/" + "0" * 64 + ".png",
        "media:/etc/passwd",
        "media:a/b/" + "0" * 64 + ".png",
        "media:m/" + "0" * 64 + ".png\n",
    ],
)
def test_references_cannot_leave_the_folder(tmp_path, reference):
    reader = MediaReader(tmp_path)
    with pytest.raises(ConfigError):
        reader.read(reference)


def test_a_half_written_file_is_replaced(tmp_path):
    store = MediaStore(tmp_path / "m")
    store.stored(ROW)
    image = next((tmp_path / "m").glob("*.png"))
    whole = image.read_bytes()
    image.write_bytes(whole[:5])
    MediaStore(tmp_path / "m").stored(ROW)
    assert image.read_bytes() == whole
