import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import KINDS, edited, json_data, parts
from pydantic import ValidationError

from sensorium.core import Modality, ObservationError
from sensorium.core.exact_json import from_json, to_json
from sensorium.observations.base import Part
from sensorium.observations.values import CodeValue, ProblemValue, StructuredValue, TextValue
from sensorium.representations.delta import PartDelta, apply_delta, make_delta
from sensorium.representations.delta.base import ReplaceDelta
from sensorium.representations.delta.fields import apply_data, data_delta, same


def is_same(one: Part, other: Part) -> bool:
    """Exact equality: types, order of names, sign of zero; NaN equals NaN."""
    return repr(one) == repr(other)


def text_part(text: str, **envelope: Any) -> Part:
    return Part(id="a.txt", modality=Modality.TEXT, value=TextValue(text=text), **envelope)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_kind_is_lossless(kind: str, data: st.DataObject) -> None:
    old = data.draw(parts("x", kind))
    new = data.draw(st.one_of(edited(old), parts("x", kind), parts("x")))
    delta = make_delta(old, new)
    if delta is None:
        assert is_same(old, new)
        return
    assert is_same(apply_delta(old, delta), new)
    received = PartDelta.model_validate_json(delta.model_dump_json())
    assert is_same(apply_delta(Part.model_validate_json(old.model_dump_json()), received), new)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(json_data(), json_data(), st.data())
def test_json_data_is_lossless(old: Any, new: Any, data: st.DataObject) -> None:
    pairs = [
        (old, new),
        ({"a": old, "b": [new]}, {"b": [new, old], "a": old}),
        ([old, 1, new], [1, new, new]),
    ]
    for before, after in pairs:
        change = data_delta(before, after)
        if change is None:
            assert repr(before) == repr(after)
        else:
            assert repr(apply_data(before, change)) == repr(after)
    assert repr(from_json(to_json(old))) == repr(old)


def test_nothing_changed_is_none() -> None:
    part = text_part("one\ntwo", timestamp_s=math.nan)
    assert make_delta(part, part) is None
    assert make_delta(part, text_part("one\ntwo", timestamp_s=math.nan)) is None


@pytest.mark.parametrize(
    ("old", "new"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_values_that_python_calls_equal_are_changes(old: Any, new: Any) -> None:
    assert not same([old], [new])
    before, after = (
        Part(id="x", modality=Modality.TEXT, value=StructuredValue(data=[one, 7])) for one in (old, new)
    )
    delta = make_delta(before, after)
    assert delta is not None
    assert is_same(apply_delta(before, delta), after)


def test_text_nan_and_number_nan_differ() -> None:
    before, after = (
        Part(id="x", modality=Modality.TEXT, value=StructuredValue(data=[one])) for one in ("NaN", math.nan)
    )
    delta = make_delta(before, after)
    assert delta is not None
    assert is_same(apply_delta(before, delta), after)


def test_envelope_alone_costs_no_content() -> None:
    old, new = text_part("long " * 1_000), text_part("long " * 1_000, timestamp_s=2.0, notes=("n",))
    delta = make_delta(old, new)
    assert delta is not None
    assert delta.change is None
    assert delta.num_bytes < 400
    assert apply_delta(old, delta) == new


def test_cost_follows_the_change() -> None:
    lines = [f"line {at} of a file" for at in range(1_000)]
    old = text_part("\n".join(lines))
    sizes = []
    for number in (1, 10, 100):
        changed = [f"LINE {at}" if at % 1_000 < number else line for at, line in enumerate(lines)]
        delta = make_delta(old, text_part("\n".join(changed)))
        assert delta is not None
        sizes.append(delta.num_bytes)
    assert sizes[0] < 300
    assert sizes[0] < sizes[1] < sizes[2] < 3_000


def test_another_kind_is_replaced() -> None:
    new = Part(id="a.txt", modality=Modality.TEXT, value=ProblemValue(what="the file is gone"))
    delta = make_delta(text_part("abc " * 50), new)
    assert delta is not None
    assert delta.change == ReplaceDelta(value=new.value)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_a_change_never_costs_more_than_the_value(data: st.DataObject) -> None:
    old = data.draw(parts("x"))
    delta = make_delta(old, data.draw(edited(old)))
    if delta is not None and delta.change is not None:
        whole = ReplaceDelta(value=apply_delta(old, delta).value)
        assert len(delta.change.model_dump_json()) <= len(whole.model_dump_json())


def test_code_changes_field_by_field() -> None:
    variables = {f"name_{at}": f"value {at}" for at in range(100)}
    old = Part(id="a.py", modality=Modality.CODE, value=CodeValue(text="x\n" * 500, variables=variables))
    changed = {**variables, "name_50": "other", "new": "1"}
    del changed["name_3"]
    new = Part(id="a.py", modality=Modality.CODE, value=CodeValue(text="x\n" * 500, variables=changed))
    delta = make_delta(old, new)
    assert delta is not None
    assert delta.num_bytes < 400
    assert apply_delta(old, delta) == new


def test_errors_say_what_does_not_fit() -> None:
    old, new = text_part("one\n" * 50), text_part("one\n" * 50 + "two")
    delta = make_delta(old, new)
    assert delta is not None
    with pytest.raises(ObservationError, match="a change in between is missing"):
        apply_delta(new, delta)
    with pytest.raises(ObservationError, match=r"part 'a\.txt' cannot be applied to part 'b\.txt'"):
        apply_delta(Part(id="b.txt", modality=Modality.TEXT, value=old.value), delta)
    wrong = PartDelta.model_validate_json(delta.model_dump_json().replace("two", "six"))
    with pytest.raises(ObservationError, match="gives the state"):
        apply_delta(old, wrong)
    far = PartDelta.model_validate_json(delta.model_dump_json().replace("[200,", "[900,"))
    with pytest.raises(ObservationError, match="damaged"):
        apply_delta(old, far)


def test_a_change_of_another_kind_is_refused() -> None:
    old = text_part("one\n" * 50)
    table = '{"kind":"table","cells":[[0,0,1]]}'
    delta = PartDelta.model_validate_json(
        f'{{"part_id":"a.txt","base_digest":"{old.digest}","new_digest":"0","change":{table}}}'
    )
    with pytest.raises(ObservationError, match="kind 'table' does not fit part"):
        apply_delta(old, delta)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_damaged_changes_raise_one_error(data: st.DataObject) -> None:
    old = data.draw(parts("x"))
    new = data.draw(edited(old))
    delta = make_delta(old, new)
    if delta is None:
        return
    text = delta.model_dump_json()
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from('0159-"A]'))
    try:
        damaged = PartDelta.model_validate_json(text[:at] + letter + text[at + 1 :])
    except ValidationError:
        return
    try:
        result = apply_delta(old, damaged)
    except ObservationError:
        return
    assert result.digest == damaged.new_digest
