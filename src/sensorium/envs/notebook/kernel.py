"""A Jupyter kernel in a sandbox: runs cells one after another, and comes back whatever they do to it."""

import asyncio
import contextlib
import inspect
import logging
import secrets
import signal
import time
from typing import TYPE_CHECKING, Any

from sensorium.core import EnvError
from sensorium.core.errors import require
from sensorium.envs.notebook import guest
from sensorium.envs.notebook.config import KernelConfig
from sensorium.envs.notebook.execution import Ending, Execution, Run
from sensorium.envs.notebook.outputs import OutputCollector
from sensorium.envs.sandbox.base import Process, Sandbox, SandboxError

if TYPE_CHECKING:
    from jupyter_client.asynchronous.client import AsyncKernelClient

_log = logging.getLogger(__name__)
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_MAX_MESSAGE_BYTES = 64_000_000
_QUEUED_MESSAGES = 16
_MAX_OPEN_RUNS = 20
_IDLE_GRACE_S = 3.0
_WELCOME_S = 2.0
_CLEAN_S = 10.0
_ENDED = "The kernel had ended since the last cell and was started afresh: variables are gone."
_INLINE = "module://matplotlib_inline.backend_inline"


class Kernel:
    r"""A kernel in an open sandbox. Used by one task at a time; ends with its sandbox at the latest.

        kernel = Kernel(sandbox)
        await kernel.start()
        run = await kernel.execute("print(1 + 1)")
        run.collector.outputs()      # [{"output_type": "stream", "name": "stdout", "text": "2\n"}]

    Args:
        sandbox: Where it runs; opened and closed by the caller.
        config: Limits.
    """

    def __init__(self, sandbox: Sandbox, config: KernelConfig | None = None) -> None:
        self._sandbox = sandbox
        self._config = config or KernelConfig()
        self._process: Process | None = None
        self._client: AsyncKernelClient | None = None
        self._context: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._runs: dict[str, Run] = {}
        self._welcome = asyncio.Event()
        self._preload: Run | None = None
        self._generation = 0
        self._address = self._key = ""
        self._is_dirty = False

    @property
    def alive(self) -> bool:
        """Whether the kernel's process runs."""
        return self._process is not None and self._process.alive

    async def start(self) -> None:
        """Start the kernel; what it preloads is still loading when this returns.

        Raises:
            EnvError: It did not start.
            MissingDependencyError: ipykernel or jupyter_client is not installed.
        """
        require("ipykernel", extra="notebook", purpose="the notebook environment")
        require("jupyter_client", extra="notebook", purpose="the notebook environment")
        self._generation += 1
        name = f"kernel{self._generation}"
        key = secrets.token_hex(16)
        process = await self._sandbox.start(
            [
                self._sandbox.python,
                "-m",
                "ipykernel_launcher",
                "--transport=ipc",
                f"--ip={self._sandbox.sockets}/{name}",
                *(f"--{channel}={number}" for number, channel in enumerate(_CHANNELS, start=1)),
                f"--Session.key={key}",
                "--HistoryManager.enabled=False",
                "--InteractiveShell.colors=nocolor",
            ],
            env={"PYDEVD_DISABLE_FILE_VALIDATION": "1", "MPLBACKEND": _INLINE},
        )
        self._process = process
        process.stdin.close()  # cells that read it meet its end at once
        try:
            names = [f"{name}-{number}" for number in range(1, len(_CHANNELS) + 1)]
            paths = await self._sandbox.connectable(names, timeout_s=self._config.start_timeout_s)
        except SandboxError as error:
            said = await self._last_words(process)
            await process.kill()
            raise EnvError(f"The notebook's kernel did not start: {error}{said}") from error
        self._address, self._key = paths[0].rpartition("-")[0], key
        await self._connect(process)
        limit = self._config.max_received_bytes // 4  # characters of up to four bytes
        call = f"set_up({self._config.preload!r}, {limit})"
        self._preload = self._send(
            f"{inspect.getsource(guest)}\n{call}\ndel set_up, Any, Iterator, Sequence", silent=True
        )

    async def execute(self, source: str, *, timeout_s: float | None = None) -> Execution:
        """Run a cell to its end; whatever it does, there is a kernel afterwards.

        Args:
            source: Code.
            timeout_s: After this long it is interrupted; by default as configured.

        Raises:
            EnvError: The sandbox is gone, or no new kernel could be started.
        """
        started = time.monotonic()
        limit_s = timeout_s or self._config.cell_timeout_s
        began_anew = False
        try:
            if self._is_dirty or not self.alive:
                began_anew = self._generation > 0
                await self.restart()
            await self._await_preload()
            run = self._send(source)
            execution = await self._judge(run, await self._wait(run, limit_s), limit_s)
        except asyncio.CancelledError:
            self._is_dirty = True  # the cell may still run
            raise
        execution.wall_s = time.monotonic() - started
        execution.began_anew = began_anew
        if began_anew:
            execution.note = f"{_ENDED} {execution.note}".strip()
        return execution

    async def restart(self) -> None:
        """End the kernel with all that it started, remove temporary files, and start a new one.

        Raises:
            EnvError: No new kernel could be started.
        """
        await self.close()
        self._is_dirty = False
        if self._sandbox.isolation.safe:  # a kernel does not work where temporary files have filled the disk
            await self._sandbox.run(
                ["find", "/tmp", "/dev/shm", "-mindepth", "1", "-delete"], timeout_s=_CLEAN_S
            )
        await self.start()

    async def close(self) -> None:
        """End the kernel; harmless when repeated."""
        await self._disconnect()
        for run in self._runs.values():
            run.end("died")
        self._runs, self._preload = {}, None
        if self._process is not None:
            with contextlib.suppress(SandboxError):
                await self._process.kill()

    async def _disconnect(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._client is not None:
            self._client.stop_channels()
            self._client = None
        if self._context is not None:
            self._context.destroy(linger=0)
            self._context = None

    async def _reconnect(self) -> None:
        """A channel that met too large a message stays shut."""
        assert self._process is not None
        await self._disconnect()
        await self._connect(self._process)

    async def _connect(self, process: Process) -> None:
        import zmq.asyncio
        from jupyter_client.asynchronous.client import AsyncKernelClient

        context = zmq.asyncio.Context()
        context.maxmsgsize = _MAX_MESSAGE_BYTES
        context.rcvhwm = _QUEUED_MESSAGES
        ports = {f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)}
        client = AsyncKernelClient(transport="ipc", ip=self._address, context=context, **ports)
        client.session.key = self._key.encode()
        self._context, self._client = context, client
        self._welcome = asyncio.Event()
        client.start_channels(stdin=False, hb=False, control=False)
        self._tasks = [
            asyncio.create_task(self._read_iopub(client)),
            asyncio.create_task(self._read_shell(client)),
            asyncio.create_task(self._watch(process)),
        ]
        # The first outputs would be lost where the subscription has not reached the kernel yet.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WELCOME_S):
                await self._welcome.wait()

    def _send(self, source: str, *, silent: bool = False) -> Run:
        assert self._client is not None
        future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        run = Run(OutputCollector(self._config), future)
        message_id = self._client.execute(source, silent=silent, store_history=not silent, allow_stdin=False)
        self._runs[message_id] = run
        while len(self._runs) > _MAX_OPEN_RUNS:  # older cells may still write, but not for ever
            del self._runs[next(iter(self._runs))]
        return run

    async def _await_preload(self) -> None:
        run, self._preload = self._preload, None
        if run is None or await self._wait(run, self._config.start_timeout_s) == "done":
            return
        raise EnvError(
            f"A new kernel did not answer within {self._config.start_timeout_s:g} s, in which it should "
            f"have loaded {', '.join(self._config.preload) or 'nothing'}."
        )

    async def _wait(self, run: Run, timeout_s: float) -> Ending:
        done, _ = await asyncio.wait({run.ending}, timeout=timeout_s)
        return run.ending.result() if done else "timeout"

    async def _judge(self, run: Run, ending: Ending, timeout_s: float) -> Execution:
        """What became of a cell; mends the kernel where it must be."""
        execution = Execution(run.collector)
        if ending == "done":
            await self._finish(run, execution)
        elif ending == "died":
            await self._replace_dead(run, execution)
        else:
            limit = self._config.max_received_bytes
            why = (
                f"it took longer than {timeout_s:g} s"
                if ending == "timeout"
                else f"it wrote more than {limit:,} bytes"
            )
            await self._stop(run, execution, why)
        return execution

    async def _finish(self, run: Run, execution: Execution) -> None:
        try:
            async with asyncio.timeout(_IDLE_GRACE_S):
                await run.idle.wait()
        except TimeoutError:
            execution.note = f"Output was lost: one message had more than {_MAX_MESSAGE_BYTES:,} bytes."
            await self._reconnect()
        execution.status = "error" if run.reply.get("status") == "error" else "ok"
        execution.count = run.count
        payload = run.reply.get("payload")
        if any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload or ()):
            await self._replace_dead(run, execution)

    async def _replace_dead(self, run: Run, execution: Execution) -> None:
        killed_by = self._process.killed_by if self._process is not None else None
        code = self._process.returncode if self._process is not None else None
        limit = self._sandbox.limits.memory_mb
        if killed_by == "memory":
            why = f"it used more memory than the {limit:,} MiB there are"
        elif killed_by is not None:
            why = f"it went over the limit of {killed_by}"
        elif code is None:
            why = "it was told to exit"
        elif code < 0:
            why = f"it crashed with {signal.Signals(-code).name}, maybe for want of memory"
        else:
            why = f"its process ended with status {code}"
        run.collector.add_error("KernelDied", f"The kernel died while it ran this cell: {why}.")
        await self.restart()
        execution.status = "died"
        execution.note = (
            f"The kernel died ({why}) and was started afresh: variables are gone, files are kept."
        )

    async def _stop(self, run: Run, execution: Execution, why: str) -> None:
        """Interrupt a cell; replace the kernel when it does not answer."""
        assert self._process is not None
        for _ in range(2):
            await self._process.interrupt()
            if await self._wait_end(run, self._config.interrupt_grace_s / 2):
                break
        if run.has_died:
            await self._replace_dead(run, execution)
            return
        if run.reply:
            execution.count = run.count
            execution.status = "interrupted"
            execution.note = f"The cell was interrupted: {why}. Variables are kept."
            if not run.collector.failed:
                run.collector.add_error("KeyboardInterrupt", f"The cell was interrupted: {why}.")
            return
        run.collector.add_error("KernelRestarted", f"The cell was stopped: {why}.")
        await self.restart()
        execution.status = "restarted"
        execution.note = (
            f"The cell was stopped: {why}, and did not react to an interrupt. The kernel was started afresh: "
            "variables are gone, files are kept."
        )

    async def _wait_end(self, run: Run, timeout_s: float) -> bool:
        """Whether the kernel answered or died; also after the ending was decided by a limit."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if run.reply or not self.alive or run.has_died:
                return True
            await asyncio.sleep(0.02)
        return False

    async def _read_iopub(self, client: "AsyncKernelClient") -> None:
        """Pass on what the kernel publishes; it may be anything, a cell can write to the channel itself."""
        while True:
            try:
                message = await client.get_iopub_msg()
                kind, content = message["msg_type"], message["content"]
                run = self._runs.get(message["parent_header"].get("msg_id", ""))
                if kind == "iopub_welcome":
                    self._welcome.set()
                elif run is not None and isinstance(content, dict):
                    self._take(run, kind, content)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                _log.debug("a kernel published something unreadable: %r", error)
            await asyncio.sleep(0)  # a flood must not keep other episodes from running

    def _take(self, run: Run, kind: str, content: dict[str, Any]) -> None:
        if kind == "status":
            if content.get("execution_state") == "idle":
                run.idle.set()
            return
        run.received_bytes += _size(content)
        if run.received_bytes > self._config.max_received_bytes:
            run.end("flooded")
            return
        run.collector.take(kind, content)

    async def _read_shell(self, client: "AsyncKernelClient") -> None:
        while True:
            try:
                message = await client.get_shell_msg()
                run = self._runs.get(message["parent_header"].get("msg_id", ""))
                if run is not None and message["msg_type"] == "execute_reply":
                    run.reply = dict(message["content"]) or {"status": "error"}
                    run.end("done")
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                _log.debug("a kernel answered something unreadable: %r", error)
            await asyncio.sleep(0)

    async def _watch(self, process: Process) -> None:
        try:
            await process.wait()
        except SandboxError as error:
            _log.debug("a kernel ended with its sandbox: %s", error)
        await asyncio.sleep(0.05)  # its last messages are on their way
        for run in list(self._runs.values()):
            run.end("died")

    @staticmethod
    async def _last_words(process: Process) -> str:
        if process.alive:
            return ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                said = (await process.stderr.read(20_000)).decode(errors="replace").strip()
                return f" It said: {said[-1000:]}" if said else ""
        return ""


def _size(content: dict[str, Any]) -> int:
    """Characters of text in a message, near enough."""
    texts = [*content.values()]
    data = content.get("data")
    texts += data.values() if isinstance(data, dict) else ()
    return sum(len(text) for text in texts if isinstance(text, str)) + 100
