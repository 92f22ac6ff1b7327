import json
from pathlib import Path
from typing import Any

import pytest
from html_page import Page

from sensorium.analysis import write_report
from sensorium.analysis.curriculum import StageChange, read_curriculum, stage_marks, stage_rows
from sensorium.core import RunDirectoryError


def change(env_steps: int, before: int, after: int, *new: str) -> dict[str, Any]:
    return {
        "env_steps": env_steps,
        "before": before,
        "after": after,
        "success_rate": 0.875,
        "low": 0.81,
        "high": 0.92,
        "episodes": 1200,
        "new_sensors": list(new),
    }


CHANGES = [
    change(200_000, 0, 1, "env_sound"),
    change(420_000, 1, 0),
    change(600_000, 0, 1),
    change(900_000, 1, 2, "depth", "instruction"),
]
CONFIG = {
    "config": {
        "curriculum": {
            "stages": [
                {"sensors": ["rgb"]},
                {"sensors": ["rgb", "env_sound"]},
                {"sensors": ["rgb", "env_sound", "depth", "instruction"]},
            ]
        }
    }
}


def parsed() -> list[StageChange]:
    return [StageChange.model_validate(entry) for entry in CHANGES]


def test_changes_in_words() -> None:
    rows = stage_rows(parsed(), CONFIG)
    assert [(row.steps, row.what, row.sensors) for row in rows] == [
        ("0", "Training began at stage 0.", "rgb"),
        ("200,000", "Stage 0 was mastered: stage 1 began, env_sound joined.", "rgb, env_sound"),
        ("420,000", "Stage 1 was too hard: training went back to stage 0.", "rgb"),
        ("600,000", "Stage 0 was mastered: stage 1 began, with no new sense.", "rgb, env_sound"),
        (
            "900,000",
            "Stage 1 was mastered: stage 2 began, depth and instruction joined.",
            "rgb, env_sound, depth, instruction",
        ),
    ]
    assert (rows[0].success, rows[0].episodes) == ("–", "–")
    assert (rows[1].success, rows[1].episodes) == ("87.5 % (81–92 %)", "1,200")


@pytest.mark.parametrize("config", [{}, {"config": None}, {"config": {"curriculum": None}}])
def test_settings_without_stages_only_cost_the_names_of_the_senses(config: dict[str, Any]) -> None:
    rows = stage_rows(parsed(), config)
    assert len(rows) == 4
    assert {row.sensors for row in rows} == {"–"}
    assert stage_rows([], CONFIG) == []


def test_marks_name_what_joined() -> None:
    assert [(mark.x, mark.label) for mark in stage_marks(parsed())] == [
        (200_000.0, "+ env_sound"),
        (420_000.0, "to stage 0"),
        (600_000.0, "to stage 1"),
        (900_000.0, "+ depth, instruction"),
    ]


def test_the_page_has_the_table_and_marks_in_the_charts(run_dir: Path) -> None:
    (run_dir / "curriculum.json").write_text(json.dumps(CHANGES))
    (run_dir / "config.json").write_text(json.dumps(CONFIG))
    html = write_report(run_dir).read_text()
    page = Page(html)
    assert page.headings()[:4] == ["learning", "curriculum", "training-senses", "senses"]
    assert "200,000 steps Stage 0 was mastered: stage 1 began, env_sound joined." in page.text
    learning = html.split('id="learning"')[1].split("</section>")[0]
    assert learning.count('class="mark labelled"') == 2 * len(CHANGES)
    senses = html.split('id="training-senses"')[1].split("</section>")[0]
    assert senses.count('class="mark labelled"') == len(CHANGES)
    assert "curriculum.json" in page.text


def test_no_file_or_no_change_is_no_curriculum(run_dir: Path) -> None:
    assert read_curriculum(run_dir) == []
    (run_dir / "curriculum.json").write_text("[]")
    assert read_curriculum(run_dir) == []
    assert "curriculum" not in Page(write_report(run_dir).read_text()).headings()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("[", "is not JSON"),
        ("{}", "valid list"),
        (json.dumps([change(1, 0, 1) | {"low": 2}]), r"0\.low"),
        (json.dumps([{"env_steps": 1}]), r"0\.before"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(run_dir: Path, content: str, found: str) -> None:
    (run_dir / "curriculum.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=rf"curriculum\.json.*{found}.*remove it"):
        read_curriculum(run_dir)
