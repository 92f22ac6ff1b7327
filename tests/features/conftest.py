from pathlib import Path

import pytest

from sensorium.features import fetch_model, speech


@pytest.fixture
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on disk and in memory."""
    home = tmp_path / "cache-home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    speech._utterance.cache_clear()
    speech._utterance_log_mel.cache_clear()
    return home


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The real MiniLM, downloaded once into the user's own cache."""
    return fetch_model("minilm")
