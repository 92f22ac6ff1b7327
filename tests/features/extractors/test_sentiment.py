from typing import Any

import numpy as np
import pytest

from sensorium.core import Modality
from sensorium.features.extractors.intents import find_intents, sentences_of
from sensorium.features.extractors.sentiment import Sentiment, SentimentConfig
from sensorium.observations.base import Part
from sensorium.observations.values import TextValue

pytest.importorskip("vaderSentiment")


def judged(text: str, **settings: Any) -> Any:
    part = Part(id="a", modality=Modality.TEXT, value=TextValue(text=text))
    (found,) = Sentiment(SentimentConfig(**settings))([part])
    return found


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("Why does the regression fail?", "negative question"),
        ("Please plot the residuals.", "positive request"),
        ("Could you explain how it works?", "neutral request"),
        ("Fix the failing test in utils.py and run it again.", "negative request"),
        ("Thanks, this works great!", "positive praise"),
        ("The service is terrible and keeps crashing.", "negative complaint"),
        ("ValueError: shapes do not match", "neutral error report"),
        ("The model has twelve layers.", "neutral report"),
        ("Is the server up", "neutral question"),
        ("Yes, go ahead.", "positive agreement"),
        ("Set: a, b, c", "neutral report"),
        ("", ""),
        ("  \n ", ""),
    ],
)
def test_sentiment_and_intent(text: str, summary: str) -> None:
    assert judged(text).summary == summary


def test_the_vector_is_the_mean_over_sentences() -> None:
    good, bad = judged("This is great.").vector, judged("This is awful.").vector
    both = judged("This is great. This is awful.").vector
    assert both == pytest.approx((good + bad) / 2, abs=1e-6)
    assert good[3] == pytest.approx(0.6249, abs=1e-4)  # VADER's own figure
    assert judged("").vector.tolist() == [0, 0, 0, 0]
    assert judged("x").vector.dtype == np.float32


def test_only_so_many_sentences_are_read() -> None:
    text = "It is fine. " * 5 + "It is awful. " * 5
    assert judged(text, max_sentences=5).data["sentiment"] == "positive"
    assert judged(text).data["sentences"] == 10


def test_intents_say_what_they_rest_on() -> None:
    intents = {i.intent: i for i in find_intents(["Why?", "Run it.", "Run it again."])}
    assert intents["request"].share == pytest.approx(2 / 3, abs=1e-4)
    assert intents["request"].evidence == "Run it."
    assert intents["question"].confidence == 0.95
    assert len(find_intents(["please " + "x" * 500])[0].evidence) == 120
    assert "rules" in judged("Hi.").data["basis"]


def test_sentences() -> None:
    assert sentences_of("See utils.py v1.2. Then go!\n- item\n\n---\n") == [
        "See utils.py v1.2.",
        "Then go!",
        "- item",
    ]
    assert len(sentences_of("a. " * 1000, limit=7)) == 7
    assert sentences_of("?" * 100_000) == []
