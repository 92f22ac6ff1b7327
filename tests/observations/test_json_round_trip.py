"""Whatever a part holds, JSON gives it back: values that JSON has no form for, too."""

import datetime as dt
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import KINDS, observations, parts
from pydantic import ValidationError

from sensorium.core import Modality
from sensorium.core.exact_json import MAX_DEPTH
from sensorium.observations.base import Observation, Part
from sensorium.observations.plain import HARD_DEPTH
from sensorium.observations.read import read
from sensorium.observations.values import Column, FieldNote, StructuredValue, TableValue


def is_strict_json(text: str) -> bool:
    """Whether readers that know no NaN can read it."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    json.loads(text, parse_constant=refuse, parse_int=float)
    return True


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_kind_of_part_survives(kind: str, data: st.DataObject) -> None:
    part = data.draw(parts(kind=kind))
    text = part.model_dump_json()
    again = Part.model_validate_json(text)
    assert repr(again) == repr(part)  # types and the sign of zero count, NaN equals NaN
    assert again.digest == part.digest
    assert is_strict_json(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(observations())
def test_observations_survive(observation: Observation) -> None:
    again = Observation.model_validate_json(observation.model_dump_json())
    assert repr(again) == repr(observation)


def structured(data: Any) -> StructuredValue:
    return StructuredValue(data=data)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (math.nan, {"~": "nan"}),
        (math.inf, {"~": "inf"}),
        (-math.inf, {"~": "-inf"}),
        ("NaN", "NaN"),
        (10**400, 10**400),
        ({"~": "nan", "~~": 1, "of": 2}, {"~~": "nan", "~~~": 1, "of": 2}),
    ],
)
def test_forms(value: Any, form: Any) -> None:
    text = structured([value]).model_dump_json()
    assert json.loads(text)["data"] == [form]
    assert repr(StructuredValue.model_validate_json(text).data) == repr([value])


def test_text_and_number_have_different_digests() -> None:
    def digest(cell: Any) -> str:
        table = TableValue(
            columns=(Column(name="x", dtype="float64", low=cell),), num_rows=1, rows=((cell,),)
        )
        return Part(id="t", modality=Modality.TABLE, value=table).digest

    assert len({digest(math.nan), digest("NaN"), digest("nan"), digest(None), digest(math.inf)}) == 5


def test_cells_are_read_from_parsed_json_too() -> None:
    column = Column(name="x", dtype="float64", low=-math.inf, high=math.inf, top=((math.nan, 2),))
    assert repr(Column.model_validate(json.loads(column.model_dump_json()))) == repr(column)
    note = FieldNote(path="x", type="number", low=-math.inf, high="Infinity")
    assert FieldNote.model_validate(json.loads(note.model_dump_json())) == note


def test_a_python_dict_is_what_it_is() -> None:
    assert structured({"~": "nan"}).data == {"~": "nan"}


@pytest.mark.parametrize(
    "form", [{"~": "set", "of": "x"}, {"~": 3}, {"~": "date"}, {"~": "bytes", "of": "?"}]
)
def test_unknown_forms_are_errors(form: Any) -> None:
    text = structured(0).model_dump_json().replace('"data":0', f'"data":{json.dumps(form)}')
    with pytest.raises(ValidationError):
        StructuredValue.model_validate_json(text)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({1: 2}, "names that are not text"),
        ([{3}], "holds set"),
        ([(1, 2)], "holds tuple"),
        (dt.date(2024, 5, 1), "holds datetime.date"),
        ({"at": b"x"}, "holds bytes"),
    ],
)
def test_what_json_would_change_is_refused(data: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        structured(data)


def test_dates_are_read_as_text_and_survive() -> None:
    raw = {"day": dt.date(2024, 5, 1), "at": dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC), "x": math.inf}
    observation = read(raw)
    again = Observation.model_validate_json(observation.model_dump_json())
    assert again == observation
    (part,) = again.parts
    assert part.value.data["at"] == "2024-05-01T12:30:00+00:00"


def test_integers_that_cannot_be_written_are_no_cells() -> None:
    with pytest.raises(ValidationError):
        TableValue(columns=(), num_rows=1, rows=((10**5000,),))
    for data in (10**5000, [-(10**5000)]):
        with pytest.raises(ValidationError, match="more than 4,000 digits"):
            structured(data)


def test_data_in_itself_is_refused_quickly() -> None:
    data: list[Any] = []
    data += [data, data]
    with pytest.raises(ValidationError, match="lies in itself"):
        structured(data)


def test_the_deepest_data_that_is_read_survives_within_other_objects() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = {"~": deep}
    observation = read(deep)
    assert HARD_DEPTH <= MAX_DEPTH
    assert repr(Observation.model_validate_json(observation.model_dump_json())) == repr(observation)
