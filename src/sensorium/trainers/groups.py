"""Which learning rate each parameter of a policy has."""

from typing import Any

from torch import nn

from sensorium.core import Modality, TrainingError
from sensorium.policies.embodied import ActorCritic
from sensorium.trainers.config import LearningRates

POLICY, VALUE = "policy", "value"
"""Groups of what the senses share, and of the critic's head; every sense has a group of its own name."""

_PART = {
    Modality.IMAGE: "vision",
    Modality.DEPTH: "vision",
    Modality.AUDIO: "audio",
    Modality.TEXT: "text",
    Modality.PROPRIO: "proprio",
}


def parameter_groups(policy: ActorCritic, rates: LearningRates, lr: float) -> list[dict[str, Any]]:
    """Split a policy's parameters for an optimiser: one group per sense, `policy` and `value`.

    Args:
        policy: Its trainable parameters are split.
        rates: Rate of each part.
        lr: Rate of the parts that have none.

    Returns:
        Groups with `params`, `name` and `base_lr`; empty ones are left out.

    Raises:
        TrainingError: A trainable parameter is in no group, or in two.
    """
    chosen = {name: getattr(rates, part) or lr for name, part in _parts(policy).items()}
    members: dict[str, list[nn.Parameter]] = {
        name: list(parameters) for name, parameters in policy.perception.sensor_parameters().items()
    }
    members[VALUE] = list(policy.critic.parameters())
    taken = {id(parameter) for group in members.values() for parameter in group}
    members[POLICY] = [p for p in policy.parameters() if id(p) not in taken]
    groups = [
        {"params": [p for p in group if p.requires_grad], "name": name, "base_lr": chosen[name]}
        for name, group in members.items()
    ]
    _check_partition(policy, groups)
    return [group for group in groups if group["params"]]


def _parts(policy: ActorCritic) -> dict[str, str]:
    parts = {sensor.name: _PART[sensor.modality] for sensor in policy.inputs}
    return parts | {POLICY: "policy", VALUE: "value"}


def _check_partition(policy: ActorCritic, groups: list[dict[str, Any]]) -> None:
    seen: dict[int, str] = {}
    for group in groups:
        for parameter in group["params"]:
            if id(parameter) in seen:
                raise TrainingError(
                    f"A parameter is in the groups {seen[id(parameter)]!r} and {group['name']!r}; "
                    f"`Perception.sensor_parameters` must give disjoint lists."
                )
            seen[id(parameter)] = group["name"]
    lost = [name for name, p in policy.named_parameters() if p.requires_grad and id(p) not in seen]
    if lost:
        raise TrainingError(f"Parameters without a learning rate: {', '.join(lost[:5])}.")
