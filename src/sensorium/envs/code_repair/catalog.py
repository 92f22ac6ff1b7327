"""Verified bugs: each was seen to make tests fail that pass without it."""

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field

from sensorium.core import Config, ConfigError
from sensorium.core.files import atomic_write_bytes
from sensorium.envs.code_repair.mutation import Mutation
from sensorium.envs.code_repair.projects import Workspace, is_available, load_project

CATALOG = Path(__file__).with_name("data") / "catalog.jsonl"
TEST_SHARE = 3
"""One source file in so many belongs to the split ``test``, with all its bugs."""


class Bug(Config):
    """One verified bug of one file of one project."""

    project: str
    version: str
    """Of the project, when it was verified; it fits every version whose files are the same."""
    path: str
    """The source file."""
    source_digest: str
    """Of the source file without the bug."""
    operator: str
    start: int = Field(ge=0)
    before: str
    after: str
    line: int = Field(ge=1)
    function: str
    tests: tuple[str, ...]
    """Files with its tests."""
    tests_digest: str
    """Of those files."""
    failing: tuple[str, ...]
    """Tests that fail with the bug."""
    passed: int
    """How many tests pass without it."""
    passed_digest: str
    """Of the names of those tests."""

    @functools.cached_property
    def id(self) -> str:
        """Names the bug: the same wherever and whenever it is found."""
        words = [self.project, self.path, self.source_digest, str(self.start), self.before, self.after]
        return f"{self.project}-{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:10]}"

    @property
    def split(self) -> str:
        """``test`` for one source file in three, ``train`` for the others."""
        number = int(hashlib.sha256(f"{self.project}/{self.path}".encode()).hexdigest()[:8], 16)
        return "test" if number % TEST_SHARE == 0 else "train"

    @property
    def mutation(self) -> Mutation:
        """The change that makes the bug."""
        return Mutation(self.operator, self.start, self.before, self.after, self.line, self.function)

    def fits(self, workspace: Workspace) -> bool:
        """Whether an installed project has the files that the bug was verified with."""
        if any(path not in workspace.files for path in (self.path, *self.tests)):
            return False
        return (
            workspace.digest(self.path) == self.source_digest
            and digest_of(workspace, self.tests) == self.tests_digest
        )


def digest_of(workspace: Workspace, paths: Iterable[str]) -> str:
    """Identity of several files."""
    return names_digest(workspace.digest(path) for path in paths)


def names_digest(names: Iterable[str]) -> str:
    """Identity of a set of names."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=16)
def read_catalog(path: Path = CATALOG) -> tuple[Bug, ...]:
    """Read a file with a bug on each line.

    Raises:
        ConfigError: It is missing or a line is no bug.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return tuple(Bug.model_validate(json.loads(line)) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is no catalog of bugs: {error}") from error


def write_catalog(bugs: Sequence[Bug], path: Path) -> None:
    """Write a catalog, sorted."""
    ordered = sorted(bugs, key=lambda bug: (bug.project, bug.path, bug.start, bug.after))
    lines = [json.dumps(bug.model_dump(mode="json"), ensure_ascii=False) for bug in ordered]
    atomic_write_bytes(path, ("\n".join(lines) + "\n").encode())


@functools.lru_cache(maxsize=64)
def usable_bugs(path: Path, projects: tuple[str, ...], operators: tuple[str, ...]) -> tuple[Bug, ...]:
    """Bugs of a catalog that fit what is installed.

    Args:
        path: The catalog.
        projects: Only of these; empty: of all that are installed.
        operators: Only of these kinds; empty: of all.

    Raises:
        ConfigError: Nothing is left; the message says why.
        MissingDependencyError: A project that was named is not installed.
    """
    bugs = read_catalog(path)
    named = projects or tuple(dict.fromkeys(bug.project for bug in bugs))
    workspaces = {name: load_project(name) for name in named if projects or is_available(name)}
    chosen = [
        bug
        for bug in bugs
        if bug.project in workspaces and (not operators or bug.operator in operators)
        if bug.fits(workspaces[bug.project])
    ]
    if not chosen:
        installed = ", ".join(f"{name} {space.version}" for name, space in workspaces.items()) or "nothing"
        raise ConfigError(
            f"No bug of {path.name} fits what is installed ({installed}; projects: {', '.join(named)}). "
            "Install the versions of sensorium[repair], or run: sensorium envs prepare code_repair"
        )
    return tuple(chosen)
