"""Whole GRPO steps of ours and of TRL on one model, one prompt and one reward, and the loss of one batch.

A step plays a batch of episodes, compares them, and updates the weights. All sides count the tokens that the
model generated, and CPU seconds of all threads.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import Result, speed

from sensorium.algorithms.step_advantages import step_group_advantages
from sensorium.core import derive_seed
from sensorium.envs import find_env
from sensorium.features import find_model
from sensorium.interop.played import Played, PlayedConfig
from sensorium.llm.local import LocalModelConfig, tiny_model
from sensorium.llm.local.loading import load_model
from sensorium.llm.messages import chat
from sensorium.metrics.sinks import read_jsonl
from sensorium.trainers.language.config import GRPOConfig, LanguageRunConfig
from sensorium.trainers.language.grpo import GRPOProgress, GRPOTraining
from sensorium.trainers.language.learner import Learner, Rows
from sensorium.trainers.language.model import answer_scores
from sensorium.trainers.language.samples import Sample, as_batch

ENVIRONMENT = "letters"
GROUP = 8
WARM_UP = 1
LR = 1e-6
"""Small, so that answers stay as long as they are."""
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def model_folder(name: str, folder: Path) -> Path:
    """Where a model is: ``tiny`` is made in `folder`, of 84,480 random weights."""
    import transformers

    if name != "tiny":
        return Path(find_model(name))

    made = tiny_model(folder / "tiny", spread=0.1)  # its tokenizer has one token for every byte
    config = transformers.AutoConfig.from_pretrained(made)
    config.update({"hidden_size": 64, "intermediate_size": 112, "head_dim": 16})
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(made)
    return made


def system_of(prompt: str) -> str:
    """The system message: none, or that of an agent with the tools of ``lookup``, some 1,300 characters."""
    if prompt == "short":
        return ""
    definition = find_env("lookup")
    tools = definition.make(definition.config_type()).tools
    lines = "\n".join(json.dumps(tool) for tool in tools)
    return f"{definition.system}\nYou have these tools:\n{lines}"


def ours(*, model: str, batch: int, tokens: int, steps: int, lora: bool, prompt: str) -> Result:
    """GRPO as `sensorium train` does it, files and reports included.

    Args:
        model: ``tiny`` or a packaged model.
        batch: Answers of a step, in groups of 8.
        tokens: Longest answer.
        steps: How many are measured.
        lora: Train adapters instead of all weights.
        prompt: ``short`` or ``tools``.
    """
    marks: list[float] = []

    def report(progress: GRPOProgress) -> None:
        marks.append(time.process_time())

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        config = _config(str(model_folder(model, folder)), batch, tokens, lora).updated(
            {"system": system_of(prompt), "algo": {"total_updates": steps + WARM_UP + 1}}
        )
        training = GRPOTraining(config, folder / "run")
        training.run(report)
        rows = read_jsonl(folder / "run" / "metrics.jsonl")
    generated = [row["tokens/sampled"] for row in rows[WARM_UP : WARM_UP + steps]]
    spent = marks[WARM_UP + steps - 1] - marks[WARM_UP - 1]
    told = {
        "prompt_tokens": rows[0]["tokens/prompt"],
        "collect_s": _mean(rows, "time/collect_s", steps),
        "learn_s": _mean(rows, "time/learn_s", steps),
    }
    return _result(sum(generated), spent, steps) | told


def _mean(rows: list[dict[str, Any]], name: str, steps: int) -> float:
    return float(sum(row[name] for row in rows[WARM_UP : WARM_UP + steps]) / steps)


def _result(generated: float, cpu_s: float, steps: int) -> Result:
    return {
        "rate": generated / cpu_s,
        "steps": int(generated),
        "cpu_s": cpu_s,
        "cpu_s_per_step": cpu_s / steps,
        "tokens_per_step": generated / steps,
    }


def _config(model: str, batch: int, tokens: int, lora: bool) -> LanguageRunConfig:
    return LanguageRunConfig().updated(
        {
            "env": ENVIRONMENT,
            "num_tasks": 64,
            "model": {"model": model, "device": "cpu", "engine": {"max_batch": batch}},
            "lora": {"targets": LORA_TARGETS} if lora else None,
            "agent": {"max_tokens": tokens, "offer_tools": False},
            "episode": {"fetch_tool": False},
            "concurrency": batch,
            "algo": {
                "tasks_per_update": batch // GROUP,
                "group_size": GROUP,
                "lr": LR,
            },
            "evaluation": {"every": 0, "tasks": 1},
            "checkpoint_every": 10**6,
        }
    )


def trl(*, model: str, batch: int, tokens: int, steps: int, lora: bool, prompt: str) -> Result:
    """TRL's `GRPOTrainer` with a reward function of its own kind, which is the least it can do; as `ours`."""
    from transformers import TrainerCallback

    marks: list[float] = []

    class Marks(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *args: Any, **more: Any) -> None:
            marks.append(time.process_time())

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        where = str(model_folder(model, folder))
        messages = messages_of_first_task(system_of(prompt))
        settings = {"max_steps": steps + WARM_UP, "max_completion_length": tokens}
        trainer = trl_trainer(where, folder, messages, batch=batch, lora=lora, **settings)
        trainer.add_callback(Marks())
        trainer.train()
        rows = [row for row in trainer.state.log_history if "completions/mean_length" in row]
        ids = trainer.processing_class.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True
        )["input_ids"]
    generated = [row["completions/mean_length"] * batch for row in rows[WARM_UP:]]
    return _result(sum(generated), marks[-1] - marks[WARM_UP - 1], steps) | {"prompt_tokens": float(len(ids))}


def messages_of_first_task(system: str = "") -> list[dict[str, Any]]:
    """What our agent is shown of the first task, in the chat-completions form."""
    first = [{"role": "system", "content": system}] if system else []
    played = Played(PlayedConfig(environment=ENVIRONMENT, num_tasks=1))

    async def begin() -> list[dict[str, Any]]:
        session = played.session()
        try:
            return first + chat((await session.start(played.tasks[0])).view.messages)
        finally:
            await session.close()

    return asyncio.run(begin())


def trl_trainer(
    model: str, folder: Path, messages: list[dict[str, Any]], *, batch: int, lora: bool, **settings: Any
) -> Any:
    """A `GRPOTrainer` with the same reward as ours.

    Args:
        model: Folder.
        folder: For its output.
        messages: The prompt.
        batch: Answers of a step.
        lora: Train adapters like those of ours instead of all weights.
        **settings: More of `trl.GRPOConfig`.
    """
    import datasets
    import peft
    import trl as library
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = {
        "per_device_train_batch_size": batch, "num_generations": GROUP, "learning_rate": LR,
        "lr_scheduler_type": "constant", "logging_steps": 1, "use_cpu": True, "bf16": False,
        "activation_checkpointing": False, "report_to": "none", "save_strategy": "no", "disable_tqdm": True,
    }  # fmt: skip
    args = library.GRPOConfig(output_dir=str(folder / "trl"), **plain | settings)
    adapters = peft.LoraConfig(
        r=16, lora_alpha=32, target_modules=list(LORA_TARGETS), lora_dropout=0.0, task_type="CAUSAL_LM"
    )
    return library.GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(model),
        reward_funcs=share_of_vowels,
        train_dataset=datasets.Dataset.from_list([{"prompt": messages}] * 64),
        args=args,
        peft_config=adapters if lora else None,
    )


def share_of_vowels(completions: list[Any], **more: Any) -> list[float]:
    """What the environment judges, as a reward function of TRL."""
    said = [completion[0]["content"] for completion in completions]
    return [sum(letter in "aeiou" for letter in text) / max(1, len(text)) for text in said]


def losses(*, model: str, batch: int, tokens: int) -> Result:
    """Loss of ours and of TRL on one batch of random answers, off-policy so that clipping takes part."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        where = str(model_folder(model, folder))
        net, tokenizer = load_model(LocalModelConfig(model=where, device="cpu"))
        messages = messages_of_first_task()
        settings = {"max_steps": 1, "max_completion_length": tokens, "epsilon_high": 0.28}
        trainer = trl_trainer(where, folder, messages, batch=batch, lora=False, **settings)
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        pad = int(tokenizer.pad_token_id)
        rows = _random_rows(net, tuple(prompt["input_ids"]), batch, tokens, pad)
        theirs = _loss_of_trl(trainer, rows, pad)
        config = GRPOConfig(clip_ratio_high=0.28, normaliser="token", lr=1e-9, micro_batch_tokens=10**6)
        learner = Learner(net, config, pad=pad, temperature=1.0, answer_tokens=tokens)
        mine = learner.step(rows)["loss/policy"]
    return {"rate": 1.0, "steps": 1, "ours": mine, "trl": theirs, "difference_1e9": abs(mine - theirs) * 1e9}


def _random_rows(net: Any, prompt: tuple[int, ...], batch: int, tokens: int, pad: int) -> Rows:
    """Answers of random tokens and lengths, with log-probabilities that are not quite the model's."""
    generator = torch.Generator().manual_seed(derive_seed("losses") % 2**63)
    answers = torch.randint(3, 200, (batch, tokens), generator=generator)
    lengths = torch.randint(1, tokens + 1, (batch,), generator=generator).tolist()
    samples = [
        Sample(
            prompt=prompt, answer=tuple(answer[:length].tolist()), logprobs=(0.0,) * length,
            counts=(True,) * length, trajectory=row, step=0, is_cut=False, version=0,
        )
        for row, (answer, length) in enumerate(zip(answers, lengths, strict=True))
    ]  # fmt: skip
    with torch.no_grad():
        scores = answer_scores(net, as_batch(samples, pad=pad, device=torch.device("cpu"))).logprobs
    old = (scores + 0.3 * torch.randn(scores.shape, generator=generator)).tolist()
    told = [
        one._replace(logprobs=tuple(row[: len(one.answer)])) for one, row in zip(samples, old, strict=True)
    ]
    return Rows(told, torch.randn(batch, generator=generator), torch.arange(batch))


def _loss_of_trl(trainer: Any, rows: Rows, pad: int) -> float:
    batch = as_batch(rows.samples, pad=pad, device=torch.device("cpu"))
    width = batch.ids.shape[1] - batch.answer_tokens
    trainer.model.eval()
    inputs = {
        "prompt_ids": batch.ids[:, :width],
        "prompt_mask": batch.attention[:, :width].int(),
        "completion_ids": batch.ids[:, width:],
        "completion_mask": batch.mask.int(),
        "advantages": rows.advantages,
        "old_per_token_logps": batch.logprobs,
        "num_items_in_batch": batch.mask.sum(),
    }
    return float(trainer._compute_loss(trainer.model, inputs).detach())


def step_groups(*, steps: int, groups: int, way: str, seconds: float) -> Result:
    """Step-group advantages of so many steps, per second, and their sum as a sign of what was computed."""
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(steps, generator=generator)
    numbers = torch.randint(groups, (steps,), generator=generator)
    compute: Callable[[], list[float]] = {
        "vectorised": lambda: step_group_advantages(rewards, numbers).tolist(),
        "rows": lambda: row_loop(rewards, numbers),
    }[way]

    def work() -> int:
        compute()
        return steps

    result = speed(work, seconds=seconds, warm_up=1, fewest=2)
    result["rate"] = result["steps"] / result["cpu_s"]
    return result | {"check": round(sum(abs(one) for one in compute()), 1)}


def row_loop(rewards: torch.Tensor, groups: torch.Tensor, eps: float = 1e-6) -> list[float]:
    """The same as a dictionary of groups and a loop over rows, as it stands in most trainers."""
    members: dict[int, list[torch.Tensor]] = {}
    for row in range(len(rewards)):
        members.setdefault(int(groups[row]), []).append(rewards[row])
    mean, std = {}, {}
    for group, values in members.items():
        stacked = torch.stack(values)
        mean[group] = stacked.mean()
        std[group] = stacked.std() if len(values) > 1 else torch.tensor(0.0)
    advantages = []
    for row in range(len(rewards)):
        group = int(groups[row])
        alone = len(members[group]) == 1
        advantages.append(0.0 if alone else float((rewards[row] - mean[group]) / (std[group] + eps)))
    return advantages
