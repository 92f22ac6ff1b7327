"""Which pictures are asked about, and how large they are."""

from typing import Literal, get_args

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.visual_qa.charts.model import ChartKind

Kind = Literal[ChartKind, "invoice", "form", "table", "notice", "room", "floor_plan", "doom"]
"""Charts, then documents, then scenes."""
CHARTS: tuple[Kind, ...] = get_args(ChartKind)
DOCUMENTS: tuple[Kind, ...] = ("invoice", "form", "table", "notice")
SCENES: tuple[Kind, ...] = ("room", "floor_plan")


class VisualQAConfig(Config):
    """Which pictures are asked about, and how large they are."""

    kinds: tuple[Kind, ...] = Field(default=(*CHARTS, *DOCUMENTS, *SCENES), min_length=1)
    """Kinds of pictures; tasks take turns at them. ``doom`` needs the extra of that name."""
    width: int = Field(default=768, ge=480, le=2048)
    """Of charts and documents, pixels; documents are as high as they must be, scenes are square."""
    zoom: bool = True
    """Offer the tool that enlarges a part of the picture."""
    max_zooms: int = Field(default=8, ge=0)
    """Calls of that tool in one episode."""
