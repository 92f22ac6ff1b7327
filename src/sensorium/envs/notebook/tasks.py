"""Tasks: a kind of question, a data set and some of its rows, all decided by the id."""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence

from sensorium.core import ConfigError, derive_seed
from sensorium.core.errors import unknown_name
from sensorium.envs.base import Task
from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.config import NotebookConfig
from sensorium.envs.notebook.datasets import DATASETS, load_table
from sensorium.envs.notebook.questions import TEMPLATES, Draw, Question, Unsuitable
from sensorium.envs.notebook.table import Table

NAME = "notebook"
_ID = re.compile(r"(train|test)-(\d{1,20})-(\d{1,12})")
_TEST_SHARE = 5
_HEAD_ROWS = 5
_MAX_TRIES, _TRIES_PER_TEMPLATE = 60, 25


def split_of(dataset: str, template: str) -> str:
    """The split in which a kind of question is asked about a data set; it is the same for all seeds."""
    is_test = derive_seed("notebook split", dataset, template) % _TEST_SHARE == 0
    return "test" if is_test else "train"


def make_task(config: NotebookConfig, task_id: str) -> Task:
    """The task with this id.

    Raises:
        ConfigError: It is no id, or a template or data set of the config does not exist or fits nothing.
        MissingDependencyError: A package with a data set is not installed.
    """
    match = _ID.fullmatch(task_id)
    if match is None:
        raise ConfigError(f"notebook has no task {task_id!r}. Expected an id like train-0-17 or test-3-0.")
    split, rng = match[1], random.Random(derive_seed("notebook", task_id))
    templates = _known(config.templates, TEMPLATES, "kind of question")
    datasets = _known(config.datasets, DATASETS, "data set")
    for _ in range(_MAX_TRIES):
        template = rng.choice(templates)
        open_to = [name for name in datasets if split_of(name, template) == split]
        for _ in range(_TRIES_PER_TEMPLATE if open_to else 0):
            dataset, seed = rng.choice(open_to), rng.getrandbits(48)
            asked = ask(dataset, template, seed)
            if asked is not None:
                return _task(task_id, (dataset, template, seed), *asked)
    raise ConfigError(
        f"No question of {', '.join(templates)} can be asked about {', '.join(datasets)} in the split "
        f"{split}. Allow more templates or data sets."
    )


def ask(dataset: str, template: str, seed: int) -> tuple[Question, dict[str, Table]] | None:
    """One question with its files; the arguments decide everything.

    Returns:
        None when the question does not suit the data or its answer is too easily seen.

    Raises:
        ConfigError: There is no such data set or template.
        MissingDependencyError: The package with the data set is not installed.
    """
    if template not in TEMPLATES:
        raise unknown_name("kind of question", template, TEMPLATES)
    table = load_table(dataset)
    draw = Draw(random.Random(seed), DATASETS[dataset], table)
    try:
        question = TEMPLATES[template](draw)
    except Unsuitable:
        return None
    files = dict(question.files) or {draw.file: draw.table}
    if any(_stands_in_head(question.key, table) for table in files.values()):
        return None
    return question, files


def _known(wanted: Sequence[str], known: Mapping[str, object], kind: str) -> list[str]:
    for name in wanted:
        if name not in known:
            raise unknown_name(kind, name, known)
    return sorted(set(wanted)) or sorted(known)


def _stands_in_head(key: AnswerKey, table: Table) -> bool:
    """Whether somebody who prints the first rows sees the answer."""
    head = table.take(range(min(_HEAD_ROWS, len(table))))
    return any(cell and key.is_met(cell) for cells in head.columns.values() for cell in cells)


def _task(task_id: str, drawn: tuple[str, str, int], question: Question, files: Mapping[str, Table]) -> Task:
    dataset, template, seed = drawn
    specs = {}
    for name, table in files.items():
        digest = hashlib.sha256(table.csv().encode()).hexdigest()
        specs[name] = {"dataset": dataset, "template": template, "seed": seed, "sha256": digest}
    return Task(
        id=task_id,
        env=NAME,
        instruction=_instruction(dataset, question, list(files)),
        seed=derive_seed("notebook seed", task_id),
        data={"files": specs, "dataset": dataset, "template": template},
        hidden={
            "answer": question.key.model_dump(mode="json"),
            "solution": [
                f"import pandas as pd\ndf = pd.read_csv({next(iter(files))!r})\nprint(df.shape)",
                f"{question.code}\nprint(answer if isinstance(answer, str) else repr(float(answer)))",
            ],
        },
    )


def _instruction(dataset: str, question: Question, files: list[str]) -> str:
    about = DATASETS[dataset]
    meanings = {column.name: column.meaning for column in about.columns}
    used = "; ".join(f"{name}: {meanings[name]}" for name in question.columns if name in meanings)
    lines = [
        f"{files[0]} is in the work directory. {about.about} {question.note}".strip(),
        f"Columns: {used}.",
        question.text,
    ]
    if question.key.kind == "category":
        lines.append("Answer with one name, written as in the data.")
    elif question.key.exact:
        lines.append("Answer with a whole number, which must be exact.")
    else:
        lines.append(
            f"Answer with a number to {question.key.digits} significant digits; an error of one unit in "
            "the last of them is accepted. Rows that lack a value which the question needs are left out."
        )
    return "\n".join(lines)
