from typing import Any

import pytest

from sensorium.core import Modality
from sensorium.features.extractors.words import has_prose, has_words, prose_of, words_of
from sensorium.observations.base import Part
from sensorium.observations.values import (
    ArrayValue,
    CellValue,
    CodeValue,
    Column,
    MessagesValue,
    OutputValue,
    ProblemValue,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
    Turn,
)


def part(value: Any) -> Part:
    return Part(id="a", modality=Modality.TEXT, value=value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (TextValue(text="Hello"), "Hello"),
        (CodeValue(text="x = 1", stack=StackTrace(type="KeyError", message="'y'")), "KeyError: 'y'\nx = 1"),
        (
            OutputValue(output_type="error", text="KeyError: 1", error=StackTrace(type="KeyError")),
            "KeyError: 1",
        ),
        (MessagesValue(turns=(Turn(role="user", content="a"), Turn(role="tool", content="b"))), "a\nb"),
        (StructuredValue(data={"ü": [1]}), '{"ü": [1]}'),
        (ProblemValue(what="cut off", mend="send it again"), "cut off send it again"),
        (
            TableValue(
                columns=(
                    Column(name="id", dtype="int64"),
                    Column(name="kg", dtype="float64", meaning="weight?"),
                ),
                num_rows=1,
                rows=((1, None),),
                row_numbers=(0,),
            ),
            "id, kg\nweight?\n1, ",
        ),
        (ArrayValue(dtype="float32", shape=(1,)), None),
    ],
)
def test_words(value: Any, words: str | None) -> None:
    assert words_of(part(value)) == words
    assert has_words(part(value)) == (words is not None)


@pytest.mark.parametrize(
    ("value", "prose"),
    [
        (TextValue(text="a `b` c"), "a `b` c"),
        (TextValue(text="a `b` c", format="markdown"), "a     c"),
        (TextValue(text="See\n```py\nx\n```\nend", format="markdown"), "See\n     \n \n   \nend"),
        (TextValue(text="1\n```\nnever closed", format="markdown"), "1\n   \n            "),
        (TextValue(text="<p>x < y</p><script>a<b</script>", format="html"), "   x < y    " + " " * 20),
        (TextValue(text="12:00 INFO", format="log"), None),
        (CellValue(index=0, cell_type="markdown", source="Hi"), "Hi"),
        (CellValue(index=0, cell_type="code", source="Hi"), None),
        (CodeValue(text="Hi"), None),
    ],
)
def test_prose_keeps_its_positions(value: Any, prose: str | None) -> None:
    assert prose_of(part(value)) == prose
    assert has_prose(part(value)) == (prose is not None)
