"""Whose tokens are counted."""

from typing import Literal

from sensorium.core import Config


class TokensConfig(Config):
    """Section ``tokens``."""

    type: Literal["estimate"] = "estimate"
