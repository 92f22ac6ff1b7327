"""Losses and reward terms that compare a policy's senses with each other."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sensorium.algorithms import (
    ContrastiveLoss,
    PolicyHeads,
    contrastive_loss,
    masked_mean,
    modality_divergence,
    one_row_per_episode,
)
from sensorium.core import Modality
from sensorium.nn.fusion import Prepared
from sensorium.policies.embodied import ActionDistribution, ActorCritic, PolicyOutput, SequenceBatch
from sensorium.rewards import MixedReward, MixedRewardConfig, divergence_term, safety_term, task_term
from sensorium.rollouts.embodied import Rollout


class Minibatch(NamedTuple):
    """A minibatch and what the policy made of it."""

    batch: SequenceBatch
    envs: Tensor
    """Worlds of the rollout that its sequences are of."""
    valid: Tensor
    """(time, batch) steps that count."""
    prepared: Prepared
    output: PolicyOutput


def alignment_loss(policy: ActorCritic, minibatch: Minibatch, *, rows: int) -> Tensor:
    """Mean divergence between the policy given one sense and the one given all, which is held fixed.

    Args:
        policy: Being trained.
        minibatch: What it made of a minibatch, all senses given; the first sequences are looked at.
        rows: Steps to look at.
    """
    num_steps, num_envs = minibatch.batch.starts.shape
    count = min(num_envs, max(1, rows // num_steps))
    batch, prepared, full = minibatch.batch, minibatch.prepared, minibatch.output.distribution.detach()
    if count < num_envs:
        at = torch.arange(num_steps * num_envs, device=batch.starts.device).view(num_steps, num_envs)
        chosen = at[:, :count].flatten()
        batch, prepared, full = batch.head(count), prepared.at(chosen), full.at(chosen)
    divergence = _single_sense_divergence(policy, batch, prepared, full)
    return masked_mean(divergence, minibatch.valid[:, :count].flatten())


@torch.no_grad()
def rollout_divergence(policy: ActorCritic, rollout: Rollout, *, num_minibatches: int) -> Tensor:
    """(T, N) divergence between the policy given one sense and the one given all, at every step."""
    num_steps, num_envs = rollout.rewards.shape
    parts: list[Tensor] = []
    for envs in torch.arange(num_envs, device=rollout.rewards.device).chunk(num_minibatches):
        batch = rollout.sequences(envs)
        prepared = policy.encode(batch)
        full = policy.fuse_sequences(prepared, batch).distribution
        divergence = _single_sense_divergence(policy, batch, prepared, full)
        parts.append(divergence.view(num_steps, len(envs)))
    return torch.cat(parts, dim=1)


def _single_sense_divergence(
    policy: ActorCritic, batch: SequenceBatch, prepared: Prepared, full: ActionDistribution
) -> Tensor:
    senses = len(policy.perception.names)
    only = torch.eye(senses, dtype=torch.bool, device=batch.present.device)[:, None, None]
    singles = policy.fuse_sets(prepared, batch, batch.present & only)
    return modality_divergence(
        [_heads(single.distribution) for single in singles],
        _heads(full),
        batch.present.flatten(0, 1).t(),
        full.parameter_mask,
    )


def _heads(distribution: ActionDistribution) -> PolicyHeads:
    return PolicyHeads(distribution.logits, distribution.mean, distribution.log_std)


def contrast(
    policy: ActorCritic,
    rollout: Rollout,
    minibatch: Minibatch,
    *,
    temperature: float,
    generator: torch.Generator,
) -> ContrastiveLoss:
    """Contrastive loss between the encodings of a minibatch, one step of every episode.

    Positives share their instruction: the same text, or without texts the same utterance; where nothing is
    said, or the sensor that says it is absent, the same episode.

    Args:
        policy: Tells the senses.
        rollout: What the minibatch was taken from.
        minibatch: What the policy made of it.
        temperature: Of the similarity.
        generator: Source of the choice of steps.
    """
    envs = minibatch.envs
    # An episode is told apart by its world and the starts seen so far in the rollout.
    starts = rollout.starts[:, envs].long().cumsum(0)
    worlds = torch.arange(len(envs), device=starts.device)
    episodes = (worlds * (len(starts) + 1) + starts).flatten()
    present = rollout.present[:, envs].flatten(0, 1)
    valid = rollout.valid[:, envs].flatten()
    eligible = valid & (present.sum(-1) >= 2)
    rows = one_row_per_episode(episodes, eligible, generator)
    names = policy.perception.names
    return contrastive_loss(
        {name: minibatch.output.fused.summaries[rows, m] for m, name in enumerate(names)},
        {name: present[rows, m] for m, name in enumerate(names)},
        _instructions(policy, rollout, envs, episodes)[rows],
        temperature=temperature,
    )


def _instructions(policy: ActorCritic, rollout: Rollout, envs: Tensor, episodes: Tensor) -> Tensor:
    """What was said at every step, as a number; where that sensor was absent, the episode's own."""
    for modality in (Modality.TEXT, Modality.AUDIO):
        for m, sensor in enumerate(policy.inputs):
            if sensor.modality is modality and sensor.name in rollout.rows:
                rows, heard = rollout.rows[sensor.name][:, envs], rollout.present[:, envs, m]
                return torch.where(heard.flatten(), rows.flatten(), -1 - episodes)
    return episodes


def mixed_rewards(
    policy: ActorCritic,
    rollout: Rollout,
    config: MixedRewardConfig,
    *,
    reward_scale: float,
    num_minibatches: int,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Task reward, divergence penalty and safety of a rollout, mixed.

    The divergence is that of the policy which acted: it stands still from the first step of a rollout to the
    last, so that a deed earns the same wherever in the rollout it is done.

    Returns:
        (T, N) rewards to learn from, and (T, N) for each weighted term; the task's own reward and no terms
        where one of them is not finite.
    """
    shape = rollout.rewards.shape
    active, steps, violations = (
        x.flatten().cpu().numpy() for x in (rollout.valid, rollout.episode_steps, rollout.violations)
    )
    violated, solved = (x.flatten().cpu().numpy() for x in (rollout.violated, rollout.solved))
    terms = {"task": task_term((rollout.rewards * reward_scale).flatten().cpu().numpy(), active)}
    if config.divergence != 0:
        divergence = rollout_divergence(policy, rollout, num_minibatches=num_minibatches)
        terms["divergence"] = divergence_term(
            divergence.flatten().cpu().numpy(), active, steps, max_steps=rollout.max_episode_steps
        )
    if config.safety != 0:
        terms["safety"] = safety_term(
            violated & active,
            solved & active,
            steps,
            violations,
            max_steps=rollout.max_episode_steps,
            violation_cost=config.violation_cost,
        )
    device = rollout.rewards.device
    if not all(np.isfinite(values).all() for values in terms.values()):
        # The update skips what such a reward reaches, counts it, and in the end stops with an explanation.
        return rollout.rewards * reward_scale, {}
    total, parts = MixedReward.from_config(config)(terms)
    return (
        torch.from_numpy(total).view(shape).to(device),
        {name: torch.from_numpy(values).view(shape).to(device) for name, values in parts.items()},
    )
