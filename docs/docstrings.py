"""Griffe extension: the section that our docstrings call ``Example:`` is shown as code, not as a note."""

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Renames the section to the name that griffe's Google parser knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Look at every object once."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
