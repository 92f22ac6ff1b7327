"""Makes `report.html`: one self-contained page that says what a run learnt and what its senses are worth."""

import json
from pathlib import Path
from typing import Any

from sensorium.analysis.charts import interval_bar
from sensorium.analysis.curriculum import read_curriculum, stage_marks, stage_rows
from sensorium.analysis.curves import Course, detail_charts, learning_charts, metric_table
from sensorium.analysis.evaluation_sections import evaluation_sections
from sensorium.analysis.evaluations import read_evaluations
from sensorium.analysis.film_strip import film_strip
from sensorium.analysis.page_templates import page_templates
from sensorium.analysis.run_directory import RunDirectory, Summary
from sensorium.analysis.senses import subset_rows, worth_of_senses
from sensorium.analysis.training_senses import attention_matrix, sense_charts
from sensorium.core.files import atomic_write_bytes


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into a run directory and return its path.

    The page holds its pictures, sounds, charts and styles; it loads nothing and runs no script. A run without
    film, curriculum, missing-modality test or evaluation suites gets a page without these sections.

    Args:
        run_dir: A finished run: `config.json`, `metrics.jsonl`, `summary.json` and, optionally, `film/`,
            `curriculum.json` and `evals/`.

    Raises:
        RunDirectoryError: A file is missing or broken; the message names it and the command that makes it.
        MissingDependencyError: jinja2 or Pillow is not installed.
        OSError: The page cannot be written; an older one stays as it was.
    """
    run = RunDirectory(run_dir)
    page = render_report(run)
    atomic_write_bytes(run.report_path, page.encode())
    return run.report_path


def render_report(run: RunDirectory) -> str:
    """Return the page as text; see `write_report`."""
    environment = page_templates(extra="rl", purpose="the report")
    summary = run.summary()
    config = run.config()
    changes = read_curriculum(run.path)
    course = Course(run.metrics(), summary.sensors, stage_marks(changes))
    film = run.film()
    page: str = environment.get_template("report.html.j2").render(
        summary=summary,
        run_name=f"{run.path.resolve().parent.name}/{run.path.resolve().name}",
        learning=learning_charts(course),
        stages=stage_rows(changes, config),
        training_senses=sense_charts(course),
        attention=attention_matrix(course),
        details=detail_charts(course),
        metrics=metric_table(course),
        film=film_strip(film) if film is not None else None,
        evaluations=evaluation_sections(read_evaluations(run.path)),
        config=json.dumps(config, indent=2, ensure_ascii=False),
        **_senses(summary),
    )
    return page


def _senses(summary: Summary) -> dict[str, Any]:
    """Rows of the senses chart, and the worth of each sense."""
    rows = [
        (
            row,
            interval_bar(
                row.result.success_rate,
                *row.result.ci95,
                name=" + ".join(row.senses),
                chance=summary.chance_success,
            ),
        )
        for row in subset_rows(summary.missing_modality)
    ]
    return {"subsets": rows, "worth": worth_of_senses(summary.missing_modality)}
