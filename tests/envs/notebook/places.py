"""Kernels in real sandboxes for tests."""

import asyncio

import pytest

from sensorium.envs.notebook.config import KernelConfig
from sensorium.envs.notebook.kernel import Kernel
from sensorium.envs.sandbox.base import Sandbox, SandboxLimits, SandboxUnavailable

LIMITS = SandboxLimits(memory_mb=700, max_processes=48, disk_mb=64)
CONFIG = KernelConfig(cell_timeout_s=30.0, interrupt_grace_s=4.0, preload=("numpy",))


def run_in_kernel(use, *, config=CONFIG, files=None, limits=LIMITS):
    """Await ``use(kernel, sandbox)`` and return what it returns."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")

    async def run():
        async with Sandbox.create(limits, files=files) as sandbox:
            kernel = Kernel(sandbox, config)
            await kernel.start()
            try:
                return await use(kernel, sandbox)
            finally:
                await kernel.close()

    try:
        return asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")


def run_cells(*sources, timeout_s=None, **options):
    """Run cells one after another and return their executions."""

    async def use(kernel, sandbox):
        return [await kernel.execute(source, timeout_s=timeout_s) for source in sources]

    return run_in_kernel(use, **options)


def printed(execution):
    """What a cell printed to stdout."""
    outputs = execution.collector.outputs()
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout")


def shown(execution):
    """The text of what a cell displayed or returned."""
    return [o["data"].get("text/plain") for o in execution.collector.outputs() if "data" in o]
