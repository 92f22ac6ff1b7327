"""Tasks of the notebook environment and their solution."""

from collections.abc import Sequence

from sensorium.envs.base import Action, Env, Step, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.notebook.config import NotebookConfig
from sensorium.envs.notebook.datasets import DATASETS, load_table
from sensorium.envs.notebook.env import NotebookEnv
from sensorium.envs.notebook.pool import KernelPool
from sensorium.envs.notebook.tasks import NAME, make_task
from sensorium.observations.source import Source

_SYSTEM = (
    "You answer questions about data with a Jupyter notebook (Python; pandas, numpy, scipy, statsmodels, "
    "scikit-learn and matplotlib are there, the network is not). You see the notebook with its outputs, and "
    "the files beside it. insert_cell adds a cell and runs it, edit_cell changes and runs one; variables "
    "last from cell to cell. Look at the data first, compute the answer, print it, then call submit_answer "
    "once. Never guess."
)


class NotebookAnalysis(EnvDefinition[NotebookConfig]):
    """Questions about real data, answered with a notebook."""

    name = NAME
    summary = "analyse real data with a Jupyter kernel in a sandbox, submit a number or a name"
    config_type = NotebookConfig
    system = _SYSTEM

    def __init__(self) -> None:
        self._pools: dict[str, KernelPool] = {}

    def make(self, config: NotebookConfig) -> Env:
        """A new environment; those of the same config share their warm kernels."""
        pool = self._pools.setdefault(config.model_dump_json(), KernelPool(config))
        return NotebookEnv(config, pool)

    def tasks(
        self, config: NotebookConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split; a kind of question about a data set is in one split only."""
        self.check_split(split)
        return [self.task(config, f"{split}-{seed}-{number}") for number in range(count)]

    def task(self, config: NotebookConfig, task_id: str) -> Task:
        """The task with this id."""
        return make_task(config, task_id)

    def expert(self, task: Task) -> Expert:
        """Load the data, compute the answer in a cell, submit what the cell printed."""
        step: Step | None = None
        for source in task.hidden["solution"]:
            step = yield Action.call("insert_cell", source=source)
        yield Action.call("submit_answer", answer=_printed(step))

    def prepare(self, config: NotebookConfig) -> None:
        """Check that all data sets are there."""
        for name in config.datasets or DATASETS:
            load_table(name)


def _printed(step: Step | None) -> str:
    """What the last cell of the notebook printed, or the end of the tool's answer where none is seen."""
    if step is None:
        return ""
    state = step.observation
    notebook = state.get("notebook") if isinstance(state, dict) else None
    if isinstance(notebook, Source):
        outputs = notebook.raw["cells"][-1]["outputs"]
        texts = [o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout"]
        return str(texts[-1]).strip() if texts else ""
    return step.info.results[0].text.rpartition("last output: ")[2].strip()
