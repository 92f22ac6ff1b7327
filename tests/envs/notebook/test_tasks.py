import collections
import csv
import io
import json
import random
from pathlib import Path

import pytest

from sensorium.core import ConfigError, EnvError
from sensorium.envs import find_env
from sensorium.envs.notebook import definition
from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.config import NotebookConfig
from sensorium.envs.notebook.datasets import DATASETS, is_installed, load_table
from sensorium.envs.notebook.questions import TEMPLATES
from sensorium.envs.notebook.questions.question import Draw, Unsuitable, number
from sensorium.envs.notebook.tasks import ask, make_task, split_of
from sensorium.envs.notebook.workdir import task_files

pytestmark = pytest.mark.skipif(
    not all(map(is_installed, DATASETS)), reason="a package with data sets is not installed"
)
CONFIG = NotebookConfig()
DEFINITION = find_env("notebook")


def test_every_data_set_can_be_read_with_its_kinds():
    for dataset in DATASETS.values():
        table = load_table(dataset.name)
        assert len(table) >= 40, dataset.name
        for column in dataset.of_kind("number"):
            varies = len(set(table.texts(column.name))) > 3
            assert varies or column.name.startswith("pixel"), (dataset.name, column.name)  # margins are blank
            assert len(table.numbers(column.name)) == len(table)
        for column in dataset.of_kind("category"):
            assert 2 <= len(set(table.texts(column.name)) - {""}) <= 60, (dataset.name, column.name)


def test_known_facts_of_the_data():
    cars = load_table("cars")
    assert len(cars) == 406
    assert cars.texts("mpg").count("") == 8
    assert collections.Counter(cars.texts("origin")) == {"USA": 254, "Japan": 79, "Europe": 73}
    assert len(load_table("iris")) == 150
    assert load_table("iris").numbers("petal_length").mean() == pytest.approx(3.758)
    assert load_table("breast_cancer").texts("diagnosis").count("malignant") == 212
    assert load_table("diabetes").numbers("bmi").mean() == pytest.approx(26.3758, abs=1e-3)
    assert len(load_table("digits")) == 1797


def test_the_same_id_gives_the_same_task_and_the_first_of_more_are_those_of_fewer():
    few, many = (DEFINITION.tasks(CONFIG, split="test", count=n, seed=4) for n in (3, 6))
    assert few == many[:3]
    assert few[1] == DEFINITION.task(CONFIG, "test-4-1")
    assert few != DEFINITION.tasks(CONFIG, split="test", count=3, seed=5)


def test_tasks_survive_json_and_their_files_are_made_again_from_them():
    task = DEFINITION.task(CONFIG, "train-1-2")
    again = type(task).model_validate_json(task.model_dump_json())
    assert again == task
    files = task_files(again.data["files"])
    assert files
    header = next(csv.reader(io.StringIO(next(iter(files.values())).decode())))
    assert len(header) >= 1
    assert len(task.model_dump_json()) < 5_000


def test_splits_share_no_kind_of_question_about_a_data_set():
    seen = {}
    for split in ("train", "test"):
        tasks = DEFINITION.tasks(CONFIG, split=split, count=40)
        seen[split] = {(t.data["dataset"], t.data["template"]) for t in tasks}
        assert len(seen[split]) > 20
        assert all(split_of(*pair) == split for pair in seen[split])
        assert len({t.data["template"] for t in tasks}) > 12
    assert not seen["train"] & seen["test"]


def test_no_answer_is_trivial_or_stands_in_the_first_rows():
    for n in range(40):
        task = DEFINITION.task(CONFIG, f"train-9-{n}")
        key = AnswerKey.model_validate(task.hidden["answer"])
        for content in task_files(task.data["files"]).values():
            rows = list(csv.reader(io.StringIO(content.decode())))[1:6]
            assert not any(key.is_met(cell) for row in rows for cell in row if cell), task.id
        if key.kind == "category":
            assert len(key.choices) >= 5
        else:
            assert key.value not in (0.0, 1.0, -1.0)
        assert key.is_met(str(key.value))
        assert not key.is_met("")
        assert str(key.value) not in task.instruction


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_every_kind_of_question_can_be_asked_about_several_data_sets(template):
    suited = 0
    for name in DATASETS:
        suited += any(ask(name, template, seed) is not None for seed in range(3))
        if suited == 3:
            return
    raise AssertionError(f"{template} suits {suited} data sets")


def test_an_answer_worked_out_by_hand():
    dataset, table = DATASETS["iris"], load_table("iris")
    for seed in range(20):
        draw = Draw(random.Random(seed), dataset, table)
        try:
            question = TEMPLATES["group_mean"](draw)
        except Unsuitable:
            continue
        rows = list(csv.DictReader(io.StringIO(draw.table.csv())))
        name, group = question.columns
        level = question.text.split("'")[1]
        values = [float(row[name]) for row in rows if row[group] == level]
        assert question.key.value == pytest.approx(sum(values) / len(values))
        return
    raise AssertionError("no seed suits")


def test_ids_and_names_that_do_not_exist_are_told():
    for wrong in ("train", "valid-0-1", "train-0", "train-0-x", "train--1-2", ""):
        with pytest.raises(ConfigError, match="train-0-17"):
            make_task(CONFIG, wrong)
    with pytest.raises(ConfigError, match="group_mean"):
        make_task(NotebookConfig(templates=("group_men",)), "train-0-0")
    with pytest.raises(ConfigError, match="iris"):
        make_task(NotebookConfig(datasets=("irs",)), "train-0-0")
    with pytest.raises(ConfigError, match="Allow more"):
        make_task(NotebookConfig(templates=("month_extreme",), datasets=("iris",)), "train-0-0")
    with pytest.raises(ConfigError, match="no split"):
        DEFINITION.tasks(CONFIG, split="validation", count=1)


def test_a_config_narrows_what_is_asked():
    config = NotebookConfig(templates=("correlation", "trend"), datasets=("nile", "sunspots", "cars", "wine"))
    for task in DEFINITION.tasks(config, count=10):
        assert task.data["template"] in config.templates
        assert task.data["dataset"] in config.datasets


def test_files_may_be_given_in_other_ways(tmp_path):
    (tmp_path / "own.csv").write_text("x\n1\n")
    specs = {"a.csv": {"text": "a,ä\n1,2\n"}, "b.bin": {"base64": "AAEC"}, "c.csv": {"path": "own.csv"}}
    files = task_files(specs, tmp_path)
    assert files == {"a.csv": "a,ä\n1,2\n".encode(), "b.bin": b"\0\1\2", "c.csv": b"x\n1\n"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("x", "Expected e.g."),
        ({}, "none of"),
        ({"path": "../../etc/passwd"}, "no file"),
        ({"path": "/etc/passwd"}, "no file"),
        ({"base64": "%"}, "base64"),
        ({"text": "a", "sha256": "0" * 64}, "differs"),
        ({"dataset": "iris", "template": "month_extreme", "seed": 1}, "is not one of"),
    ],
)
def test_files_that_cannot_be_given_are_told(spec, said, tmp_path):
    with pytest.raises(EnvError, match=said):
        task_files({"a.csv": spec}, tmp_path)
    with pytest.raises(EnvError, match="data_directory"):
        task_files({"a.csv": {"path": "own.csv"}})


def test_an_answer_is_the_same_on_machines_that_differ_in_its_last_digits():
    assert number(-0.17141469926110822) == number(-0.17141469926110828)
    assert number(-0.17141469926110822).value == -0.171414699261


def test_the_example_tasks_are_up_to_date():
    path = Path(definition.__file__).parent / "examples" / "tasks.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) >= 5
    for row in rows:
        assert DEFINITION.task(CONFIG, row["id"]).model_dump(mode="json") == row
