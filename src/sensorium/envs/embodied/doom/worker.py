"""Owns several games and obeys requests: the same code inside a worker process and inside this one.

A worker is started as `python -m sensorium.envs.embodied.doom.worker`, so that the user's main module is not
imported again (and torch with it). Readings, actions and seeds travel through shared arrays; requests are
single bytes on a socket, and answers a byte with, rarely, a little JSON.
"""

import faulthandler
import json
import os
import shutil
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sensorium.envs.embodied.doom.game import Game
from sensorium.envs.embodied.doom.memory import Arrays, attach_shared
from sensorium.envs.embodied.doom.settings import IDLE, RESET, STEP, GameSettings

RUN, PICTURE, DESCRIBE, QUIT = b"r", b"p", b"d", b"q"
"""Requests: carry out `command`; put a world's picture into `picture`; tell a world's ground truth; end."""

DONE, BROKEN = b"k", b"e"
"""First byte of an answer: done (and JSON, for DESCRIBE and at the start), or broken (and a traceback)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """What a worker is sent when it starts; picklable."""

    settings: GameSettings
    num_envs: int
    num_workers: int
    index: int
    """Which worker this is; its row of `picture`."""
    worlds: tuple[int, ...]
    """The worlds it owns."""


class Host:
    """The games of some worlds and the arrays they fill.

    Args:
        job: Which worlds, and how they run.
        arrays: All arrays; only the rows of its own worlds are touched.
        folder: Where the engines may leave files.
    """

    def __init__(self, job: WorkerJob, arrays: Arrays, folder: Path) -> None:
        self._arrays = arrays
        self._index = job.index
        self._games: dict[int, Game] = {}
        try:
            for world in job.worlds:
                readings = {name: arrays[name][world] for name in arrays if name in job.settings.sensors}
                self._games[world] = Game(job.settings, readings, folder, f"world{world}")
        except BaseException:
            self.close()
            raise

    @property
    def engine_ids(self) -> list[str]:
        """Names of the engines' own shared memory."""
        return [game.engine_id for game in self._games.values()]

    def run(self) -> None:
        """Carry out `command` in every world: RESET, STEP or nothing."""
        arrays = self._arrays
        commands = arrays["command"]
        for world, game in self._games.items():
            command = commands[world]
            if command == RESET:
                game.reset(int(arrays["seed"][world]))
            elif command == STEP:
                result = game.step(arrays["buttons"][world].tolist())
                arrays["reward"][world] = result.reward
                arrays["terminated"][world] = result.terminated
                arrays["success"][world] = result.success
            commands[world] = IDLE

    def picture(self, world: int) -> None:
        """Put the engine's last picture of a world into this worker's row of `picture`."""
        self._arrays["picture"][self._index] = self._games[world].picture()

    def describe(self, world: int) -> dict[str, Any]:
        """Ground truth of a world; see `Game.describe`."""
        return self._games[world].describe()

    def close(self) -> None:
        """Stop all engines; may be called twice."""
        for game in self._games.values():
            game.close()


def serve(connection: Connection, host: Host) -> None:
    """Answer requests until told to quit, or until the other side is gone."""
    while True:
        request = connection.recv_bytes()
        kind, world = request[:1], int.from_bytes(request[1:], "little")
        answer = b""
        if kind == RUN:
            host.run()
        elif kind == PICTURE:
            host.picture(world)
        elif kind == DESCRIBE:
            answer = json.dumps(host.describe(world)).encode()
        else:
            return
        connection.send_bytes(DONE + answer)


def main(arguments: list[str]) -> int:
    """Run a worker: file descriptors of the socket and the shared memory; the job comes by socket."""
    faulthandler.enable()
    socket_descriptor, memory_descriptor = (int(argument) for argument in arguments)
    for descriptor in (socket_descriptor, memory_descriptor):
        os.set_inheritable(descriptor, False)  # an engine that outlives us must not keep the socket open
    connection = Connection(socket_descriptor)
    host: Host | None = None
    orphaned = False
    try:
        job: WorkerJob = connection.recv()
        arrays: Mapping[str, Any] = attach_shared(
            memory_descriptor, job.settings.layout(job.num_envs, job.num_workers)
        )
        host = Host(job, arrays, Path.cwd())
        connection.send_bytes(DONE + json.dumps(host.engine_ids).encode())
        serve(connection, host)
    except (EOFError, ConnectionError):
        orphaned = True  # the parent is gone: nobody to answer, and nobody to clean up after us
    except Exception:
        connection.send_bytes(BROKEN + traceback.format_exc().encode())
        return 1
    finally:
        if host is not None:
            host.close()
        if orphaned:
            shutil.rmtree(Path.cwd(), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
