"""Which augmentations there are, with their strengths."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from sensorium.core import Config

Strength = Annotated[float, Field(ge=0, le=1)]


class Augmentation(Config):
    """Settings that may also be given by position, as in ``ColorJitter(0.4, 0.4, 0.4)``."""

    def __init__(self, *values: Any, **settings: Any) -> None:
        names = tuple(type(self).model_fields)
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}; got {len(values)} values.")
        super().__init__(**dict(zip(names, values, strict=False)), **settings)


class ModalDropout(Augmentation):
    """A sensor is absent for a whole episode; never all of them at once.

    The policy is told: `present` is 0 and a learned missing token takes the reading's place.

    Source: Liu et al. 2017, arXiv:1705.10422 (sensor dropout), drawn per episode instead of per step.
    """

    p: float = Field(default=0.1, ge=0, lt=1)
    """Chance of each sensor, per episode."""
    only: tuple[str, ...] = ()
    """Sensors that may be dropped; empty: all of them."""


class SensorOutage(Augmentation):
    """A sensor fails in the middle of an episode and may come back; never all of them at once."""

    p: float = Field(default=0.1, ge=0, lt=1)
    """Chance of each sensor, per episode."""
    latest_onset_steps: int = Field(default=40, ge=0)
    """The failure begins at a step drawn uniformly from 0 to this."""
    min_steps: int = Field(default=5, ge=1)
    """Shortest failure."""
    max_steps: int | None = Field(default=20, ge=1)
    """Longest failure; null: it lasts to the end of the episode."""

    @model_validator(mode="after")
    def _ordered(self) -> "SensorOutage":
        if self.max_steps is not None and self.max_steps < self.min_steps:
            raise ValueError(f"max_steps ({self.max_steps}) is less than min_steps ({self.min_steps})")
        return self


class RandomTimeWarp(Augmentation):
    """Each sensor's clock runs unevenly: readings come late, are repeated and are skipped to catch up.

    The speed of a sensor's clock is 1 on average and changes smoothly through knots drawn from N(1, sigma).
    A clock that is behind shows an older reading, with its true timestamp; a clock can never be ahead of the
    world, so that acting stays causal. Readings that are constant within an episode, and texts, are spared.

    Source: time warping of Um et al. 2017, arXiv:1706.00527 (smooth curves through knots of N(1, 0.2)), made
    causal.
    """

    sigma: float = Field(default=0.2, ge=0, le=1)
    """Standard deviation of the speed at a knot; 0 changes nothing."""
    max_lag_steps: int = Field(default=4, ge=1, le=64)
    """A reading is never older than this."""
    knot_steps: int = Field(default=10, ge=1)
    """Steps between two knots."""


class ColorJitter(Augmentation):
    """Brightness, contrast and saturation of rgb, by factors drawn once per episode.

    A factor is uniform in [1 - strength, 1 + strength]; the order of the changes is drawn too. Depth and the
    other sensors never change.
    """

    brightness: Strength = 0.4
    """Strength of the change of brightness."""
    contrast: Strength = 0.4
    """Strength of the change of contrast."""
    saturation: Strength = 0.4
    """Strength of the change of saturation."""
    hue: float = Field(default=0.0, ge=0, le=0.5)
    """Hue is turned by up to this share of the colour circle, either way. Refused on tasks whose goal is
    named by its colour: a red ball that looks green would be wrongly labelled."""


class AugmentConfig(Config):
    """What happens to perception during training; evaluation never applies it."""

    combinations: tuple[tuple[str, ...], ...] = ()
    """Sets of sensors, of which each episode has one, drawn uniformly; empty: all sensors. A curriculum,
    where there is one, decides instead."""
    modal_dropout: ModalDropout | None = None
    """Sensors absent for an episode."""
    outage: SensorOutage | None = None
    """Sensors that fail for a while."""
    time_warp: RandomTimeWarp | None = None
    """Readings that lag behind."""
    color_jitter: ColorJitter | None = None
    """Colours of rgb."""
