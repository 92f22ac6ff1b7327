from pathlib import Path

import pytest
from analysis_runs import make_run


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A complete run directory."""
    return make_run(tmp_path / "arena-find_image-audio-text_ppo1" / "7-0a1b2c3d")
