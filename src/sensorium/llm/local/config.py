"""A chat model in this process: which weights, how many requests at once, which limits."""

from typing import Literal

from pydantic import Field

from sensorium.core import Config


class SamplingDefaults(Config):
    """What a request that does not say otherwise is sampled with."""

    temperature: float = Field(default=1.0, ge=0.0)
    """0 takes the likeliest token."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    """0 keeps all tokens."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Of an answer; None: as many as fit the context."""


class EngineConfig(Config):
    """How requests share the model."""

    max_batch: int = Field(default=8, ge=1)
    """Requests that decode together."""
    max_queue: int = Field(default=256, ge=0)
    """Requests that wait; one more is refused with `QueueFullError`."""
    context_tokens: int | None = Field(default=None, ge=2)
    """Prompt and answer together; None: what the model was made for."""
    prefill_tokens: int = Field(default=256, ge=1)
    """Tokens of new prompts that are read between two steps of the requests that decode already."""
    prefix_cache_mb: float = Field(default=512.0, ge=0.0)
    """Memory for keys and values of earlier conversations, which a prompt that begins alike reuses; 0:
    none."""
    kv_memory_mb: float = Field(default=4096.0, gt=0.0)
    """Memory for keys and values of running requests above which no further one joins them."""


class LocalModelConfig(Config):
    """A causal language model whose weights are on this machine."""

    model: str = Field(default="smollm2", min_length=1)
    """A folder in Hugging Face format, a packaged model (``sensorium models list``), or a name on the hub."""
    name: str | None = None
    """Name under which it answers; None: that of the model."""
    device: str | None = None
    """Where torch computes, e.g. ``cuda:0``; None: the first GPU where there is one, else the CPU."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """``auto``: float32 on a CPU, bfloat16 on a GPU."""
    engine: EngineConfig = EngineConfig()
    sampling: SamplingDefaults = SamplingDefaults()
    pictures: bool | None = None
    """Whether the model is shown pictures; None: where it is of a kind that sees. False has such a model read
    text alone."""
    media: Literal["refuse", "name"] = "refuse"
    """What is done with what the model cannot take (sounds; pictures, where it is shown none): an error, or a
    line that names it."""
    tool_format: Literal["auto", "template", "system", "python"] = "auto"
    """Who tells the model of its tools: its chat template, or a system message of ours with answers in
    ``<tool_call>`` marks; ``auto``: the template where it knows tools and those marks. ``python``: a system
    message of signatures, answers are calls as in Python; short, and never held to the tools' schemas."""
