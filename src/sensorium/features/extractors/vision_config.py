"""Settings of the extractors that look at pictures."""

from typing import Literal

from pydantic import Field

from sensorium.core import Config


class ImageEmbeddingConfig(Config):
    """Vectors of pictures."""

    model: str = "efficientnet-lite0"
    """The packaged backbone `efficientnet-lite0`; or a folder in Hugging Face format, or a name on the hub,
    of a CLIP, SigLIP, BLIP or any vision model."""
    batch_size: int = Field(default=8, ge=1)
    """Pictures that are computed at once."""
    device: str = "cpu"
    """Where torch computes, e.g. ``cpu`` or ``cuda``."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Pixels of one picture; a larger one is not decoded."""


class DetectionConfig(Config):
    """Objects in pictures, and what kind of picture it is."""

    model: str = "ssd-mobilenet"
    """The packaged detector, or a folder with another ``frozen_inference_graph.pb`` (SSD of COCO, TensorFlow)
    and its ``.pbtxt``."""
    min_score: float = Field(default=0.5, ge=0.0, le=1.0)
    """Objects in a photo that the detector is less sure of are left out."""
    min_score_graphic: float = Field(default=0.9, ge=0.0, le=1.0)
    """The same for charts, drawings and screenshots, in which detectors see things that are not there."""
    max_overlap: float = Field(default=0.5, ge=0.0, le=1.0)
    """Of two boxes of one kind that overlap more (intersection over union), the less certain is left out."""
    max_objects: int = Field(default=20, ge=1)
    """The most certain objects that are kept."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Pixels of one picture; a larger one is not decoded."""


class OcrConfig(Config):
    """Text in pictures."""

    engine: Literal["auto", "tesseract", "rapidocr"] = "auto"
    """`auto`: tesseract where its program is installed, else rapidocr."""
    language: str = Field(default="eng", pattern=r"^[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*$")
    """Languages of tesseract, e.g. ``eng+deu``; rapidocr reads English and Chinese in any case."""
    layout: Literal["page", "block", "sparse"] = "page"
    """For tesseract: columns and paragraphs; one block; or single words anywhere, as in charts and photos."""
    min_confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    """Lines of which the engine is less sure, on the mean of their letters, are left out."""
    small_pixels: int = Field(default=1_000_000, ge=0)
    """For tesseract: a picture with fewer pixels is enlarged, 2 or 3 times; 0 never enlarges."""
    timeout_s: float = Field(default=15.0, gt=0.0)
    """Longest time that tesseract may take for one picture."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Pixels of one picture; a larger one is not decoded."""
