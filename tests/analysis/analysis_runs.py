"""A run as a short training would leave it: a sight-and-sound task in which the instruction is needed."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from sensorium.analysis import Film, FilmNotes, RunDirectory, SubsetResult, Summary, wilson_interval
from sensorium.metrics import Histogram, JsonlSink, Latest, Mean, Sum

SENSORS = ("rgb", "env_sound", "instruction")
SUCCESSES = {
    "rgb+env_sound+instruction": 389,
    "rgb+instruction": 371,
    "env_sound+instruction": 97,
    "rgb+env_sound": 136,
    "rgb": 129,
    "env_sound": 31,
    "instruction": 58,
}


def make_summary(**changes: Any) -> Summary:
    missing = {
        subset: SubsetResult(
            success_rate=k / 400,
            ci95=wilson_interval(k, 400),
            episodes=400,
            mean_return=round(1.1 * k / 400 - 0.13, 4),
        )
        for subset, k in SUCCESSES.items()
    }
    values: dict[str, Any] = {
        "task": "arena/find",
        "modalities": ("image", "audio", "text"),
        "sensors": SENSORS,
        "algorithm": "ppo",
        "seed": 7,
        "env_steps": 1_234_944,
        "wall_s": 252.4,
        "steps_per_s": 4893.0,
        "success_rate": 389 / 400,
        "success_ci95": wilson_interval(389, 400),
        "episodes": 400,
        "mean_return": 0.9412,
        "chance_success": 1 / 3,
        "missing_modality": missing,
        "onnx_max_abs_diff": 3.1e-6,
    }
    return Summary(**{**values, **changes})


def make_film(num_steps: int = 37, instruction: str = "go to the red ball") -> Film:
    random = np.random.default_rng(5)
    rows, columns = np.mgrid[0:48, 0:48]
    rgb = np.zeros((num_steps, 48, 48, 3), np.uint8)
    depth = np.zeros((num_steps, 48, 48, 1), np.float32)
    top = np.zeros((num_steps, 48, 48, 3), np.uint8)
    for t in range(num_steps):
        near = t / num_steps
        rgb[t] = np.where(rows[..., None] < 24, [126, 150, 178], [92, 88, 80])
        ball = (rows - 26) ** 2 + (columns - 30 + 6 * math.sin(t / 5)) ** 2 < (3 + 14 * near) ** 2
        rgb[t][ball] = [206, 48, 44]
        depth[t, ..., 0] = np.where(ball, 9 - 8 * near, 12 - np.abs(rows - 24) / 3)
        top[t] = 40
        top[t, 10:14, 30:34] = [206, 48, 44]
        top[t, int(40 - 26 * near) : int(44 - 26 * near), 20:24] = 255
    sound = random.normal(-14, 1, (num_steps, 2, 8, 40)).astype(np.float32)
    sound[:, :, :, 12:16] += np.linspace(0, 10, num_steps, dtype=np.float32)[:, None, None, None]
    speech = random.normal(-15, 1, (60, 40)).astype(np.float32) + 6 * np.sin(np.arange(60) / 6)[:, None]
    wave = 0.4 * np.sin(2 * np.pi * 220 * np.arange(16000) / 16000)
    notes = FilmNotes(
        sensors=SENSORS,
        instruction=instruction,
        notifications=tuple("You bumped into a wall." if t == 3 else "" for t in range(num_steps)),
        actions=tuple(("turn left", "move forward", "turn right")[t % 3] for t in range(num_steps)),
        rewards=tuple([-0.01] * (num_steps - 1) + [1.0]),
        values=tuple(0.3 + 0.65 * t / num_steps for t in range(num_steps)),
        timestamps_s=tuple(t / 10 for t in range(num_steps)),
        outcome="success",
    )
    return Film(
        notes=notes,
        rgb=rgb,
        depth=depth,
        env_sound=sound,
        map=top,
        speech=speech.astype(np.float32),
        speech_waveform=wave.astype(np.float32),
    )


def write_metrics(path: Path, updates: int = 150) -> None:
    random = np.random.default_rng(3)
    ticks = itertools.count(step=1.7)
    sink = JsonlSink(path, clock=lambda: next(ticks))
    for i in range(1, updates + 1):
        learnt = 1 / (1 + math.exp(-(i - 55) / 12))
        noise = float(random.normal(0, 0.03))
        sink.write(
            i * 8192,
            {
                "rollout/success_rate": Mean.of(float(np.clip(0.33 + 0.64 * learnt + noise, 0, 1))),
                "rollout/return_mean": Mean.of(-0.1 + learnt + noise),
                "rollout/episode_length": Mean.of(90 - 62 * learnt + 60 * noise),
                "loss/policy": Mean.of(-0.02 - 0.02 * noise),
                "loss/value": Mean.of(0.05 + 0.1 * math.exp(-i / 40) + 0.2 * abs(noise)),
                "policy/entropy": Mean.of(1.09 - 0.8 * learnt + noise),
                "policy/kl": Mean.of(math.nan if i == 9 else 0.012 + 0.1 * abs(noise)),
                "policy/clip_fraction": Mean.of(0.11 + noise),
                "policy/ratio": Histogram.of(random.normal(1, 0.1, 50), np.linspace(0.5, 1.5, 21)),
                "value/explained_variance": Mean.of(0.9 * learnt + noise),
                "gradient/norm": Mean.of(0.6 + 5 * abs(noise)),
                "gradient/skipped_updates": Sum.of(0),
                "lr": Latest.of(1e-3 * (1 - i / (updates + 1))),
                **{
                    f"fusion/gate/{s}": Mean.of(0.5 + 0.1 * k * learnt + noise) for k, s in enumerate(SENSORS)
                },
                "time/rollout_s": Sum.of(1.1 + noise),
                "time/update_s": Sum.of(0.55 + noise),
                "vendor/thing": Mean.of(4.25),
            },
        )
    sink.close()


def make_run(path: Path) -> Path:
    for step in (409600, 1_234_944):
        (path / "checkpoints" / str(step)).mkdir(parents=True)
    config = {"env": {"task": "arena/find", "visual_obs": ["rgb"]}, "algo": {"gamma": 0.987, "lr": 1e-3}}
    (path / "config.json").write_text(json.dumps(config))
    write_metrics(path / "metrics.jsonl")
    make_film().save(path / "film")
    RunDirectory(path).write_summary(make_summary())
    return path
