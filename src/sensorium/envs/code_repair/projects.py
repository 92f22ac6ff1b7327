"""Real packages with their own tests: where they are, what is source, what is a test, how they are packed."""

import functools
import hashlib
import importlib.util
import io
import marshal
import posixpath
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from sensorium.core import MissingDependencyError, unknown_name
from sensorium.core.errors import EnvError

MAX_FILE_BYTES = 400_000
"""Larger files of a package (pictures, data) are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A pure-Python package whose distribution has its tests."""

    name: str
    """Importable name, and name of the distribution."""
    licence: str
    summary: str
    extra: str = "repair"
    """Extra of this package that installs it."""
    skipped: tuple[str, ...] = ()
    """Beginnings of paths that are left out: other languages' files, tests of what needs more than Python."""


PROJECTS: dict[str, Project] = {
    project.name: project
    for project in (
        Project(
            name="networkx",
            licence="BSD-3-Clause",
            summary="graphs and their algorithms",
            skipped=("networkx/drawing/tests/baseline",),
        ),
        Project(name="referencing", licence="MIT", summary="references between JSON documents"),
        Project(name="jsonschema", licence="MIT", summary="validation of JSON documents"),
        Project(name="wasabi", licence="MIT", summary="tables, colours and marks in terminals"),
        Project(name="toolz", licence="BSD-3-Clause", summary="tools for iterators and dictionaries"),
    )
}
"""Name -> package. Each is installed as an ordinary wheel that has its tests inside."""


@dataclass(frozen=True)
class Workspace:
    """The files of one project at one version."""

    project: Project
    version: str
    files: Mapping[str, bytes]
    """Path, e.g. ``networkx/algorithms/dag.py`` -> content; no compiled files."""
    compiled: Mapping[str, bytes] = field(repr=False)
    """Path of a compiled file -> content, so that nothing unchanged is compiled again."""

    def text(self, path: str) -> str:
        """Source text of a file.

        Raises:
            KeyError: There is no such file.
        """
        return self.files[path].decode("utf-8")

    @functools.cached_property
    def sources(self) -> tuple[str, ...]:
        """Paths of the Python files that are no tests."""
        return tuple(path for path in sorted(self.files) if path.endswith(".py") and not is_test(path))

    @functools.cached_property
    def tests(self) -> tuple[str, ...]:
        """Paths of the files with tests."""
        names = ((path, posixpath.basename(path)) for path in sorted(self.files))
        return tuple(path for path, name in names if name.startswith("test_") and name.endswith(".py"))

    def tests_of(self, path: str) -> tuple[str, ...]:
        """Files with the tests of a source file, by their names: ``a/tests/test_b.py`` tests ``a/b.py``."""
        folder, name = posixpath.split(path)
        package = path.split("/")[0]
        wanted = f"test_{name.lstrip('_')}"
        near = (f"{folder}/tests/{wanted}", f"{package}/tests/{wanted}")
        return tuple(dict.fromkeys(place for place in near if place in self.files))

    def digest(self, path: str) -> str:
        """Identity of a file's content."""
        return hashlib.sha256(self.files[path]).hexdigest()[:16]

    @functools.cached_property
    def archive(self) -> bytes:
        """Everything as one tar file."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, content in {**self.files, **self.compiled}.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


def is_test(path: str) -> bool:
    """Whether a file is a test or belongs to tests: what an agent changes there is not judged."""
    parts = path.split("/")
    name = parts[-1]
    folders = {"tests", "test", "testing"}.intersection(parts[:-1])
    return bool(folders) or name.startswith("test_") or name in ("conftest.py", "sitecustomize.py")


def is_available(name: str) -> bool:
    """Whether a project is installed."""
    return name in PROJECTS and importlib.util.find_spec(name) is not None


@functools.lru_cache(maxsize=16)
def load_project(name: str) -> Workspace:
    """Read a project's files from where it is installed.

    Raises:
        ConfigError: No project has this name.
        MissingDependencyError: It is not installed.
        EnvError: It is installed without its tests.
    """
    if name not in PROJECTS:
        raise unknown_name("project", name, PROJECTS)
    project = PROJECTS[name]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            f"Code repair in {name} needs {name} itself. Install it: pip install 'sensorium[{project.extra}]'"
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    files: dict[str, bytes] = {}
    for path in sorted(root.rglob("*")):
        place = f"{name}/{path.relative_to(root).as_posix()}"
        if "__pycache__" in path.parts or path.suffix in (".pyc", ".so") or place.startswith(project.skipped):
            continue
        if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
            files[place] = path.read_bytes()
    workspace = Workspace(project, metadata.version(name), files, _compiled(files))
    if not workspace.tests:
        raise EnvError(
            f"{name} {workspace.version} in {root} has no tests: some distributors remove them. "
            f"Install it from PyPI: pip install --force-reinstall {name}"
        )
    return workspace


def _compiled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Compiled files; each is used as long as its source is the one it was made of."""
    compiled = {}
    for path, content in files.items():
        if not path.endswith(".py") or is_test(path):
            continue
        try:
            code = compile(content, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        # Flags 3: valid for the source with this hash, and checked.
        header = importlib.util.MAGIC_NUMBER + (3).to_bytes(4, "little")
        compiled[importlib.util.cache_from_source(path)] = (
            header + importlib.util.source_hash(content) + marshal.dumps(code)
        )
    return compiled
