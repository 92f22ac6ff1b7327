"""When a curriculum goes on or back, whatever trains on it."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from sensorium.core import ConfigError, EpisodeStatus, parse_config
from sensorium.rollouts.embodied import FinishedEpisode
from sensorium.trainers.config import CurriculumConfig
from sensorium.trainers.curriculum import Curriculum, StageChange

SENSORS = ("rgb", "speech", "instruction")
STAGES = [{"sensors": ["rgb"]}, {"sensors": ["rgb", "speech"]}, {"sensors": list(SENSORS)}]


def curriculum(**settings: Any) -> Curriculum:
    values = {"stages": STAGES, "min_episodes": 20, "window_episodes": 40, "patience": 2} | settings
    return Curriculum(parse_config(CurriculumConfig, values), SENSORS)


def episodes(good: int, bad: int = 0, *, stage: int = 0, broken: int = 0) -> Iterable[FinishedEpisode]:
    statuses = [EpisodeStatus.SUCCESS] * good + [EpisodeStatus.FAILURE] * bad
    statuses += [EpisodeStatus.ERROR] * broken
    for status in statuses:
        yield FinishedEpisode(status=status, episode_return=0.0, length=4, seed=0, stage=stage)


def promoted(made: Curriculum) -> StageChange:
    change = made.update(episodes(20, stage=made.stage), 100)
    assert change is not None
    return change


def test_success_leads_to_the_next_stage() -> None:
    made = curriculum()
    assert made.update(episodes(19), 50) is None  # too few to tell
    change = made.update(episodes(1), 60)
    # Wilson's lower bound of 20 of 20 is 1 / (1 + 1.96^2 / 20) = 0.8389
    assert change is not None
    assert (change.before, change.after, change.episodes, change.success_rate) == (0, 1, 20, 1.0)
    assert change.low == pytest.approx(0.8389, abs=1e-4)
    assert change.new_sensors == ("speech",)
    assert made.stage == 1
    assert made.changes == [{"env_steps": 60} | change._asdict() | {"new_sensors": ["speech"]}]
    assert promoted(made).new_sensors == ("instruction",)
    assert made.update(episodes(20, stage=2), 300) is None  # there is nothing after the last stage
    assert made.stage == 2


def test_a_lower_bound_below_the_threshold_is_not_enough() -> None:
    made = curriculum()
    # 18 of 20 is a rate of 0.9, and a lower bound of 0.70
    assert made.update(episodes(18, 2), 0) is None
    assert made.stage == 0


def test_only_the_latest_episodes_of_a_window_count() -> None:
    made = curriculum(window_episodes=20)
    assert made.update(episodes(0, 20), 0) is None
    assert made.update(episodes(20), 0) is not None


def test_failure_leads_back_after_some_patience() -> None:
    made = curriculum()
    promoted(made)
    assert made.update(episodes(0, 40, stage=1), 200) is None
    assert made.stage == 1
    change = made.update(episodes(0, 1, stage=1), 300)
    assert change is not None
    assert (change.before, change.after, change.new_sensors) == (1, 0, ())
    assert change.high < 0.2
    assert made.weights.tolist() == [1.0, 0.0, 0.0]


def test_a_sense_is_new_only_once() -> None:
    """After a setback its gate is not shut again: that would throw away what it has learnt."""
    made = curriculum()
    promoted(made)
    for _ in range(2):
        made.update(episodes(0, 40, stage=1), 200)
    assert made.stage == 0
    again = curriculum()
    again.from_json(json.loads(json.dumps(made.to_json())))
    for one in (made, again):
        assert promoted(one).new_sensors == ()
        assert promoted(one).new_sensors == ("instruction",)


def test_the_first_stage_is_not_left_downwards() -> None:
    made = curriculum()
    for _ in range(5):
        assert made.update(episodes(0, 40), 0) is None
    assert made.stage == 0


def test_zero_never_goes_back() -> None:
    made = curriculum(demote_below=0.0)
    promoted(made)
    for _ in range(5):
        assert made.update(episodes(0, 40, stage=1), 0) is None


def test_only_episodes_of_the_current_stage_that_have_an_outcome_count() -> None:
    made = curriculum()
    promoted(made)
    assert made.update(episodes(40, stage=0), 0) is None  # a replay of what is mastered already
    assert made.update(episodes(0, stage=1, broken=40), 0) is None
    assert made.update(episodes(19, stage=1, broken=5), 0) is None
    assert made.metrics().keys() == {"curriculum/stage", "curriculum/success_lower"}
    change = made.update(episodes(1, stage=1), 0)
    assert change is not None
    assert change.episodes == 20


def test_counting_begins_anew_at_a_stage() -> None:
    made = curriculum()
    promoted(made)
    assert made.metrics().keys() == {"curriculum/stage"}
    assert made.update(episodes(19, stage=1), 0) is None


def test_weights_replay_earlier_stages() -> None:
    made = curriculum(replay_share=0.3)
    assert made.weights.tolist() == [1.0, 0.0, 0.0]
    promoted(made)
    assert made.weights.tolist() == pytest.approx([0.3, 0.7, 0.0])
    promoted(made)
    assert made.weights.tolist() == pytest.approx([0.15, 0.15, 0.7])
    assert made.weights.sum() == pytest.approx(1.0)
    without = curriculum(replay_share=0.0)
    promoted(without)
    assert without.weights.tolist() == [0.0, 1.0, 0.0]
    assert made.allowed.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_json_round_trip() -> None:
    made = curriculum()
    promoted(made)
    made.update(episodes(1, 39, stage=1), 200)  # upper bound 0.13: the first sign that it is too hard
    again = curriculum()
    again.from_json(json.loads(json.dumps(made.to_json())))
    assert again.to_json() == made.to_json()
    for one in (made, again):
        assert one.update(episodes(0, 1, stage=1), 300) is not None
    assert again.to_json() == made.to_json()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stages": [{"sensors": ["rgbb"]}, STAGES[2]]}, r"curriculum\.stages\[0\] 'rgbb'.*'rgb'"),
        ({"stages": STAGES[:2]}, r"last stage of the curriculum lacks instruction.*Add it"),
        ({"stages": STAGES[:1]}, r"lacks speech, instruction.*Add them"),
        ({"stages": []}, r"stages.*at least 1"),
        ({"stages": [{"sensors": []}]}, r"stages\.0\.sensors.*at least 1"),
        ({"demote_below": 0.8}, r"demote_below \(0\.8\) must be less than promote_at \(0\.8\)"),
        ({"window_episodes": 10}, r"window_episodes \(10\) is less than min_episodes \(20\)"),
        ({"promote_at": 1.0}, "promote_at"),
    ],
)
def test_what_cannot_work_is_said(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        curriculum(**settings)
