from pathlib import Path

import numpy as np
import pytest

from sensorium.features.disk_cache import ArrayCache, cache_folder


def test_cache_folder_honours_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("speech") == tmp_path / "sensorium" / "speech"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder("a", "b") == tmp_path / "home" / ".cache" / "sensorium" / "a" / "b"


def test_arrays_come_back_and_numpy_can_read_the_file(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path)
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert cache.load("key") is None
    assert cache.store("key", array)
    loaded = cache.load("key")
    assert loaded is not None
    np.testing.assert_array_equal(loaded, array)
    assert loaded.dtype == np.int16
    np.testing.assert_array_equal(np.load(cache.path("key")), array)
    assert cache.load("other key") is None


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped bit", "text", "folder"])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, damage: str) -> None:
    cache = ArrayCache(tmp_path)
    array = np.linspace(0, 1, 100, dtype=np.float32)
    cache.store("key", array)
    path = cache.path("key")
    data = bytearray(path.read_bytes())
    if damage == "flipped bit":
        data[200] ^= 1
    contents = {
        "empty": b"",
        "cut": bytes(data[:150]),
        "flipped bit": bytes(data),
        "text": b"not an array" * 9,
    }
    path.unlink()
    if damage == "folder":
        path.mkdir()
        (path / "file").touch()
    else:
        path.write_bytes(contents[damage])
    assert cache.load("key") is None
    assert cache.store("key", array) is (damage != "folder")
    if damage != "folder":
        np.testing.assert_array_equal(cache.load("key"), array)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ArrayCache(tmp_path / "file" / "below")
    assert cache.store("key", np.zeros(3)) is False
    assert cache.load("key") is None
