from collections import Counter

import pytest
from cue_agents import cue_config, cue_round
from learnt_cue import LEARNING, trained

from sensorium.core import EnvError
from sensorium.evals import play_episodes, sensor_groups, sensor_subsets
from sensorium.evals.missing_modality import missing_modality_test

pytestmark = pytest.mark.usefixtures("cue_backend")


def test_subsets_are_all_non_empty_ones_largest_first() -> None:
    assert list(sensor_subsets(["rgb", "depth", "speech"])) == [
        "rgb+depth+speech",
        "rgb+depth",
        "rgb+speech",
        "depth+speech",
        "rgb",
        "depth",
        "speech",
    ]


def test_more_than_four_sensors_are_taken_away_by_sense() -> None:
    sensors = ["rgb", "depth", "speech", "env_sound", "instruction"]
    assert sensor_groups(sensors) == {
        "sight": ("rgb", "depth"),
        "hearing": ("speech", "env_sound"),
        "language": ("instruction",),
    }
    subsets = sensor_subsets(sensors)
    assert len(subsets) == 7
    assert subsets["sight+language"] == {"rgb", "depth", "instruction"}
    assert next(iter(subsets.values())) == set(sensors)


def test_every_world_plays_equally_many_episodes_and_the_same_ones_again() -> None:
    made = cue_round(cue_config(("rgb",)))
    first = play_episodes(made.agent, made.env, episodes=20, seed=7)
    again = play_episodes(made.agent, made.env, episodes=20, seed=7)
    assert len(first.finished) == 24  # rounded up to a multiple of 8 worlds
    assert first == again
    assert max(Counter(episode.seed for episode in first.finished).values()) == 1
    other = play_episodes(made.agent, made.env, episodes=20, seed=1_000)
    assert {e.seed for e in other.finished}.isdisjoint({e.seed for e in first.finished})


def test_broken_episodes_are_counted_apart_and_stop_a_hopeless_evaluation() -> None:
    made = cue_round(cue_config(("rgb",), break_at=2))
    with pytest.raises(EnvError, match="broke"):
        play_episodes(made.agent, made.env, episodes=16, seed=0)


def test_without_the_only_informative_sense_success_falls_to_chance() -> None:
    agent, env = trained(cue_config(("rgb",), algo=LEARNING))
    seeing = play_episodes(agent, env, episodes=96, seed=1)
    blind = play_episodes(agent, env, episodes=96, seed=1, blanked=frozenset({"rgb"}))
    assert seeing.successes / len(seeing.finished) >= 0.95
    assert blind.successes / len(blind.finished) <= 0.5


def test_the_missing_modality_test_names_every_subset_with_its_interval() -> None:
    made = cue_round(cue_config(("rgb", "speech")))
    seen: Counter[str] = Counter()
    results = missing_modality_test(
        made.agent,
        made.env,
        episodes=16,
        subset_episodes=8,
        seed=3,
        on_episode=lambda name: seen.update([name]),
    )
    assert list(results) == ["rgb+speech", "rgb", "speech"]
    assert [result.episodes for result in results.values()] == [16, 8, 8]
    assert seen == {"rgb+speech": 16, "rgb": 8, "speech": 8}
    for result in results.values():
        assert result.ci95[0] <= result.success_rate <= result.ci95[1]
