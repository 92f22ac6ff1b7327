"""Policies: a representation in, an action out."""

from sensorium.policies.actor_critic import ActionHeads, ActorCritic, PolicyOutput, PolicyStep
from sensorium.policies.batch import PolicyState, SequenceBatch
from sensorium.policies.distributions import ActionBatch, ActionDistribution

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
