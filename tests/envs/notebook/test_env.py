import asyncio
import json

import nbformat
import pytest

from sensorium.core import EnvError
from sensorium.envs import Action, Task, find_env
from sensorium.envs.notebook import KernelConfig, NotebookConfig, NotebookEnv
from sensorium.envs.notebook.cells import Notebook
from sensorium.envs.notebook.execution import Execution
from sensorium.envs.notebook.kernel import Kernel
from sensorium.envs.notebook.outputs import OutputCollector
from sensorium.envs.notebook.pool import KernelPool, Workplace
from sensorium.envs.sandbox.base import Sandbox, SandboxLimits, SandboxUnavailable
from sensorium.llm.messages import ImageBlock
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.env_session import EnvSession

pytest.importorskip("ipykernel")
pytest.importorskip("jupyter_client")

CONFIG = NotebookConfig(
    kernel=KernelConfig(cell_timeout_s=20.0, preload=()),
    sandbox=SandboxLimits(memory_mb=700, max_processes=48, disk_mb=64),
    max_cells=5,
    max_source_chars=1_000,
)
TASK = Task(
    id="t",
    env="notebook",
    instruction="What is the sum of b?",
    data={"files": {"a.csv": {"text": "a,b\nx,1.5\ny,2.25\n"}}},
    hidden={"answer": {"kind": "number", "value": 3.75}},
)


def play(*actions, config=CONFIG, task=TASK):
    """Steps of an episode, and the state after the reset."""

    async def run():
        env = NotebookEnv(config)
        try:
            first = await env.reset(task)
            return first, [await env.step(action) for action in actions]
        finally:
            await env.close()
            await env.close()

    try:
        return asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")


def said(step):
    return step.info.results[0].text


def cells(step):
    return step.observation["notebook"].raw["cells"]


@pytest.fixture(scope="module")
def steps():
    sources = [
        Action.call(
            "insert_cell", source="import csv\nrows = list(csv.DictReader(open('a.csv')))\nlen(rows)"
        ),
        Action.call("insert_cell", source="sum(float(r['b']) for r in rows)"),
        Action.call("insert_cell", source="# first", after="c1", kind="markdown"),
        Action.call("edit_cell", cell="notebook/cell-c2", source="rows[0]['nothing']"),
        Action.call("run_cell", cell="c1"),
        Action.call("edit_cell", cell="c7", source="1"),
        Action.call("delete_cell", cell="c1"),
        Action.call("insert_cell", source="open('out.txt', 'w').write('x' * 1500); rows[1]['a']", after="c2"),
        Action.call("insert_cell", source="x" * 1_001),
        Action.call("list_files"),
        Action.call("restart_kernel"),
        Action.call("run_cell", cell="c4"),
        Action.call("insert_cell", source="import os\nos._exit(1)"),
        Action.call("delete_cell", cell="c2"),
        Action.call("delete_cell", cell="c3"),
        Action.call("delete_cell", cell="c4"),
        Action.call("delete_cell", cell="c5"),
        Action.call("run_cell", cell="c1"),
        Action.call("submit_answer", answer="the sum is 3.75"),
    ]
    return play(*sources)


def test_the_state_is_a_valid_notebook_with_lasting_ids(steps):
    first, taken = steps
    assert first["notebook"].raw["cells"] == []
    assert first["files"].raw == "a.csv (17 bytes)"
    for step in taken[:-1]:
        nbformat.validate(nbformat.from_dict(step.observation["notebook"].raw))
        json.dumps(step.observation["notebook"].raw)
    assert [c["id"] for c in cells(taken[2])] == ["c1", "c3", "c2"]
    assert [c["id"] for c in cells(taken[7])] == ["c3", "c2", "c4"]


def test_cells_are_run_at_once_and_the_tool_says_what_came_of_it(steps):
    _, taken = steps
    assert cells(taken[1])[1]["outputs"][0]["data"]["text/plain"] == "3.75"
    assert "last output: 3.75" in said(taken[1])
    assert said(taken[2]) == "c3 was written."
    assert "c2 failed" in said(taken[3])
    assert "KeyError: 'nothing'" in said(taken[3])
    assert cells(taken[3])[2]["outputs"][0]["output_type"] == "error"
    assert cells(taken[4])[0]["execution_count"] == 4


def test_what_cannot_be_done_is_refused_with_what_there_is(steps):
    _, taken = steps
    assert taken[5].info.results[0].failure == "refused"
    assert "c7" in said(taken[5])
    assert "c1, c2, c3" in said(taken[5])
    assert "1,000" in said(taken[8])
    assert taken[8].info.results[0].failure == "refused"
    assert "empty" in said(taken[17])


def test_what_a_deleted_cell_defined_stays(steps):
    _, taken = steps
    assert "'y'" in said(taken[7])
    assert "out.txt (1.5 kB)" in said(taken[9])
    assert "out.txt" in taken[7].observation["files"].raw


def test_a_restart_forgets_variables_and_says_so_in_the_notebook(steps):
    _, taken = steps
    assert all(c["execution_count"] is None for c in cells(taken[10]) if c["cell_type"] == "code")
    assert "NameError" in said(taken[11])
    assert "variables are gone" in said(taken[12])
    assert cells(taken[12])[-1]["outputs"][-1]["ename"] == "KernelDied"
    assert cells(taken[16]) == []


def test_the_right_answer_scores_one(steps):
    _, taken = steps
    assert taken[-1].terminated
    assert taken[-1].reward == 1.0
    assert taken[-1].info.metrics["success"] == 1.0
    assert taken[-1].info.metrics["num_errors"] >= 3.0


@pytest.mark.parametrize("answer", ["", "3.7", 4, "nan", "1, 2, 3.75"])
def test_wrong_answers_score_nothing(answer):
    async def run():
        env = NotebookEnv(CONFIG, _NoKernels())
        await env.reset(TASK)
        return await env.step(Action.call("submit_answer", answer=answer))

    step = asyncio.run(run())
    assert step.terminated
    assert step.reward == 0.0


class _NoKernels(KernelPool):
    """Workplaces without a kernel, for what needs none."""

    def __init__(self):
        super().__init__(CONFIG)

    async def take(self):
        async def nothing(self, *values, **options):
            return []

        box = type("Box", (Sandbox,), dict.fromkeys(Sandbox.__abstractmethods__, nothing))()
        return Workplace(box, Kernel(box))


def test_outputs_of_the_oldest_cells_give_way():
    notebook = Notebook()
    for text in ("old", "small", "new"):
        cell = notebook.add("", "code", None)
        cell.run = Execution(OutputCollector(CONFIG.kernel))
        size = 10 if text == "small" else 90_000
        cell.run.collector.take("stream", {"name": "stdout", "text": text + "x" * size})
    notebook.limit(150_000, but=notebook.find("c3"))
    texts = [c["outputs"][0]["text"] for c in notebook.json()["cells"]]
    assert "too large" in texts[0]
    assert texts[1] == "small" + "x" * 10
    assert len(texts[2]) == 90_003
    notebook.limit(10, but=notebook.find("c3"))
    assert len(notebook.json()["cells"][2]["outputs"][0]["text"]) == 90_003


def test_the_number_of_cells_is_bounded():
    async def run():
        env = NotebookEnv(CONFIG, _NoKernels())
        await env.reset(TASK)
        text = [Action.call("insert_cell", source="t", kind="markdown")] * 6
        return [await env.step(action) for action in text]

    taken = asyncio.run(run())
    assert taken[4].info.results[0].failure is None
    assert taken[5].info.results[0].failure == "refused"
    assert "5 cells already" in said(taken[5])


def test_a_task_without_an_answer_is_told():
    with pytest.raises(EnvError, match="no answer"):
        asyncio.run(NotebookEnv(CONFIG, _NoKernels()).reset(TASK.model_copy(update={"hidden": {}})))


def test_the_cells_of_one_action_share_a_time_limit():
    slow = [{"source": f"import time\ntime.sleep(60)  # {n}"} for n in range(3)]
    action = Action(calls=tuple(Action.call("insert_cell", **one).calls[0] for one in slow))
    config = CONFIG.updated({"action_timeout_s": 3.0})
    _, [step] = play(action, config=config)
    first, _, third = step.info.results
    assert "was interrupted" in first.text
    assert "was not run" in third.text
    assert step.observation["notebook"].raw["cells"][2]["outputs"] == []


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_solves_tasks(split):
    definition = find_env("notebook")
    config = definition.config_type(sandbox=SandboxLimits(memory_mb=1024, max_processes=64))

    async def solve(task):
        env = definition.make(config)
        try:
            await env.reset(task)
            expert = definition.expert(task)
            action = next(expert)
            while True:
                step = await env.step(action)
                if step.terminated:
                    return step.reward
                action = expert.send(step)
        finally:
            await env.close()

    async def run():
        return [await solve(task) for task in definition.tasks(config, split=split, count=1, seed=2)]

    try:
        assert asyncio.run(run()) == [1.0]
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")


@pytest.mark.slow
def test_the_expert_solves_nearly_all_tasks():
    definition = find_env("notebook")
    config = definition.config_type(warm_kernels=1)

    async def run():
        solved = 0
        for task in definition.tasks(config, split="test", count=60, seed=3):
            env = definition.make(config)
            await env.reset(task)
            expert = definition.expert(task)
            step = await env.step(next(expert))
            while not step.terminated:
                step = await env.step(expert.send(step))
            solved += step.reward == 1.0
            await env.close()
        return solved

    assert asyncio.run(run()) >= 57


def test_kernels_kept_ready_are_given_once_and_end_with_the_loop():
    config = CONFIG.updated({"warm_kernels": 1})
    places = []

    async def run():
        pool = KernelPool(config)
        for _ in range(3):
            places.append(await pool.take())
        values = [await place.kernel.execute("x = globals().get('x', 0) + 1\nprint(x)") for place in places]
        for place in places:
            await place.close()
        waiting = list(pool._slots())
        await asyncio.wait_for(asyncio.shield(waiting[0].place), 60)
        places.append(waiting[0].place.result())
        return [value.collector.outputs()[0]["text"] for value in values]

    try:
        assert asyncio.run(run()) == ["1\n"] * 3
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")
    assert len({id(place) for place in places}) == 4
    assert not any(place.sandbox.alive for place in places)


@pytest.mark.slow
def test_an_agent_that_breaks_its_machine_gets_a_new_one():
    fill = (
        "import os\n"
        "for place in ('/tmp', '.', '/dev/shm'):\n"
        "    try:\n"
        "        with open(place + '/fill', 'wb', buffering=0) as f:\n"
        "            while f.write(bytes(1 << 20)): pass\n"
        "    except OSError: pass\n"
        "os._exit(1)"
    )
    kill = "import os, signal\nos.kill(1, signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)"
    _, taken = play(
        Action.call("insert_cell", source=fill),
        Action.call("insert_cell", source="open('a.csv').read()"),
        Action.call("insert_cell", source=kill),
        Action.call("insert_cell", source="open('a.csv').read()"),
    )
    for step in (taken[1], taken[3]):
        assert step.info.results[0].failure is None
        assert "2.25" in json.dumps(cells(step)[-1]["outputs"])


def test_a_sandbox_that_ended_is_replaced():
    async def run():
        env = NotebookEnv(CONFIG)
        try:
            await env.reset(TASK)
            await env.step(Action.call("insert_cell", source="open('more.txt', 'w').write('more')"))
            await env._place.sandbox.close()
            return [await env.step(Action.call("run_cell", cell="c1")) for _ in range(2)]
        finally:
            await env.close()

    try:
        lost, again = asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")
    assert "set up afresh" in said(lost)
    assert lost.observation["files"].raw == "a.csv (17 bytes)"
    assert "last output: 4" in said(again)


LOOK = (
    Action.call("insert_cell", source="import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"),
    Action.call("insert_cell", source="for n in range(900): print('line', n, n * n)"),
    Action.call("insert_cell", source="missing_name"),
    Action.call("edit_cell", cell="c3", source="print('mended')"),
)


@pytest.mark.parametrize("drops", [True, False])
def test_what_a_model_sees(drops):
    settings = {"context_management": {"drop_full_history": drops}, "observation": {"max_tokens": 3000}}
    pipeline = ObservationPipeline(PipelineConfig().updated(settings))

    async def run():
        session = EnvSession(NotebookEnv(CONFIG), pipeline, system="Analyse.")
        try:
            opening = await session.start(TASK)
            return opening, [await session.act(action, n) for n, action in enumerate(LOOK)]
        finally:
            await session.close()

    try:
        opening, turns = asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")
    views = [turn.view for turn in turns]
    texts = ["\n".join(m.text for m in view.messages) for view in views]
    assert "a.csv (17 bytes)" in "\n".join(m.text for m in opening.view.messages)
    assert {t["function"]["name"] for t in opening.tools} >= {"insert_cell", "submit_answer", "fetch_part"}
    assert any(isinstance(b, ImageBlock) for m in views[0].messages for b in m.content)
    assert all(view.num_tokens <= 3000 for view in views)
    assert "line 899" in texts[1]
    assert "line 450 " not in texts[1]
    assert texts[2].index("NameError") < texts[2].index("### notebook/cell-c3")
    assert "mended" in texts[3]
    assert "3.75" not in "".join(texts)


def test_a_step_that_is_cancelled_leaves_a_working_episode():
    async def run():
        env = NotebookEnv(CONFIG)
        try:
            await env.reset(TASK)
            slow = Action.call("insert_cell", source="import time\ntime.sleep(60)")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await env.step(slow)
            return await env.step(Action.call("insert_cell", source="6 * 7"))
        finally:
            await env.close()

    try:
        step = asyncio.run(run())
    except SandboxUnavailable as error:
        pytest.skip(f"programs cannot be isolated here: {error}")
    assert "last output: 42" in said(step)
    assert "started afresh" in said(step)


def test_without_isolation_it_refuses_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr("sensorium.envs.sandbox.launch.shutil.which", lambda name: None)

    async def run(config):
        env = NotebookEnv(config)
        try:
            await env.reset(TASK)
            return [
                await env.step(Action.call("insert_cell", source="open('a.csv').read()")),
                await env.step(Action.call("insert_cell", source="import os\nos._exit(1)")),
                await env.step(Action.call("insert_cell", source="6 * 7")),
            ]
        finally:
            await env.close()

    with pytest.raises(SandboxUnavailable, match="unsafe"):
        asyncio.run(run(CONFIG))
    _, died, after = asyncio.run(run(CONFIG.updated({"unsafe_no_sandbox": True})))
    assert "The kernel died" in said(died)
    assert "last output: 42" in said(after)
