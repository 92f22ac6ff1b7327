from collections import Counter

import pytest
from cue_agents import cue_config, cue_round
from learnt_cue import LEARNING, trained

from sensorium.core import EnvError
from sensorium.envs.embodied import EmbodiedEnvConfig
from sensorium.evals import Player, play_episodes, senses_of, sensor_groups, sensor_subsets
from sensorium.evals.missing_modality import missing_modality_test
from sensorium.evals.sensor_failure import failure_targets

pytestmark = pytest.mark.usefixtures("cue_backend")


SENSES = senses_of(
    EmbodiedEnvConfig(
        task="arena/senses",
        visual_obs=("rgb", "depth"),
        audio_obs=("speech", "env_sound"),
        text_obs=("instruction",),
    )
)


def test_subsets_are_all_non_empty_ones_largest_first() -> None:
    assert list(sensor_subsets(["rgb", "depth", "speech"], SENSES)) == [
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
    assert sensor_groups(sensors, SENSES) == {
        "sight": ("rgb", "depth"),
        "hearing": ("speech", "env_sound"),
        "language": ("instruction",),
    }
    subsets = sensor_subsets(sensors, SENSES)
    assert len(subsets) == 7
    assert subsets["sight+language"] == {"rgb", "depth", "instruction"}
    assert next(iter(subsets.values())) == set(sensors)


def test_sensors_of_other_backends_belong_to_the_sense_they_are_asked_for_as() -> None:
    config = EmbodiedEnvConfig(
        task="mine/walk",
        visual_obs=("left_eye", "right_eye", "lidar"),
        audio_obs=("radio",),
        text_obs=("sign",),
        proprio=True,
    )
    groups = sensor_groups(config.sensor_names, senses_of(config))
    assert {sense: set(names) for sense, names in groups.items()} == {
        "sight": {"left_eye", "right_eye", "lidar"},
        "hearing": {"radio"},
        "language": {"sign"},
        "body": {"proprio"},
    }
    targets = failure_targets(config.sensor_names, senses_of(config))
    assert set(targets["sight"]) == {"left_eye", "right_eye", "lidar"}


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


def test_actions_can_be_drawn_as_in_training() -> None:
    """A fresh policy is nearly undecided: the likeliest action is one and the same, drawn ones are not."""
    made = cue_round(cue_config(("proprio",)))
    likeliest, drawn = Player(made.agent, made.env), Player(made.agent, made.env, sampled=True)
    taken: list[list[int]] = []
    for player in (likeliest, drawn, drawn):
        player.reset(seed=5)
        taken.append([int(option) for _ in range(8) for option in player.step()[0]])
    assert len(set(taken[1])) > len(set(taken[0]))
    assert taken[1] == taken[2]  # the seed decides
    first, again = (
        play_episodes(made.agent, made.env, episodes=20, seed=7, sampled=True).successes for _ in range(2)
    )
    assert first == again
