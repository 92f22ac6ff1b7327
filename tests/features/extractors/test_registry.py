import importlib
import sys
import types
from pathlib import Path

import pytest

from sensorium.core import Config, ConfigError, FeatureError
from sensorium.features.extractors import registry
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.registry import EXTRACTORS, build_extractor, extractor_names
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.features.extractors.sentence import Sentence


@pytest.mark.parametrize("name", EXTRACTORS)
def test_every_name_leads_to_an_extractor_of_this_name(name: str) -> None:
    extractor = build_extractor(name)
    assert extractor.name == name


def test_settings_reach_the_extractor() -> None:
    extractor = build_extractor("sentence", {"max_tokens": 64})
    assert isinstance(extractor, Sentence)
    assert extractor.config.max_tokens == 64


def test_wrong_names_and_settings_are_explained() -> None:
    with pytest.raises(ConfigError, match=r"Unknown extractor 'sentance'\. Did you mean 'sentence'"):
        build_extractor("sentance")
    with pytest.raises(
        ConfigError, match="Settings of extractor 'sentiment': Unknown setting 'max_sentence'"
    ):
        build_extractor("sentiment", {"max_sentence": 1})


class Settings(Config):
    size: int = 1


class Foreign:
    name, version = "foreign", "1"

    def __init__(self, config: Settings | None = None) -> None:
        self.config = config or Settings()

    def accepts(self, part: object) -> bool:
        return False

    def __call__(self, parts: object) -> list[object]:
        return []


class Plain(Foreign):
    def __init__(self) -> None:
        pass


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another distribution with three extractors, one of which is none, and one with a name of ours."""
    module = types.ModuleType("foreign_extractors")
    vars(module).update(Foreign=Foreign, Plain=Plain, Nothing=dict)
    monkeypatch.setitem(sys.modules, "foreign_extractors", module)
    group = registry.ENTRY_POINTS
    points = {"foreign": "Foreign", "plain": "Plain", "nothing": "Nothing", "sentence": "Plain"}
    info = tmp_path / "foreign-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = foreign_extractors:{kind}" for name, kind in points.items())]
    lines.append("gone = no_such_module_at_all:X")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


@pytest.mark.usefixtures("plugins")
def test_other_distributions_add_extractors() -> None:
    assert extractor_names() == (*EXTRACTORS, "foreign", "gone", "nothing", "plain")
    extractor = build_extractor("foreign", {"size": 3})
    assert isinstance(extractor, Foreign)
    assert extractor.config.size == 3
    assert isinstance(build_extractor("sentence"), Sentence)
    with pytest.raises(ConfigError, match="'plain' has no settings, found 'size'"):
        build_extractor("plain", {"size": 3})
    with pytest.raises(FeatureError, match="dict is no extractor"):
        build_extractor("nothing")
    with pytest.raises(ImportError):
        build_extractor("gone")


@pytest.mark.usefixtures("plugins")
def test_the_runner_says_which_foreign_extractor_cannot_be_imported() -> None:
    runner = FeatureRunner(FeaturesConfig(extractors=("gone", "foreign"), cache=False))
    assert runner.names == ("foreign",)
    assert runner.run([]).notes == (
        "gone: unavailable: ModuleNotFoundError: No module named 'no_such_module_at_all'",
    )
