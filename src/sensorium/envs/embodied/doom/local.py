"""The games inside this process: the same answers as `WorkerPool`, without its safety."""

import json
import tempfile
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sensorium.core import EnvError, boundary
from sensorium.envs.embodied.doom.memory import local_arrays
from sensorium.envs.embodied.doom.settings import GameSettings
from sensorium.envs.embodied.doom.worker import DESCRIBE, Host, WorkerJob


class LocalGames:
    """All worlds, one after the other, in this process. An engine that crashes ends the process.

    Args:
        settings: How every game runs.
        num_envs: How many worlds.

    Raises:
        EnvError: An engine did not start.
    """

    def __init__(self, settings: GameSettings, num_envs: int) -> None:
        self.num_envs = num_envs
        self.arrays = local_arrays(settings.layout(num_envs, 1))
        job = WorkerJob(
            settings=settings, num_envs=num_envs, num_workers=1, index=0, worlds=tuple(range(num_envs))
        )
        folder = tempfile.TemporaryDirectory(prefix="sensorium-doom-")
        try:
            with boundary(EnvError, "The doom engine did not start"):
                self._host = Host(job, self.arrays, Path(folder.name))
        except BaseException:
            folder.cleanup()
            raise
        self._finalizer = weakref.finalize(self, _end, self._host, folder)

    def run(self) -> NDArray[np.bool_]:
        """Carry out `arrays["command"]` in all worlds; never loses one, so all of (N,) is False.

        Raises:
            EnvError: The engine failed.
        """
        with boundary(EnvError, "The doom engine failed"):
            self._host.run()
        return np.zeros(self.num_envs, np.bool_)

    def ask(self, kind: bytes, world: int) -> bytes:
        """Answer a request about one world."""
        with boundary(EnvError, "The doom engine failed"):
            if kind == DESCRIBE:
                return json.dumps(self._host.describe(world)).encode()
            self._host.picture(world)
            return b""

    def close(self) -> None:
        """Stop all engines; may be called twice. Also happens at exit."""
        self._finalizer()


def _end(host: Host, folder: "tempfile.TemporaryDirectory[str]") -> None:
    host.close()
    folder.cleanup()
