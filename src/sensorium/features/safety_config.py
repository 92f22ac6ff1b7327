"""How pictures are judged before an agent sees them."""

from typing import Any

from pydantic import Field

from sensorium.core import Config
from sensorium.llm.config import ChatModelConfig, EstimateConfig, TokensConfig


class SafetyConfig(Config):
    """Settings of the judge of pictures."""

    judge: ChatModelConfig | None = None
    """A multimodal chat model; needed by the extractor, which has no other way to get one."""
    tokens: TokensConfig = EstimateConfig()
    """Whose tokens are counted: the judge's, its image rule included."""
    context_window: int = Field(default=8192, ge=1)
    """Window of the judge, tokens."""
    answer_tokens: int = Field(default=256, ge=16)
    """Room kept free for its answer, and the longest answer it may give."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})
    """Passed to the endpoint beside the length of the answer."""
    timeout_s: float = Field(default=15.0, gt=0.0)
    """Of one picture."""
    max_concurrency: int = Field(default=4, ge=1)
    """Pictures judged at the same time."""
    shrink: bool = True
    """Whether a picture too large for the window is judged smaller; False: it is not judged."""
    min_side_px: int = Field(default=64, ge=16)
    """Smallest longest side it is shrunk to."""
    max_image_bytes: int = Field(default=5 * 1024 * 1024, ge=1)
    """Largest encoded picture that is sent."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Largest picture that is decoded in order to shrink it."""
    policy: str | None = None
    """What is unsafe, in words; None for the policy that ships."""
    cache: bool = True
    """Keep verdicts on disk."""
    cache_folder: str | None = None
    """Where; ``~/.cache/sensorium/safety`` (or below ``$XDG_CACHE_HOME``) when not given."""
