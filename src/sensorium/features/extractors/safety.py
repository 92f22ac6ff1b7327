"""Judges pictures before an agent sees them: the extractor around `ImageSafetyJudge`."""

import threading
from collections.abc import Sequence

from sensorium.core import FeatureError
from sensorium.features.extractors.base import Features
from sensorium.features.models import find_model
from sensorium.features.safety import ImageSafetyJudge
from sensorium.features.safety_answer import PROMPT_DIGEST, Verdict, unjudged
from sensorium.features.safety_config import SafetyConfig
from sensorium.llm.client import OpenAIChatModel
from sensorium.llm.tokens import build_counter
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue


class Safety:
    """Verdicts on pictures, in ``data["verdict"]``: ``safe`` or ``unsafe``; ``unjudged`` is unavailable, too.

    Args:
        config: The judge, its window, policy and limits.
        judge: A judge that is built already, instead of the one that `config` describes.
    """

    name = "safety"

    def __init__(self, config: SafetyConfig | None = None, judge: ImageSafetyJudge | None = None) -> None:
        self.config = config or (judge.config if judge is not None else SafetyConfig())
        self._judge = self._given = judge
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Changes with the judge, the policy, and what decides how pictures are sent."""
        if self._given is not None:
            return self._given.version
        settings = self.config.digest(exclude={"cache", "cache_folder", "timeout_s", "max_concurrency"})
        return f"{settings}-{PROMPT_DIGEST}"

    def accepts(self, part: Part) -> bool:
        """Pictures."""
        return isinstance(part.value, ImageValue)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Judge pictures, several at a time; of one that is known by its address only nothing is said.

        Raises:
            FeatureError: No judge is configured.
            ConfigError: The judge's key or vocabulary is not there.
            MissingDependencyError: A package that the judge's client or counter needs is not installed.
        """
        judge = self._built()
        found = [_data(part) for part in parts]
        verdicts = iter(judge.judge_many([data for data in found if data is not None]))
        version, results = self.version, []
        for part, data in zip(parts, found, strict=True):
            verdict = (
                unjudged("there are no bytes of the picture, only its address")
                if data is None
                else next(verdicts)
            )
            results.append(self._features(part, verdict, version))
        return results

    def _features(self, part: Part, verdict: Verdict, version: str) -> Features:
        is_judged = verdict.verdict != "unjudged"
        names = f" ({', '.join(verdict.categories)})" if verdict.categories else ""
        return Features(
            part_id=part.id,
            extractor=self.name,
            version=version,
            data=verdict.model_dump(mode="json", exclude={"latency_s", "is_cached"}),
            summary=f"{verdict.verdict}{names}: {verdict.reason}" if is_judged else "",
            unavailable=None if is_judged else verdict.reason,
        )

    def _built(self) -> ImageSafetyJudge:
        with self._lock:
            if self._judge is None:
                config = self.config
                if config.judge is None:
                    raise FeatureError(
                        "no judge is configured. Set features.settings.safety.judge to an endpoint with a "
                        "multimodal chat model: {base_url: http://localhost:8000/v1, model: NAME}"
                    )
                counter = build_counter(config.tokens, find_model)
                self._judge = ImageSafetyJudge(OpenAIChatModel.from_config(config.judge), counter, config)
            return self._judge


def _data(part: Part) -> bytes | None:
    return part.value.data if isinstance(part.value, ImageValue) else None
