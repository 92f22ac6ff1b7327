"""Settings of the code-repair environment."""

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.sandbox import SandboxLimits


class CodeRepairConfig(Config):
    """Which packages, what the agent sees, and what tests may use."""

    projects: tuple[str, ...] = ()
    """Packages to repair; empty: all of the catalog that are installed."""
    operators: tuple[str, ...] = ()
    """Kinds of bugs; empty: all."""
    catalog: str = ""
    """A file of verified bugs made with `sensorium envs prepare`; empty: the one that comes along."""
    max_related: int = Field(default=3, ge=0, le=50)
    """Files near the failing ones that are shown beside them."""
    max_test_runs: int = Field(default=20, ge=1, le=1000)
    """Calls of `run_tests` in one episode."""
    sandbox: SandboxLimits = SandboxLimits(
        cpu_s=60.0, wall_s=120.0, memory_mb=1024, max_processes=32, output_bytes=4_000_000, disk_mb=64
    )
    """What one run of tests may use."""
    parallel_runs: int = Field(default=0, ge=0, le=1024)
    """Runs of tests at the same time in one server; 0: one for each processor."""
    unsafe_no_sandbox: bool = False
    """Run tests without isolation where there is none: what the agent writes can do whatever you can."""
