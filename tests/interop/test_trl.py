"""Environments of ours under the real TRL, with a tiny model."""

import json
import re
import runpy
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from picture_env import PicturesEnv

from sensorium.core import ConfigError, EnvError
from sensorium.envs import EpisodeError
from sensorium.interop.trl import TrlEnvironments, verdict_reward

EXAMPLE = Path(__file__).parents[2] / "examples/interop/trl_grpo.py"


@pytest.fixture
def lookup():
    with TrlEnvironments("lookup", config={"num_items": 3}, num_tasks=4) as made:
        yield made


@pytest.fixture
def pictures():
    with TrlEnvironments("picture_env:Pictures", num_tasks=2, pictures="name") as made:
        yield made


def begun(environments, number=0):
    one = environments()
    one.reset(**environments.rows()[number])
    return one


def said(text):
    return [{"role": "assistant", "content": text}]


def test_only_declared_tools_and_reset_are_public(lookup):
    one = lookup()
    public = {name for name in dir(type(one)) if callable(getattr(type(one), name)) and name[0] != "_"}
    assert public == {"reset", "lookup", "calculate", "submit"}
    assert one.tool_names == ("lookup", "calculate", "submit")


def test_rows_name_the_tasks_and_reset_shows_them(lookup):
    rows = lookup.rows()
    assert [row["task_id"] for row in rows] == [f"train-0-{number}" for number in range(4)]
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user"]
    task = lookup.played.task("train-0-1")
    shown = lookup().reset(**rows[1])
    assert task.instruction in shown
    assert str(task.hidden["answer"]) not in json.dumps(rows)
    assert lookup.rows(name="facts")[0]["environment"] == "facts"


def test_an_episode_is_judged_and_its_environment_given_back(lookup):
    right, wrong, silent = (begun(lookup) for _ in range(3))
    answer = lookup.played.task("train-0-0").hidden["answer"]
    assert right.calculate(expression="6 * 7") == "42"
    assert "Field required" in right.calculate(wrong=1)
    assert right.submit(answer=answer) == "submitted"
    assert "over" in right.submit(answer=answer)
    wrong.submit(answer=answer + 1)
    assert lookup.num_open == 3
    told = {}
    assert verdict_reward([right, wrong, silent], [[], [], said("No idea.")], told.__setitem__) == [
        1.0,
        0.0,
        0.0,
    ]
    assert lookup.num_open == 0
    assert told["env/success"] == 0.5, "of those that tell it"
    assert told["env/failed_episodes"] == 0
    assert verdict_reward([right], [[]]) == [1.0], "asked again"


def test_a_plain_answer_is_judged():
    with TrlEnvironments("letters", num_tasks=1) as environments:
        pair = [begun(environments), begun(environments)]
        assert verdict_reward(pair, [said("aeioux"), said("xyz")]) == [pytest.approx(5 / 6), 0.0]


def test_a_broken_episode_has_no_reward(pictures):
    good, broken = begun(pictures), begun(pictures, 1)
    good.answer(text="the-hidden-answer-train-0")
    assert "fault of the environment" in broken.crash()
    assert verdict_reward([good, broken], [[], []]) == [1.0, None]
    assert [failure.kind for failure in pictures.failures] == ["tool_crashed"]
    assert verdict_reward([begun(pictures)], [[]]) == [0.0]
    assert pictures.failures == ()


def test_training_stops_when_nothing_but_failures_comes():
    with TrlEnvironments(
        "picture_env:Pictures", num_tasks=1, pictures="name", max_failures=3
    ) as environments:
        one = environments()
        for number in range(3):
            one.reset(**environments.rows()[0])
            one.crash()
            if number < 2:
                assert verdict_reward([one], [[]]) == [None]
        with pytest.raises(
            EnvError, match="3 episodes in a row failed; the last because: The tool crash broke"
        ):
            verdict_reward([one], [[]])


def test_an_environment_that_cannot_be_set_up_is_tried_again_and_then_left_out(pictures, monkeypatch):
    one, other = pictures(), begun(pictures)
    tries = []

    async def fails(self, task, seed):
        tries.append(task.id)
        raise OSError("no display")

    monkeypatch.setattr(PicturesEnv, "_reset", fails)
    assert "could not be set up" in one.reset(**pictures.rows()[0])
    assert len(tries) == 3
    assert "over" in one.look()
    assert verdict_reward([one, other], [[], []]) == [None, 0.0]
    with pytest.raises(EpisodeError, match="OSError"):
        TrlEnvironments("picture_env:Pictures")()  # its tools are unknown


def test_pictures_are_shown_or_named(pictures):
    assert "[picture of 48 x 32 pixels]" in begun(pictures).look()
    with TrlEnvironments("picture_env:Pictures", num_tasks=1) as shown:
        one = begun(shown)
        blocks = one.look(closer=True)
        assert [block["type"] for block in blocks].count("image") == 2, "that of the answer and the new state"
        assert next(block["image"] for block in blocks if "image" in block).size == (48, 32)


def test_everything_is_closed_also_after_an_error():
    before, threads = set(PicturesEnv.open), threading.active_count()
    environments = TrlEnvironments("picture_env:Pictures", num_tasks=2, pictures="name")
    seen = []

    def train():
        with environments:
            begun(environments)
            begun(environments, 1)
            seen.append(environments.num_open)
            assert threading.active_count() > threads
            raise KeyError("out of memory")

    with pytest.raises(KeyError):
        train()
    assert seen == [2]
    assert environments.num_open == 0
    assert PicturesEnv.open == before
    assert "trl-environments" not in {thread.name for thread in threading.enumerate()}
    environments.close()


def test_mistakes_are_named(lookup):
    with pytest.raises(ConfigError, match="no column task_id"):
        lookup().reset(prompt=[])
    with pytest.raises(ConfigError, match="no task"):
        lookup().reset(task_id="train-9")
    with pytest.raises(ConfigError, match="num_task"):
        TrlEnvironments("lookup", num_task=3)
    with pytest.raises(ConfigError, match="no split"):
        TrlEnvironments("lookup", split="exam")


# ---- with TRL itself

trl_needed = pytest.mark.skipif(find_spec("trl") is None, reason="needs the extra trl")
CALL = "<tool_call>\n{}\n</tool_call>"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A model of bytes whose template knows tools."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    trl = pytest.importorskip("trl")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from sensorium.llm.local import tiny_model

    template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    name = tiny_model(tmp_path / "tiny", spread=0.1, template=template, context_tokens=4096)
    return AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)


def trainer_of(tiny, environments, tmp_path, *, tokens=8, steps=2, rewards=verdict_reward):
    import trl

    model, tokenizer = tiny
    several = isinstance(environments, dict)
    args = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=steps, per_device_train_batch_size=4, num_generations=4,
        max_completion_length=tokens, learning_rate=1e-2, logging_steps=1, use_cpu=True, bf16=False,
        activation_checkpointing=False, report_to="none", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    if several:
        import datasets

        rows = datasets.concatenate_datasets([one.dataset(name) for name, one in environments.items()])
    else:
        rows = environments.dataset()
    return trl.GRPOTrainer(
        model=model, processing_class=tokenizer, reward_funcs=rewards, train_dataset=rows,
        environment_factory=environments, args=args,
    )  # fmt: skip


def scripted(trainer, environments, broken=()):
    """Let the trainer generate what a script says: every second rollout solves its task, the others guess."""
    tokenizer, prompts = trainer.processing_class, []
    tasks = {task.instruction: task for task in environments.played.tasks}

    def call(name, **arguments):
        return CALL.format(json.dumps({"name": name, "arguments": arguments}))

    def answer(place, text):
        task = next(task for instruction, task in tasks.items() if instruction in text)
        heard = re.findall(r"<tool_response>\n(.*?)\n</tool_response>", text, re.DOTALL)
        hidden = task.hidden
        wants = [call("lookup", item=item, attribute=hidden["attribute"]) for item in hidden["items"]]
        wants += [call("submit", answer=hidden["answer"]), "Done."]
        if place % 2 and not heard:
            return call("submit", answer=-1)
        return "Done." if heard and "submitted" in heard[-1] else wants[len(heard)]

    def generate(prompt_ids, images, fields, num_generations, has_tool_images=False):
        texts = [tokenizer.decode(ids, skip_special_tokens=False) for ids in prompt_ids]
        prompts.extend(texts)
        said = [answer(place, text) + tokenizer.eos_token for place, text in enumerate(texts)]
        return tokenizer(said, add_special_tokens=False)["input_ids"], None

    trainer._generate_single_turn = generate
    return prompts


@trl_needed
def test_tools_are_called_by_trl_and_the_verdict_is_the_reward(tiny, lookup, tmp_path):
    trainer = trainer_of(tiny, lookup, tmp_path, tokens=1024, steps=1)
    prompts = scripted(trainer, lookup)
    trainer.train()
    [row] = [row for row in trainer.state.log_history if "reward" in row]
    assert row["reward"] == pytest.approx(0.5)
    assert row["reward_std"] == pytest.approx(0.5774, abs=1e-4)
    assert row["tools/call_frequency"] == pytest.approx(2.0), "three calls and one, in turn"
    assert row["tools/failure_frequency"] == 0
    assert row["env/success"] == pytest.approx(0.5)
    assert '{"type": "function", "function": {"name": "calculate"' in prompts[0]
    assert "## Task" in prompts[0]
    assert lookup.num_open == 0


@trl_needed
def test_the_loss_leaves_out_what_tools_said(tiny, lookup, tmp_path):
    trainer = trainer_of(tiny, lookup, tmp_path, tokens=1024, steps=1)
    scripted(trainer, lookup)
    seen = {}
    learn = trainer._compute_loss
    trainer._compute_loss = lambda model, inputs: seen.update(inputs) or learn(model, inputs)
    trainer.train()
    tokenizer = trainer.processing_class
    for ids, mask in zip(seen["completion_ids"], seen["tool_mask"] * seen["completion_mask"], strict=True):
        own = tokenizer.decode(ids[mask.bool()], skip_special_tokens=False)
        assert "<tool_call>" in own
        assert "tool_response" not in own


@trl_needed
def test_a_failed_episode_moves_nothing(tiny, lookup, tmp_path, monkeypatch):
    trainer = trainer_of(tiny, lookup, tmp_path, tokens=1024, steps=1)
    scripted(trainer, lookup)
    seen = {}
    learn = trainer._compute_loss
    trainer._compute_loss = lambda model, inputs: seen.update(inputs) or learn(model, inputs)
    calls = []

    def with_a_failure(environments, **more):
        rewards = verdict_reward(environments, **more)
        calls.append(rewards)
        return [None, *rewards[1:]]

    trainer.reward_funcs[0] = with_a_failure
    trainer.train()
    [row] = [row for row in trainer.state.log_history if "reward" in row]
    assert calls[0] == [1.0, 0.0, 1.0, 0.0]
    assert row["reward"] == pytest.approx(1 / 3), "not 1 / 4: the failed one counts nowhere"
    assert (seen["advantages"] == 0).sum() == 1


@trl_needed
def test_environments_are_closed_when_training_fails(tiny, tmp_path):
    def fails(**batch):
        raise RuntimeError("CUDA out of memory")

    with TrlEnvironments("letters", num_tasks=4) as environments:
        trainer = trainer_of(tiny, environments, tmp_path, rewards=fails)
        with pytest.raises(RuntimeError, match="out of memory"):
            trainer.train()
        assert environments.num_open == 4
    assert environments.num_open == 0


@trl_needed
def test_kinds_of_environments_are_mixed(tiny, lookup, tmp_path):
    with TrlEnvironments("letters", num_tasks=4) as letters:
        trainer = trainer_of(tiny, {"lookup": lookup, "letters": letters}, tmp_path)
        trainer.train()
        assert "env/reward/task" in trainer.state.log_history[0]
        assert letters.num_open == lookup.num_open == 0


@trl_needed
def test_the_example_learns(capsys, monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    first, last = map(
        float, re.search(r"share of vowels: (\S+) in the first steps, (\S+) in", shown).groups()
    )
    assert first < 0.5 < 0.9 < last
    assert "environments left open: 0" in shown
