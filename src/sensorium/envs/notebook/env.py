"""The notebook environment: an agent edits and runs cells of a real kernel and submits an answer."""

import asyncio
import logging
import time
from typing import Any, Literal

from pydantic import ValidationError

from sensorium.core import EnvError
from sensorium.envs.base import Action, Step, Task
from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.cells import Cell, Notebook
from sensorium.envs.notebook.config import NotebookConfig
from sensorium.envs.notebook.execution import Execution
from sensorium.envs.notebook.pool import KernelPool, Workplace
from sensorium.envs.notebook.workdir import task_files
from sensorium.envs.sandbox.base import SandboxError
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import ToolError, tool
from sensorium.observations.source import Source

_log = logging.getLogger(__name__)
_TOOL_TIMEOUT_S = 7300.0
"""Cells have limits of their own, which the agent is told about."""
_MIN_CELL_S = 0.5
_PREVIEW_CHARS = 160
_FILES_WEIGHT = 0.5


class NotebookEnv(ToolEnv):
    """A notebook with a kernel in a sandbox.

    The state is the notebook itself and a list of the files beside it; what a model is shown of them is not
    decided here.

    Args:
        config: Limits.
        pool: Gives kernels; shared by environments of the same config.
    """

    def __init__(self, config: NotebookConfig | None = None, pool: KernelPool | None = None) -> None:
        super().__init__()
        self._config = config or NotebookConfig()
        self._pool = pool or KernelPool(self._config)
        self._place: Workplace | None = None
        self._notebook = Notebook()
        self._deadline = float("inf")
        self._runs = self._errors = 0

    async def step(self, action: Action) -> Step:
        """Run the calls of an action; see `Env.step`."""
        self._deadline = time.monotonic() + self._config.action_timeout_s
        return await super().step(action)

    async def _reset(self, task: Task, seed: int) -> None:
        await self._close()
        self._key = _key(task)
        specs, directory = task.data.get("files", {}), self._config.data_directory
        self._files = await asyncio.to_thread(task_files, specs, directory)
        self._notebook = Notebook()
        self._runs = self._errors = 0
        self._place = await self._pool.take()
        await self._fill(self._place)

    async def _observe(self) -> Any:
        return {
            "notebook": Source(self._notebook.json()),
            "files": Source(await self._listed(), importance=_FILES_WEIGHT),
        }

    async def _close(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            await place.close()

    @tool(timeout_s=_TOOL_TIMEOUT_S)
    async def insert_cell(
        self, source: str, after: str | None = None, kind: Literal["code", "markdown"] = "code"
    ) -> str:
        """Add a cell to the notebook; code is run at once.

        Args:
            source: Python (IPython) code, or text in Markdown.
            after: Id of the cell after which it is put; the end of the notebook by default.
            kind: Whether it is code or text.
        """
        self._check_source(source)
        if len(self._notebook.cells) >= self._config.max_cells:
            raise ToolError(f"the notebook has {self._config.max_cells} cells already; edit or delete some")
        cell = self._notebook.add(source, kind, after or None)
        return await self._run(cell)

    @tool(timeout_s=_TOOL_TIMEOUT_S)
    async def edit_cell(self, cell: str, source: str) -> str:
        """Replace the source of a cell; code is run at once.

        Args:
            cell: Id of the cell, e.g. c2.
            source: The whole new source.
        """
        found = self._notebook.find(cell)
        self._check_source(source)
        found.source, found.run = source, None
        return await self._run(found)

    @tool(timeout_s=_TOOL_TIMEOUT_S)
    async def run_cell(self, cell: str) -> str:
        """Run a cell again.

        Args:
            cell: Id of the cell, e.g. c2.
        """
        return await self._run(self._notebook.find(cell))

    @tool()
    async def delete_cell(self, cell: str) -> str:
        """Delete a cell with its outputs; what it defined stays defined.

        Args:
            cell: Id of the cell, e.g. c2.
        """
        found = self._notebook.find(cell)
        self._notebook.remove(found)
        return f"{found.id} was deleted."

    @tool(timeout_s=_TOOL_TIMEOUT_S)
    async def restart_kernel(self) -> str:
        """Start the kernel afresh: variables are gone, cells and files are kept."""
        try:
            await self._here.kernel.restart()
        except EnvError as error:
            return await self._move(error)
        self._notebook.forget_runs()
        return "The kernel was started afresh."

    @tool()
    async def list_files(self) -> str:
        """List the files of the work directory with their sizes."""
        return await self._listed()

    @tool()
    async def submit_answer(self, answer: str | float) -> str:
        """Submit the final answer; this ends the episode.

        Args:
            answer: A number or a name, as the question asks for; nothing around it.
        """
        right = self._key.is_met(answer)
        self.finish(1.0 if right else 0.0, num_runs=self._runs, num_errors=self._errors)
        return "submitted"

    @property
    def _here(self) -> Workplace:
        if self._place is None:
            raise EnvError("The notebook has no kernel; call reset(task) first.")
        return self._place

    def _check_source(self, source: str) -> None:
        limit = self._config.max_source_chars
        if len(source) > limit:
            raise ToolError(f"the source has {len(source):,} characters; at most {limit:,} are allowed")

    async def _fill(self, place: Workplace) -> None:
        for name, content in self._files.items():
            await place.sandbox.write_file(name, content)

    async def _run(self, cell: Cell) -> str:
        """Run a cell and say in a line what came of it; the notebook shows the rest."""
        if cell.kind == "markdown":
            return f"{cell.id} was written."
        left = self._deadline - time.monotonic()
        if left < _MIN_CELL_S:
            limit = self._config.action_timeout_s
            return f"{cell.id} was not run: the cells of this action took {limit:g} s together. Run it now."
        timeout_s = min(self._config.kernel.cell_timeout_s, left)
        try:
            run = await self._here.kernel.execute(cell.source, timeout_s=timeout_s)
        except EnvError as error:  # the sandbox, or a kernel that does not start in it any more
            return f"{cell.id}: {await self._move(error)}"
        cell.run, cell.is_stale = run, False
        self._notebook.limit(self._config.max_notebook_bytes, but=cell)
        self._runs += 1
        self._errors += run.collector.failed
        if run.kernel_is_new or run.began_anew:
            self._notebook.forget_runs(but=None if run.kernel_is_new else cell)
        return _summary(cell.id, run)

    async def _move(self, error: EnvError) -> str:
        """Go on in a new sandbox after a cell brought down the old one."""
        _log.warning("a sandbox ended: %s", error)
        await self._close()
        self._place = await self._pool.take()
        await self._fill(self._place)
        self._notebook.forget_runs()
        return (
            "The whole machine went down and was set up afresh: variables are gone, and so are all files "
            "beside those that were there in the beginning."
        )

    async def _listed(self) -> str:
        """Files that are not hidden, a line each."""
        limit = self._config.max_listed_files
        try:
            entries = await self._here.sandbox.list_files(max_entries=10 * limit)
        except SandboxError as error:
            return f"(the files cannot be listed: {error})"
        seen = [e for e in entries if not any(part.startswith(".") for part in e.path.split("/"))]
        lines = [f"{e.path}/" if e.kind == "directory" else f"{e.path} ({_size(e.size)})" for e in seen]
        more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
        return "\n".join(lines[:limit] + more) or "(no files)"


def _key(task: Task) -> AnswerKey:
    try:
        return AnswerKey.model_validate(task.hidden.get("answer"))
    except ValidationError as error:
        said = f"The task {task.id} has no answer to judge by. Expected hidden['answer'] with kind and value."
        raise EnvError(said) from error


def _summary(cell_id: str, run: Execution) -> str:
    name, message = run.collector.error
    if run.collector.failed:
        first = message.splitlines()[0][:_PREVIEW_CHARS] if message else ""
        said = f"{cell_id} failed after {run.wall_s:.1f} s: {name}{f': {first}' if first else ''}."
    else:
        last = _last_line(run.collector.outputs())
        said = f"{cell_id} ran in {run.wall_s:.1f} s" + (f", last output: {last}" if last else ".")
    return f"{said} {run.note}".strip()


def _last_line(outputs: list[dict[str, Any]]) -> str:
    """The end of what a cell wrote, for a list of earlier actions."""
    for output in reversed(outputs):
        data = output.get("data", {})
        if any(mime.startswith("image/") for mime in data):
            return "a figure"
        text = str(output.get("text") or data.get("text/plain") or "").strip()
        if text:
            line = text.splitlines()[-1].strip()
            return line if len(line) <= _PREVIEW_CHARS else f"... {line[-_PREVIEW_CHARS:]}"
    return ""


def _size(num_bytes: int) -> str:
    return f"{num_bytes} bytes" if num_bytes < 1_000 else f"{num_bytes / 1_000:,.1f} kB"
