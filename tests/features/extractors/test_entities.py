from pathlib import Path
from typing import Any

import pytest

from sensorium.core import FeatureError, MissingDependencyError, Modality
from sensorium.features import fetch_model
from sensorium.features.extractors.entities import Entities, EntitiesConfig
from sensorium.observations.base import Part
from sensorium.observations.values import CodeValue, TextValue


def part(text: str, **settings: Any) -> Part:
    return Part(id="a", modality=Modality.TEXT, value=TextValue(text=text, **settings))


@pytest.fixture(scope="module")
def entities() -> Entities:
    """The real pipeline, downloaded once."""
    pytest.importorskip("spacy", reason="spaCy is not installed")
    try:
        fetch_model("spacy-en-sm")
    except FeatureError as error:
        pytest.skip(str(error))
    return Entities()


def relations(entities: Entities, text: str) -> list[tuple[str, str, str, bool]]:
    (found,) = entities([part(text)])
    return [(r["subject"], r["verb"], r["object"], r["is_negated"]) for r in found.data["relations"]]


def test_entities_with_their_places(entities: Entities) -> None:
    text = "Acme Corp opened an office in Berlin on 3 May 2021."
    (found,) = entities([part(text)])
    assert [(e["text"], e["label"]) for e in found.data["entities"]] == [
        ("Acme Corp", "ORG"),
        ("Berlin", "GPE"),
        ("3 May 2021", "DATE"),
    ]
    assert all(text[e["start"] : e["end"]] == e["text"] for e in found.data["entities"])
    assert found.summary.startswith("Acme Corp (ORG), Berlin (GPE), 3 May 2021 (DATE); Acme Corp open office")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Schmidt did not sign the contract.", [("Anna Schmidt", "sign", "contract", True)]),
        (
            "The script stopped and restarted the server.",
            [("script", "stop", "", False), ("script", "restart", "server", False)],
        ),
        (
            "The file was read by the worker and the logger.",
            [("worker", "read", "file", False), ("logger", "read", "file", False)],
        ),
        ("The cache was deleted.", [("", "delete", "cache", False)]),
        ("Run the tests on Linux.", [("", "run", "tests", False), ("", "run on", "Linux", False)]),
        ("The engineer shut down the old server.", [("engineer", "shut down", "old server", False)]),
    ],
)
def test_who_does_what(entities: Entities, text: str, expected: list[tuple[str, str, str, bool]]) -> None:
    assert relations(entities, text) == expected


def test_places_count_in_the_original_and_code_is_passed_over(entities: Entities) -> None:
    text = "Set `Google = 1` first.\n\nMicrosoft bought GitHub in 2018."
    (found,) = entities([part(text, format="markdown")])
    names = [e["text"] for e in found.data["entities"]]
    assert "Microsoft" in names
    assert "Google" not in names
    assert all(text[e["start"] : e["end"]] == e["text"] for e in found.data["entities"])


def test_a_long_text_is_read_in_part_and_says_so(entities: Entities) -> None:
    short = Entities(EntitiesConfig(max_chars=40))
    short._pipeline = entities._pipeline
    (found,) = short([part("Anna lives in Paris. " * 10 + "Bob lives in Rome.")])
    assert found.data["chars_read"] == 40
    assert "Rome" not in found.summary
    assert short.version != entities.version


def test_what_it_reads() -> None:
    assert Entities().accepts(part("x"))
    assert not Entities().accepts(part("x", format="log"))
    assert not Entities().accepts(Part(id="c", modality=Modality.CODE, value=CodeValue(text="x")))


def test_a_pipeline_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    with pytest.raises(MissingDependencyError, match="spacy download xx_no_such_pipeline"):
        Entities(EntitiesConfig(model="xx_no_such_pipeline"))([part("x")])
    with pytest.raises(MissingDependencyError, match=r"config\.cfg"):
        Entities(EntitiesConfig(model=str(tmp_path)))([part("x")])
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = 1\n")
    with pytest.raises(FeatureError, match="failed"):
        Entities(EntitiesConfig(model=str(tmp_path)))([part("x")])
