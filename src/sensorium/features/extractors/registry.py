"""Every extractor by name; its module is imported when it is asked for."""

import importlib
import inspect
import typing
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from typing import Any, cast

from sensorium.core import Config, ConfigError, FeatureError, parse_config, unknown_name
from sensorium.features.extractors.base import Extractor

ENTRY_POINTS = "sensorium.extractors"
"""Entry-point group with which other distributions add extractors: name -> ``module:Class``."""

_HERE = "sensorium.features.extractors"

EXTRACTORS: dict[str, str] = {
    "sentence": f"{_HERE}.sentence:Sentence",
    "entities": f"{_HERE}.entities:Entities",
    "sentiment": f"{_HERE}.sentiment:Sentiment",
    "summary": f"{_HERE}.model_summary:ModelSummary",
    "code_structure": f"{_HERE}.code_structure:CodeStructure",
    "dependencies": f"{_HERE}.dependencies:Dependencies",
    "image_embedding": f"{_HERE}.image_embedding:ImageEmbedding",
    "detection": f"{_HERE}.detection:Detection",
    "ocr": f"{_HERE}.ocr:Ocr",
    "safety": f"{_HERE}.safety:Safety",
    "transcript": f"{_HERE}.transcript:Transcript",
    "sound_events": f"{_HERE}.sound_events:SoundEvents",
}
"""Name -> ``module:Class``."""


def extractor_names() -> tuple[str, ...]:
    """Names of all extractors, those of other distributions last; an own name wins over a foreign one."""
    foreign = sorted({point.name for point in metadata.entry_points(group=ENTRY_POINTS)} - EXTRACTORS.keys())
    return (*EXTRACTORS, *foreign)


def build_extractor(name: str, settings: Mapping[str, Any] | None = None) -> Extractor:
    """Build an extractor from its settings; no model is loaded.

    Its class takes nothing, or one `Config` as its first argument, ``config``, with a default.

    Args:
        name: A key of `EXTRACTORS`, or the name of an entry point of the group ``sensorium.extractors``.
        settings: Plain values for its `Config`; defaults where left out.

    Raises:
        ConfigError: No extractor has this name, a setting is unknown or does not fit, or the extractor has
            no settings.
        FeatureError: A foreign extractor does not keep the protocol.
        ImportError: The module of a foreign extractor cannot be imported.
    """
    kind = _load(name)
    config_type = _config_type(kind)
    if config_type is None:
        if settings:
            raise ConfigError(
                f"Extractor {name!r} has no settings, found {', '.join(map(repr, settings))}; remove them."
            )
        extractor = kind()
    else:
        extractor = kind(_parse(config_type, name, settings or {}))
    if not (callable(extractor) and all(map(partial(_has, extractor), ("name", "version", "accepts")))):
        raise FeatureError(
            f"{kind.__module__}.{kind.__qualname__} is no extractor: it needs name, version, accepts(part) "
            f"and __call__(parts)."
        )
    return cast(Extractor, extractor)


def _has(extractor: object, attribute: str) -> bool:
    """Whether there is such an attribute, without asking for it: a version may have to look for a model."""
    return inspect.getattr_static(extractor, attribute, None) is not None


def _load(name: str) -> type[Any]:
    if name in EXTRACTORS:
        module, _, attribute = EXTRACTORS[name].partition(":")
        return cast(type[Any], getattr(importlib.import_module(module), attribute))
    for point in metadata.entry_points(group=ENTRY_POINTS, name=name):
        return cast(type[Any], point.load())
    raise unknown_name("extractor", name, extractor_names())


def _config_type(kind: type[Any]) -> type[Config] | None:
    """The `Config` that the constructor's first argument is annotated with."""
    hints = typing.get_type_hints(kind.__init__)
    for parameter in list(inspect.signature(kind.__init__).parameters)[1:2]:
        for candidate in (hints.get(parameter), *typing.get_args(hints.get(parameter))):
            if isinstance(candidate, type) and issubclass(candidate, Config):
                return candidate
    return None


def _parse(config_type: type[Config], name: str, settings: Mapping[str, Any]) -> Config:
    try:
        return parse_config(config_type, settings)
    except ConfigError as error:
        raise ConfigError(f"Settings of extractor {name!r}: {error}") from error
