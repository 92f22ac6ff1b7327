"""How observations become messages: the file that `ObservationPipeline.from_config` reads."""

from typing import Literal

from pydantic import Field, model_validator

from sensorium.core import Config
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.llm.config import EstimateConfig, TokensConfig
from sensorium.observations.config import ReadConfig


class BudgetConfig(Config):
    """Section ``observation``: how many tokens there are."""

    max_tokens: int = Field(default=8192, ge=1)
    """Tokens of the whole representation; never exceeded."""
    compression_ratio: float = Field(default=0.02, gt=0.0, le=1.0)
    """Smallest share of a part's tokens that a summary or thumbnail keeps; a part that would have to be
    squeezed further becomes a reference. Lines that differ from others by their numbers alone count less: the
    400 lines of a progress log are not 400 lines' worth. 1 sends parts whole or not at all."""
    context_window: int | None = Field(default=None, ge=1)
    """Window of the model, tokens; `max_tokens` when not given."""
    reserve: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of the window that the observed state leaves to instruction and answer."""

    @property
    def window(self) -> int:
        """Tokens of the model's window."""
        return self.context_window or self.max_tokens

    @property
    def state_limit(self) -> int:
        """Most tokens that the observed state may take."""
        return min(self.max_tokens, int(self.window * (1.0 - self.reserve)))

    @model_validator(mode="after")
    def _fits_window(self) -> "BudgetConfig":
        if self.context_window is not None and self.max_tokens > self.context_window:
            raise ValueError(
                f"max_tokens ({self.max_tokens}) is more than context_window ({self.context_window}) holds"
            )
        return self


class TextConfig(Config):
    """Limits of text, logs, messages and structured data."""

    max_chars: int = Field(default=400_000, ge=1)
    """Characters of one part that are looked at; what lies behind is only in the raw state."""


class CodeConfig(Config):
    """Limits of source code."""

    max_lines: int = Field(default=200, ge=1)
    """Lines of one file or cell, around the cursor or the fault."""
    include_comments: bool = True
    """Whether comments and docstrings are sent."""


class NotebookConfig(Config):
    """Limits of notebooks."""

    max_output_lines: int = Field(default=400, ge=1)
    """Lines of one output that are sent at most."""


class TableConfig(Config):
    """Limits of tables and arrays."""

    max_rows: int = Field(default=50, ge=0)
    """Rows sent at most: the first, the last and the notable ones come first."""
    plot: Literal["auto", "never"] = "auto"
    """A small plot where it says more than numbers: a long numeric column or a matrix."""


class ImageConfig(Config):
    """Limits of pictures."""

    max_size_kb: float = Field(default=512.0, gt=0.0)
    """Size of the encoded picture, kilobytes of 1,024 bytes, base64 not counted; met by measured re-encoding
    and scaling."""
    encoding: Literal["base64", "url", "words"] = "base64"
    """Embed pictures, send references that the client loads on demand, or say in words what is known of them,
    for models that take no pictures."""
    quality: int = Field(default=85, ge=1, le=100)
    """JPEG quality to begin with."""
    max_side_px: int = Field(default=2048, ge=16)
    """Longest side."""
    thumbnail_px: int = Field(default=256, ge=16)
    """Longest side of a thumbnail."""


class AudioConfig(Config):
    """Limits of sound."""

    encoding: Literal["native", "transcript"] = "transcript"
    """The waveform itself, for models that take it, or what was heard in words."""
    max_seconds: float = Field(default=60.0, gt=0.0)
    """Longest stretch of one sound that is sent as a waveform."""


class MultimodalConfig(Config):
    """Section ``multimodal``: limits per modality."""

    text: TextConfig = TextConfig()
    code: CodeConfig = CodeConfig()
    notebook: NotebookConfig = NotebookConfig()
    table: TableConfig = TableConfig()
    image: ImageConfig = ImageConfig()
    audio: AudioConfig = AudioConfig()


class ContextConfig(Config):
    """Section ``context_management``: what of the past is sent."""

    keep_original_instruction: bool = True
    """The task, at the beginning."""
    keep_previous_actions: int = Field(default=5, ge=0)
    """The last N actions with what came of them in a line each."""
    keep_current_state: bool = True
    """The observation itself."""
    drop_full_history: bool = True
    """False: earlier states are sent, too, the newest first, as far as the budget reaches."""


class DeltaConfig(Config):
    """Section ``delta``: when changes are sent instead of states."""

    enabled: bool = True
    """Send what changed since the part was last sent, when it is still in the agent's context."""
    keyframe_every: int = Field(default=10, ge=1)
    """Send a part whole after so many deltas."""
    max_share: float = Field(default=0.6, gt=0.0, le=1.0)
    """Send it whole when its delta costs more than this share of it."""


class SummariesConfig(Config):
    """Section ``summaries``: how summaries by a language model (extractor ``summary``) are shown."""

    unverified: Literal["mark", "omit"] = "mark"
    """Sentences whose source could not be checked: shown with ``(unverified)``, or left out. A summary in
    which no sentence could be verified is not used at all."""


class AdaptiveConfig(Config):
    """Section ``adaptive``: shares of the budget that follow what was useful."""

    enabled: bool = False
    rate: float = Field(default=0.1, gt=0.0, le=1.0)
    """How fast weights follow."""
    low: float = Field(default=0.25, gt=0.0, le=1.0)
    """Smallest weight of a kind of part."""
    high: float = Field(default=4.0, ge=1.0)
    """Greatest weight of a kind of part."""


class PipelineConfig(Config):
    """Everything about how a raw state becomes messages; every section may be left out."""

    observation: BudgetConfig = BudgetConfig()
    multimodal: MultimodalConfig = MultimodalConfig()
    context_management: ContextConfig = ContextConfig()
    delta: DeltaConfig = DeltaConfig()
    summaries: SummariesConfig = SummariesConfig()
    adaptive: AdaptiveConfig = AdaptiveConfig()
    tokens: TokensConfig = EstimateConfig()
    """Whose tokens are counted."""
    features: FeaturesConfig = FeaturesConfig()
    """Which extractors run."""
    reading: ReadConfig = ReadConfig()
    """Limits of what is read, and whether URLs may be fetched."""
