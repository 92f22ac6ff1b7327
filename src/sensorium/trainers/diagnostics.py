"""What each sense is worth to the policy right now, and how the senses relate to each other."""

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from sensorium.algorithms import (
    attention_entropy,
    centred_cosine,
    coalition_worth,
    effective_rank,
    linear_cka,
    shapley_coalitions,
    shapley_values,
)
from sensorium.metrics import Mean, Metric
from sensorium.nn.fusion import Prepared
from sensorium.policies.embodied import ActorCritic, PolicyOutput, SequenceBatch
from sensorium.rollouts.embodied import Rollout

SETS_AT_ONCE = 16
"""Sets of senses that are fused in one call; all there are for four senses. More would only take memory."""

MAX_SIMILARITY_DIMS = 1024
"""Encodings wider than this are not compared: the cost grows with the square of the width."""

LEAST_RANK_ROWS = 2
"""Steps at which a sense must be present for its effective rank to be defined."""

LEAST_PAIR_ROWS = 4
"""The same for the likeness of two senses that are present together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """What the senses are worth, measured on one rollout; those that were absent throughout are left out."""

    shapley: dict[str, float]
    """Sense -> Shapley value of explained value and unchanged policy; see `algorithms.coalition_worth`."""
    alone: dict[str, float]
    """Sense -> worth of that sense alone, above that of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Contributions, and everything worth logging."""

    contributions: Contributions
    metrics: dict[str, Metric]


@torch.no_grad()
def diagnose(
    policy: ActorCritic,
    rollout: Rollout,
    returns: Tensor,
    *,
    rows: int,
    seed: int,
    relations: bool = True,
) -> Diagnosis | None:
    """Measure on about `rows` steps of a rollout, evenly chosen worlds; draws nothing from any generator.

    Encoders run once and tokens are attended to once; a sense is taken away by its missing token, which
    costs the last part of the fusion, memory and heads.

    Args:
        policy: As it acted.
        rollout: What it did.
        returns: (T, N) targets of the critic.
        rows: Steps to look at.
        seed: Decides the permutations that are sampled where there are more than four senses.
        relations: Whether to look at attention between senses and the likeness of their encodings, too.

    Returns:
        None where a return or an output of the policy is not finite: the update will say so.
    """
    num_steps, num_envs = rollout.rewards.shape
    wanted = min(num_envs, max(1, rows // num_steps))
    envs = torch.arange(wanted, device=returns.device) * num_envs // wanted
    batch = rollout.sequences(envs)
    prepared = policy.encode(batch)
    full = policy.fuse_sequences(prepared, batch)
    mask = rollout.valid[:, envs].flatten()
    targets = returns[:, envs].flatten()
    if not (targets.isfinite().all() and full.values.isfinite().all()):
        return None
    contributions = _contributions(policy, batch, prepared, full, targets, mask, seed)
    metrics: dict[str, Metric] = {}
    if relations:
        metrics = _attention(policy, full, batch, mask) | _similarity(policy, full, batch, mask)
    for name, phi in contributions.shapley.items():
        metrics[f"contribution/{name}"] = Mean.of(phi)
    return Diagnosis(contributions=contributions, metrics=metrics)


def _contributions(
    policy: ActorCritic,
    batch: SequenceBatch,
    prepared: Prepared,
    full: PolicyOutput,
    returns: Tensor,
    mask: Tensor,
    seed: int,
) -> Contributions:
    perceived = batch.present.flatten(0, 1)[mask].any(0).tolist()
    names = [name for name, here in zip(policy.perception.names, perceived, strict=True) if here]
    if not names:
        return Contributions(shapley={}, alone={})
    coalitions = shapley_coalitions(len(names), generator=torch.Generator().manual_seed(seed))
    alone = [frozenset({m}) for m in range(len(names))]
    coalitions = list(dict.fromkeys([frozenset(), *alone, *coalitions]))
    worth: dict[frozenset[int], float] = {}
    for start in range(0, len(coalitions), SETS_AT_ONCE):
        some = coalitions[start : start + SETS_AT_ONCE]
        chosen = [{names[m] for m in senses} for senses in some]
        kept = [[name in senses for name in policy.perception.names] for senses in chosen]
        present = batch.present & torch.tensor(kept, device=returns.device)[:, None, None]
        for senses, output in zip(some, policy.fuse_sets(prepared, batch, present), strict=True):
            kl = output.distribution.kl_from(full.distribution)
            worth[senses] = float(coalition_worth(returns, output.values, kl, mask))
    estimate = shapley_values(worth.__getitem__, len(names), generator=torch.Generator().manual_seed(seed))
    nothing = worth[frozenset()]
    return Contributions(
        shapley=dict(zip(names, estimate.values.tolist(), strict=True)),
        alone={name: worth[one] - nothing for name, one in zip(names, alone, strict=True)},
    )


def _attention(
    policy: ActorCritic, full: PolicyOutput, batch: SequenceBatch, mask: Tensor
) -> dict[str, Metric]:
    names = policy.perception.names
    present = batch.present.flatten(0, 1) & mask.unsqueeze(-1)
    # Any sense may be attended to that is there; the null slot always is.
    valid = torch.cat([present, mask.unsqueeze(-1)], dim=-1)
    metrics: dict[str, Metric] = {}
    for m, name in enumerate(names):
        here = present[:, m]
        if not here.any():
            continue
        weights = full.fused.attention[here, m]
        for slot, target in enumerate((*names, "nothing")):
            metrics[f"attention/{name}->{target}"] = Mean.of(float(weights[:, slot].mean()))
        spread = attention_entropy(weights, valid[here])
        metrics[f"attention/entropy/{name}"] = Mean.of(float(spread.mean()))
    return metrics


def _similarity(
    policy: ActorCritic, full: PolicyOutput, batch: SequenceBatch, mask: Tensor
) -> dict[str, Metric]:
    names = policy.perception.names
    summaries = full.fused.summaries
    if summaries.shape[-1] > MAX_SIMILARITY_DIMS:
        return {}
    present = batch.present.flatten(0, 1) & mask.unsqueeze(-1)
    metrics: dict[str, Metric] = {}
    for m, name in enumerate(names):
        if present[:, m].sum() < LEAST_RANK_ROWS:
            continue
        rank = effective_rank(summaries[:, m], present[:, m])
        metrics[f"similarity/effective_rank/{name}"] = Mean.of(float(rank))
    for m, n in combinations(range(len(names)), 2):
        pair, both = f"{names[m]}+{names[n]}", present[:, m] & present[:, n]
        if both.sum() < LEAST_PAIR_ROWS:  # never together: not a likeness of 0
            continue
        first, second = summaries[:, m], summaries[:, n]
        metrics[f"similarity/cosine/{pair}"] = Mean.of(float(centred_cosine(first, second, both)))
        metrics[f"similarity/cka/{pair}"] = Mean.of(float(linear_cka(first, second, both)))
    return metrics
