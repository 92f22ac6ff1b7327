"""Kernels for episodes: made when they are asked for, or kept ready in advance."""

import asyncio
import contextlib
import logging
import weakref
from collections import deque
from dataclasses import dataclass, field

from sensorium.core import EnvError
from sensorium.envs.notebook.config import NotebookConfig
from sensorium.envs.notebook.kernel import Kernel
from sensorium.envs.sandbox.base import Sandbox

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workplace:
    """A sandbox with a kernel, for one episode."""

    sandbox: Sandbox
    kernel: Kernel

    async def close(self) -> None:
        """End both; harmless when repeated."""
        with contextlib.suppress(EnvError):
            await self.kernel.close()
        await self.sandbox.close()


@dataclass
class _Slot:
    """A kernel that is being made or waits."""

    place: "asyncio.Future[Workplace]"
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: "asyncio.Task[None] | None" = None


class KernelPool:
    """Gives kernels to episodes, each of them to one.

    As many as `NotebookConfig.warm_kernels` says are kept ready per event loop; they end with it.

    Args:
        config: How kernels and sandboxes are made.
    """

    def __init__(self, config: NotebookConfig) -> None:
        self._config = config
        self._waiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, deque[_Slot]] = (
            weakref.WeakKeyDictionary()
        )

    async def take(self) -> Workplace:
        """A fresh kernel in a sandbox; the caller closes it.

        Raises:
            EnvError: It cannot be made.
        """
        slots = self._slots()
        place = None
        while slots and place is None:
            slot = slots.popleft()
            try:
                place = await asyncio.shield(slot.place)
            except EnvError as error:
                _log.warning("a kernel kept ready could not be started: %s", error)
                continue
            finally:
                slot.taken.set()
            if not (place.sandbox.alive and place.kernel.alive):
                await place.close()
                place = None
        place = place or await self._make()
        while len(slots) < self._config.warm_kernels:
            slots.append(self._prepare())
        return place

    async def close(self) -> None:
        """End the kernels of this event loop that nobody has taken; harmless when repeated."""
        slots = self._slots()
        keepers = [slot.keeper for slot in slots if slot.keeper is not None]
        slots.clear()
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)

    def _slots(self) -> deque[_Slot]:
        return self._waiting.setdefault(asyncio.get_running_loop(), deque())

    def _prepare(self) -> _Slot:
        slot = _Slot(asyncio.get_running_loop().create_future())
        slot.keeper = asyncio.create_task(self._keep(slot))
        return slot

    async def _keep(self, slot: _Slot) -> None:
        """Make a kernel and see to it that it ends with the event loop unless it is taken."""
        try:
            place = await self._make()
        except EnvError as error:
            slot.place.set_exception(error)
            slot.place.exception()  # nobody may ever ask
            return
        if not slot.place.done():
            slot.place.set_result(place)
        try:
            await slot.taken.wait()
        except asyncio.CancelledError:
            await place.close()
            raise

    async def _make(self) -> Workplace:
        sandbox = Sandbox.create(self._config.sandbox, allow_unsafe=self._config.unsafe_no_sandbox)
        place = Workplace(sandbox, Kernel(sandbox, self._config.kernel))
        try:
            await sandbox.open()
            await place.kernel.start()
        except BaseException:
            await place.close()
            raise
        return place
