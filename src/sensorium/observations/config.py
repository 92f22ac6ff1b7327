"""Limits of what is read from a raw state."""

from pydantic import Field

from sensorium.core import Config


class ReadConfig(Config):
    """Limits that keep a hostile or huge file from taking the process down."""

    max_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """Bytes of one file that are read; of a longer one a sample is read where its kind allows that."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Pixels of one picture; checked before it is decoded."""
    max_rows: int = Field(default=100_000, ge=1)
    """Rows of one table that its profile is made from."""
    keep_rows: int = Field(default=2_000, ge=0)
    """Rows of one table that are kept in the part."""
    max_depth: int = Field(default=64, ge=1)
    """Nesting of structured data that is followed."""
    max_items: int = Field(default=200_000, ge=1)
    """Values of one piece of structured data that are looked at."""
    max_files: int = Field(default=500, ge=1)
    """Files of one directory."""
    allow_urls: bool = False
    """Whether pictures behind ``http`` and ``https`` addresses may be fetched."""
    url_timeout_s: float = Field(default=10.0, gt=0.0)
    url_max_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    url_max_redirects: int = Field(default=3, ge=0)
