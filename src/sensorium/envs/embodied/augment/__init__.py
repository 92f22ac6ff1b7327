"""Random changes to what is perceived during training: senses that fail, lag behind or change colour."""

from sensorium.envs.embodied.augment.config import (
    AugmentConfig,
    ColorJitter,
    ModalDropout,
    RandomTimeWarp,
    SensorOutage,
)

__all__ = ["AugmentConfig", "ColorJitter", "ModalDropout", "RandomTimeWarp", "SensorOutage"]
