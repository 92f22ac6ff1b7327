"""Measured quantities: typed values, what their names mean, and where they are written."""

from sensorium.metrics.names import METRIC_MEANINGS, meaning
from sensorium.metrics.observation import (
    ObservationMeter,
    ObservationSample,
    PartTokens,
    observation_metrics,
)
from sensorium.metrics.sinks import JsonlSink, MultiSink, Sink, TensorBoardSink, read_jsonl
from sensorium.metrics.values import (
    Histogram,
    Latest,
    Max,
    Mean,
    Metric,
    Min,
    Numbers,
    Std,
    Sum,
    merge_metrics,
)

__all__ = [
    "METRIC_MEANINGS",
    "Histogram",
    "JsonlSink",
    "Latest",
    "Max",
    "Mean",
    "Metric",
    "Min",
    "MultiSink",
    "Numbers",
    "ObservationMeter",
    "ObservationSample",
    "PartTokens",
    "Sink",
    "Std",
    "Sum",
    "TensorBoardSink",
    "meaning",
    "merge_metrics",
    "observation_metrics",
    "read_jsonl",
]
