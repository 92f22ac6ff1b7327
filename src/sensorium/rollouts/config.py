"""Limits of an episode of a language model's agent; all of them are finite."""

from pydantic import Field

from sensorium.core import Config


class EpisodeConfig(Config):
    """How long an episode may be, and what its agent is shown."""

    max_steps: int = Field(default=30, ge=1)
    """Actions; after so many the episode is truncated."""
    reset_timeout_s: float = Field(default=120.0, gt=0.0)
    """Of setting up the environment."""
    step_timeout_s: float = Field(default=120.0, gt=0.0)
    """Of one action with all its calls; tools have limits of their own below it."""
    close_timeout_s: float = Field(default=30.0, gt=0.0)
    """Of giving everything back."""
    max_result_tokens: int = Field(default=2048, ge=128)
    """Of one answer of a tool in a conversation; longer ones are shown as parts of the state."""
    fetch_tool: bool = True
    """Offer the tool with which the agent fetches what was left out."""
