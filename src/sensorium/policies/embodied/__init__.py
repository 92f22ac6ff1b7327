"""Policies: a representation in, an action out."""

from sensorium.policies.embodied.actor_critic import ActionHeads, ActorCritic, PolicyOutput, PolicyStep
from sensorium.policies.embodied.batch import PolicyState, SequenceBatch
from sensorium.policies.embodied.distributions import ActionBatch, ActionDistribution

__all__ = [
    "ActionBatch",
    "ActionDistribution",
    "ActionHeads",
    "ActorCritic",
    "PolicyOutput",
    "PolicyState",
    "PolicyStep",
    "SequenceBatch",
]
