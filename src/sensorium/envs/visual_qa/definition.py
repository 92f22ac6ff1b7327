"""Tasks of the picture environment and their solution."""

import random
from collections.abc import Callable, Sequence
from typing import ClassVar

from sensorium.core import ConfigError, derive_seed
from sensorium.envs.base import Action, Env, Record, Task
from sensorium.envs.definition import EnvDefinition, Expert
from sensorium.envs.visual_qa.answers import NumberAnswer, answer_from, gold_text
from sensorium.envs.visual_qa.charts.making import MAKERS, chart_question
from sensorium.envs.visual_qa.config import Kind, VisualQAConfig
from sensorium.envs.visual_qa.documents.form import form_question
from sensorium.envs.visual_qa.documents.invoice import invoice_question
from sensorium.envs.visual_qa.documents.notice import notice_question
from sensorium.envs.visual_qa.documents.printed_table import table_question
from sensorium.envs.visual_qa.env import VisualQAEnv
from sensorium.envs.visual_qa.questions import Question
from sensorium.envs.visual_qa.scenes.doom import doom_question
from sensorium.envs.visual_qa.scenes.floor_plan import floor_plan_question
from sensorium.envs.visual_qa.scenes.room import room_question

_SCENE_SIZE = 480
_MakeQuestion = Callable[[random.Random, str, int], tuple[Record, Question]]
_PAGES_AND_SCENES: dict[str, tuple[_MakeQuestion, int | None]] = {
    "invoice": (invoice_question, None),
    "form": (form_question, None),
    "table": (table_question, None),
    "notice": (notice_question, None),
    "room": (room_question, _SCENE_SIZE),
    "floor_plan": (floor_plan_question, _SCENE_SIZE),
    "doom": (doom_question, _SCENE_SIZE),
}


class VisualQA(EnvDefinition[VisualQAConfig]):
    """Questions about charts, documents and scenes."""

    name = "visual_qa"
    summary = "answer questions about charts of real data, documents and scenes"
    config_type = VisualQAConfig
    system = (
        "Answer the question about the picture. Look closely; enlarge a part when it is too small to read. "
        "Then call submit_answer with the answer alone: a number, a name, or yes or no. There is one try."
    )
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def make(self, config: VisualQAConfig) -> Env:
        """A new environment."""
        return VisualQAEnv(config)

    def tasks(
        self, config: VisualQAConfig, *, split: str = "train", count: int = 100, seed: int = 0
    ) -> Sequence[Task]:
        """Tasks of a split; kinds of pictures take turns."""
        self.check_split(split)
        if seed < 0:
            raise ConfigError(f"The seed of tasks must be 0 or greater, found {seed}.")
        return [self.task(config, f"{split}-{seed}-{number}") for number in range(count)]

    def task(self, config: VisualQAConfig, task_id: str) -> Task:
        """The task with this id."""
        split, _, rest = task_id.partition("-")
        seed, _, number = rest.partition("-")
        if split not in self.splits or not (seed.isdecimal() and number.isdecimal()):
            raise ConfigError(f"visual_qa has no task {task_id!r}. Expected an id like train-0-17.")
        kind = config.kinds[int(number) % len(config.kinds)]
        rng = random.Random(derive_seed("visual_qa", task_id, kind))
        picture, question = _picture(kind, rng, split, config.width)
        return Task(
            id=task_id,
            env=self.name,
            instruction=_instruction(question),
            data={"kind": kind, "template": question.template},
            hidden={
                "picture": picture.model_dump(mode="json"),
                "answer": question.answer.model_dump(mode="json"),
            },
        )

    def expert(self, task: Task) -> Expert:
        """Give the right answer."""
        yield Action.call("submit_answer", answer=gold_text(answer_from(task.hidden["answer"])))


def _picture(kind: Kind, rng: random.Random, split: str, width: int) -> tuple[Record, Question]:
    if kind in MAKERS:
        return chart_question(kind, rng, split, width)
    make, size = _PAGES_AND_SCENES[kind]
    return make(rng, split, width if size is None else size)


def _instruction(question: Question) -> str:
    """The question, and in which unit a number is wanted."""
    answer = question.answer
    if isinstance(answer, NumberAnswer) and answer.unit:
        return f"{question.text} Give a number in {answer.unit}."
    return question.text
