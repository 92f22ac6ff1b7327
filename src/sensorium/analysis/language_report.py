"""Makes `report.html` of a language model's run: one page that says what it learnt, with episodes to read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorium.analysis.curves import Course, metric_table
from sensorium.analysis.formatting import number
from sensorium.analysis.language_charts import detail_sections, learning_curves
from sensorium.analysis.language_episodes import shown_updates
from sensorium.analysis.language_summary import LanguageSummary, read_language_summary
from sensorium.analysis.page_templates import page_templates
from sensorium.analysis.run_directory import RunDirectory
from sensorium.core.files import atomic_write_bytes

_UNITS = {
    "trajectory": "whole episodes of a task",
    "gigpo": "whole episodes of a task, and their steps in the same state",
    "task": "steps of a task",
    "task_step": "steps of a task that have the same number",
    "task_state": "steps of a task in the same state",
}
"""What is compared, in words: `algo.unit`, or `algo.group_by` where steps are compared alone."""


@dataclass(frozen=True, slots=True)
class _Headline:
    """What the top of the page says beside the summary."""

    compared: str
    group: str
    """How many episodes of how many tasks; empty when the run does not say."""
    adapters: str
    change: str
    """How the return changed: ``up``, ``down`` or nothing."""


def write_language_report(run_dir: Path) -> Path:
    """Write `report.html` into the directory of a language model's run and return its path.

    The page holds its pictures, charts and styles; it loads nothing and runs no script. A run that kept no
    episodes gets a page without them.

    Args:
        run_dir: A finished run: `config.json`, `metrics.jsonl`, `summary.json` and, optionally, `episodes/`.

    Raises:
        RunDirectoryError: A file is missing or broken; the message names it and says how to mend it.
        MissingDependencyError: jinja2 or Pillow is not installed.
        OSError: The page cannot be written; an older one stays as it was.
    """
    run = RunDirectory(run_dir)
    atomic_write_bytes(run.report_path, render_language_report(run).encode("utf-8", "replace"))
    return run.report_path


def render_language_report(run: RunDirectory) -> str:
    """Return the page as text; see `write_language_report`."""
    templates = page_templates(extra="rl", purpose="the report")
    summary, config = read_language_summary(run), run.config()
    course = Course(run.metrics(), x_unit="updates", x_name="updates")
    page: str = templates.get_template("language_report.html.j2").render(
        summary=summary,
        headline=_headline(summary, config),
        split=_settings(config, "evaluation").get("split", "test"),
        run_name=f"{run.path.resolve().parent.name}/{run.path.resolve().name}",
        learning=learning_curves(course),
        updates=shown_updates(run.path),
        sections=detail_sections(course),
        metrics=metric_table(course),
        config=json.dumps(config, indent=2, ensure_ascii=False),
    )
    return page


def _headline(summary: LanguageSummary, config: Mapping[str, Any]) -> _Headline:
    algo, lora = _settings(config, "algo"), _settings(config, "lora")
    group_by = algo.get("group_by", "task_state")
    compared = _UNITS.get(group_by if summary.unit == "step" else summary.unit, summary.unit)
    is_by_state = summary.unit == "gigpo" or (summary.unit == "step" and group_by == "task_state")
    before, after = summary.first_return, summary.last_return
    change = 0.0 if before is None or after is None else after - before
    size, tasks = algo.get("group_size"), algo.get("tasks_per_update")
    return _Headline(
        compared=compared + (", or in one that is nearly so" if is_by_state and algo.get("near") else ""),
        group=f"{size} episodes of each of {tasks} tasks per update" if size and tasks else "",
        adapters=f"adapters of rank {number(lora.get('rank'))}" if lora else "all weights trained",
        change="up" if change > 0 else "down" if change < 0 else "",
    )


def _settings(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """One section of a run's settings; empty where there is none."""
    whole = config.get("config")
    found = whole.get(name) if isinstance(whole, Mapping) else None
    return found if isinstance(found, Mapping) else {}
