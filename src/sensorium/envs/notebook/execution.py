"""One run of one cell: while it lasts, and what became of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

from sensorium.envs.notebook.outputs import OutputCollector

Ending = Literal["done", "died", "flooded", "timeout"]
Status = Literal["ok", "error", "interrupted", "restarted", "died"]


@dataclass
class Execution:
    """One run of one cell."""

    collector: OutputCollector
    """What it wrote; what its threads and tasks write later is added."""
    status: Status = "ok"
    """``interrupted``: it took too long or wrote too much, and stopped when told to; ``restarted``: it did
    not, so the kernel was started afresh; ``died``: it ended the kernel, which was started afresh."""
    count: int | None = None
    """The number in front of the cell."""
    note: str = ""
    """What the agent must know beside the outputs."""
    began_anew: bool = False
    """Whether the kernel had ended before, so that it ran in a new one."""
    wall_s: float = 0.0

    @property
    def kernel_is_new(self) -> bool:
        """Whether all variables are gone."""
        return self.status in ("restarted", "died")


@dataclass
class Run:
    """An execution that the kernel has not finished."""

    collector: OutputCollector
    ending: "asyncio.Future[Ending]"
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    received_bytes: int = 0
    reply: dict[str, Any] = field(default_factory=dict)
    """The kernel's answer; empty before."""

    @property
    def has_died(self) -> bool:
        """Whether the kernel ended before it answered."""
        return self.ending.done() and self.ending.result() == "died"

    @property
    def count(self) -> int | None:
        """The number that the kernel gave the cell."""
        count = self.reply.get("execution_count")
        return count if isinstance(count, int) else None

    def end(self, how: Ending) -> None:
        """Say how it ended; what was said first counts."""
        if not self.ending.done():
            self.ending.set_result(how)
