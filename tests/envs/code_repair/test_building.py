"""Bugs are collected, verified, written and read back."""

import asyncio
from pathlib import Path

import pytest

from sensorium.core import ConfigError
from sensorium.envs.code_repair.building import collect_bugs
from sensorium.envs.code_repair.catalog import (
    CATALOG,
    Bug,
    names_digest,
    read_catalog,
    usable_bugs,
    write_catalog,
)
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.definition import unique_edit
from sensorium.envs.code_repair.mutation import OPERATORS
from sensorium.envs.code_repair.projects import PROJECTS, load_project
from sensorium.envs.sandbox import SandboxUnavailable

pytest.importorskip("toolz")


def test_collecting_in_one_file(tmp_path: Path) -> None:
    workspace = load_project("toolz")

    async def go() -> list[Bug]:
        found = collect_bugs(
            workspace, CodeRepairConfig(), paths=["toolz/dicttoolz.py"], per_file=2, tried=6, seed=1
        )
        return [bug async for bug in found]

    try:
        bugs = asyncio.run(go())
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert len(bugs) == 2
    for bug in bugs:
        assert bug.fits(workspace)
        assert bug.failing
        assert all(name.startswith("toolz/tests/test_dicttoolz.py::") for name in bug.failing)
        assert bug.passed > len(bug.failing)
    write_catalog(bugs, tmp_path / "bugs.jsonl")
    assert sorted(read_catalog(tmp_path / "bugs.jsonl"), key=lambda b: b.id) == sorted(
        bugs, key=lambda b: b.id
    )


def test_the_catalog_that_comes_along() -> None:
    bugs = read_catalog()
    assert len(bugs) >= 200
    assert len({bug.id for bug in bugs}) == len(bugs)
    assert {bug.project for bug in bugs} <= set(PROJECTS)
    assert {bug.operator for bug in bugs} <= set(OPERATORS)
    assert len({bug.operator for bug in bugs}) >= 10
    assert CATALOG.stat().st_size < 1_000_000


def test_every_bug_fits_the_installed_files_and_can_be_mended_by_one_edit() -> None:
    for bug in usable_bugs(CATALOG, (), ()):
        original = load_project(bug.project).text(bug.path)
        given = bug.mutation.apply(original)
        old, new = unique_edit(original, bug)
        assert given.count(old) == 1
        assert given.replace(old, new) == original


def test_a_file_that_is_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"project": "toolz"}\n')
    with pytest.raises(ConfigError, match=r"x\.jsonl is no catalog"):
        read_catalog(tmp_path / "x.jsonl")
    with pytest.raises(ConfigError, match="is no catalog"):
        read_catalog(tmp_path / "absent.jsonl")


def test_names_digest_does_not_depend_on_order() -> None:
    assert names_digest(["a", "b"]) == names_digest(["b", "a"]) != names_digest(["a"])
