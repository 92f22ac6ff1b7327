"""XML from strangers: no entities, no external files, no endless depth."""

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sensorium.core.errors import ObservationError

MAX_DEPTH = 200
"""Nesting of elements; deeper documents are refused."""
MAX_ELEMENTS = 500_000


def parse_xml(raw: str | bytes) -> Element:
    """Parse XML without expanding anything that it defines.

    Args:
        raw: The document.

    Raises:
        ObservationError: It is not well formed, declares entities (the way small files become gigabytes or
            read other files), or is nested too deeply.
    """
    builder = TreeBuilder()
    guard = _Guard(builder)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = guard.start
    parser.EndElementHandler = guard.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = guard.refuse_entity
    parser.UnparsedEntityDeclHandler = guard.refuse_entity
    parser.ExternalEntityRefHandler = guard.refuse_entity
    try:
        parser.Parse(raw.encode("utf-8", "replace") if isinstance(raw, str) else raw, True)
        return builder.close()
    except expat.ExpatError as error:
        raise ObservationError(f"XML is not well formed: {error}") from error
    except (AssertionError, LookupError, ValueError) as error:  # an unknown encoding; nothing in it
        raise ObservationError(f"XML cannot be read: {error}") from error


class _Guard:
    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder
        self._depth = 0
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise ObservationError(f"XML is nested more than {MAX_DEPTH} deep; that is not read")
        if self._count > MAX_ELEMENTS:
            raise ObservationError(f"XML has more than {MAX_ELEMENTS:,} elements; give a part of it")
        self._builder.start(tag, attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(tag)

    def refuse_entity(self, *_: object) -> NoReturn:
        raise ObservationError("XML declares entities, which are never expanded; remove its DTD")
