"""Who and what a text speaks of, and who does what to whom: spaCy's entities and dependency parse."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from sensorium.core import Config, FeatureError, MissingDependencyError, boundary, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.model_stamp import model_stamp, package_version
from sensorium.features.extractors.relations import find_relations
from sensorium.features.extractors.words import has_prose, prose_of
from sensorium.features.models import find_model
from sensorium.observations.base import Part

_RULES = "1"
_SUMMARY_ENTITIES = 8
_SUMMARY_RELATIONS = 3


class EntitiesConfig(Config):
    """Settings of the extractor ``entities``."""

    model: str = "spacy-en-sm"
    """Packaged model, folder with a spaCy pipeline, or name of an installed one, e.g. ``de_core_news_sm``."""
    max_chars: int = Field(default=20_000, ge=1)
    """Characters of one part that are read."""
    batch_size: int = Field(default=16, ge=1)
    """Texts that are computed together."""


class Entities:
    """Named entities and subject-verb-object relations of text, messages and markdown cells.

    ``data`` holds ``entities``: ``{text, label, start, end}``, with positions in the part's text (turns of a
    conversation joined by line ends); ``relations``: ``{subject, verb, object, is_negated, start, end}``;
    and ``chars_read`` where the text was longer than what is read.

    Args:
        config: Settings.
    """

    name = "entities"

    def __init__(self, config: EntitiesConfig | None = None) -> None:
        self.config = config or EntitiesConfig()
        self._pipeline: Any = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Model, version of spaCy, and limits."""
        model = self.config.model
        packages = "-".join(map(package_version, ("spacy", model)))
        return f"{_RULES}-{model_stamp(model)}-{packages}-{self.config.max_chars}"

    def accepts(self, part: Part) -> bool:
        """Whether the part holds running prose."""
        return has_prose(part)

    def __call__(self, parts: Sequence[Part]) -> list[Features]:
        """Find entities and relations.

        Raises:
            MissingDependencyError: spaCy or the model is missing.
            FeatureError: The pipeline could not be read or run.
        """
        texts = [prose_of(part) or "" for part in parts]
        shown = [text[: self.config.max_chars] for text in texts]
        with self._lock, boundary(FeatureError, f"spaCy pipeline {self.config.model} failed"):
            documents = list(self._loaded().pipe(shown, batch_size=self.config.batch_size))
            found = [_describe(document) for document in documents]
        version, results = self.version, []
        for part, text, data in zip(parts, texts, found, strict=True):
            if len(text) > self.config.max_chars:
                data["chars_read"] = self.config.max_chars
            results.append(
                Features(
                    part_id=part.id,
                    extractor=self.name,
                    version=version,
                    data=data,
                    summary=_summary(data),
                )
            )
        return results

    def _loaded(self) -> Any:
        if self._pipeline is None:
            spacy = require("spacy", extra="language", purpose="finding entities and relations")
            try:
                found = find_model(self.config.model, marker="config.cfg")
            except FeatureError as error:
                raise MissingDependencyError(f"finding entities needs a model. {error}") from error
            if not isinstance(found, Path) and not spacy.util.is_package(found):
                raise MissingDependencyError(
                    f"finding entities needs the spaCy pipeline {found!r}, which is not installed. "
                    f"Install it with: python -m spacy download {found}, or use "
                    f"the packaged model 'spacy-en-sm'."
                )
            self._pipeline = spacy.load(found)
        return self._pipeline


def _describe(document: Any) -> dict[str, Any]:
    entities = [
        {"text": found.text, "label": found.label_, "start": found.start_char, "end": found.end_char}
        for found in document.ents
        if found.text.strip()
    ]
    relations = find_relations(document) if document.has_annotation("DEP") else []
    return {"entities": entities, "relations": [relation._asdict() for relation in relations]}


def _summary(data: dict[str, Any]) -> str:
    named = dict.fromkeys(f"{entity['text']} ({entity['label']})" for entity in data["entities"])
    told = dict.fromkeys(
        " ".join(
            filter(None, (one["subject"], "not" if one["is_negated"] else "", one["verb"], one["object"]))
        )
        for one in data["relations"]
    )
    pieces = [", ".join(list(named)[:_SUMMARY_ENTITIES]), *list(told)[:_SUMMARY_RELATIONS]]
    return " ".join("; ".join(filter(None, pieces)).split())
