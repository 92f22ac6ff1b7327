"""What `sensorium train` says when drawn actions do far better than the likeliest ones."""

import math
from pathlib import Path

import pytest

from sensorium.analysis import Summary, wilson_interval
from sensorium.cli.train import sampling_note


def summary(solved: int) -> Summary:
    interval = wilson_interval(solved, 100)
    return Summary(
        task="cue/match",
        modalities=("image",),
        sensors=("rgb",),
        algorithm="ppo",
        seed=0,
        env_steps=1,
        wall_s=1.0,
        steps_per_s=1.0,
        success_rate=solved / 100,
        success_ci95=(interval.low, interval.high),
        episodes=100,
        mean_return=0.0,
        missing_modality={},
        onnx_max_abs_diff=0.0,
    )


def test_a_policy_that_goes_in_circles_is_explained() -> None:
    note = sampling_note(0.98, summary(0), Path("my runs/x"))
    assert note is not None
    assert "98%" in note
    assert "sensorium eval 'my runs/x' --sampled" in note


@pytest.mark.parametrize(("rate", "solved"), [(0.98, 95), (0.3, 20), (0.1, 90), (math.nan, 0)])
def test_otherwise_nothing_is_said(rate: float, solved: int) -> None:
    assert sampling_note(rate, summary(solved), Path("x")) is None
