"""Summaries by a language model, in which every sentence names its source and is checked against it."""

import hashlib
import json
import threading
from collections.abc import Sequence
from typing import Any

from sensorium.core import FeatureError
from sensorium.features.blocking import run_blocking
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.numbered_lines import Line, has_lines, lines_of, where
from sensorium.features.extractors.summary_answer import PROMPT_DIGEST, Sentence
from sensorium.features.extractors.summary_config import SummaryConfig
from sensorium.features.extractors.summary_writer import SummaryWriter, Task, Written
from sensorium.features.models import find_model
from sensorium.llm.base import ChatModel, TokenCounter
from sensorium.llm.client import OpenAIChatModel
from sensorium.llm.tokens import build_counter
from sensorium.observations.base import Part


class ModelSummary:
    """Summaries of long texts, logs, code, cells, outputs, tables and structured data.

    ``data`` holds ``text`` (the summary), ``sentences``, ``model``, ``num_lines`` of the part that are not
    blank, and ``num_read`` of them that the model was shown. A sentence has its ``text``; ``lines``, the
    first and last line it names (None without one), and ``cited``, all ranges it names, lines counted from
    1; ``where`` in words (``lines 12-18``, ``rows 3-9``); ``verified``, and otherwise ``doubt``, the reason.
    A part shorter than `min_chars` has no data.

    Args:
        config: Endpoint, length, limits.
        model: A model that is built already, instead of the endpoint that `config` names.
    """

    name = "summary"

    def __init__(self, config: SummaryConfig | None = None, model: ChatModel | None = None) -> None:
        self.config = config or SummaryConfig()
        self._model = model
        self._counter: TokenCounter | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Changes with the model's name, the prompt, and the settings that decide what it is sent.

        The address of the endpoint is not among them: the same model may be served elsewhere.
        """
        settings = self.config.model_dump(mode="json", exclude={"model", "max_concurrency"})
        text = json.dumps([self._model_name, settings, PROMPT_DIGEST], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def accepts(self, part: Part) -> bool:
        """Parts that have lines, and enough of them where that is told without taking them apart."""
        text = part.text
        return has_lines(part) and (text is None or len(text) >= max(1, self.config.min_chars))

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Summarise parts, several at a time; what fails for one (the endpoint is down) is told there.

        Raises:
            FeatureError: No model is configured.
            ConfigError: The model's key or vocabulary is not there.
            MissingDependencyError: A package that the client or the counter needs is not installed.
        """
        model, counter = self._built()
        lines = [lines_of(part) for part in parts]
        are_long = [_is_long(one, self.config.min_chars) for one in lines]
        tasks = [
            Task(_title(part), one)
            for part, one, is_long in zip(parts, lines, are_long, strict=True)
            if is_long
        ]
        writer = SummaryWriter(model, counter, self.config)
        answers = iter(run_blocking(writer.write_all(tasks)) if tasks else [])
        return [
            self._features(part, one, next(answers) if is_long else None)
            for part, one, is_long in zip(parts, lines, are_long, strict=True)
        ]

    def _features(self, part: Part, lines: Sequence[Line], answer: Written | str | None) -> Features:
        data: dict[str, Any] = {}
        if isinstance(answer, Written):
            data = {
                "text": " ".join(sentence.text for sentence in answer.sentences),
                "sentences": [_plain(sentence, lines) for sentence in answer.sentences],
                "model": self._model_name,
                "num_lines": sum(1 for line in lines if line.text.strip()),
                "num_read": answer.num_read,
            }
        return Features(
            part_id=part.id,
            extractor=self.name,
            version=self.version,
            data=data,
            summary=data.get("text", ""),
            unavailable=answer if isinstance(answer, str) else None,
        )

    @property
    def _model_name(self) -> str:
        if self._model is not None:
            return self._model.model
        return self.config.model.model if self.config.model is not None else ""

    def _built(self) -> tuple[ChatModel, TokenCounter]:
        with self._lock:
            if self._model is None:
                if self.config.model is None:
                    raise FeatureError(
                        "no model is configured. Set features.settings.summary.model to an endpoint with a "
                        "chat model: {base_url: http://localhost:8000/v1, model: NAME}"
                    )
                self._model = OpenAIChatModel.from_config(self.config.model)
            if self._counter is None:
                self._counter = build_counter(self.config.tokens, find_model)
            return self._model, self._counter


def _is_long(lines: Sequence[Line], min_chars: int) -> bool:
    total = sum(len(line.text) + 1 for line in lines)
    return total > min_chars and any(line.text.strip() for line in lines)


def _title(part: Part) -> str:
    """What the model is told beside the lines; nothing that differs for equal content."""
    kind = part.value.kind
    form = getattr(part.value, "format", None) or getattr(part.value, "language", None)
    return f"Text of kind {kind}{f' ({form})' if form else ''}:"


def _plain(sentence: Sentence, lines: Sequence[Line]) -> dict[str, Any]:
    cited = sentence.cited
    return {
        "text": sentence.text,
        "lines": [cited[0][0], max(b for _, b in cited)] if cited else None,
        "cited": [[a, b] for a, b in cited],
        "where": ", ".join(where(lines, a, b) for a, b in cited),
        "verified": not sentence.doubt,
        "doubt": sentence.doubt,
    }
