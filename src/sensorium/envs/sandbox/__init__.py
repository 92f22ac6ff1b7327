"""A private place to run programs that nobody trusts."""

from sensorium.envs.sandbox.base import (
    Completed,
    FileEntry,
    Isolation,
    KilledBy,
    Process,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxLimits,
    SandboxUnavailable,
)

__all__ = [
    "Completed",
    "FileEntry",
    "Isolation",
    "KilledBy",
    "Process",
    "Sandbox",
    "SandboxClosed",
    "SandboxError",
    "SandboxFileError",
    "SandboxLimits",
    "SandboxUnavailable",
]
