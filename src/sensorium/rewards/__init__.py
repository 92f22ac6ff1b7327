"""Pure reward terms and their mixing; every term is logged by itself."""

from sensorium.rewards.config import MixedRewardConfig
from sensorium.rewards.mixing import MixedReward, RewardParts, largest_penalty
from sensorium.rewards.terms import divergence_term, safety_term, task_term

__all__ = [
    "MixedReward",
    "MixedRewardConfig",
    "RewardParts",
    "divergence_term",
    "largest_penalty",
    "safety_term",
    "task_term",
]
