"""The mood of a text, by VADER's lexicon, and what it wants, by rules: for English, without a model."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sensorium.core import Config, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.intents import find_intents, sentences_of
from sensorium.features.extractors.model_stamp import package_version
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.features.extractors.words import has_prose, prose_of
from sensorium.observations.base import Part
from sensorium.observations.values import TextValue

_RULES = "1"
_THRESHOLD = 0.05


class SentimentConfig(Config):
    """Settings of the extractor ``sentiment``."""

    max_sentences: int = Field(default=200, ge=1)
    """Sentences of one part that are read, from the beginning."""


class Sentiment:
    """Sentiment and intent of text, messages and markdown cells.

    ``vector`` is (4,): shares of negative, neutral and positive words in [0, 1], and the compound score in
    [-1, 1], each the mean over sentences. ``data`` holds the same by name, ``sentiment`` (``positive`` from a
    compound of 0.05, ``negative`` from -0.05, else ``neutral``), ``intents`` (see `Intent`) and ``basis``,
    which says what the judgement rests on. Logs and tracebacks are read for their intent, too.

    Args:
        config: Settings.

    Source: Hutto, Gilbert 2014, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social
        Media Text".
    """

    name = "sentiment"

    def __init__(self, config: SentimentConfig | None = None) -> None:
        self.config = config or SentimentConfig()
        self._analyser: Any = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Rules, lexicon and limits."""
        return f"{_RULES}-vader{package_version('vaderSentiment')}-{self.config.max_sentences}"

    def accepts(self, part: Part) -> bool:
        """Whether the part is text, a conversation or a markdown cell."""
        return has_prose(part) or isinstance(part.value, TextValue)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Judge sentiment and intent.

        Raises:
            MissingDependencyError: vaderSentiment is not installed.
        """
        return extract_each(self, parts, self._find)

    def _find(self, part: Part) -> Found:
        text = prose_of(part)
        sentences = sentences_of(part.text or "" if text is None else text, limit=self.config.max_sentences)
        vector = _scores(self._loaded(), sentences)
        data = _describe(sentences, vector)
        summary = f"{data['sentiment']} {data['intents'][0]['intent']}" if sentences else ""
        return Found(data, summary, vector)

    def _loaded(self) -> Any:
        with self._lock:
            if self._analyser is None:
                module = require(
                    "vaderSentiment.vaderSentiment", extra="language", purpose="judging sentiment"
                )
                self._analyser = module.SentimentIntensityAnalyzer()
            return self._analyser


def _scores(analyser: Any, sentences: Sequence[str]) -> NDArray[np.float32]:
    """(4,) negative, neutral, positive, compound: mean over sentences; zeros for none."""
    if not sentences:
        return np.zeros(4, np.float32)
    scores = [analyser.polarity_scores(sentence[:2000]) for sentence in sentences]
    rows = [[score["neg"], score["neu"], score["pos"], score["compound"]] for score in scores]
    mean: NDArray[np.float32] = np.asarray(rows, np.float64).mean(axis=0).astype(np.float32)
    return mean


def _describe(sentences: list[str], vector: NDArray[np.float32]) -> dict[str, Any]:
    negative, neutral, positive, compound = (round(float(number), 4) for number in vector)
    mood = "neutral"
    if abs(compound) >= _THRESHOLD:
        mood = "positive" if compound > 0 else "negative"
    return {
        "sentiment": mood,
        "compound": compound,
        "negative": negative,
        "neutral": neutral,
        "positive": positive,
        "sentences": len(sentences),
        "intents": [intent._asdict() for intent in find_intents(sentences)],
        "basis": "lexicon (VADER) and rules for English",
    }
