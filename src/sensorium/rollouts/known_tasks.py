"""Tasks of an environment that were made before: making one may be slow, and each is run several times."""

import threading
from collections import OrderedDict

from sensorium.envs.base import Task
from sensorium.rollouts.task_rows import FindTask

_MAX_TASKS = 1024


class KnownTasks:
    """Finds tasks by their ids, and keeps the last of them; may be called from several threads.

    Args:
        find: Makes a task of its id; raises ConfigError when there is none.
        max_tasks: That are kept.
    """

    def __init__(self, find: FindTask, max_tasks: int = _MAX_TASKS) -> None:
        self._find, self._max_tasks = find, max_tasks
        self._known: OrderedDict[str, Task] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, task_id: object) -> bool:
        """Whether the task is found at once."""
        return task_id in self._known

    def __call__(self, task_id: str) -> Task:
        """The task: a copy of its own for each episode, whatever an environment does with it.

        Raises:
            ConfigError: There is none with this id.
        """
        with self._lock:
            task = self._known.get(task_id)
            if task is not None:
                self._known.move_to_end(task_id)
        if task is None:
            task = self._find(task_id)
            with self._lock:
                self._known[task_id] = task
                if len(self._known) > self._max_tasks:
                    self._known.popitem(last=False)
        return task.model_copy(deep=True)
