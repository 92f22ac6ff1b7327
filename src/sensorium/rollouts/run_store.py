"""The files of a run while it is made: results, failures, media, and what is done already."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sensorium.core import RunDirectoryError
from sensorium.core.files import atomic_write_bytes
from sensorium.envs.episode import Failure
from sensorium.rollouts import row_names as names
from sensorium.rollouts.failures import counts_as_attempt, failure_fields, failure_of, worth_retrying
from sensorium.rollouts.journal import Journal, read_rows
from sensorium.rollouts.jsonl import dumps
from sensorium.rollouts.media_store import MediaReader, MediaStore, may_hold_media, media_folder
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.run_record import RunFiles, check_record, write_record

Start = Literal["new", "resume", "overwrite"]
_STAMPS = (
    names.TASK_INDEX,
    names.ROLLOUT_INDEX,
    names.AGENT,
    "task_source",
    "skills_ref",
    names.ATTEMPT_INDEX,
    names.ROLLOUT_ID,
)
"""Fields of the input row that a result always has."""


class RunStore:
    """Writes the files of one run.

    Args:
        files: Where they are.
        inline_media: Leave media in the rows instead of keeping them beside the file.

    Raises:
        RunDirectoryError: Another process writes to the output.
        OSError: A file cannot be opened.
    """

    def __init__(self, files: RunFiles, *, inline_media: bool = False) -> None:
        self.files = files
        self.media = None if inline_media else MediaStore(media_folder(files.output))
        self.reader = MediaReader(files.output.parent)
        self._output = Journal(files.output)
        try:
            self._failures = Journal(files.failures)
        except BaseException:
            self._output.close()
            raise
        self.done: set[RowKey] = set()
        """Rollouts that have a result."""
        self.attempts: Counter[RowKey] = Counter()
        """Failed attempts that use up the rollout's quota."""
        self.last_failure: dict[RowKey, Failure] = {}
        self.notes: list[str] = []
        """What was found and mended, for people."""

    def begin(self, start: Start, identity: Mapping[str, Any]) -> None:
        """Start anew, or find out what is done.

        Args:
            start: ``new`` refuses a file with rows, ``overwrite`` removes them, ``resume`` keeps them.
            identity: What the run is made from.

        Raises:
            RunDirectoryError: There are rows already, or they were made from something else.
        """
        size = self._output.size + self._failures.size
        if start == "resume" and size:
            check_record(self.files, identity)  # first: what is refused is not touched
            for journal in (self._output, self._failures):
                said = journal.repair().describe(journal.path)
                self.notes += [said] if said else []
            self._read()
            return
        if start == "new" and size:
            raise RunDirectoryError(
                f"{self.files.output} has rows already. Go on with --resume, begin anew with --overwrite, "
                "or choose another --output."
            )
        self.files.record.unlink(missing_ok=True)  # first: rows without it cannot be taken for resumable
        self.files.metrics.unlink(missing_ok=True)
        self._output.clear()
        self._failures.clear()
        write_record(self.files, identity)

    def write_inputs(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the materialised inputs, unless they are there."""
        if not (self.done or self.attempts) or not self.files.materialised.exists():
            atomic_write_bytes(self.files.materialised, b"".join(dumps(row) + b"\n" for row in rows))

    def kept(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row in the form in which it is written: media are put beside the file."""
        if self.media is None or not may_hold_media(dumps(row)):
            return dict(row)
        return self.media.stored(row)

    def prepared(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A materialised row as it is run: media are embedded, the attempt is numbered.

        Raises:
            ConfigError: A file of media is missing or damaged.
        """
        made = self.reader.inlined(row) if may_hold_media(dumps(row)) else dict(row)
        attempts = self.attempts[RowKey.of(row)]
        return made | ({names.ATTEMPT_INDEX: attempts} if attempts else {})

    def write_result(self, row: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Write what became of a row.

        Raises:
            OSError: The disk is full.
        """
        self._output.append(self._line(self._stamped(row, result)))
        self.done.add(RowKey.of(row))

    def write_failure(self, row: Mapping[str, Any], failure: Failure, result: Mapping[str, Any]) -> None:
        """Write a failed attempt.

        Args:
            row: The input row.
            failure: Why.
            result: What there is of it; a reward in it is left out: no failure is a score.

        Raises:
            OSError: The disk is full.
        """
        key = RowKey.of(row)
        self.last_failure[key] = failure
        told = dict(result) if names.is_failure(result) else failure_fields(failure)
        told.pop(names.REWARD, None)
        self._failures.append(self._line(self._stamped(row, told)))
        if counts_as_attempt(failure.kind):
            self.attempts[key] += 1

    def may_run(self, row: Mapping[str, Any], max_attempts: int) -> bool:
        """Whether a rollout without a result may be tried (again)."""
        key = RowKey.of(row)
        if key in self.done:
            return False
        failure = self.last_failure.get(key)
        is_final = failure is not None and counts_as_attempt(failure.kind) and not worth_retrying(failure)
        return not is_final and self.attempts[key] < max_attempts

    def forget_failures(self) -> None:
        """Give every rollout without a result a new quota of attempts, also where trying seemed of no use."""
        self.attempts.clear()
        self.last_failure.clear()

    def sync(self) -> None:
        """Make everything durable, media before the rows that refer to them; may be called in a thread."""
        if self.media is not None:
            self.media.sync()
        self._output.sync()
        self._failures.sync()

    def close(self) -> None:
        """Make everything durable and let others write; may be called again."""
        if self.media is not None:
            self.media.sync()
        try:
            self._output.close()
        finally:
            self._failures.close()
        if self.files.failures.exists() and self.files.failures.stat().st_size == 0:
            self.files.failures.unlink()

    def _line(self, made: Mapping[str, Any]) -> bytes:
        line = dumps(made)
        if self.media is not None and may_hold_media(line):
            line = dumps(self.media.stored(made))
        return line

    def _stamped(self, row: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        stamps = {name: row[name] for name in _STAMPS if name in row}
        key = RowKey.of(row)
        if self.attempts[key]:
            stamps[names.ATTEMPT_INDEX] = self.attempts[key]
        return {**result, **stamps}

    def _read(self) -> None:
        twice = 0
        for result in read_rows(self.files.output):
            key = RowKey.of(result)
            twice += key in self.done
            self.done.add(key)
        for result in read_rows(self.files.failures):
            failure = failure_of(result)
            if failure is None:
                continue
            key = RowKey.of(result)
            self.last_failure[key] = failure
            if counts_as_attempt(failure.kind):
                self.attempts[key] += 1
        if twice:
            self.notes.append(
                f"{self.files.output.name}: {twice} rollouts are in it twice; the first one counts."
            )
        self.notes.append(
            f"{len(self.done)} rollouts are done, {sum(self.attempts.values())} attempts failed."
        )
