from collections.abc import Sequence

import pytest

from sensorium.core import FeatureError, MissingDependencyError, Modality
from sensorium.features.extractors.attempts import attempt_each, reason_of
from sensorium.features.extractors.base import Features
from sensorium.observations.base import Part
from sensorium.observations.values import TextValue


class Picky:
    """Raises for some texts."""

    name, version = "picky", "1"

    def __init__(self, bad: set[str], error: type[BaseException] = ValueError) -> None:
        self.bad, self.error, self.calls = bad, error, 0

    def accepts(self, part: Part) -> bool:
        return True

    def __call__(self, parts: Sequence[Part]) -> list[Features]:
        self.calls += 1
        for part in parts:
            if part.text in self.bad:
                raise self.error(f"{part.text} is bad")
        return [
            Features(part_id=part.id, extractor="picky", version="1", summary=part.text or "")
            for part in parts
        ]


def parts(*texts: str) -> list[Part]:
    return [Part(id=f"p{n}", modality=Modality.TEXT, value=TextValue(text=t)) for n, t in enumerate(texts)]


def test_bad_parts_are_found_by_halving() -> None:
    picky = Picky({"3", "11"})
    found = attempt_each(picky, parts(*map(str, range(16))))
    assert [n for n, attempt in enumerate(found) if attempt.features is None] == [3, 11]
    assert found[3].reason == "ValueError: 3 is bad"
    assert [attempt.features.summary for attempt in found if attempt.features] == [
        str(n) for n in range(16) if n not in (3, 11)
    ]
    assert picky.calls < 16
    assert all(attempt.seconds > 0 for attempt in found if attempt.features)


def test_an_extractor_that_fails_at_everything_is_not_asked_for_each() -> None:
    class Broken(Picky):
        def __call__(self, given: Sequence[Part]) -> list[Features]:
            self.calls += 1
            raise FeatureError("the weights are gone")

    broken = Broken(set())
    found = attempt_each(broken, parts(*map(str, range(64))))
    assert {attempt.reason for attempt in found} == {"the weights are gone"}
    assert len(found) == 64
    assert broken.calls < 20


def test_nothing_and_everything() -> None:
    picky = Picky(set())
    assert attempt_each(picky, []) == []
    assert picky.calls == 0
    assert all(attempt.features for attempt in attempt_each(picky, parts("a", "b")))
    assert picky.calls == 1


def test_what_is_missing_goes_through_and_an_exit_does_not() -> None:
    with pytest.raises(MissingDependencyError):
        attempt_each(Picky({"a"}, MissingDependencyError), parts("a"))
    (found,) = attempt_each(Picky({"a"}, SystemExit), parts("a"))
    assert found.reason == "SystemExit: a is bad"


def test_reasons_are_one_short_line() -> None:
    assert reason_of(FeatureError("two\n  lines")) == "two lines"
    assert reason_of(KeyError()) == "KeyError"
    assert len(reason_of(ValueError("x" * 5000))) < 700
