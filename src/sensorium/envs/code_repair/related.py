"""Which files of a project an agent should see: those of the failure, then those nearest by imports."""

import functools

from sensorium.envs.code_repair.projects import Workspace, load_project
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.dependencies import Dependencies, import_graph, related_files
from sensorium.observations.base import Part
from sensorium.observations.code import read_code


@functools.lru_cache(maxsize=4096)
def nearest_files(project: str, failing: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Source files near failing ones, the nearest first, the failing ones left out.

    Args:
        project: Name of the project; its pristine files are looked at.
        failing: Paths of source files and tests.
        limit: Most files.
    """
    workspace = load_project(project)
    parts, found = _sources(project)
    known = {part.id for part in parts}
    tests = [_part(workspace, path) for path in failing if path in workspace.files and path not in known]
    ranked = related_files(import_graph([*parts, *tests], found), failing)
    chosen = [one for one in ranked if one.part_id not in failing and one.part_id in known]
    # A package's `__init__` imports everything and explains nothing.
    chosen.sort(key=lambda one: (one.distance, one.part_id.endswith("__init__.py")))
    return tuple(one.part_id for one in chosen[:limit])


@functools.lru_cache(maxsize=8)
def _sources(project: str) -> tuple[tuple[Part, ...], dict[str, Features]]:
    """The source files of a project as parts, and what each imports."""
    workspace = load_project(project)
    parts = tuple(_part(workspace, path) for path in workspace.sources)
    return parts, {features.part_id: features for features in Dependencies()(parts)}


def _part(workspace: Workspace, path: str) -> Part:
    return read_code(workspace.text(path), part_id=path, path=path, language="python")[0]
