"""Picks moments of a film and turns them into pictures and words for the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sensorium.analysis.charts import LegendEntry, Mark, Series, legend_of, line_chart
from sensorium.analysis.film import Film
from sensorium.analysis.formatting import number
from sensorium.analysis.pictures import (
    colour_picture,
    depth_picture,
    sound_clip,
    spectrogram_picture,
    value_range,
)

NUM_MOMENTS = 12
"""Steps of an episode that the page shows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One image of one moment."""

    sensor: str
    caption: str
    """What it is, in words."""
    uri: str
    """PNG as a data URI."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One step: what was perceived, what was done, what came of it."""

    step: int
    time: str | None
    pictures: Sequence[Picture]
    notification: str | None
    action: str | None
    reward: str | None
    reward_sign: int
    """-1 or 1 for a reward that stands out; 0 for a small one, such as the cost of a step."""
    value: str | None


@dataclass(frozen=True, slots=True)
class FilmStrip:
    """A film as the page shows it."""

    num_steps: int
    moments: Sequence[Moment]
    instruction: str | None
    outcome: str | None
    total_reward: str | None
    speech: Picture | None
    speech_clip: str | None
    """WAV as a data URI."""
    chart: str
    """SVG of value and reward over the episode; empty when neither was recorded."""
    chart_legend: Sequence[LegendEntry]


def film_strip(film: Film) -> FilmStrip:
    """Prepare a film for the page; parts that it lacks are left out.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    notes = film.notes
    chosen = moments_to_show(film.num_steps)
    speech = None
    if film.speech is not None and film.speech.size:
        picture = spectrogram_picture(film.speech, value_range(film.speech))
        speech = Picture("speech", "Spectrogram of the spoken instruction", picture)
    clip = None
    if film.speech_waveform is not None and film.speech_waveform.size:
        clip = sound_clip(film.speech_waveform, notes.speech_sample_rate_hz)
    lines = _episode_lines(film)
    return FilmStrip(
        num_steps=film.num_steps,
        moments=_moments(film, chosen),
        instruction=notes.instruction,
        outcome=notes.outcome,
        total_reward=number(math.fsum(notes.rewards)) if notes.rewards else None,
        speech=speech,
        speech_clip=clip,
        chart=line_chart(
            lines,
            title="Expected return and reward at every step of the episode",
            x_unit="steps",
            marks=[Mark(float(step)) for step in chosen],
        ),
        chart_legend=legend_of(lines),
    )


def moments_to_show(num_steps: int, limit: int = NUM_MOMENTS) -> list[int]:
    """Evenly spaced steps with the first and the last one among them; every step of a short episode."""
    if num_steps <= limit:
        return list(range(num_steps))
    return [int(i) for i in np.linspace(0, num_steps - 1, limit).round()]


def _moments(film: Film, chosen: Sequence[int]) -> list[Moment]:
    notes = film.notes
    depth_limits = value_range(film.depth) if film.depth is not None else (0.0, 1.0)
    sound_limits = value_range(film.env_sound) if film.env_sound is not None else (0.0, 1.0)
    largest_reward = max(map(abs, notes.rewards), default=0.0)
    moments = []
    for t in chosen:
        pictures = []
        if film.rgb is not None:
            pictures.append(Picture("rgb", f"Camera at step {t}", colour_picture(film.rgb[t])))
        if film.depth is not None:
            uri = depth_picture(film.depth[t], depth_limits)
            pictures.append(Picture("depth", f"Depth at step {t}, near is bright", uri))
        if film.env_sound is not None and film.env_sound[t].size:
            uri = spectrogram_picture(film.env_sound[t], sound_limits)
            pictures.append(Picture("env_sound", f"Sound at step {t}, left ear above right", uri))
        if film.map is not None:
            pictures.append(
                Picture("map", f"Map at step {t}, not seen by the agent", colour_picture(film.map[t]))
            )
        reward = notes.rewards[t] if notes.rewards else None
        moments.append(
            Moment(
                step=t,
                time=f"{notes.timestamps_s[t]:.1f} s" if notes.timestamps_s else None,
                pictures=pictures,
                notification=notes.notifications[t] if notes.notifications else None,
                action=notes.actions[t] if notes.actions else None,
                reward=None if reward is None else number(reward),
                reward_sign=_sign(reward or 0.0, largest_reward / 10),
                value=number(notes.values[t]) if notes.values else None,
            )
        )
    return moments


def _sign(reward: float, threshold: float) -> int:
    return 0 if abs(reward) <= threshold else int(math.copysign(1, reward))


def _episode_lines(film: Film) -> list[Series]:
    named = {"expected return": film.notes.values, "reward": film.notes.rewards}
    return [
        Series(name, [float(i) for i in range(len(values))], values)
        for name, values in named.items()
        if values
    ]
