"""Figures about what a language model is shown: tokens, what was retained, time, and the cache."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sensorium.metrics.sinks import Sink
from sensorium.metrics.values import Histogram, Latest, Mean, Metric, Sum, merge_metrics

TOKEN_EDGES: tuple[float, ...] = (0.0, *(float(2 ** (n / 2)) for n in range(41)))
"""Half octaves from 1 to 1,048,576 tokens, and a bin for none."""

LATENCY_EDGES: tuple[float, ...] = tuple(float(10 ** (n / 40 - 3)) for n in range(321))
"""Forty bins per decade from a microsecond to 100 s, in milliseconds: a quantile is off by 6 % at most."""

_QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTokens:
    """What became of one part."""

    modality: str
    tokens_before: int
    tokens_after: int
    retained: float = 1.0
    """Estimated share of its information that is still there, in [0, 1]."""
    level: str = ""
    """``full``, ``delta``, ``summary``, ...; not counted when empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSample:
    """One finished representation in plain numbers."""

    parts: Sequence[PartTokens] = ()
    num_tokens: int = 0
    """Of the whole representation."""
    max_tokens: int = 0
    """Limit; 0 when there is none."""
    extraction_ms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Modality -> milliseconds that extraction took for each of its parts; cached ones left out."""
    cache_hits: int = 0
    cache_misses: int = 0
    facts_planted: int = 0
    """Probe facts that were in the raw state."""
    facts_retained: int = 0
    """Those that are still in the representation."""
    similarity: float | None = None
    """Cosine of the embeddings of the full text and of the representation."""

    @staticmethod
    def of_account(
        account: Mapping[str, Any], *, extraction_ms: Mapping[str, Sequence[float]] | None = None
    ) -> "ObservationSample":
        """Take the numbers out of an account in its plain form, ``representation.account.model_dump()``.

        Args:
            account: With `entries` (each `modality`, `level`, `tokens_before`, `tokens_after`, `retained`),
                `num_tokens`, `max_tokens`, `cache_hits` and `cache_misses`.
            extraction_ms: Modality -> milliseconds per part, which an account does not hold.

        Raises:
            KeyError: A key is missing.
        """
        parts = [
            PartTokens(
                modality=str(entry["modality"]),
                tokens_before=entry["tokens_before"],
                tokens_after=entry["tokens_after"],
                retained=float(entry["retained"]),
                level=str(entry["level"]),
            )
            for entry in account["entries"]
        ]
        return ObservationSample(
            parts=parts,
            num_tokens=account["num_tokens"],
            max_tokens=account["max_tokens"],
            extraction_ms=extraction_ms or {},
            cache_hits=account["cache_hits"],
            cache_misses=account["cache_misses"],
        )


def observation_metrics(sample: ObservationSample) -> dict[str, Metric]:
    """The metrics of one representation; those of several are merged with `merge_metrics`."""
    metrics: dict[str, Metric] = {
        "observation/count": Sum.of(1),
        "observation/num_tokens": Histogram.of(sample.num_tokens, TOKEN_EDGES),
    }
    if sample.max_tokens > 0:
        metrics["observation/budget_used"] = Mean.of(sample.num_tokens / sample.max_tokens)
    for modality, parts in _by_modality(sample.parts).items():
        before, after = [p.tokens_before for p in parts], [p.tokens_after for p in parts]
        metrics[f"observation/tokens/{modality}"] = Histogram.of(after, TOKEN_EDGES)
        metrics[f"observation/tokens_before/{modality}"] = Histogram.of(before, TOKEN_EDGES)
        if sum(before):
            metrics[f"observation/retained/{modality}"] = Mean.of([part.retained for part in parts], before)
            metrics[f"observation/kept_share/{modality}"] = Mean.of(sum(after) / sum(before), sum(before))
    for part in sample.parts:
        if part.level:
            name = f"observation/parts/{part.level}"
            metrics[name] = metrics.get(name, Sum()).merge(Sum.of(1))
    for modality, times in sample.extraction_ms.items():
        if len(times):
            metrics[f"observation/extraction_ms/{modality}"] = Histogram.of(times, LATENCY_EDGES)
    if asked := sample.cache_hits + sample.cache_misses:
        metrics["observation/cache_hit_rate"] = Mean.of(sample.cache_hits / asked, asked)
    if sample.facts_planted:
        share = sample.facts_retained / sample.facts_planted
        metrics["observation/facts_retained"] = Mean.of(share, sample.facts_planted)
    if sample.similarity is not None:
        metrics["observation/similarity"] = Mean.of(sample.similarity)
    return metrics


class ObservationMeter:
    """Adds up the metrics of representations, and writes them step by step.

    Args:
        sink: Where `write` puts them; None keeps them for the caller.

    Example:
        >>> meter = ObservationMeter()
        >>> part = PartTokens(modality="code", tokens_before=1000, tokens_after=250, retained=0.9)
        >>> meter.add(ObservationSample(parts=[part], num_tokens=300, cache_hits=3, cache_misses=1))
        >>> meter.write(0)["observation/cache_hit_rate"].value
        0.75
        >>> meter.summary()["observation/retained/code"].value
        0.9
    """

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self._pending: dict[str, Metric] = {}
        self._total: dict[str, Metric] = {}

    def add(self, sample: ObservationSample) -> None:
        """Count one representation."""
        self._pending = merge_metrics([self._pending, observation_metrics(sample)])

    def write(self, step: int) -> dict[str, Metric]:
        """Write what was counted since the last call, if anything, and start anew.

        Args:
            step: Number of the step, e.g. of the environment.

        Returns:
            What was written, with the latency quantiles of every modality.
        """
        written = with_quantiles(self._pending)
        if written and self._sink is not None:
            self._sink.write(step, written)
        self._total = merge_metrics([self._total, self._pending])
        self._pending = {}
        return written

    def summary(self) -> dict[str, Metric]:
        """Everything that was counted so far, over all steps."""
        return with_quantiles(merge_metrics([self._total, self._pending]))


def with_quantiles(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics and, for every latency histogram, its 50th, 95th and 99th percentile by name."""
    found = dict(metrics)
    for name, metric in metrics.items():
        prefix, _, modality = name.rpartition("/")
        if prefix == "observation/extraction_ms" and isinstance(metric, Histogram):
            for q in _QUANTILES:
                found[f"observation/extraction_p{round(100 * q)}_ms/{modality}"] = Latest.of(
                    quantile(metric, q)
                )
    return found


def quantile(histogram: Histogram, q: float) -> float:
    """Value below which a share `q` lies, interpolated geometrically between positive edges.

    Between edges a and b of a bin of which a share s lies below: ``a (b / a)^s``. NaN when empty.
    """
    linear = histogram.quantile(q)
    edges = np.asarray(histogram.edges)
    above = int(np.searchsorted(edges, linear, side="right"))
    if not 0 < above < len(edges) or edges[above - 1] <= 0:
        return linear
    low, high = float(edges[above - 1]), float(edges[above])
    return float(low * (high / low) ** ((linear - low) / (high - low)))


def _by_modality(parts: Iterable[PartTokens]) -> dict[str, list[PartTokens]]:
    found: dict[str, list[PartTokens]] = {}
    for part in parts:
        found.setdefault(part.modality, []).append(part)
    return found
