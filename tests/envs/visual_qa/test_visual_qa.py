import asyncio
import hashlib
import json
import struct
import subprocess
import sys

import pytest

from sensorium.core import ConfigError, EnvError, EpisodeStatus
from sensorium.envs import Action, find_env
from sensorium.envs.visual_qa import pictures
from sensorium.envs.visual_qa.answers import answer_from, gold_text
from sensorium.envs.visual_qa.config import CHARTS, DOCUMENTS, SCENES, VisualQAConfig
from sensorium.llm.messages import ImageBlock
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.env_session import EnvSession

DEFINITION = find_env("visual_qa")
SMALL = VisualQAConfig(width=480)
KINDS = (*CHARTS, *DOCUMENTS, *SCENES)


def chunks(data):
    """Kinds of the chunks of a PNG file."""
    place, kinds = 8, []
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        kinds.append(data[place + 4 : place + 8].decode())
        place += size + 12
    return kinds


async def play(task, *actions, config=SMALL):
    env = DEFINITION.make(config)
    observation = await env.reset(task)
    steps = [await env.step(action) for action in actions]
    await env.close()
    return observation, steps


@pytest.fixture(scope="module")
def tasks():
    return DEFINITION.tasks(SMALL, count=len(KINDS))


def test_every_kind_has_its_turn_and_the_gold_answer_earns_1_and_an_empty_one_0(tasks):
    assert [task.data["kind"] for task in tasks] == list(KINDS)
    for task in tasks:
        gold = gold_text(answer_from(task.hidden["answer"]))
        _, (solved,) = asyncio.run(play(task, next(DEFINITION.expert(task))))
        assert (solved.reward, solved.terminated, solved.info.metrics["success"]) == (1.0, True, 1.0)
        _, (said,) = asyncio.run(play(task, Action(text=f"The answer is {gold}.")))
        assert (said.reward, said.terminated) == (1.0, True)
        _, (empty,) = asyncio.run(play(task, Action.call("submit_answer", answer="")))
        assert (empty.reward, empty.terminated) == (0.0, True)
        _, (silent,) = asyncio.run(play(task, Action()))
        assert (silent.reward, silent.terminated) == (0.0, False)


def test_a_picture_holds_pixels_and_nothing_else(tasks):
    for task in tasks:
        observation, _ = asyncio.run(play(task))
        (source,) = observation.values()
        assert set(chunks(source.raw)) == {"IHDR", "IDAT", "IEND"}
        assert (list(observation), source.alt, source.url, source.path) == (["picture"], "", None, None)
        assert task.public().hidden == {}
        assert set(task.data) == {"kind", "template"}


def test_pictures_are_the_same_bytes_in_another_process():
    config = VisualQAConfig(width=480, kinds=("bar", "form"))
    script = (
        "import hashlib, sys\n"
        "from sensorium.envs import find_env\n"
        "from sensorium.envs.visual_qa.pictures import draw\n"
        "d = find_env('visual_qa'); c = d.config_type(width=480, kinds=('bar', 'form'))\n"
        "for t in d.tasks(c, count=2): print(hashlib.sha256(draw(t.hidden['picture'])).hexdigest())\n"
        "assert not {'torch', 'pandas', 'numba'} & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    tasks = DEFINITION.tasks(config, count=2)
    ours = [hashlib.sha256(pictures.draw(task.hidden["picture"])).hexdigest() for task in tasks]
    assert run.stdout.split() == ours
    pictures._drawn.cache_clear()
    assert [hashlib.sha256(pictures.draw(t.hidden["picture"])).hexdigest() for t in tasks] == ours


def test_tasks_are_the_same_again_and_the_first_of_more():
    few, many = (DEFINITION.tasks(SMALL, count=count, seed=3) for count in (4, 20))
    assert list(few) == list(many)[:4]
    assert DEFINITION.task(SMALL, many[7].id) == many[7]
    other = DEFINITION.tasks(SMALL, count=4, seed=4)
    assert not {t.model_dump_json(exclude={"id"}) for t in few} & {
        t.model_dump_json(exclude={"id"}) for t in other
    }


def test_splits_share_no_picture():
    shown = {
        split: {
            json.dumps(t.hidden["picture"], sort_keys=True)
            for t in DEFINITION.tasks(SMALL, split=split, count=60)
        }
        for split in ("train", "test")
    }
    assert not shown["train"] & shown["test"]
    assert min(map(len, shown.values())) > 55


@pytest.mark.parametrize(
    "task_id", ["", "train", "train-0", "valid-0-1", "train-0--1", "train-a-1", "train-0-1-2"]
)
def test_what_is_no_task_is_refused(task_id):
    with pytest.raises(ConfigError, match="no task"):
        DEFINITION.task(SMALL, task_id)


def test_unknown_splits_and_tasks_without_their_hidden_part_are_refused(tasks):
    with pytest.raises(ConfigError, match="no split"):
        DEFINITION.tasks(SMALL, split="dev")
    with pytest.raises(EnvError, match="picture"):
        asyncio.run(play(tasks[0].public()))


def test_a_part_of_the_picture_can_be_enlarged_a_few_times(tasks):
    config = VisualQAConfig(width=480, max_zooms=2)
    zoom = Action.call("zoom", left=0.25, top=0.0, right=0.5, bottom=0.5)
    _, steps = asyncio.run(play(tasks[0], zoom, zoom, zoom, config=config))
    (block,) = steps[0].info.results[0].content
    assert isinstance(block, ImageBlock)
    assert (block.width, block.height) == (480, 672)
    assert steps[2].info.results[0].failure == "refused"
    assert "2 times" in steps[2].info.results[0].text
    tools = [tool["function"]["name"] for tool in DEFINITION.make(VisualQAConfig(zoom=False)).tools]
    assert tools == ["submit_answer"]


@pytest.mark.parametrize(
    "edges", [(0.5, 0, 0.5, 1), (0.6, 0, 0.2, 1), (-0.1, 0, 1, 1), (0, 0, 480, 320), (0, 0, 1, float("nan"))]
)
def test_regions_that_are_none_are_refused(tasks, edges):
    call = Action.call("zoom", **dict(zip(("left", "top", "right", "bottom"), edges, strict=True)))
    _, (step,) = asyncio.run(play(tasks[9], call))
    assert step.info.results[0].failure in ("refused", "invalid_arguments")
    assert not step.terminated


def test_answers_may_be_numbers_or_truth_values(tasks):
    task = next(t for t in tasks if t.hidden["answer"]["type"] == "number")
    _, (step,) = asyncio.run(play(task, Action.call("submit_answer", answer=task.hidden["answer"]["value"])))
    assert step.reward == 1.0
    answer = {"type": "yes_no", "value": True}
    yes = task.model_copy(update={"hidden": {**task.hidden, "answer": answer}})
    _, (step,) = asyncio.run(play(yes, Action.call("submit_answer", answer=True)))
    assert step.reward == 1.0
    _, (step,) = asyncio.run(play(yes, Action.call("submit_answer", answer=["yes"])))
    assert step.info.results[0].failure == "invalid_arguments"
    _, (step,) = asyncio.run(play(yes, Action.call("submit_answer", answer=10**5000)))
    assert step.info.results[0].failure == "invalid_arguments"
    _, (step,) = asyncio.run(play(yes, Action.call("submit_answer", answer=10**400)))
    assert (step.reward, step.terminated) == (0.0, True)
    schema = DEFINITION.make(SMALL).tools[1]["function"]["parameters"]["properties"]["answer"]
    assert schema["type"] == "string"


@pytest.mark.parametrize("encoding", ["base64", "url"])
def test_the_observation_config_says_how_the_picture_travels(tasks, encoding):
    settings = {"multimodal": {"image": {"encoding": encoding}}}
    served = {}

    def serve(data, mime):
        served["http://127.0.0.1/media/1.png"] = data
        return "http://127.0.0.1/media/1.png"

    pipeline = ObservationPipeline(PipelineConfig().updated(settings), serve=serve)

    async def run():
        session = EnvSession(DEFINITION.make(SMALL), pipeline, system=DEFINITION.system)
        opening = await session.start(tasks[0])
        turn = await session.act(Action(text=gold_text(answer_from(tasks[0].hidden["answer"]))), 0)
        verdict = await session.verdict()
        await session.close()
        return opening, turn, verdict

    opening, turn, verdict = asyncio.run(run())
    prompt = opening.view.messages[-1]
    (image,) = [block for block in prompt.content if isinstance(block, ImageBlock)]
    assert tasks[0].instruction in prompt.text
    assert image.url.startswith("data:image/" if encoding == "base64" else "http://127.0.0.1/")
    assert (image.width, image.height) == (480, 336)
    assert bool(served) is (encoding == "url")
    assert turn.terminated
    assert (verdict.status, verdict.reward) == (EpisodeStatus.SUCCESS, 1.0)
