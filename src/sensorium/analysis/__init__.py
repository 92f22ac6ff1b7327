"""Reads finished runs: their files with types, statistics, and the report."""

from sensorium.analysis.film import Film, FilmNotes
from sensorium.analysis.language_report import write_language_report
from sensorium.analysis.language_summary import LanguageSummary, read_language_summary
from sensorium.analysis.report import write_report
from sensorium.analysis.run_directory import Checkpoint, RunDirectory, SubsetResult, Summary
from sensorium.analysis.statistics import (
    bootstrap_interval,
    interquartile_mean,
    paired_success_ratio,
    stratified_bootstrap,
)
from sensorium.core.intervals import Interval, wilson_interval

__all__ = [
    "Checkpoint",
    "Film",
    "FilmNotes",
    "Interval",
    "LanguageSummary",
    "RunDirectory",
    "SubsetResult",
    "Summary",
    "bootstrap_interval",
    "interquartile_mean",
    "paired_success_ratio",
    "read_language_summary",
    "stratified_bootstrap",
    "wilson_interval",
    "write_language_report",
    "write_report",
]
