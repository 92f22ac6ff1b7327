"""Servers of ours and of NeMo Gym; what needs the real package is skipped where it is missing."""

from collections.abc import Iterator
from pathlib import Path

import nemo_peer
import pytest
from compat_servers import LOOKUP, TOOL_ARGUMENTS, Ours, serving


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need the package say why they are skipped without it."""
    why = nemo_peer.missing()
    for item in items:
        if why is not None and item.get_closest_marker("nemo_gym") is not None:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def model() -> Iterator[nemo_peer.MockModel]:
    """A model that answers at once."""
    with nemo_peer.mock_model(TOOL_ARGUMENTS) as running:
        yield running


@pytest.fixture
def nemo_workspace(tmp_path: Path) -> Iterator[nemo_peer.Workspace]:
    """Where ``gym`` runs; nothing of it is left."""
    workspace = nemo_peer.Workspace(tmp_path / "nemo")
    yield workspace
    workspace.end_processes()


@pytest.fixture
def ours(tmp_path: Path, model: nemo_peer.MockModel) -> Iterator[Ours]:
    """Our look-up environment with our agent."""
    folder = tmp_path / "ours"
    folder.mkdir()
    with serving(folder, LOOKUP, [f"policy_base_url={model.url}"]) as running:
        yield running
