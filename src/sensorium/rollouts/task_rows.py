"""Tasks as input rows, rows as tasks, and the repeats and seeds that a run makes of them."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from sensorium.core import ConfigError, derive_seed
from sensorium.envs.base import Task
from sensorium.rollouts import row_names as names
from sensorium.rollouts.rows import row_tool

SEED_LIMIT = 2**31
"""Seeds are below it: engines take 32 bits with a sign."""
FindTask = Callable[[str], Task]
"""Task id -> the task with what is hidden; raises ConfigError when there is none."""


def task_row(
    task: Task,
    *,
    agent: str | None = None,
    whole: bool = False,
    tools: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A task as an input row.

    Args:
        task: The task.
        agent: Which agent shall run it.
        whole: Write data and hidden data into the row, for tasks that their environment cannot make again of
            their id. Without it the row only names the task, and nothing hidden leaves the environment.
        tools: Of the environment, in the chat-completions form, for agents that take tools from rows alone,
            as those of NeMo Gym do.
    """
    content = [{"type": "input_text", "text": task.instruction}]
    request: dict[str, Any] = {"input": [{"type": "message", "role": "user", "content": content}]}
    if tools:
        request["tools"] = [row_tool(one) for one in tools]
    row: dict[str, Any] = {
        names.PARAMS: request,
        names.OURS: {"env": task.env, "task": task.model_dump(mode="json") if whole else task.id},
    }
    return row | ({names.AGENT: {"name": agent}} if agent else {})


def row_task(row: Mapping[str, Any], env: str, find: FindTask) -> Task:
    """The task of an input row.

    A row of `task_row` names a task of the environment, or holds it. So does a plain text ``task_id``. Of any
    other row a task is made: its instruction is the last text of the request, and everything beside the
    request is hidden data, since answers stand there.

    Args:
        row: An input row.
        env: Name of the environment that runs it.
        find: The tasks of that environment.

    Raises:
        ConfigError: The task does not exist, or the row does not fit.
    """
    ours = names.section(row, names.OURS)
    named = ours.get("env")
    if isinstance(named, str) and named != env:
        raise ConfigError(f"the row is one of the environment {named!r}, not of {env!r}")
    known = ours.get("task", row.get(names.MATERIALISED_TASK))
    if isinstance(known, str):
        return find(known)
    if "task" in ours:
        if not isinstance(known, Mapping):
            raise ConfigError(f"sensorium.task is {type(known).__name__}; expected an id or a task")
        try:
            return Task.model_validate({"env": env, **known})
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"])
            raise ConfigError(f"sensorium.task.{place}: {problem['msg']}") from error
    kept = {key: value for key, value in row.items() if not key.startswith("_ng_") and key != names.OURS}
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]
    hidden = {key: value for key, value in kept.items() if key not in (names.PARAMS, names.AGENT)}
    return Task(id=f"row-{digest}", env=env, instruction=instruction_of(row), hidden=hidden)


def instruction_of(row: Mapping[str, Any]) -> str:
    """The last text that a user says in the request of a row."""
    asked = names.section(row, names.PARAMS).get("input")
    if isinstance(asked, str):
        return asked
    for item in reversed(asked if isinstance(asked, list) else []):
        if not isinstance(item, Mapping) or item.get("role") != "user":
            continue
        content = item.get("content")
        if isinstance(content, str):
            return content
        texts = [
            part["text"]
            for part in content or ()
            if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        ]
        if texts:
            return "\n".join(texts)
    return ""


def row_seed(row: Mapping[str, Any]) -> int | None:
    """The seed of a row: ours, else that in ``metadata.extra_body`` of its request."""
    seed = names.section(row, names.OURS).get("seed")
    if seed is None:
        seed = extra_body(row).get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def extra_body(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row sends to the engine beside the API, as NeMo Gym writes it: JSON in ``metadata.extra_body``.

    What cannot be read is taken for nothing.
    """
    text = names.section(names.section(row, names.PARAMS), "metadata").get("extra_body")
    if not isinstance(text, str):
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def with_seed(row: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A row with a seed: under ``sensorium``, and in ``metadata.extra_body`` for NeMo Gym's engines."""
    made = {**row, names.OURS: {**names.section(row, names.OURS), "seed": seed}}
    params = row.get(names.PARAMS)
    if isinstance(params, Mapping):
        metadata = params.get("metadata") or {}
        body = json.dumps({**extra_body(row), "seed": seed})
        made[names.PARAMS] = {**params, "metadata": {**metadata, "extra_body": body}}
    return made


def with_agent(row: Mapping[str, Any], agent: str) -> dict[str, Any]:
    """A row that this agent runs; one that names it already keeps what else it says of it."""
    return dict(row) if names.agent_name(row) == agent else {**row, names.AGENT: {"name": agent}}


class Repeats(NamedTuple):
    """What a run makes of its input rows."""

    num_repeats: int = 1
    seed: int | None = 0
    """Of the run; every rollout gets one of its own derived from it. None sends no seeds."""
    agent: str | None = None
    """Runs all rows, whatever agent they name."""
    sampling: Mapping[str, Any] = {}
    """Laid over the request of every row, under the names of the responses API."""
    interleave: bool = False
    """abcabc instead of aabbcc."""


def materialise(rows: Sequence[tuple[str, dict[str, Any]]], repeats: Repeats) -> list[dict[str, Any]]:
    """Repeat rows, number them and give them seeds, as NeMo Gym's collector does.

    Rows with the same text are the same task. A row that has a task index already keeps it.

    Args:
        rows: The text of each line, and the row in it.
        repeats: What to make of them.

    Returns:
        One row for each rollout.
    """
    indices: dict[str, int] = {}
    counts: Counter[int] = Counter()
    made: list[dict[str, Any]] = []
    for text, row in rows:
        task = row.get(names.TASK_INDEX)
        if task is None:
            task = indices.setdefault(text.strip(), len(indices))
        base = _overridden(row, repeats) | {names.TASK_INDEX: task}
        for _ in range(repeats.num_repeats):
            one = dict(base)
            one[names.ROLLOUT_INDEX] = counts[task]
            counts[task] += 1
            if repeats.seed is not None:
                one = with_seed(one, rollout_seed(repeats.seed, names.RowKey.of(one)))
            made.append(one)
    if repeats.interleave:
        made.sort(key=lambda row: int(row[names.ROLLOUT_INDEX]))  # stable: every round keeps the order
    return made


def rollout_seed(seed: int, key: names.RowKey) -> int:
    """The seed of one rollout; it depends on the run's seed and on which rollout it is, on nothing else."""
    return derive_seed(seed, "rollout", key.task, key.rollout) % SEED_LIMIT


def taken_indices(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Place and complaint of rows whose task index is none, or that only some rows have."""
    have = [row.get(names.TASK_INDEX) is not None for row in rows]
    for place, row in enumerate(rows):
        task = row.get(names.TASK_INDEX)
        if any(have) and task is None:
            yield place, f"it has no {names.TASK_INDEX}, but other rows have; give it to all rows or to none"
        elif task is not None and (isinstance(task, bool) or not isinstance(task, int) or task < 0):
            yield place, f"{names.TASK_INDEX} is {task!r}; expected a whole number from 0"


def _overridden(row: Mapping[str, Any], repeats: Repeats) -> dict[str, Any]:
    made = dict(row)
    params = row.get(names.PARAMS)
    if repeats.sampling and isinstance(params, Mapping):
        made[names.PARAMS] = {**params, **repeats.sampling}
    return made if repeats.agent is None else with_agent(made, repeats.agent)
