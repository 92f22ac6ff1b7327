"""One call from a raw state to what a language model reads: read, extract, represent."""

import asyncio
import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import Modality, parse_config, read_yaml
from sensorium.features import find_model
from sensorium.features.extractors.base import FeatureMap
from sensorium.features.extractors.runner import FeatureReport, FeatureRunner
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock
from sensorium.llm.tokens import build_counter
from sensorium.observations.base import Observation, Part
from sensorium.observations.read import read
from sensorium.observations.values import TextValue
from sensorium.representations.align import interleave
from sensorium.representations.base import Representation
from sensorium.representations.compose import build_prompt, compose
from sensorium.representations.config import PipelineConfig
from sensorium.representations.documents import DocumentCache
from sensorium.representations.history import History
from sensorium.representations.references import References
from sensorium.representations.scoring import Relevance
from sensorium.representations.selection import Selection
from sensorium.representations.subjects import Context, Serve, Subject, build_subjects, common_root
from sensorium.representations.weights import part_weights

_TASK_ID = "(task)"
_MAX_ERRORS, _ERROR_CHARS = 3, 200
_NO_HISTORY = History()


class Trace(NamedTuple):
    """All three layers of one observation."""

    observation: Observation
    features: FeatureMap
    representation: Representation
    blocks: Mapping[str, tuple[AnyBlock, ...]]
    config: PipelineConfig
    latencies: Mapping[str, Sequence[float]]
    """Modality -> milliseconds that extraction took for each part, 0 from the cache."""

    def shown(self, part_id: str) -> tuple[AnyBlock, ...]:
        """The blocks that show a part; empty for one that was dropped."""
        return self.blocks.get(part_id, ())


class ObservationPipeline:
    """Turns raw states into messages within a token budget.

    Use it as a function; it keeps no state between calls beside caches, so that one pipeline serves many
    environments and threads.

    Args:
        config: Everything adjustable.
        counter: Counts tokens; by default what ``config.tokens`` names.
        serve: Registers encoded pictures and returns their URL; for ``encoding: url``.
    """

    def __init__(
        self,
        config: PipelineConfig | None = None,
        *,
        counter: TokenCounter | None = None,
        serve: Serve | None = None,
    ) -> None:
        self.config = config or PipelineConfig()
        self.counter = counter or build_counter(self.config.tokens, find_model)
        self._runner = FeatureRunner(self.config.features)
        self._serve = serve
        self._documents = DocumentCache(self.config.multimodal, self.counter)

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
    ) -> "ObservationPipeline":
        """Build from a YAML file.

        Args:
            path: The file; sections and keys are those of `PipelineConfig`.
            overrides: Nested settings laid over the file.

        Raises:
            ConfigError: The file cannot be read, or a key is unknown.
        """
        config = parse_config(PipelineConfig, read_yaml(Path(path)))
        return cls(config.updated(overrides) if overrides else config)

    def __call__(
        self,
        raw: Any,
        *,
        task: str = "",
        history: History | None = None,
        system: str = "",
        weights: Mapping[str, float] | None = None,
    ) -> Representation:
        """Represent one raw state.

        Args:
            raw: Anything `sensorium.observations.read` reads, or an `Observation`.
            task: The instruction; parts are weighted by what they have to do with it.
            history: Earlier steps.
            system: A system prompt in front of everything.
            weights: Learnt weights per kind of part (`Adaptive.weights`).

        Raises:
            ObservationError: The instruction alone does not fit the budget.
        """
        return self.trace(raw, task=task, history=history, system=system, weights=weights).representation

    def trace(
        self,
        raw: Any,
        *,
        task: str = "",
        history: History | None = None,
        system: str = "",
        weights: Mapping[str, float] | None = None,
    ) -> Trace:
        """Like a call, but returns all three layers."""
        observation = self._read(raw)
        report = self._runner.run(self._inputs(observation, task))
        return self._represent(observation, report, task, history, system, weights)

    async def aobserve(
        self,
        raw: Any,
        *,
        task: str = "",
        history: History | None = None,
        system: str = "",
        weights: Mapping[str, float] | None = None,
    ) -> Representation:
        """Like a call, without blocking the event loop: reading, extraction and layout run in threads."""
        observation = await asyncio.to_thread(self._read, raw)
        report = await self._runner.arun(self._inputs(observation, task))
        trace = await asyncio.to_thread(self._represent, observation, report, task, history, system, weights)
        return trace.representation

    def observe_batch(
        self,
        raws: Sequence[Any],
        *,
        tasks: Sequence[str] | str = "",
        histories: Sequence[History | None] | None = None,
    ) -> list[Representation]:
        """Represent the states of many environments; features of all of them are extracted as one batch.

        Args:
            raws: States.
            tasks: One instruction for all, or one each.
            histories: One per state.

        Raises:
            ValueError: Lengths differ.
        """
        each = [tasks] * len(raws) if isinstance(tasks, str) else list(tasks)
        pasts = list(histories) if histories is not None else [None] * len(raws)
        if not len(each) == len(pasts) == len(raws):
            raise ValueError(f"{len(raws)} states, {len(each)} tasks and {len(pasts)} histories do not fit")
        observations = [self._read(raw) for raw in raws]
        reports = self._runner.run_many(
            [self._inputs(o, task) for o, task in zip(observations, each, strict=True)]
        )
        return [
            self._represent(o, report, task, past, "", None).representation
            for o, report, task, past in zip(observations, reports, each, pasts, strict=True)
        ]

    def references(self, seen: Trace | Observation, *, max_tokens: int = 1024) -> References:
        """What answers the agent's calls of the fetch tool.

        Args:
            seen: What was observed; of an observation alone features are extracted again (or come from the
                cache), so that a picture that the safety check withholds stays withheld.
            max_tokens: Most tokens of one answer.
        """
        if isinstance(seen, Trace):
            observation, features = seen.observation, seen.features
        else:
            observation, features = seen, self._runner.run(seen.parts).features
        return References(observation, self.config, self.counter, max_tokens, features)

    def with_settings(self, settings: Mapping[str, Any]) -> "ObservationPipeline":
        """A pipeline with other settings that shares counter, workers and caches with this one.

        Args:
            settings: Nested, laid over the config, e.g. ``{"observation": {"max_tokens": 1024}}``; sections
                ``features`` and ``tokens`` stay those of this one.

        Raises:
            ConfigError: A key is unknown.
        """
        other = copy.copy(self)
        other.config = self.config.updated(settings)
        other._documents = DocumentCache(other.config.multimodal, self.counter)
        return other

    def close(self) -> None:
        """Stop worker threads and close the cache."""
        self._runner.close()

    def _read(self, raw: Any) -> Observation:
        """The raw state as parts; those that have a time are put into its order, across all sensors."""
        observation = raw if isinstance(raw, Observation) else read(raw, config=self.config.reading)
        if all(part.timestamp_s is None for part in observation.parts):
            return observation
        return Observation(parts=interleave(observation.parts), timestamp_s=observation.timestamp_s)

    def _inputs(self, observation: Observation, task: str) -> list[Part]:
        """Parts to extract from; where sentences are embedded the task is one of them, to compare with."""
        parts = list(observation.parts)
        if task and "sentence" in self.config.features.extractors:
            parts.append(Part(id=_TASK_ID, modality=Modality.TEXT, value=TextValue(text=task)))
        return parts

    def _represent(
        self,
        observation: Observation,
        report: FeatureReport,
        task: str,
        history: History | None,
        system: str,
        weights: Mapping[str, float] | None,
    ) -> Trace:
        past = history or _NO_HISTORY
        prompt = build_prompt(task, system, past, self.config, self.counter)
        subjects: list[Subject] = []
        if observation.parts and self.config.context_management.keep_current_state:
            measured = [self._documents.lay_out(part) for part in observation.parts]
            errors = _errors_of(observation)
            documents = [m.document for m in measured if m is not None] if task or errors else []
            relevance = Relevance(task, documents=documents, errors=errors)
            subjects = build_subjects(
                observation, measured, report.features, self.config, self._documents, relevance, self._serve
            )
            related = _related(subjects, relevance, report.features)
        else:
            related = []
        weighted = part_weights(subjects, related, seen=past.met, kinds=weights or {})
        root = common_root(observation)
        context = Context(self.config, self.counter, past, serve=self._serve)
        selection = Selection(subjects, weighted, root, context)
        representation, blocks = compose(selection, prompt, context, report)
        latencies = {str(kind): ms for kind, ms in report.latencies(observation.parts).items()}
        return Trace(observation, report.features, representation, blocks, self.config, latencies)


def _errors_of(observation: Observation) -> str:
    """What the first errors say of themselves, e.g. ``KeyError 'bed_rooms'``."""
    stacks = [part.stack for part in observation.parts if part.stack is not None][:_MAX_ERRORS]
    return " ".join(f"{stack.type} {stack.message[:_ERROR_CHARS]}" for stack in stacks)


def _related(subjects: Sequence[Subject], relevance: Relevance, features: FeatureMap) -> list[float]:
    """Relevance of every subject to the task: by words of it and of its best line, and by embeddings."""
    task = features.get(_TASK_ID, {}).get("sentence")
    found = []
    for subject in subjects:
        share = 0.0
        if subject.sheet is not None and not relevance.is_empty:
            share = relevance.of_part(subject.sheet.heading, subject.sheet.document)
        own = features.get(subject.part.id, {}).get("sentence")
        if task is not None and own is not None and task.vector is not None and own.vector is not None:
            share = max(share, float(task.vector @ own.vector))
        found.append(min(1.0, max(0.0, share)))
    return found
