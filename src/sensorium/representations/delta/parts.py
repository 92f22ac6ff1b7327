"""How one part changed, and the part that comes of it."""

from sensorium.core.errors import ObservationError, SensoriumError
from sensorium.observations.base import Part
from sensorium.observations.values import AnyValue, ArrayValue, ImageValue, StructuredValue, TableValue
from sensorium.representations.delta.arrays import apply_array, array_delta
from sensorium.representations.delta.base import (
    AnyDelta,
    ArrayDelta,
    Envelope,
    FieldDelta,
    ImageDelta,
    PartDelta,
    ReplaceDelta,
    TableDelta,
)
from sensorium.representations.delta.fields import apply_fields, field_delta
from sensorium.representations.delta.images import apply_image, image_delta
from sensorium.representations.delta.tables import apply_table, table_delta


def make_delta(old: Part, new: Part) -> PartDelta | None:
    """How `old` became `new`; None when nothing changed.

    Lossless: ``apply_delta(old, make_delta(old, new)) == new`` in every field. The smaller of the change
    and the new value is taken. Time: O(1) for the same object, a comparison of digests for an equal part, one
    pass over both values otherwise.
    """
    change = None if is_same_value(old, new) else _smaller(old.value, new.value)
    envelope = None if is_same_envelope(old, new) else envelope_of(new)
    if change is None and envelope is None:
        return None
    return PartDelta(
        part_id=old.id, base_digest=old.digest, new_digest=new.digest, change=change, envelope=envelope
    )


def apply_delta(old: Part, delta: PartDelta) -> Part:
    """The new part.

    Raises:
        ObservationError: The change was made from another part, is damaged, or gives something else than it
            was made for.
    """
    if old.id != delta.part_id:
        raise ObservationError(
            f"A change of part {delta.part_id!r} cannot be applied to part {old.id!r}. "
            f"Pass the part it names."
        )
    if old.digest != delta.base_digest:
        raise ObservationError(
            f"The change of part {old.id!r} was made from the state {delta.base_digest}, but the part is in "
            f"the state {old.digest}: a change in between is missing. Ask for the whole part."
        )
    value = old.value if delta.change is None else _applied(old, delta.change)
    envelope = delta.envelope or envelope_of(old)
    new = old if value is old.value and delta.envelope is None else Part(value=value, **dict(envelope))
    if new.digest != delta.new_digest:
        raise ObservationError(
            f"The change of part {old.id!r} gives the state {new.digest} instead of {delta.new_digest}: it "
            f"is damaged, or was made by a program that encodes differently. Ask for the whole part."
        )
    return new


def is_same_value(old: Part, new: Part) -> bool:
    """Whether two parts hold exactly the same."""
    if old.value is new.value:
        return True
    if old.digest != new.digest:
        return False
    if isinstance(old.value, TableValue | StructuredValue):  # the text "NaN" and the number have one digest
        return bool(old.value == new.value) or repr(old.value) == repr(new.value)
    return True


def is_same_envelope(old: Part, new: Part) -> bool:
    """Whether everything but the values is the same."""
    return (
        old.id == new.id
        and old.modality == new.modality
        and old.notes == new.notes
        and is_same_number(old.timestamp_s, new.timestamp_s)
        and is_same_number(old.importance, new.importance)
    )


def is_same_number(old: float | None, new: float | None) -> bool:
    """Whether two numbers are exactly the same: sign of zero counts, NaN equals NaN."""
    return old is new or (type(old) is type(new) and repr(old) == repr(new))


def envelope_of(part: Part) -> Envelope:
    """Everything of a part but its value."""
    return Envelope.model_validate(part, from_attributes=True)


def _smaller(old: AnyValue, new: AnyValue) -> AnyDelta:
    replace = ReplaceDelta(value=new)
    if type(old) is not type(new):
        return replace
    change = _typed(old, new)
    return change if len(change.model_dump_json()) < len(replace.model_dump_json()) else replace


def _typed(old: AnyValue, new: AnyValue) -> AnyDelta:
    match old, new:
        case TableValue(), TableValue():
            return table_delta(old, new)
        case ArrayValue(), ArrayValue():
            return array_delta(old, new)
        case ImageValue(), ImageValue():
            return image_delta(old, new)
        case _:
            return field_delta(old, new)


def _applied(old: Part, change: AnyDelta) -> AnyValue:
    try:
        match old.value, change:
            case _, ReplaceDelta():
                return change.value
            case value, FieldDelta():
                return apply_fields(value, change.changed)
            case TableValue() as value, TableDelta():
                return apply_table(value, change)
            case ArrayValue() as value, ArrayDelta():
                return apply_array(value, change)
            case ImageValue() as value, ImageDelta():
                return apply_image(value, change)
    except SensoriumError:
        raise
    except Exception as error:  # a damaged change may break anything that is computed from it
        raise ObservationError(
            f"The change of part {old.id!r} is damaged ({type(error).__name__}: {error}). "
            f"Ask for the whole part."
        ) from error
    raise ObservationError(
        f"A change of kind {change.kind!r} does not fit part {old.id!r}, which is of kind "
        f"{old.value.kind!r}. Ask for the whole part."
    )
