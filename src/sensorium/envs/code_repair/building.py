"""Collecting bugs: mutations are tried by the hundred, and what looks good is verified like an episode."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from sensorium.core import derive_seed
from sensorium.envs.code_repair.catalog import Bug, digest_of, names_digest
from sensorium.envs.code_repair.config import CodeRepairConfig
from sensorium.envs.code_repair.mutation import Mutation, mutations_of
from sensorium.envs.code_repair.projects import Workspace
from sensorium.envs.code_repair.testing import ENV, INSIDE, PLACE, TestRunner
from sensorium.envs.sandbox import Sandbox

MAX_BASE_CPU_S = 3.0
"""Files whose tests take longer without a bug are passed over."""
EACH = 3
"""How many times the processor time of the first run a mutation may take: most that take more never end."""
MAX_FAILING = 20
MAX_SHARE = 0.7
"""A bug that breaks nearly everything is found without looking."""


async def collect_bugs(
    workspace: Workspace,
    config: CodeRepairConfig,
    *,
    paths: Sequence[str] | None = None,
    per_file: int = 3,
    tried: int = 10,
    seed: int = 0,
) -> AsyncIterator[Bug]:
    """Find verified bugs in the source files of a project that have tests of their own.

    Args:
        workspace: The project.
        config: Limits of the test runs.
        paths: Only in these files.
        per_file: Most bugs of one file.
        tried: Mutations that are tried in one file.
        seed: Of the choice among mutations.
    """
    runner = TestRunner(config)
    for path in workspace.sources if paths is None else paths:
        tests = workspace.tests_of(path)
        if not tests:
            continue
        rng = random.Random(derive_seed("code_repair", workspace.project.name, path, str(seed)))
        candidates = _draw(mutations_of(workspace.text(path)), tried, rng)
        found = 0
        async for mutation, failing, passed in _promising(workspace, config, path, tests, candidates):
            if found == per_file:
                break
            bug = Bug(
                project=workspace.project.name,
                version=workspace.version,
                path=path,
                source_digest=workspace.digest(path),
                **mutation._asdict(),
                tests=tests,
                tests_digest=digest_of(workspace, tests),
                failing=failing,
                passed=len(passed),
                passed_digest=names_digest(passed),
            )
            if await is_verified(bug, workspace, runner):
                found += 1
                yield bug


async def is_verified(bug: Bug, workspace: Workspace, runner: TestRunner) -> bool:
    """Whether exactly the bug's tests fail with it, when run as in an episode."""
    changed = {bug.path: bug.mutation.apply(workspace.text(bug.path))}
    report = await runner.run(workspace, bug.tests, changed, is_judged=True)
    return not report.problem and set(report.failing) == set(bug.failing)


def _draw(mutations: Sequence[Mutation], count: int, rng: random.Random) -> list[Mutation]:
    """Some mutations, every kind of bug with the same weight."""
    by_operator: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        by_operator.setdefault(mutation.operator, []).append(mutation)
    queues = [rng.sample(group, len(group)) for _, group in sorted(by_operator.items())]
    rng.shuffle(queues)
    drawn: list[Mutation] = []
    while len(drawn) < count and any(queues):
        for queue in queues:
            if queue and len(drawn) < count:
                drawn.append(queue.pop())
    return drawn


async def _promising(
    workspace: Workspace,
    config: CodeRepairConfig,
    path: str,
    tests: tuple[str, ...],
    candidates: Sequence[Mutation],
) -> AsyncIterator[tuple[Mutation, tuple[str, ...], list[str]]]:
    """Mutations that make some tests fail: with the failing tests, and those that pass without it."""
    text = workspace.text(path)
    request: dict[str, Any] = {"tests": tests, "path": path, "each": EACH, "most_s": MAX_BASE_CPU_S}
    request |= {"texts": [mutation.apply(text) for mutation in candidates], "config": f"{PLACE}/pytest.ini"}
    limits = config.sandbox.updated({"cpu_s": 300.0, "wall_s": 600.0})
    options: dict[str, Any] = {"read_only": {PLACE: INSIDE}, "hidden_packages": [workspace.project.name]}
    async with Sandbox.create(limits, **options) as sandbox:
        done = await sandbox.run(
            [sandbox.python, "-s", f"{PLACE}/try_mutations.py"],
            stdin=json.dumps(request).encode() + b"\n" + workspace.archive,
            env=ENV,
        )
    results = list(_lines(done.stdout))
    if not results:
        return
    before: dict[str, str] = results[0]["outcomes"]
    passed = [name for name, outcome in before.items() if outcome == "passed"]
    if "failed" in before.values() or not passed:
        return
    for result in results[1:]:
        outcomes = result["outcomes"]
        failing = tuple(name for name, outcome in outcomes.items() if outcome == "failed")
        fair = 0 < len(failing) <= min(MAX_FAILING, max(1, int(MAX_SHARE * len(passed))))
        if fair and set(outcomes) == set(before):
            yield candidates[result["number"]], failing, passed


def _lines(output: bytes) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def collect_all(workspace: Workspace, config: CodeRepairConfig, **options: Any) -> list[Bug]:
    """`collect_bugs` as a list, from ordinary code."""

    async def go() -> list[Bug]:
        return [bug async for bug in collect_bugs(workspace, config, **options)]

    return asyncio.run(go())
