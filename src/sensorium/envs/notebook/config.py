"""Limits of the notebook environment; all of them are finite."""

from pathlib import Path

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.sandbox.base import SandboxLimits


class KernelConfig(Config):
    """How a kernel runs cells, and how much of what they write is kept."""

    cell_timeout_s: float = Field(default=30.0, gt=0.0, le=3600.0)
    """Of one cell; then it is interrupted."""
    interrupt_grace_s: float = Field(default=3.0, gt=0.0, le=60.0)
    """How long an interrupted cell may take to stop; then the kernel is started afresh."""
    start_timeout_s: float = Field(default=40.0, gt=0.0, le=600.0)
    """Of starting a kernel, and of `preload`."""
    preload: tuple[str, ...] = ("numpy", "pandas")
    """Modules that a new kernel loads while the agent thinks; no name of them appears in the notebook, and
    one that is not installed is passed over."""
    max_stream_chars: int = Field(default=200_000, ge=1_000)
    """Characters kept of what a cell prints to one stream at a stretch: the first and the last half."""
    max_text_chars: int = Field(default=200_000, ge=1_000)
    """Characters kept of any other text of an output."""
    max_image_bytes: int = Field(default=4_000_000, ge=1_000)
    """Larger pictures are left out, which is said in their place."""
    max_outputs: int = Field(default=50, ge=1)
    """Outputs kept of one cell."""
    max_received_bytes: int = Field(default=20_000_000, ge=100_000)
    """A cell that writes more is interrupted."""


class NotebookConfig(Config):
    """The notebook environment."""

    kernel: KernelConfig = KernelConfig()
    sandbox: SandboxLimits = SandboxLimits(memory_mb=1536, max_processes=128, disk_mb=256)
    """What everything that the agent runs may use together."""
    unsafe_no_sandbox: bool = False
    """Where programs cannot be isolated, run them as plain processes of this user instead of refusing. They
    can then read its files: only for tasks and agents that you trust."""
    action_timeout_s: float = Field(default=100.0, gt=0.0, le=7200.0)
    """Of all cells that one action runs; below `EpisodeConfig.step_timeout_s`."""
    max_cells: int = Field(default=100, ge=1, le=10_000)
    """Cells that a notebook may have."""
    max_source_chars: int = Field(default=50_000, ge=100)
    """Of one cell."""
    max_notebook_bytes: int = Field(default=50_000_000, ge=100_000)
    """Of all outputs together; beyond it those of the oldest cells are removed."""
    max_listed_files: int = Field(default=100, ge=1)
    """Files that are listed."""
    warm_kernels: int = Field(default=0, ge=0, le=64)
    """Kernels kept ready in advance, for episodes that begin in an instant; each takes about 150 MB."""
    data_directory: Path | None = None
    """Where ``{"path": "..."}`` of a task's files are found; such files are refused when None."""
    templates: tuple[str, ...] = ()
    """Kinds of questions that are asked (`questions.TEMPLATES`); all when empty."""
    datasets: tuple[str, ...] = ()
    """Data sets that are asked about (`datasets.DATASETS`); all when empty."""
