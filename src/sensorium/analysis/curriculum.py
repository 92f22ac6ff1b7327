"""When training went from one stage of its curriculum to another, in words and as marks for the charts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from sensorium.analysis.charts import Mark
from sensorium.analysis.formatting import count, percent, percent_range
from sensorium.analysis.run_directory import Share
from sensorium.core.config import Config
from sensorium.core.errors import RunDirectoryError

FILE_NAME = "curriculum.json"


class StageChange(Config):
    """One entry of `curriculum.json`."""

    env_steps: int = Field(ge=0)
    """Environment steps when the stage changed."""
    before: int = Field(ge=0)
    """Stage that was left, from 0."""
    after: int = Field(ge=0)
    """Stage that began; a lower one when the stage before was too hard."""
    success_rate: Share
    """Share of the episodes solved at the stage that was left."""
    low: Share
    """Lower bound of the 95 % interval of `success_rate`."""
    high: Share
    """Upper bound."""
    episodes: int = Field(ge=0)
    """Episodes that the decision rests on."""
    new_sensors: tuple[str, ...]
    """Sensors that joined: no stage before had them."""


@dataclass(frozen=True, slots=True)
class StageRow:
    """One line of the table."""

    steps: str
    what: str
    success: str
    """At the stage that was left, with its interval."""
    episodes: str
    sensors: str
    """What episodes of the stage that began have."""


def read_curriculum(run: Path) -> list[StageChange]:
    """Stage changes of a run in their order; none when it had no curriculum or stayed at its first stage.

    Args:
        run: The run's directory.

    Raises:
        RunDirectoryError: `curriculum.json` is broken.
    """
    path = run / FILE_NAME
    if not path.is_file():
        return []
    mend = "Restore the file, or remove it: the report then leaves the curriculum out."
    try:
        return _CHANGES.validate_python(json.loads(path.read_bytes()))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise RunDirectoryError(f"{path} does not fit: {problems}. {mend}") from error
    except ValueError as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}). {mend}") from error


def stage_marks(changes: Sequence[StageChange]) -> list[Mark]:
    """Where the stages changed, with the senses that joined."""
    return [Mark(float(change.env_steps), _label(change)) for change in changes]


def stage_rows(changes: Sequence[StageChange], config: Mapping[str, Any]) -> list[StageRow]:
    """The changes in words, behind the stage that training began with when `config` says what it was.

    Args:
        changes: In their order.
        config: The content of `config.json`.
    """
    if not changes:
        return []
    stages = _stages(config)
    rows = [
        StageRow(
            steps=count(change.env_steps),
            what=_words(change),
            success=f"{percent(change.success_rate)} ({percent_range(change.low, change.high)})",
            episodes=count(change.episodes),
            sensors=", ".join(stages[change.after]) if change.after < len(stages) else "–",
        )
        for change in changes
    ]
    if stages:
        rows.insert(0, StageRow("0", "Training began at stage 0.", "–", "–", ", ".join(stages[0])))
    return rows


_CHANGES = TypeAdapter(list[StageChange])


def _label(change: StageChange) -> str:
    if change.new_sensors:
        return f"+ {', '.join(change.new_sensors)}"
    return f"to stage {change.after}"


def _words(change: StageChange) -> str:
    if change.after < change.before:
        return f"Stage {change.before} was too hard: training went back to stage {change.after}."
    began = f"Stage {change.before} was mastered: stage {change.after} began"
    if not change.new_sensors:
        return f"{began}, with no new sense."
    *others, last = change.new_sensors
    joined = f"{', '.join(others)} and {last}" if others else last
    return f"{began}, {joined} joined."


def _stages(config: Mapping[str, Any]) -> list[list[str]]:
    """Sensors of every stage; none where the settings have no such part, as in runs of other programs."""
    try:
        return [
            [str(name) for name in stage["sensors"]] for stage in config["config"]["curriculum"]["stages"]
        ]
    except (KeyError, TypeError):
        return []
