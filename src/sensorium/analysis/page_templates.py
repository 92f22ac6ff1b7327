"""How templates of pages are filled in: everything is escaped, nothing may be missing."""

from typing import Any

from sensorium.analysis import formatting
from sensorium.core.errors import require


def page_templates(*, extra: str, purpose: str) -> Any:
    """The jinja2 environment of this package's templates, with the filters of `formatting`.

    Args:
        extra: Extra of this package that brings jinja2.
        purpose: What needs it, for the error.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    jinja2 = require("jinja2", extra=extra, purpose=purpose)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sensorium.analysis"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("count", "number", "percent", "points", "duration"):
        environment.filters[name] = getattr(formatting, name)
    environment.globals["percent_range"] = formatting.percent_range
    return environment
