"""TRL's GRPOTrainer trains on an environment of ours in half a minute: python examples/interop/trl_grpo.py.

The model is tiny and random, so the task is to write vowels. For tools take a model that calls them
(``Qwen/Qwen3-0.6B``), the environment ``lookup`` and longer completions; nothing else changes.
"""

import os
import tempfile
from pathlib import Path

from sensorium.interop.trl import TrlEnvironments, verdict_reward
from sensorium.llm.local import tiny_model

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # environment_factory is called experimental
import trl
from transformers import AutoModelForCausalLM, AutoTokenizer

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"  # one that knows tools

with tempfile.TemporaryDirectory() as folder, TrlEnvironments("letters", num_tasks=64) as environments:
    name = tiny_model(folder, seed=0, spread=0.1, template=TEMPLATE.read_text())
    trainer = trl.GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(name),
        processing_class=AutoTokenizer.from_pretrained(name),
        reward_funcs=verdict_reward,
        train_dataset=environments.dataset(),
        environment_factory=environments,
        args=trl.GRPOConfig(
            output_dir=folder,
            max_steps=30,
            per_device_train_batch_size=32,
            num_generations=8,
            max_completion_length=8,
            learning_rate=2e-2,
            logging_steps=10,
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        ),
    )
    trainer.train()
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    print(f"share of vowels: {rewards[0]:.2f} in the first steps, {rewards[-1]:.2f} in the last")
    print(f"environments left open: {environments.num_open}")
