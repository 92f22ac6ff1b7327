import pytest

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.values import ProblemValue, TextValue
from sensorium.representations.layout.problem import lay_out_problem


def test_a_problem_is_one_pinned_sentence() -> None:
    value = ProblemValue(what="broken JSON: the text ends", where="a.json: line 3", mend="write it again")
    document = lay_out_problem(Part(id="a.json", modality=Modality.TEXT, value=value))
    (segment,) = document.segments
    assert (
        segment.text
        == "Could not be read: broken JSON: the text ends (a.json: line 3). To mend: write it again."
    )
    assert segment.is_pinned


def test_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="kind 'text'"):
        lay_out_problem(Part(id="d", modality=Modality.TEXT, value=TextValue(text="x")))


def test_sentences_end_with_one_full_stop() -> None:
    value = ProblemValue(what="it is empty.", mend="Write it again.")
    part = Part(id="p", modality=Modality.TEXT, value=value)
    assert (
        lay_out_problem(part).segments[0].text == "Could not be read: it is empty. To mend: Write it again."
    )
