"""What a run of rollouts was made from: written beside its rows, compared before it is resumed."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import RunDirectoryError
from sensorium.core.files import atomic_write_json
from sensorium.rollouts.jsonl import loads

FORMAT = 1
_SECRET = re.compile(r"(^|_)(api_?key|key|token|secret|password|credentials?|authorization)$", re.IGNORECASE)
_PLACE = frozenset({"host", "port", "url", "base_url", "pid", "start_time", "uptime_seconds", "num_workers"})
"""Where a server is, not what it does: it may be another one after a restart."""
_MAX_SHOWN = 6


class RunFiles(NamedTuple):
    """The files of a run, named as NeMo Gym names them."""

    output: Path

    def _beside(self, ending: str) -> Path:
        return self.output.with_name(f"{self.output.stem}{ending}")

    @property
    def materialised(self) -> Path:
        """Input rows after repeats."""
        return self._beside("_materialized_inputs.jsonl")

    @property
    def failures(self) -> Path:
        """Failed attempts."""
        return self._beside("_failures.jsonl")

    @property
    def metrics(self) -> Path:
        """Aggregate metrics."""
        return self._beside("_aggregate_metrics.json")

    @property
    def record(self) -> Path:
        """What the run was made from."""
        return self._beside("_run.json")


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def without_places(value: Any) -> Any:
    """Settings without addresses, and with secrets hidden: they may change, or must not be written down."""
    if isinstance(value, Mapping):
        return {
            str(name): "***" if _SECRET.search(str(name)) and item else without_places(item)
            for name, item in value.items()
            if name not in _PLACE
        }
    if isinstance(value, list | tuple):
        return [without_places(item) for item in value]
    return value


def write_record(files: RunFiles, identity: Mapping[str, Any]) -> None:
    """Write what a run is made from.

    Args:
        files: Of the run.
        identity: Plain JSON; a change of any of it makes another run.
    """
    record = {"format": FORMAT, "created_at": round(time.time(), 3), "identity": dict(identity)}
    atomic_write_json(files.record, record)


def check_record(files: RunFiles, identity: Mapping[str, Any]) -> None:
    """Refuse to resume a run that was made from something else.

    Raises:
        RunDirectoryError: The message says what changed.
    """
    try:
        record = loads(files.record.read_bytes())
        before = record["identity"]
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{files.output} has rows, but {files.record.name}, which says what they were made from, is "
            "missing. Choose another --output, or --overwrite to begin anew."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{files.record} cannot be read ({error!r}).") from error
    changes = list(_changes(before, dict(identity)))
    if changes:
        more = [f"and {len(changes) - _MAX_SHOWN} more"] if len(changes) > _MAX_SHOWN else []
        raise RunDirectoryError(
            f"{files.output} cannot be resumed, because it was made from something else: "
            f"{'; '.join([*changes[:_MAX_SHOWN], *more])}. Undo the change, choose another --output, "
            "or --overwrite to begin anew."
        )


def _changes(before: Any, now: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in sorted({*before, *now}):
            place = f"{path}.{name}" if path else name
            if name not in now:
                yield f"{place} is gone (was {_shown(before[name])})"
            elif name not in before:
                yield f"{place} is new ({_shown(now[name])})"
            else:
                yield from _changes(before[name], now[name], place)
    elif before != now:
        yield f"{path} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
