"""Which text encoder to use."""

from typing import Annotated, Literal

from pydantic import Field

from sensorium.core import Config


class PretrainedTextConfig(Config):
    """A frozen pretrained encoder; vectors of a token depend on its sentence."""

    type: Literal["pretrained"] = "pretrained"
    model: str = "minilm"
    """Packaged model (`sensorium models list`), folder in Hugging Face format, or name on the hub."""
    max_tokens: int = Field(default=24, ge=1, le=512)
    """Tokens per sentence, marks of beginning and end included."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    """In which the model computes; vectors are handed on as float32. `auto` compares float32 and bfloat16 on
    this machine at the first start, and takes bfloat16 where it is faster and the cosine is 0.999 or more."""


class HashedTextConfig(Config):
    """A fixed pseudo-random vector per word: no weights, no download, no notion of similar words."""

    type: Literal["hashed"] = "hashed"
    dim: int = Field(default=64, ge=1, le=4096)
    """Width of a word vector."""
    max_tokens: int = Field(default=24, ge=1, le=512)
    """Words per sentence."""


TextEncoderConfig = Annotated[PretrainedTextConfig | HashedTextConfig, Field(discriminator="type")]
"""How text becomes vectors; `type` selects the alternative."""
