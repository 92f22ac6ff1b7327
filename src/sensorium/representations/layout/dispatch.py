"""Which function lays out which kind of content; modules are loaded when their kind is first met."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from sensorium.observations.base import Part
from sensorium.representations.base import Document
from sensorium.representations.config import MultimodalConfig

LAYOUTS: dict[str, tuple[str, str]] = {
    "text": ("sensorium.representations.layout.text:lay_out_text", "text"),
    "messages": ("sensorium.representations.layout.text:lay_out_messages", "text"),
    "structured": ("sensorium.representations.layout.structured:lay_out_structured", "text"),
    "code": ("sensorium.representations.layout.code:lay_out_code", "code"),
    "cell": ("sensorium.representations.layout.notebook:lay_out_cell", ""),
    "output": ("sensorium.representations.layout.notebook:lay_out_output", "notebook"),
    "table": ("sensorium.representations.layout.table:lay_out_table", "table"),
    "array": ("sensorium.representations.layout.array:lay_out_array", "table"),
    "proprio": ("sensorium.representations.layout.array:lay_out_proprio", "table"),
    "problem": ("sensorium.representations.layout.problem:lay_out_problem", "text"),
}
"""Kind -> function, and the section of its settings (all sections for "")."""


@cache
def _function(kind: str) -> Callable[[Part, Any], Document]:
    module, _, name = LAYOUTS[kind][0].partition(":")
    function: Callable[[Part, Any], Document] = getattr(import_module(module), name)
    return function


def lay_out(part: Part, config: MultimodalConfig) -> Document | None:
    """Lay a part out as text; None for pictures and sounds, which are not text."""
    kind = part.value.kind
    if kind not in LAYOUTS:
        return None
    section = LAYOUTS[kind][1]
    return _function(kind)(part, getattr(config, section) if section else config)
