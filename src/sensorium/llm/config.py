"""Whose tokens are counted, and which model is asked."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sensorium.core import Config


class TilesRule(Config):
    """Pictures are cut into tiles, as by OpenAI's GPT-4o: ``base + per_tile * tiles``.

    Source: OpenAI, Images and vision guide, "Calculating costs": fit into `max_side`, bring the shortest side
    down to `short_side`, count the tiles. Low detail costs `base` alone.
    """

    type: Literal["tiles"] = "tiles"
    detail: Literal["low", "high"] = "high"
    base: int = Field(default=85, ge=0)
    per_tile: int = Field(default=170, ge=0)
    tile: int = Field(default=512, ge=1)
    """Side of a tile, pixels."""
    short_side: int = Field(default=768, ge=1)
    """Pixels."""
    max_side: int = Field(default=2048, ge=1)
    """Pixels."""


class PatchesRule(Config):
    """One token for each square of ``merge x merge`` patches, as in Qwen2-VL and its like.

    Source: Wang et al. 2024, "Qwen2-VL", section 2.1; the resizing is that of its published image processor:
    sides are rounded to multiples of ``size * merge``, the area is kept between two limits.
    """

    type: Literal["patches"] = "patches"
    size: int = Field(default=14, ge=1)
    """Side of a patch, pixels."""
    merge: int = Field(default=2, ge=1)
    """Patches along each side of one token."""
    min_pixels: int = Field(default=56 * 56, ge=1)
    max_pixels: int = Field(default=28 * 28 * 1280, ge=1)
    extra: int = Field(default=2, ge=0)
    """Tokens around a picture (its beginning and end)."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> "PatchesRule":
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels ({self.min_pixels}) is more than max_pixels ({self.max_pixels})")
        return self


class PixelsRule(Config):
    """So many pixels a token, as by Anthropic's Claude: ``width * height / per_token``.

    Source: Anthropic, Vision documentation, "Calculate image costs": pictures whose long side is over
    1568 pixels, or that cost over about 1600 tokens, are scaled down first.
    """

    type: Literal["pixels"] = "pixels"
    per_token: float = Field(default=750.0, gt=0.0)
    max_side: int = Field(default=1568, ge=1)
    """Pixels."""
    max_tokens: int = Field(default=1600, ge=1)


class FixedRule(Config):
    """Every picture costs the same, as in LLaVA-1.5 (336 px in patches of 14: 24 x 24 = 576).

    Source: Liu et al. 2023, "Improved Baselines with Visual Instruction Tuning", section 3.
    """

    type: Literal["fixed"] = "fixed"
    tokens: int = Field(default=576, ge=0)


ImageRule = Annotated[TilesRule | PatchesRule | PixelsRule | FixedRule, Field(discriminator="type")]
"""What a picture costs, told apart by `type`."""


class CounterConfig(Config):
    """What all token counters share."""

    image_rule: ImageRule = TilesRule()
    """What a picture costs."""
    audio_tokens_per_second: float = Field(default=25.0, ge=0.0)
    """What a sound costs: 25 in Qwen2-Audio (Chu et al. 2024, section 2: one token for 40 ms)."""
    message_overhead: int = Field(default=5, ge=0)
    """What a message costs beside its content; 5 in ChatML (two marks, a role, two line ends)."""


class EstimateConfig(CounterConfig):
    """Own estimate: needs no vocabulary, is fast, and says slightly more than real tokenizers do."""

    type: Literal["estimate"] = "estimate"
    digits_per_token: int = Field(default=1, ge=1, le=3)
    """Digits that share a token: 1 for Mistral, Qwen, Gemma and Llama 2; 3 for OpenAI's and Llama 3."""
    scale: float = Field(default=1.0, gt=0.0)
    """Multiplies the estimate of texts, e.g. 1.1 for a tokenizer known to be coarser."""


class TokenizersConfig(CounterConfig):
    """A Hugging Face tokenizer, counted with the ``tokenizers`` library."""

    type: Literal["tokenizers"] = "tokenizers"
    tokenizer: str = Field(min_length=1)
    """A ``tokenizer.json``, a folder that holds one, a packaged model (``sensorium models list``), or a name
    on the Hugging Face hub."""


class TiktokenConfig(CounterConfig):
    """One of OpenAI's encodings, counted with the ``tiktoken`` library."""

    type: Literal["tiktoken"] = "tiktoken"
    encoding: str = Field(default="o200k_base", min_length=1)
    """e.g. ``o200k_base`` (GPT-4o and later) or ``cl100k_base``; tiktoken downloads it once."""


class MistralConfig(CounterConfig):
    """Mistral's Tekken vocabulary; the file comes inside the package ``mistral-common``."""

    type: Literal["mistral"] = "mistral"
    vocabulary: str = Field(default="tekken_240911.json", min_length=1)
    """A file of the package, or the path of a ``tekken.json``."""


TokensConfig = Annotated[
    EstimateConfig | TokenizersConfig | TiktokenConfig | MistralConfig, Field(discriminator="type")
]
"""Section ``tokens``: whose tokens are counted, told apart by `type`."""


class ChatModelConfig(Config):
    """A chat model behind an OpenAI-compatible endpoint."""

    base_url: str = Field(pattern=r"^https?://\S+$")
    """Up to and with the version, e.g. ``http://localhost:8000/v1``."""
    model: str = Field(min_length=1)
    """Name under which the endpoint serves it."""
    api_key_env: str | None = None
    """Environment variable that holds the key; the key itself is in no config and no log."""
    dialect: Literal["chat", "responses"] = "chat"
    """Which API is spoken: ``/chat/completions`` or ``/responses``."""
    timeout_s: float = Field(default=120.0, gt=0.0)
    """Of one call with all its retries."""
    max_retries: int = Field(default=3, ge=0)
    """Repetitions after a lost connection, status 408, 409, 429 or 5xx."""
    max_concurrency: int = Field(default=16, ge=1)
    """Requests under way at the same time."""
