import pytest

from sensorium.core.errors import ObservationError
from sensorium.observations.xml import MAX_DEPTH, parse_xml

LAUGHS = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>"""
OUTSIDE = """<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>"""


def test_elements_text_and_attributes() -> None:
    root = parse_xml('<a b="1">t<c/>&lt;&#65;</a>')
    assert (root.tag, root.get("b"), root.text, root[0].tag, root[0].tail) == ("a", "1", "t", "c", "<A")


@pytest.mark.parametrize("text", [LAUGHS, OUTSIDE])
def test_entities_are_refused(text: str) -> None:
    with pytest.raises(ObservationError, match="entities"):
        parse_xml(text)


def test_a_dtd_from_elsewhere_is_not_loaded() -> None:
    root = parse_xml('<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd"><x>y</x>')
    assert root.text == "y"


def test_depth_is_limited() -> None:
    assert parse_xml("<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH).tag == "a"
    with pytest.raises(ObservationError, match="deep"):
        parse_xml("<a>" * 100_000)


@pytest.mark.parametrize(
    "raw", ["", "<a>", "<a></b>", b"\xff\xfe<\0", '<?xml version="1.0" encoding="nope"?><a/>']
)
def test_broken_xml_is_an_error(raw: str | bytes) -> None:
    with pytest.raises(ObservationError):
        parse_xml(raw)
