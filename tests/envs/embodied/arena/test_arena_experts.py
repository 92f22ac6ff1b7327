"""Which senses the tasks need, shown by experts who act on readings alone."""

import pytest

from sensorium.envs.embodied.arena.expert import run_expert
from sensorium.envs.embodied.arena.tasks import TASKS


@pytest.fixture(scope="module")
def success():
    return {task: run_expert(task).mean() for task in TASKS}


@pytest.mark.parametrize("task", list(TASKS))
def test_expert_with_all_senses_succeeds(success, task):
    assert success[task] >= 0.9


CASES = [
    ("arena/find", ("rgb",), True),
    ("arena/find", ("instruction", "speech"), True),
    ("arena/listen", ("env_sound",), True),
    ("arena/senses", ("rgb",), True),
    ("arena/senses", ("instruction",), False),
    ("arena/senses", ("speech",), False),
    ("arena/senses", ("env_sound",), False),
]


@pytest.mark.parametrize(("task", "blank", "guess"), CASES)
def test_a_needed_sense_costs_thirty_points(success, task, blank, guess):
    """Where one of three channels tells, an expert who knows that it does not know chooses nothing."""
    assert blank in TASKS[task].needs
    assert run_expert(task, blank=blank, guess=guess).mean() <= success[task] - 0.3


@pytest.mark.parametrize("blank", ["instruction", "speech"])
def test_text_and_speech_replace_each_other_in_find(success, blank):
    assert run_expert("arena/find", blank=(blank,)).mean() >= success["arena/find"] - 0.02
