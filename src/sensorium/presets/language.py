"""Presets of language models' agents."""

from sensorium.trainers.language.config import LanguageRunConfig

_EXAMPLES = [
    {"asked": "## Task\nWhat is the color of the vase?", "answered": 'lookup("vase", "color")'},
    {"asked": "## Task\nWhat is half of 50?", "answered": 'calculate("50 / 2")'},
]
"""Neither the numbers nor the words of any task."""


def grpo_toy() -> LanguageRunConfig:
    """A tiny model of random weights learns to write vowels; a minute on one core."""
    return LanguageRunConfig().updated(
        {
            "env": "letters",
            "num_tasks": 64,
            "model": {"model": "tiny"},
            "lora": None,
            "agent": {"max_tokens": 8, "offer_tools": False},
            "episode": {"fetch_tool": False},
            "algo": {"total_updates": 50, "tasks_per_update": 4, "group_size": 8, "lr": 1e-2},
            "evaluation": {"every": 0, "tasks": 32, "temperature": 1.0},
        }
    )


def grpo_tools() -> LanguageRunConfig:
    """SmolLM2 with adapters learns to call a calculator in about 5 CPU minutes."""
    return LanguageRunConfig().updated(
        {
            "env": "one_call",
            "env_settings": {"kinds": ["arithmetic"]},
            "num_tasks": 512,
            "model": {"model": "smollm2", "tool_format": "python", "engine": {"max_batch": 48}},
            "lora": {"rank": 16, "alpha": 32},
            "episode": {"fetch_tool": False, "max_steps": 1},
            "examples": _EXAMPLES,
            "agent": {"max_tokens": 20, "temperature": 0.7},
            "algo": {
                "total_updates": 15,
                "tasks_per_update": 6,
                "group_size": 8,
                "lr": 2e-4,
                "micro_batch_tokens": 1024,  # 5 GB of memory; with 4,096 tokens over 10
            },
            "evaluation": {"every": 5, "at_start": True, "tasks": 50},
            "concurrency": 48,
        }
    )


def grpo_dapo() -> LanguageRunConfig:
    """`grpo_tools` with the published settings of Decoupled Clip and Dynamic sAmpling; some 20 minutes.

    Source: Yu et al. 2025, arXiv:2503.14476, sections 3 and 4.1. Not to be mistaken for Sensorium's `dapo`,
    which trains embodied policies.
    """
    return grpo_tools().updated(
        {
            "algo": {
                "total_updates": 8,
                "clip_ratio_low": 0.2,
                "clip_ratio_high": 0.28,
                "normaliser": "token",
                "kl_coef": 0.0,
                "group_size": 16,
                "num_minibatches": 16,
                "dynamic_sampling": {"max_rounds": 5, "on_exhausted": "keep"},
                "overlong": {"max_tokens": 20, "cache_tokens": 4},
                "lr": 1e-4,  # of adapters; the paper's 1e-6 is of all weights
                "warmup_steps": 16,
            }
        }
    )


def grpo_step_grid() -> LanguageRunConfig:
    """A tiny model of random weights learns to walk to the goal of a grid; a minute or two on one core.

    Every step is compared with other steps in the same state, its episode with other episodes, and nothing
    of earlier steps is read. Whole episodes with all that was read in them: ``algo.unit: trajectory`` and
    ``observation.context_management.drop_full_history: false``.
    """
    moves = {"name": "move", "schema": {"enum": ["l", "r", "f"]}}
    return LanguageRunConfig().updated(
        {
            "env": "grid",
            "env_settings": {
                "task": "MiniGrid-Empty-Random-5x5-v0",
                "actions": ["left", "right", "forward"],
                "tool": False,
            },
            "num_tasks": 1024,
            "system": "",
            "model": {
                "model": "tiny",
                "engine": {"context_tokens": 4096, "max_batch": 32, "prefill_tokens": 4096},
            },
            "lora": None,
            "observation": {
                "context_management": {"keep_previous_actions": 0},
                "delta": {"enabled": False},
            },
            "agent": {
                "offer_tools": False,
                "response_format": {"type": "json_schema", "json_schema": moves},
            },
            "episode": {"fetch_tool": False, "max_steps": 10},
            "algo": {
                "unit": "gigpo",
                "total_updates": 30,
                "tasks_per_update": 2,
                "group_size": 16,
                "lr": 3e-3,
            },
            "evaluation": {"every": 3, "tasks": 50, "temperature": 1.0},
        }
    )
