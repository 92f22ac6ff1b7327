"""Tasks of the code-repair environment and their solution."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from sensorium.core import ConfigError, derive_seed
from sensorium.envs.base import Action, Env, Task
from sensorium.envs.code_repair.building import collect_all
from sensorium.envs.code_repair.catalog import CATALOG, Bug, usable_bugs, write_catalog
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.env import CodeRepairEnv
from sensorium.envs.code_repair.projects import PROJECTS, is_available, load_project
from sensorium.envs.code_repair.testing import TestRunner
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.sandbox import Sandbox


class CodeRepair(EnvDefinition[CodeRepairConfig]):
    """Bugs in real packages, found by their own tests."""

    name = "code_repair"
    summary = "find and mend a bug in a real Python package; its own tests judge"
    config_type = CodeRepairConfig
    system = (
        "Some tests of a Python package fail because of one small bug in its source, never in the tests. "
        "Find it, mend it with as small a change as it needs, run the tests, then call submit. There is one "
        "submission. It is judged by the original tests on your changes of source files; changes of tests "
        "count for nothing."
    )

    def __init__(self) -> None:
        self._runners: dict[str, TestRunner] = {}

    def make(self, config: CodeRepairConfig) -> Env:
        """A new environment."""
        runner = self._runners.setdefault(config.digest(), TestRunner(config))
        return CodeRepairEnv(config, runner)

    def tasks(
        self, config: CodeRepairConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split; as many as there are verified bugs, when more are asked for."""
        self.check_split(split)
        bugs = sorted((bug for bug in _bugs(config) if bug.split == split), key=lambda bug: bug.id)
        random.Random(derive_seed("code_repair", split, str(seed))).shuffle(bugs)
        return [_task(bug) for bug in bugs[: max(0, count)]]

    def task(self, config: CodeRepairConfig, task_id: str) -> Task:
        """The task with this id."""
        for bug in _bugs(config):
            if bug.id == task_id:
                return _task(bug)
        raise ConfigError(
            f"code_repair has no task {task_id!r}. Expected an id such as networkx-0123456789, of a bug that "
            "fits the packages installed; list them with: sensorium envs tasks code_repair"
        )

    def expert(self, task: Task) -> Expert:
        """Read the place, undo the bug, run the tests, submit."""
        bug = Bug.model_validate(task.hidden["bug"])
        original = load_project(bug.project).text(bug.path)
        old, new = unique_edit(original, bug)
        yield Action.call("read_file", path=bug.path, start_line=max(1, bug.line - 5))
        yield Action.call("edit", path=bug.path, old=old, new=new)
        yield Action.call("run_tests")
        yield Action.call("submit")

    def prepare(self, config: CodeRepairConfig) -> None:
        """Collect bugs of the installed versions into `config.catalog`; takes about ten seconds a file."""
        asyncio.run(Sandbox.probe())
        if not config.catalog:
            usable_bugs(CATALOG, config.projects, config.operators)
            return
        names = config.projects or tuple(name for name in PROJECTS if is_available(name))
        bugs = [bug for name in names for bug in collect_all(load_project(name), config)]
        write_catalog(bugs, Path(config.catalog))


def unique_edit(original: str, bug: Bug) -> tuple[str, str]:
    """What to replace in the file with the bug, and by what: whole lines, as many as make it unique."""
    given = bug.mutation.apply(original)
    changed, right = given.split("\n"), original.split("\n")
    first = bug.line - 1
    last = first
    while given.count("\n".join(changed[first : last + 1])) > 1:
        first, last = max(0, first - 1), min(len(changed) - 1, last + 1)
    return "\n".join(changed[first : last + 1]), "\n".join(right[first : last + 1])


def _bugs(config: CodeRepairConfig) -> tuple[Bug, ...]:
    path = Path(config.catalog) if config.catalog else CATALOG
    return usable_bugs(path, config.projects, config.operators)


def _task(bug: Bug) -> Task:
    count = len(bug.failing)
    tests = f"{count} test{' fails' if count == 1 else 's fail'}"
    instruction = (
        f"There is one bug in the source of {bug.project} {bug.version}: {tests} because of it. Find it, "
        "mend it, check with run_tests, and submit. First failing tests: " + ", ".join(bug.failing[:3]) + "."
    )
    return Task(
        id=bug.id,
        env=CodeRepair.name,
        instruction=instruction,
        data={"project": bug.project, "version": bug.version, "tests": list(bug.tests)},
        hidden={"bug": bug.model_dump(mode="json")},
    )
