import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from sensorium.core import FeatureError
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.cache import FeatureCache
from sensorium.features.extractors.entry import pack, unpack


def cache(folder: Path | None, *, limit: int = 10**8, memory: int = 0) -> FeatureCache:
    return FeatureCache(folder, limit_bytes=limit, memory_bytes=memory)


def features(**changes: object) -> Features:
    plain = {"part_id": "a", "extractor": "e", "version": "1"}
    return Features.model_validate(plain | changes)


def test_an_entry_comes_back_exactly() -> None:
    vector = np.asarray([1.5, -0.0, 3e-39, np.inf, 0.1], np.float32)
    entry = unpack(pack(features(vector=vector, data={"ü": [1, None, {"x": 0.1}]}, summary="\ud800 ok")))
    assert entry is not None
    assert entry.data == {"ü": [1, None, {"x": 0.1}]}
    assert entry.summary == "\ud800 ok"
    assert entry.vector is not None
    assert entry.vector.tobytes() == vector.tobytes()
    assert not entry.vector.flags.writeable


def test_no_vector_and_an_empty_vector_are_different() -> None:
    without, empty = unpack(pack(features())), unpack(pack(features(vector=[])))
    assert without is not None
    assert without.vector is None
    assert empty is not None
    assert empty.vector is not None
    assert empty.vector.shape == (0,)


@pytest.mark.parametrize("bad", [b"", b"short", None, "text", b"x" * 100])
def test_other_things_are_no_entries(bad: object) -> None:
    assert unpack(bad) is None


def test_every_flipped_byte_is_noticed() -> None:
    packed = pack(features(vector=[1.0, 2.0], data={"a": 1}))
    for place in range(len(packed)):
        damaged = bytearray(packed)
        damaged[place] ^= 1
        assert unpack(bytes(damaged)) is None


def test_data_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(FeatureError, match="'e' returned data that JSON cannot express"):
        pack(features(data={"x": {1}}))


def test_the_memory_is_bounded_and_drops_what_was_not_used() -> None:
    memory = cache(None, memory=30)
    for key in "abc":
        memory.store({key: key.encode() * 10})
    assert set(memory.load(["a"])) == {"a"}
    memory.store({"d": b"d" * 10})
    assert set(memory.load("abcd")) == {"a", "c", "d"}
    memory.store({"big": b"x" * 31})
    assert memory.load(["big"]) == {}
    memory.store({"a": b"1", "b": b"2"})
    memory.forget("a")
    assert memory.load("ab") == {"b": b"2"}
    assert memory.note == ""


def test_the_disk_keeps_small_and_large_entries(tmp_path: Path) -> None:
    entries = {"small": b"x", "large": b"y" * 100_000}
    one = cache(tmp_path / "c")
    one.store(entries)
    one.close()
    assert cache(tmp_path / "c").load(["small", "large", "none"]) == entries
    assert one.load(["small"]) == {"small": b"x"}  # closed is not the end


def test_the_disk_is_bounded(tmp_path: Path) -> None:
    small = cache(tmp_path / "c", limit=1_000_000)
    for n in range(60):
        small.store({f"k{n}": bytes([n]) * 50_000})
    kept = small.load([f"k{n}" for n in range(60)])
    assert "k59" in kept
    assert "k0" not in kept
    assert sum(map(len, kept.values())) < 1_500_000


@pytest.mark.parametrize("damage", ["database", "empty", "value"])
def test_a_damaged_cache_only_costs_time(damage: str, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("not the cache's")
    one = cache(tmp_path)
    one.store({"a": b"1", "large": b"y" * 100_000})
    one.close()
    if damage == "database":
        for path in tmp_path.glob("cache.db*"):
            path.write_bytes(b"this is not a database at all, really not" * 100)
    elif damage == "empty":
        for path in tmp_path.glob("cache.db*"):
            path.write_bytes(b"")
    else:
        for path in tmp_path.rglob("*.val"):
            path.unlink()
    other = cache(tmp_path)
    assert "large" not in other.load(["a", "large"])
    other.store({"b": b"2"})
    assert other.load(["b"]) == {"b": b"2"}
    assert other.note == ""
    assert (tmp_path / "mine.txt").exists()


def test_a_database_that_breaks_while_it_is_open(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.store({f"k{n}": b"x" * 1000 for n in range(200)})
    one.close()
    two = cache(tmp_path)
    assert len(two.load(["k0"])) == 1
    for path in tmp_path.glob("cache.db*"):
        path.write_bytes(b"garbage!" * 20_000)
    two.close_thread()
    assert two.load(["k1"]) == {}
    two.store({"new": b"1"})
    assert two.load(["new"]) == {"new": b"1"}


def test_a_folder_that_cannot_be_written_is_noted(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = cache(tmp_path / "file" / "cache", memory=100)
    nowhere.store({"a": b"1"})
    assert nowhere.load(["a"]) == {"a": b"1"}
    assert "not kept on disk" in nowhere.note
    assert str(tmp_path / "file") in nowhere.note


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code from the cache ran')",)


def test_a_cache_that_somebody_tampered_with_runs_no_code(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.store({"a": b"1"})
    one.close()
    connection = sqlite3.connect(tmp_path / "cache.db")
    connection.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Bomb()),))
    connection.commit()
    connection.close()
    assert cache(tmp_path).load(["a"]) == {}


FILL = """
import sys
from pathlib import Path
from sensorium.features.extractors.cache import FeatureCache
one = FeatureCache(Path(sys.argv[1]), limit_bytes=10**8, memory_bytes=0)
for n in range(1000, 1020):
    one.store({f"k{n}": b"x" * 2000})
assert one.note == "", one.note
"""


def test_threads_and_processes_at_once(tmp_path: Path) -> None:
    shared = cache(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", FILL, str(tmp_path)])
    threads = [
        threading.Thread(
            target=lambda n=n: [shared.store({f"k{n}-{m}": b"y" * 50}) for m in range(20)]  # type: ignore[misc]
        )
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.wait(60) == 0
    assert shared.note == ""
    names = [f"k{n}-{m}" for n in range(3) for m in range(20)] + [f"k{n}" for n in range(1000, 1020)]
    assert len(shared.load(names)) == 80
