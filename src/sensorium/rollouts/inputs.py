"""Input rows, checked before anything runs: every problem of every line is told at once."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import ConfigError
from sensorium.rollouts import row_names as names
from sensorium.rollouts.jsonl import line_problem
from sensorium.rollouts.media_store import MediaReader, may_hold_media
from sensorium.rollouts.task_rows import taken_indices

_MAX_SHOWN = 100
_ROLES = ("system", "developer", "user", "assistant")
Check = Callable[[Mapping[str, Any]], str | None]
"""An input row -> what is wrong with it, if anything."""


class Problem(NamedTuple):
    """Something that is wrong with a line."""

    line: int
    """From 1."""
    text: str


class Inputs(NamedTuple):
    """What a file of tasks holds."""

    path: Path
    rows: list[tuple[str, dict[str, Any]]]
    """Text and object of every line without problems."""
    problems: list[Problem]

    def require_clean(self) -> None:
        """Refuse lines with problems.

        Raises:
            ConfigError: There are some; the message names all of them.
        """
        if self.problems:
            lines = len({problem.line for problem in self.problems})
            raise ConfigError(
                f"{self.path}: {lines} of {lines + len(self.rows)} rows cannot be run, so nothing was "
                f"begun.\n{self.describe()}\nMend them, or leave them out with --skip-bad."
            )

    def describe(self) -> str:
        """All problems, one a line."""
        shown = [f"  line {problem.line}: {problem.text}" for problem in self.problems[:_MAX_SHOWN]]
        left = len(self.problems) - len(shown)
        return "\n".join([*shown, *([f"  and {left} more"] if left else [])])


def read_inputs(
    path: Path,
    *,
    limit: int | None = None,
    needs_agent: bool = False,
    needs_request: bool = True,
    check: Check | None = None,
) -> Inputs:
    """Read and check the rows of a file.

    Args:
        path: JSONL; empty lines are passed over.
        limit: Read so many rows only.
        needs_agent: Every row must name an agent.
        needs_request: Every row must have ``responses_create_params``.
        check: Further checks of a row that is right so far.

    Raises:
        ConfigError: The file cannot be read, or has no rows.
    """
    found: list[tuple[int, str, dict[str, Any]]] = []
    problems: list[Problem] = []
    media = MediaReader(path.parent)
    for number, data in _lines(path, limit):
        value = line_problem(data)
        if isinstance(value, str):
            problems.append(Problem(number, value))
            continue
        wrong = list(_wrong(value, needs_agent=needs_agent, needs_request=needs_request))
        if may_hold_media(data):
            wrong.extend(media.problems(value))
        if not wrong and check is not None and (complaint := check(value)):
            wrong.append(complaint)
        if wrong:
            problems.extend(Problem(number, text) for text in wrong)
        else:
            found.append((number, data.decode(), value))
    bad = dict(taken_indices([value for _, _, value in found]))
    problems.extend(Problem(found[place][0], text) for place, text in bad.items())
    if not found and not problems:
        raise ConfigError(f"{path} has no rows. Expected one JSON object a line.")
    rows = [(text, value) for place, (_, text, value) in enumerate(found) if place not in bad]
    return Inputs(path, rows, sorted(problems, key=lambda problem: problem.line))


def _lines(path: Path, limit: int | None) -> Iterator[tuple[int, bytes]]:
    """Number and content of the first lines that are not empty."""
    count = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                data = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if not data:
                    continue
                if limit is not None and count >= limit:
                    return
                count += 1
                yield number, data
    except FileNotFoundError as error:
        raise ConfigError(f"There is no file {path} (--input).") from error
    except OSError as error:
        raise ConfigError(f"{path} (--input) cannot be read: {error.strerror}.") from error


def _wrong(row: Mapping[str, Any], *, needs_agent: bool, needs_request: bool) -> Iterator[str]:
    if names.is_episode_request(row):
        yield from _wrong_request(row)
        return
    if needs_agent and names.agent_name(row) is None:
        yield f'no agent: give --agent NAME, or the row {names.AGENT} {{"name": ...}}'
    if names.AGENT in row and names.agent_name(row) is None:
        yield f'{names.AGENT} is {_shown(row[names.AGENT])}; expected {{"name": "..."}}'
    if names.PARAMS in row:
        yield from _wrong_params(row[names.PARAMS])
    elif needs_request:
        yield f"no {names.PARAMS}; expected an object with the input of the model"


def _wrong_request(row: Mapping[str, Any]) -> Iterator[str]:
    identity = row[names.MATERIALISED_TASK]
    for key in ("taskset", "task_id"):
        if not isinstance(identity.get(key), str) or not identity[key]:
            yield f"task_id.{key} is {_shown(identity.get(key))}; expected a name"
    if not isinstance(row["task_input"], Mapping):
        yield f"task_input is {_shown(row['task_input'])}; expected an object"


def _wrong_params(params: Any) -> Iterator[str]:
    if not isinstance(params, Mapping):
        yield f"{names.PARAMS} is {_shown(params)}; expected an object"
        return
    asked = params.get("input")
    if isinstance(asked, list):
        for place, item in enumerate(asked):
            yield from _wrong_item(item, f"{names.PARAMS}.input[{place}]")
    elif not isinstance(asked, str):
        yield f"{names.PARAMS}.input is {_shown(asked)}; expected a text or a list of messages"
    tools = params.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(one, Mapping) for one in tools)):
        yield f"{names.PARAMS}.tools is {_shown(tools)}; expected a list of objects"
    metadata = params.get("metadata")
    if metadata is not None:
        yield from _wrong_metadata(metadata)


def _wrong_item(item: Any, place: str) -> Iterator[str]:
    if not isinstance(item, Mapping):
        yield f"{place} is {_shown(item)}; expected an object"
        return
    if item.get("type", "message") != "message":
        return
    if item.get("role") not in _ROLES:
        yield f"{place}.role is {_shown(item.get('role'))}; expected one of: {', '.join(_ROLES)}"
    content = item.get("content")
    if isinstance(content, list):
        for number, part in enumerate(content):
            if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
                yield f"{place}.content[{number}] is {_shown(part)}; expected an object with a type"
    elif not isinstance(content, str):
        yield f"{place}.content is {_shown(content)}; expected a text or a list of parts"


def _wrong_metadata(metadata: Any) -> Iterator[str]:
    place = f"{names.PARAMS}.metadata"
    if not isinstance(metadata, Mapping):
        yield f"{place} is {_shown(metadata)}; expected an object"
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield f"{place}.{key} is {_shown(value)}; expected a text"
    body = metadata.get("extra_body")
    if isinstance(body, str):
        try:
            fits = isinstance(json.loads(body), dict)
        except (ValueError, RecursionError):
            fits = False
        if not fits:
            yield f"{place}.extra_body is {_shown(body)}; expected a JSON object as text"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
