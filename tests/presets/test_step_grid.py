import itertools
import json

import pytest

from sensorium.presets import find_preset
from sensorium.trainers.language.grpo import GRPOTraining

pytest.importorskip("minigrid")
SMALL = {
    "num_tasks": 4,
    "algo": {"total_updates": 1, "tasks_per_update": 1, "group_size": 6},
    "evaluation": {"every": 0, "tasks": 2},
}
TRAJECTORY = {
    "algo": {"unit": "trajectory"},
    "observation": {"context_management": {"drop_full_history": False}},
}


def train(config, folder):
    """Rows of metrics, and steps of the first update's episodes."""
    GRPOTraining(config, folder).run()
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    episodes = json.loads((folder / "episodes" / "000000.json").read_text())
    return rows, [episode["steps"] for episode in episodes]


def prompt_tokens(steps):
    return [step["completion"]["usage"]["prompt_tokens"] for step in steps]


def test_prompts_of_steps_stay_short_and_those_of_trajectories_grow(tmp_path):
    config = find_preset("grpo_step_grid").updated(SMALL)
    rows, dropped = train(config, tmp_path / "step")
    kept_rows, kept = train(config.updated(TRAJECTORY), tmp_path / "trajectory")
    assert [len(rows), len(kept_rows)] == [1, 1]
    assert max(map(len, kept)) > 5, "there is something to grow"
    for steps in dropped:
        assert max(prompt_tokens(steps)) < 180
    for steps in kept:
        lengths = prompt_tokens(steps)
        assert all(after - before > 60 for before, after in itertools.pairwise(lengths))


def test_every_answer_is_a_move_and_one_of_its_tokens_is_learnt_from(tmp_path):
    rows, episodes = train(find_preset("grpo_step_grid").updated(SMALL), tmp_path)
    answers = {step["completion"]["message"]["content"][0]["text"] for steps in episodes for step in steps}
    assert answers <= {'"l"', '"r"', '"f"'}
    assert all(row["tokens/answer"] == 3.0 for row in rows)
    assert all(row["groups/size"] > 1 for row in rows), "steps meet in the same state"


@pytest.mark.slow
@pytest.mark.learning
def test_a_tiny_model_learns_to_walk_to_the_goal(tmp_path):
    config = find_preset("grpo_step_grid").updated({"evaluation": {"every": 0, "tasks": 100}})
    rows, _ = train(config, tmp_path)
    assert rows[0]["rollout/success_rate"] < 0.7
    assert json.loads((tmp_path / "summary.json").read_text())["success_rate"] >= 0.8
