import os
from pathlib import Path

import pytest

from sensorium.core import FeatureError
from sensorium.features import fingerprint
from sensorium.features.fingerprint import model_fingerprint

pytestmark = pytest.mark.usefixtures("cache_home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_it_depends_on_contents_and_not_on_the_place(folder: Path, tmp_path: Path) -> None:
    first = model_fingerprint(folder)
    folder.rename(tmp_path / "moved")
    assert model_fingerprint(tmp_path / "moved") == first
    (tmp_path / "moved" / "README.md").write_text("not part of the model")
    (tmp_path / "moved" / "sensorium-model.json").write_text("{}")
    assert model_fingerprint(tmp_path / "moved") == first
    (tmp_path / "moved" / "config.json").write_text('{"a": 1}')
    assert model_fingerprint(tmp_path / "moved") != first


def test_it_is_computed_once(folder: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model_fingerprint(folder)
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint, "_hash", lambda _: pytest.fail("hashed again"))
        assert model_fingerprint(folder) == first
    weights = folder / "model.safetensors"
    weights.write_bytes(b"WEIGHTS")  # same size, new time
    os.utime(weights, ns=(1, 1))
    assert model_fingerprint(folder) != first


def test_a_broken_note_is_ignored(folder: Path, cache_home: Path) -> None:
    first = model_fingerprint(folder)
    (note,) = cache_home.rglob("fingerprints/*.json")
    for rubbish in ("", "[]", '{"files": 3}'):
        note.write_text(rubbish)
        assert model_fingerprint(folder) == first


def test_no_cache_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model_fingerprint(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert model_fingerprint(folder) == first


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FeatureError, match="safetensors"):
        model_fingerprint(folder)
