import os
from pathlib import Path

import pytest

from sensorium.core import ObservationError
from sensorium.core.byte_cache import ByteCache
from sensorium.representations.media.store import MediaStore


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "media" if request.param == "folder" else None


def test_media_are_kept_under_the_hash_of_their_content(folder: Path | None) -> None:
    store = MediaStore(folder=folder)
    name = store.add(b"picture", "image/png")
    assert name == store.add(b"picture", "image/png")
    assert name != store.add(b"picture", "image/jpeg")
    assert store.get(name) == (b"picture", "image/png")
    assert store.url_for(name, "http://host/m/") == f"http://host/m/{name}"
    assert store.server("http://host/m")(b"picture", "image/png") == f"http://host/m/{name}"
    if folder is not None:
        assert MediaStore(folder=folder).get(name) == (b"picture", "image/png")


def test_what_was_used_longest_ago_goes_when_the_limit_is_reached(folder: Path | None) -> None:
    store = MediaStore(max_bytes=25, folder=folder)
    names = [store.add(bytes([i]) * 10, "audio/wav") for i in range(2)]
    if folder is not None:
        for age, name in enumerate(names):
            os.utime(folder / name, (1_000 + age, 1_000 + age))
    store.add(bytes([0]) * 10, "audio/wav")  # used again
    third = store.add(b"c" * 10, "audio/wav")
    assert store.get(names[0]) is not None
    assert store.get(names[1]) is None
    assert store.get(third) is not None
    with pytest.raises(ObservationError, match="do not fit"):
        store.add(bytes(26), "audio/wav")


def test_names_from_outside_never_leave_the_store(folder: Path | None) -> None:
    store = MediaStore(folder=folder)
    store.add(b"x", "image/png")
    for name in ("../secret", "/etc/passwd", "", "a" * 64 + ".exe", "a" * 64 + ".png", "a" * 64 + ".png\n"):
        assert store.get(name) is None
    with pytest.raises(ObservationError, match="text/html"):
        store.add(b"<script>", "text/html")


def test_the_cache_is_bounded_by_bytes_and_forgets_the_least_used() -> None:
    cache: ByteCache[bytes] = ByteCache(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"1234", None, b"1234")
    cache.put("a", b"12")
    assert cache.num_bytes == 6
    cache.put("d", bytes(11))
    assert cache.get("d") is None
    assert len(cache) == 2
