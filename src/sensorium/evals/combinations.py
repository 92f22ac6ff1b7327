"""Combinations of sensors as people write them: ``rgb+speech,depth+instruction``, or a YAML file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sensorium.core import Config, ConfigError, parse_config, read_yaml, unknown_name

ALL = "all"
"""Stands for the combination of all sensors."""


class CombinationFile(Config):
    """A YAML file of combinations."""

    held_out: tuple[str, ...]
    """Combinations that training did not have, e.g. ``rgb+speech``."""
    trained: tuple[str, ...] = ()
    """Combinations of training."""


def read_combinations(
    held_out: Path | str | None, trained: str | None, sensors: Sequence[str]
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Trained and held-out combinations: name -> sensors, names in canonical order.

    Args:
        held_out: A list such as ``"rgb+speech,depth+instruction"``, or the path of a YAML file.
        trained: A list; it wins over what the file says. Nothing: all sensors together.
        sensors: The policy's sensors, canonical order.

    Raises:
        ConfigError: There is none, a sensor is unknown, or a combination is in both lists.
    """
    if held_out is None or not str(held_out).strip():
        raise ConfigError(
            f"The generalisation suite needs combinations to test, such as --combinations "
            f'"{example(sensors)}", or a YAML file with the lists `held_out` and `trained`.'
        )
    asked: Any = _split(str(held_out))
    known: Sequence[str] = ()
    if str(held_out).endswith((".yaml", ".yml", ".json")):
        file = parse_config(CombinationFile, read_yaml(Path(held_out)))
        asked, known = file.held_out, file.trained
    known = _split(trained) if trained is not None else known or (ALL,)
    of_training = dict(_parsed(name, sensors) for name in known)
    of_test = dict(_parsed(name, sensors) for name in asked)
    if both := sorted(of_training.keys() & of_test.keys()):
        raise ConfigError(
            f"{both[0]!r} cannot be held out and trained at once. Name the combinations of training with "
            f"--trained-combinations."
        )
    if not of_test:
        raise ConfigError("There is no held-out combination in the list. Name at least one.")
    return of_training, of_test


def example(sensors: Sequence[str]) -> str:
    """A list that would be accepted, for messages."""
    return ",".join(sensors) if len(sensors) < 3 else f"{sensors[0]}+{sensors[-1]},{sensors[1]}+{sensors[-1]}"


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parsed(combination: str, sensors: Sequence[str]) -> tuple[str, frozenset[str]]:
    names = list(sensors) if combination == ALL else [name.strip() for name in combination.split("+")]
    for name in names:
        if name not in sensors:
            raise unknown_name("sensor", name, sensors)
    return "+".join(name for name in sensors if name in names), frozenset(names)
