import math

import pytest

from sensorium.core import ConfigError
from sensorium.presets import find_preset
from sensorium.trainers.config import TrainConfig


def quickstart() -> TrainConfig:
    preset = find_preset("quickstart")
    assert isinstance(preset, TrainConfig)
    return preset


def test_another_task_has_another_chance() -> None:
    """The success that chance has is drawn into the report."""
    preset = quickstart()
    assert preset.evaluation.chance_success == pytest.approx(1 / 3)
    moved = preset.updated({"env": {"task": "arena/listen"}, "evaluation": {"episodes": 50}})
    assert (moved.evaluation.chance_success, moved.evaluation.episodes) == (None, 50)
    told = preset.updated({"env": {"task": "arena/listen"}, "evaluation": {"chance_success": 0.25}})
    assert told.evaluation.chance_success == 0.25
    same = preset.updated({"env": {"task": "arena/find", "image_size": 32}})
    assert same.evaluation.chance_success == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"lr": math.inf},
        {"ent_coef": math.inf},
        {"kl_coef": math.nan},
        {"learning_rates": {"vision": math.inf}},
        {"vf_clip_range": -1.0},
        {"max_staleness": 2},
    ],
    ids=str,
)
def test_settings_that_no_run_could_use_are_refused(changes: dict[str, object]) -> None:
    name = next(iter(changes))
    with pytest.raises(ConfigError, match=rf"algo\.{name}"):
        quickstart().updated({"algo": changes})


@pytest.mark.parametrize(
    "changes", [{"env": 3}, {"env": None}, {"evaluation": None}, {"evaluation": [1]}], ids=str
)
def test_a_section_that_is_none_is_refused_in_words(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changes))):
        quickstart().updated(changes)
