"""Proximal policy optimisation of a recurrent multimodal policy, written out.

One round: act in every world for `num_steps`; estimate advantages; go over the rollout `num_epochs` times
in minibatches of whole sequences; then let the observation filters see the rollout. The filters stand
still between acting and updating, so the ratio of the first minibatch is exactly one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sensorium.algorithms import (
    adapt_kl_coef,
    clipped_surrogate,
    explained_variance,
    gae,
    gradient_norm,
    masked_mean,
    normalise_advantages,
    update_norm,
    value_loss,
)
from sensorium.core import TrainingError
from sensorium.metrics import Max, Mean, Metric
from sensorium.policies.embodied import ActorCritic, SequenceBatch
from sensorium.rollouts.embodied import Rollout
from sensorium.rollouts.embodied.loading import prefetched
from sensorium.trainers.auxiliary import Minibatch
from sensorium.trainers.config import PPOConfig
from sensorium.trainers.diagnostics import Diagnosis, diagnose

FILTER_READINGS = 64
"""Readings of a rollout, evenly spaced, that the observation filters look at; images are large."""


@dataclass(slots=True)
class PPOState:
    """What the updates carry from one to the next; all of it is in the checkpoint."""

    kl_coef: float
    skipped_in_a_row: int = 0
    skipped: int = 0
    updates: int = 0
    """Rollouts trained on."""


class Targets(NamedTuple):
    """What a minibatch is trained towards; rows are (time, env) flattened, time first."""

    advantages: Tensor
    returns: Tensor


class AuxiliaryLosses(NamedTuple):
    """Terms that are added to a minibatch's loss."""

    losses: Mapping[str, Tensor]
    """Name -> term, multiplied by its weight; logged as `loss/{name}`."""
    measures: Mapping[str, Tensor]
    """Metric -> what else was found."""


class PPO:
    """The update rule: a rollout in, better parameters and metrics out.

    Args:
        policy: Trained in place.
        config: Settings.
        generator: Source of the minibatch order.
    """

    def __init__(self, policy: ActorCritic, config: PPOConfig, generator: torch.Generator) -> None:
        self.policy = policy
        self.config = config
        self.generator = generator
        self.optimizer = torch.optim.Adam(self.parameter_groups(), lr=config.lr, eps=1e-5, fused=True)
        self.state = PPOState(kl_coef=config.kl_coef)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Groups of the optimiser: `params`, `name`, and `base_lr`, the learning rate before annealing."""
        return [{"params": list(self.policy.parameters()), "name": "policy", "base_lr": self.config.lr}]

    def update(self, rollout: Rollout, *, progress: float) -> dict[str, Metric]:
        """Train on one rollout.

        Args:
            rollout: From the policy as it is now.
            progress: Share of the run that is done, in [0, 1]; anneals the learning rate.

        Raises:
            TrainingError: Too many updates in a row had a non-finite loss.
        """
        config = self.config
        rewards, metrics = self.rewards(rollout)
        advantages = gae(
            rewards,
            rollout.values,
            rollout.terminated,
            rollout.ended,
            rollout.valid,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
        )
        returns = advantages + rollout.values[:-1]
        metrics |= self.prepare(rollout, returns)
        metrics |= self._set_learning_rates(1.0 - 0.9 * progress if config.anneal_lr else 1.0)
        for epoch in range(config.num_epochs):
            order = torch.randperm(config.num_envs, generator=self.generator).to(rewards.device)
            last_epoch = epoch == config.num_epochs - 1
            chunks = order.chunk(config.num_minibatches)
            batches = prefetched(rollout.sequences, chunks, ahead=config.prefetch_minibatches)
            for i, (envs, batch) in enumerate(batches):
                probe = last_epoch and i == len(chunks) - 1
                targets = Targets(advantages[:, envs].flatten(), returns[:, envs].flatten())
                found = self._minibatch(rollout, batch, targets, envs, probe=probe)
                if last_epoch:
                    found["policy/kl_last_epoch"] = found["policy/kl"]
                for name, metric in found.items():
                    metrics[name] = metrics[name].merge(metric) if name in metrics else metric
        self._adapt_kl(metrics)
        self._update_filters(rollout)
        old_values = rollout.values[:-1].flatten()
        ev = explained_variance(old_values, returns.flatten(), rollout.valid.flatten())
        metrics["value/explained_variance"] = Mean.of(ev)
        metrics["policy/kl_coef"] = Mean.of(self.state.kl_coef)
        metrics["gradient/skipped_updates"] = Max.of(self.state.skipped)
        self.state.updates += 1
        return metrics

    def rewards(self, rollout: Rollout) -> tuple[Tensor, dict[str, Metric]]:
        """(T, N) rewards to learn from, and metrics of their parts."""
        return rollout.rewards * self.config.reward_scale, {}

    def prepare(self, rollout: Rollout, returns: Tensor) -> dict[str, Metric]:
        """Look at a rollout before it is trained on; returns metrics."""
        diagnosis = self._diagnose(rollout, returns) if self.diagnostics_due else None
        return {} if diagnosis is None else diagnosis.metrics

    @property
    def diagnostics_due(self) -> bool:
        """Whether this is one of the rollouts whose senses are looked at closely."""
        every = self.config.diagnostics_every
        return every > 0 and self.state.updates % every == 0

    def auxiliary_losses(self, rollout: Rollout, minibatch: Minibatch) -> AuxiliaryLosses:
        """Further terms of a minibatch's loss; none here."""
        return AuxiliaryLosses({}, {})

    def _diagnose(self, rollout: Rollout, returns: Tensor) -> Diagnosis | None:
        return diagnose(
            self.policy,
            rollout,
            returns,
            rows=self.config.diagnostics_rows,
            seed=self.state.updates,
            relations=self.diagnostics_due,
        )

    def _set_learning_rates(self, factor: float) -> dict[str, Metric]:
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"] * factor * group.get("gate", 1.0)
        groups = self.optimizer.param_groups
        if len(groups) == 1:
            return {"lr": Mean.of(groups[0]["lr"])}
        return {f"lr/{group['name']}": Mean.of(group["lr"]) for group in groups}

    def _minibatch(
        self,
        rollout: Rollout,
        batch: SequenceBatch,
        targets: Targets,
        envs: Tensor,
        *,
        probe: bool,
    ) -> dict[str, Metric]:
        config = self.config
        valid = rollout.valid[:, envs]
        mask = valid.flatten()
        prepared = self.policy.encode(batch)
        output = self.policy.fuse_sequences(prepared, batch)
        new = output.distribution
        surrogate = clipped_surrogate(
            new.logprobs(rollout.actions(envs)),
            rollout.logprobs[:, envs].flatten(),
            normalise_advantages(targets.advantages, mask),
            mask,
            clip_ratio_low=config.clip_ratio_low,
            clip_ratio_high=config.clip_ratio_high,
        )
        critic = value_loss(
            output.values,
            rollout.values[:-1, envs].flatten(),
            targets.returns,
            mask,
            clip_range=config.vf_clip_range,
        )
        entropies = new.entropies()
        entropy = masked_mean(torch.stack(list(entropies.values())).sum(0), mask)
        kl = masked_mean(new.kl_from(rollout.distribution(envs, new)), mask)
        loss = surrogate.loss + config.vf_coef * critic - config.ent_coef * entropy
        if config.kl_coef > 0:
            loss = loss + self.state.kl_coef * kl
        auxiliary = self.auxiliary_losses(rollout, Minibatch(batch, envs, valid, prepared, output))
        for term in auxiliary.losses.values():
            loss = loss + term
        norms = self._descend(loss, probe=probe)
        values = {
            "loss/policy": surrogate.loss,
            "loss/value": critic,
            "policy/entropy": entropy,
            "policy/kl": kl,
            "policy/clip_fraction": surrogate.clip_fraction,
            **norms,
        }
        for m, name in enumerate(self.policy.perception.names):
            values[f"fusion/gate/{name}"] = masked_mean(output.fused.gates[:, m].detach(), mask)
        for head, value in entropies.items():
            values[f"policy/entropy/{head}"] = masked_mean(value, mask)
        values |= {f"loss/{name}": term for name, term in auxiliary.losses.items()}
        values |= auxiliary.measures
        count = int(mask.sum())
        return {name: Mean.of(float(value.detach()), count) for name, value in values.items()}

    def _descend(self, loss: Tensor, *, probe: bool) -> dict[str, Tensor]:
        """One step of the optimiser, or none where the loss or a gradient is not finite.

        Args:
            loss: What to minimise.
            probe: Whether to measure each sense's gradient, and the step that it took, too.
        """
        self.optimizer.zero_grad(set_to_none=True)
        if not torch.isfinite(loss):
            self._skip("the loss")
            return {"gradient/norm": torch.full((), math.nan)}
        loss.backward()  # type: ignore[no-untyped-call]
        senses = self.policy.perception.sensor_parameters() if probe else {}
        norms = {f"gradient/norm/{name}": gradient_norm(own) for name, own in senses.items()}
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm)
        norms["gradient/norm"] = norm.detach()
        if not torch.isfinite(norm):
            self._skip("the gradient of " + self._first_bad_gradient())
            return norms
        before = {name: [p.detach().clone() for p in own] for name, own in senses.items()}
        self.optimizer.step()
        self.state.skipped_in_a_row = 0
        for name, own in senses.items():
            norms[f"gradient/update_norm/{name}"] = update_norm(before[name], own)
        return norms

    def _skip(self, what: str) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.state.skipped += 1
        self.state.skipped_in_a_row += 1
        if self.state.skipped_in_a_row >= self.config.max_skipped_updates:
            bad = [name for name, p in self.policy.named_parameters() if not torch.isfinite(p).all()]
            where = f" Parameters that are not finite: {', '.join(bad[:5])}." if bad else ""
            raise TrainingError(
                f"Stopped: {what} was not finite in {self.state.skipped_in_a_row} updates in a row.{where} "
                f"The last checkpoint is intact. Lower algo.lr or algo.max_grad_norm, and look for rewards "
                f"or readings that are not finite."
            )

    def _first_bad_gradient(self) -> str:
        return next(
            (
                name
                for name, p in self.policy.named_parameters()
                if p.grad is not None and not torch.isfinite(p.grad).all()
            ),
            "no single parameter",
        )

    def _adapt_kl(self, metrics: dict[str, Metric]) -> None:
        if self.config.kl_coef > 0:
            kl = float(metrics["policy/kl_last_epoch"].value)  # type: ignore[arg-type]
            if math.isfinite(kl):
                self.state.kl_coef = adapt_kl_coef(self.state.kl_coef, kl, kl_target=self.config.kl_target)

    def _update_filters(self, rollout: Rollout) -> None:
        perception = self.policy.perception
        for m, name in enumerate(perception.names):
            if name in rollout.dense:
                steps, envs = rollout.present[:, :, m].nonzero(as_tuple=True)
                stride = max(1, len(steps) // FILTER_READINGS)
                perception.update_filters(name, rollout.dense[name][steps[::stride], envs[::stride]])
            else:
                values = rollout.tables[name].values
                # A row of zeros stands in for absent readings.
                perception.update_filters(name, values[values.flatten(1).any(1)])

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint must keep beside tensors."""
        return {
            "kl_coef": self.state.kl_coef,
            "skipped_updates": self.state.skipped,
            "updates": self.state.updates,
        }

    def from_json(self, values: Mapping[str, Any]) -> None:
        """Go on where `to_json` was called."""
        self.state.kl_coef = float(values["kl_coef"])
        self.state.skipped = int(values["skipped_updates"])
        self.state.updates = int(values["updates"])
