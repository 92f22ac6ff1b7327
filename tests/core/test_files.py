import os
import stat
from pathlib import Path

import pytest

from sensorium.core.files import PARTIAL_SUFFIX, atomic_directory, atomic_write_bytes, atomic_write_json


def test_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "summary.json"
    atomic_write_bytes(path, b"one")
    atomic_write_json(path, {"task": "größe", "n": 1})
    assert path.read_text() == '{\n  "task": "größe",\n  "n": 1\n}\n'
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("value", "error"), [({"a": float("nan")}, ValueError), ({"a": object()}, TypeError)]
)
def test_json_that_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, value: object, error: type[Exception]
) -> None:
    path = tmp_path / "a.json"
    atomic_write_json(path, [1])
    with pytest.raises(error):
        atomic_write_json(path, value)
    assert path.read_text() == "[\n  1\n]\n"
    assert list(tmp_path.iterdir()) == [path]


def test_respects_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write_bytes(tmp_path / "a", b"")
        with atomic_directory(tmp_path / "d"):
            pass
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o750


def test_directory_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "100"
    with atomic_directory(path) as building:
        (building / "sub").mkdir()
        (building / "sub" / "weights").write_bytes(b"w")
        assert not path.exists()
        assert building.parent == path.parent
        assert building.name.endswith(PARTIAL_SUFFIX)
    assert (path / "sub" / "weights").read_bytes() == b"w"
    assert list(path.parent.iterdir()) == [path]


def test_directory_is_removed_when_filling_it_fails(tmp_path: Path) -> None:
    def fill() -> None:
        with atomic_directory(tmp_path / "a") as building:
            (building / "half").write_bytes(b"h")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_directory_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    with pytest.raises(FileExistsError, match="exists already"), atomic_directory(path):
        pass
    path.rmdir()
    with pytest.raises(FileExistsError), atomic_directory(path):
        path.mkdir()  # somebody else was faster
    assert list(tmp_path.iterdir()) == [path]
