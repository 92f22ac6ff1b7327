"""How long parts are summarised by a language model."""

from typing import Any

from pydantic import Field, model_validator

from sensorium.core import Config
from sensorium.llm.config import ChatModelConfig, EstimateConfig, TokensConfig


class SummaryConfig(Config):
    """Settings of the extractor ``summary``."""

    model: ChatModelConfig | None = None
    """The endpoint: address, name of the model, where its key is, time-out of one call. Without it nothing
    is summarised, and the features say so."""
    max_words: int = Field(default=120, ge=10)
    """Words of a summary; what a model writes beyond them is left out."""
    min_chars: int = Field(default=2_000, ge=0)
    """Characters from which a part is summarised; a shorter one is left alone."""
    max_input_tokens: int = Field(default=6_000, ge=512)
    """Longest prompt, tokens: the window of the model less `answer_tokens`. A longer part is read in pieces,
    whose summaries are then put together."""
    answer_tokens: int = Field(default=1_024, ge=32)
    """Longest answer."""
    max_pieces: int = Field(default=16, ge=1)
    """Pieces of one part that are read; of a longer part as many, spread evenly from beginning to end."""
    min_verified: float = Field(default=0.5, ge=0.0, le=1.0)
    """Share of its sentences that must be verified; a summary below it is not used, and the features say
    so. 0 takes every summary."""
    max_concurrency: int = Field(default=4, ge=1)
    """Requests under way at the same time."""
    tokens: TokensConfig = EstimateConfig()
    """Whose tokens are counted."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})
    """Passed to the endpoint beside the length of the answer."""

    @model_validator(mode="after")
    def _summaries_fit(self) -> "SummaryConfig":
        if 8 * self.max_words > self.max_input_tokens:
            raise ValueError(
                f"max_words ({self.max_words}) is too much for prompts of max_input_tokens "
                f"({self.max_input_tokens}): summaries of pieces must fit into one; allow at most "
                f"{self.max_input_tokens // 8} words"
            )
        return self
