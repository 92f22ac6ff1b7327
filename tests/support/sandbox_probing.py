"""A short way to run Python inside a sandbox and read what it printed."""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from sensorium.envs.sandbox import Completed, Sandbox, SandboxLimits, SandboxUnavailable

T = TypeVar("T")


def inside(body: Callable[[Sandbox], Awaitable[T]], limits: SandboxLimits | None = None, **options: Any) -> T:
    """Open a sandbox, await `body` with it, close it; skipped where the machine cannot isolate."""

    async def go() -> T:
        async with Sandbox.create(limits, **options) as sandbox:
            return await body(sandbox)

    try:
        return asyncio.run(asyncio.wait_for(go(), 60))
    except SandboxUnavailable as error:
        pytest.skip(str(error))


async def python(sandbox: Sandbox, code: str, **options: Any) -> Completed:
    """Run a program text."""
    return await sandbox.run([sandbox.python, "-c", textwrap.dedent(code)], **options)


def run_python(code: str, limits: SandboxLimits | None = None, **options: Any) -> Completed:
    """Run a program text in a sandbox of its own."""
    return inside(lambda sandbox: python(sandbox, code), limits, **options)
