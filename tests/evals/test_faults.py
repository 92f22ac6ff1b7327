import dataclasses
from typing import Any

import numpy as np
import pytest
from cue_agents import ALL_SENSORS, cue_config, cue_round
from gymnasium import spaces

from sensorium.core import ConfigError, Modality
from sensorium.envs.embodied import SensorSpec
from sensorium.evals.faults import Fault, FaultInjector, FaultKind
from sensorium.evals.noise import NoiseScale, noise_scales

RGB = SensorSpec(name="rgb", modality=Modality.IMAGE, space=spaces.Box(0, 255, (2,), np.uint8), rate_hz=1.0)
WORDS = SensorSpec(
    name="instruction", modality=Modality.TEXT, space=spaces.Text(40), rate_hz=1.0, per_episode=True
)
SPEECH = SensorSpec(
    name="speech",
    modality=Modality.AUDIO,
    space=spaces.Box(-np.inf, np.inf, (3,), np.float32),
    rate_hz=1.0,
    per_episode=True,
)
SENSORS = {spec.name: spec for spec in (RGB, SPEECH, WORDS)}
NOISE = {
    "rgb": NoiseScale(shape=(2,), dtype="uint8", low=0, high=255),
    "speech": NoiseScale(shape=(3,), dtype="float32", low=-np.inf, high=np.inf),
}
FORMER = ("one two three four five", "six seven eight nine ten")


def observed(rgb: list[int], text: tuple[str, str], step: int = 0) -> dict[str, Any]:
    """Two worlds; both entries of a world's image, and its speech, are one number."""
    values = np.array(rgb)[:, None]
    return {
        "rgb": np.repeat(values, 2, axis=1).astype(np.uint8),
        "speech": np.repeat(values, 3, axis=1).astype(np.float32),
        "instruction": text,
        "present": {name: np.ones(2, np.int64) for name in SENSORS},
        "timestamp_s": {name: np.full(2, step, np.float32) for name in SENSORS},
    }


class Playback:
    """Feeds an injector the steps of two worlds."""

    def __init__(self, fault: Fault, seed: int = 0) -> None:
        self.injector = FaultInjector(fault, SENSORS, NOISE, seed)
        self.injector.remember(observed([90, 91], FORMER))

    def __call__(
        self, rgb: list[int], step: int, text: tuple[str, str] = ("a", "b"), seeds: tuple[int, int] = (3, 4)
    ) -> dict[str, Any]:
        steps = np.full(2, step, np.int64)
        return self.injector(observed(rgb, text, step), steps, steps == 0, np.array(seeds, np.uint64))


def fault(*sensors: str, **settings: Any) -> Fault:
    return Fault(sensors=frozenset(sensors), **settings)


def test_an_absent_sensor_is_marked_and_nothing_else_changes() -> None:
    play = Playback(fault("rgb", onset=1, duration=2))
    seen = [play([step, 10 + step], step) for step in range(4)]
    assert [s["present"]["rgb"].tolist() for s in seen] == [[1, 1], [0, 0], [0, 0], [1, 1]]
    assert all(s["present"]["speech"].all() for s in seen)
    assert [s["rgb"][0, 0] for s in seen] == [0, 1, 2, 3]
    assert play.injector.changed.tolist() == [True, True]


def test_the_observation_itself_is_left_alone() -> None:
    for kind in FaultKind:
        injector = FaultInjector(fault(*SENSORS, kind=kind), SENSORS, NOISE, 0)
        injector.remember(observed([90, 91], FORMER))
        given = observed([1, 2], ("a", "b"))
        injector(given, np.zeros(2, np.int64), np.ones(2, np.bool_), np.array([3, 4], np.uint64))
        assert given["rgb"].tolist() == [[1, 1], [2, 2]]
        assert given["instruction"] == ("a", "b")
        assert all(present.all() for present in given["present"].values())


def test_a_frozen_sensor_repeats_the_reading_before_and_is_stamped_as_new() -> None:
    play = Playback(fault("rgb", kind=FaultKind.FROZEN, onset=2, duration=2))
    seen = [play([step, 10 + step], step) for step in range(6)]
    assert [s["rgb"][:, 0].tolist() for s in seen] == [[0, 10], [1, 11], [1, 11], [1, 11], [4, 14], [5, 15]]
    assert all(s["present"]["rgb"].all() for s in seen)
    assert [s["timestamp_s"]["rgb"][0] for s in seen] == [0, 1, 2, 3, 4, 5]


def test_frozen_from_the_start_is_the_end_of_the_episode_before() -> None:
    play = Playback(fault("rgb", "instruction", kind=FaultKind.FROZEN))
    first = [play([step, 10 + step], step, text=("go red", "go blue")) for step in range(3)]
    assert [s["rgb"][:, 0].tolist() for s in first] == [[90, 91]] * 3
    assert [s["instruction"] for s in first] == [FORMER] * 3
    second = [play([20 + step, 30], step, text=("go green", "go grey"), seeds=(5, 6)) for step in range(2)]
    # The sensor was well between the episodes: it shows the true end of the first one.
    assert [s["rgb"][:, 0].tolist() for s in second] == [[2, 12]] * 2
    assert [s["instruction"] for s in second] == [("go red", "go blue")] * 2


def test_a_constant_reading_cannot_freeze_later() -> None:
    play = Playback(fault("instruction", "speech", kind=FaultKind.FROZEN, onset=1))
    seen = [play([7, 8], step, text=("go red", "go blue")) for step in range(3)]
    assert {s["instruction"] for s in seen} == {("go red", "go blue")}
    assert [s["speech"][:, 0].tolist() for s in seen] == [[7, 8]] * 3


def test_noise_is_new_at_every_step_but_constant_where_the_reading_is() -> None:
    play = Playback(fault("rgb", "speech", "instruction", kind=FaultKind.NOISE, onset=1))
    seen = [play([7, 8], step, text=("go red", "go blue")) for step in range(4)]
    assert seen[0]["rgb"].tolist() == [[7, 7], [8, 8]]
    assert seen[0]["instruction"] == ("go red", "go blue")
    assert len({s["rgb"].tobytes() for s in seen[1:]}) == 3
    assert seen[1]["rgb"].dtype == np.uint8
    assert len({s["speech"].tobytes() for s in seen[1:]}) == 1
    assert seen[1]["speech"].tobytes() != seen[0]["speech"].tobytes()
    (texts,) = {s["instruction"] for s in seen[1:]}
    # The words are those of the former episode, so they say nothing about this one.
    assert [sorted(text.split()) for text in texts] == [sorted(text.split()) for text in FORMER]
    assert texts != FORMER
    assert all(s["present"]["rgb"].all() for s in seen)


def test_after_a_recovery_the_true_reading_is_back() -> None:
    play = Playback(fault("speech", "instruction", kind=FaultKind.NOISE, onset=1, duration=1))
    seen = [play([7, 8], step, text=("go red", "go blue")) for step in range(3)]
    assert seen[2]["instruction"] == seen[0]["instruction"] != seen[1]["instruction"]
    assert seen[2]["speech"].tolist() == [[7, 7, 7], [8, 8, 8]]


def test_what_happens_in_an_episode_is_decided_by_its_seed_alone() -> None:
    faulty = fault("rgb", kind=FaultKind.NOISE, onset=(1, 6))
    one, two = Playback(faulty), Playback(faulty)
    first = [one([7, 7], step, seeds=(3, 4))["rgb"] for step in range(8)]
    swapped = [two([7, 7], step, seeds=(4, 3))["rgb"][::-1] for step in range(8)]
    np.testing.assert_array_equal(first, swapped)
    other = Playback(faulty, seed=1)
    assert not np.array_equal(first, [other([7, 7], step)["rgb"] for step in range(8)])


def test_onsets_are_uniform_over_their_range() -> None:
    faulty = fault("rgb", onset=(2, 5))
    drawn = [faulty.onset_of(0, episode) for episode in range(4000)]
    counts = np.bincount(drawn, minlength=6)
    assert set(drawn) == {2, 3, 4, 5}
    assert counts[2:].min() > 850  # 1000 expected, standard deviation 27
    assert fault("rgb", onset=7).onset_of(0, 1) == 7


@pytest.mark.parametrize("settings", [{"onset": -1}, {"onset": (3, 2)}, {"duration": 0}])
def test_a_fault_that_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Fault(**({"sensors": frozenset({"rgb"})} | settings))


def test_an_unknown_sensor_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'speech'"):
        FaultInjector(fault("speach"), SENSORS, NOISE, 0)


def test_noise_has_the_scale_of_the_sensor() -> None:
    random = np.random.default_rng(0)
    pixels = NoiseScale(shape=(100, 100), dtype="uint8", low=0, high=255).draw(random)
    assert pixels.dtype == np.uint8
    assert (pixels.min(), pixels.max()) == (0, 255)
    mean, std = np.array([5.0, -2.0], np.float32), np.array([0.1, 3.0], np.float32)
    vector = NoiseScale(
        shape=(20_000, 2), dtype="float32", low=-np.inf, high=np.inf, mean=mean, std=std
    ).draw(random)
    np.testing.assert_allclose(vector.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(vector.std(0), std, rtol=0.05)
    bounded = NoiseScale(shape=(1000,), dtype="float32", low=2.0, high=4.0).draw(random)
    assert 2 <= bounded.min() < 2.1 < 3.9 < bounded.max() <= 4
    depth = NoiseScale(shape=(1000,), dtype="float32", low=0.0, high=np.inf, mean=mean[1:], std=std[1:])
    assert depth.draw(random).min() == 0.0


@pytest.mark.usefixtures("cue_backend")
def test_scales_come_from_the_filters_of_the_policy() -> None:
    made = cue_round(cue_config(ALL_SENSORS))
    policy = made.agent.policy
    policy.perception.filters["proprio"].mean.fill_(7.0)
    policy.perception.filters["proprio"].var.fill_(4.0)
    scales = noise_scales(made.env.worlds.sensors, policy)
    assert set(scales) == set(ALL_SENSORS) - {"instruction"}
    assert scales["rgb"].mean is None
    assert (scales["rgb"].low, scales["rgb"].high) == (0, 255)
    assert scales["proprio"].mean is not None
    assert scales["proprio"].mean.tolist() == [7.0, 7.0]
    assert scales["proprio"].std is not None
    assert scales["proprio"].std.tolist() == [2.0, 2.0]
    for name, scale in scales.items():
        drawn = scale.draw(np.random.default_rng(0))
        space = made.env.worlds.sensors[name].space
        assert space.contains(drawn), name


@pytest.mark.usefixtures("cue_backend")
@pytest.mark.parametrize(
    "space", [spaces.MultiBinary(2), spaces.MultiDiscrete([3, 5]), spaces.Box(-4, 4, (2,), np.int64)]
)
def test_every_space_of_arrays_has_noise(space: spaces.Space) -> None:
    made = cue_round(cue_config(("proprio",)))
    spec = dataclasses.replace(made.env.worlds.sensors["proprio"], space=space)
    drawn = noise_scales({"proprio": spec}, made.agent.policy)["proprio"].draw(np.random.default_rng(0))
    assert space.contains(drawn)
