"""The first layer: a raw state as typed parts, each with a name that stays the same while it changes."""

import hashlib
from collections.abc import Iterator
from functools import cached_property

from pydantic import Field

from sensorium.core.types import Modality
from sensorium.observations.values import (
    AnyValue,
    CellValue,
    CodeValue,
    OutputValue,
    ProblemValue,
    StackTrace,
    TextValue,
    Value,
)


class Part(Value):
    """One thing an agent can perceive."""

    id: str = Field(min_length=1)
    """Source, the same in every observation of the same thing: ``report.ipynb/cell-12/output-0``. An id that
    begins with another id and a slash belongs inside it."""
    modality: Modality
    value: AnyValue
    timestamp_s: float | None = None
    """When it was perceived, seconds on the clock of the observation; None when it has no time."""
    importance: float = Field(default=1.0, ge=0.0)
    """Weight the user gives it: 0 is sent only when there is room for everything, 2 counts double."""
    notes: tuple[str, ...] = ()
    """What a reader of the part must know, e.g. ``first 10,000 of 2,000,000 rows``."""

    @cached_property
    def digest(self) -> str:
        """Hash of the content (not of id, time or weight): equal content has an equal digest."""
        value, data = self.value, None
        if value.kind == "image" or value.kind == "audio" or value.kind == "array":
            data = value.data
        # Bytes are hashed as they are: base64 of a large picture takes milliseconds.
        text = value.model_dump_json(exclude=None if data is None else {"data"})
        total = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
        if data is not None:
            total.update(data)
        return total.hexdigest()[:32]

    @property
    def is_error(self) -> bool:
        """Whether it reports that something went wrong."""
        value = self.value
        match value:
            case ProblemValue():
                return True
            case OutputValue():
                return value.error is not None
            case CodeValue():
                failed = any(test.status in ("failed", "error") for test in value.tests)
                return bool(value.faults) or value.stack is not None or failed
            case TextValue():
                return value.format == "traceback"
            case _:
                return False

    @property
    def text(self) -> str | None:
        """The text of a part that is text, code, a cell or an output; None for other kinds."""
        match self.value:
            case TextValue(text=text) | CodeValue(text=text) | OutputValue(text=text):
                return text
            case CellValue(source=source):
                return source
            case _:
                return None

    @property
    def code(self) -> tuple[str, str | None] | None:
        """Source and language of a code part or a code cell; None for other parts."""
        match self.value:
            case CodeValue(text=text, language=language):
                return text, language
            case CellValue(cell_type="code", source=source, language=language):
                return source, language
            case _:
                return None

    @property
    def stack(self) -> StackTrace | None:
        """The exception that the part reports, when it was taken apart."""
        match self.value:
            case CodeValue(stack=stack):
                return stack
            case OutputValue(error=error):
                return error
            case _:
                return None


class Observation(Value):
    """What an agent perceives at one moment."""

    parts: tuple[Part, ...] = ()
    """Ids are unique; order is the order of the sources."""
    timestamp_s: float | None = None
    """When it was taken, on the clock of its parts."""

    def __iter__(self) -> Iterator[Part]:  # type: ignore[override]  # pydantic iterates over fields
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, part_id: str) -> bool:
        return part_id in self._by_id

    def __getitem__(self, part_id: str) -> Part:
        return self._by_id[part_id]

    @cached_property
    def _by_id(self) -> dict[str, Part]:
        return {part.id: part for part in self.parts}

    def of(self, *modalities: Modality) -> tuple[Part, ...]:
        """Parts of some modalities, in order."""
        return tuple(part for part in self.parts if part.modality in modalities)
