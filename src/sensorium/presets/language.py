"""Presets of language models' agents."""

from sensorium.trainers.language.config import LanguageRunConfig


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
    """SmolLM2 with adapters is to look facts up, calculate and answer with tools; not run to its end yet."""
    return LanguageRunConfig().updated(
        {
            "env": "lookup",
            "env_settings": {"num_items": 3},
            "num_tasks": 256,
            "model": {"model": "smollm2"},
            "observation": {"observation": {"max_tokens": 1024}},
            "episode": {"fetch_tool": False, "max_steps": 6},
            "agent": {"max_tokens": 48},
            "algo": {"total_updates": 60, "tasks_per_update": 8, "group_size": 8, "lr": 2e-4},
        }
    )


def grpo_dapo() -> LanguageRunConfig:
    """`grpo_tools` with the published settings of Decoupled Clip and Dynamic sAmpling.

    Source: Yu et al. 2025, arXiv:2503.14476, sections 3 and 4.1. Not to be mistaken for Sensorium's `dapo`,
    which trains embodied policies.
    """
    return grpo_tools().updated(
        {
            "algo": {
                "clip_ratio_low": 0.2,
                "clip_ratio_high": 0.28,
                "normaliser": "token",
                "kl_coef": 0.0,
                "group_size": 16,
                "num_minibatches": 16,
                "dynamic_sampling": {"max_rounds": 10, "on_exhausted": "keep"},
                "overlong": {"max_tokens": 240, "cache_tokens": 48},
                "lr": 1e-6,
                "warmup_updates": 20,
            }
        }
    )
