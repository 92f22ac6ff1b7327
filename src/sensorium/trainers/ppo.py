"""Proximal policy optimisation of a recurrent multimodal policy, written out.

One round: act in every world for `num_steps`; estimate advantages; go over the rollout `num_epochs` times
in minibatches of whole sequences; then let the observation filters see the rollout. The filters stand
still between acting and updating, so the ratio of the first minibatch is exactly one.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sensorium.algorithms import (
    adapt_kl_coef,
    clipped_surrogate,
    explained_variance,
    gae,
    masked_mean,
    normalise_advantages,
    value_loss,
)
from sensorium.core import TrainingError
from sensorium.metrics import Max, Mean, Metric
from sensorium.policies import ActorCritic
from sensorium.rollouts import Rollout
from sensorium.trainers.config import PPOConfig

FILTER_READINGS = 64
"""Readings of a rollout, evenly spaced, that the observation filters look at; images are large."""


@dataclass(slots=True)
class PPOState:
    """What the updates carry from one to the next; all of it is in the checkpoint."""

    kl_coef: float
    skipped_in_a_row: int = 0
    skipped: int = 0


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
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.state = PPOState(kl_coef=config.kl_coef)

    def update(self, rollout: Rollout, *, progress: float) -> dict[str, Metric]:
        """Train on one rollout.

        Args:
            rollout: From the policy as it is now.
            progress: Share of the run that is done, in [0, 1]; anneals the learning rate.

        Raises:
            TrainingError: Too many updates in a row had a non-finite loss.
        """
        config = self.config
        advantages = gae(
            rollout.rewards * config.reward_scale,
            rollout.values,
            rollout.terminated,
            rollout.ended,
            rollout.valid,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
        )
        returns = advantages + rollout.values[:-1]
        lr = config.lr * (1.0 - 0.9 * progress) if config.anneal_lr else config.lr
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        metrics: dict[str, Metric] = {}
        for epoch in range(config.num_epochs):
            order = torch.randperm(config.num_envs, generator=self.generator)
            for envs in order.chunk(config.num_minibatches):
                for name, metric in self._minibatch(rollout, advantages, returns, envs).items():
                    metrics[name] = metrics[name].merge(metric) if name in metrics else metric
                    if name == "policy/kl" and epoch == config.num_epochs - 1:
                        last = metrics.get("policy/kl_last_epoch")
                        metrics["policy/kl_last_epoch"] = metric if last is None else last.merge(metric)
        self._adapt_kl(metrics)
        self._update_filters(rollout)
        old_values = rollout.values[:-1].flatten()
        ev = explained_variance(old_values, returns.flatten(), rollout.valid.flatten())
        metrics["value/explained_variance"] = Mean.of(ev)
        metrics["lr"] = Mean.of(lr)
        metrics["policy/kl_coef"] = Mean.of(self.state.kl_coef)
        metrics["gradient/skipped_updates"] = Max.of(self.state.skipped)
        return metrics

    def _minibatch(
        self, rollout: Rollout, advantages: Tensor, returns: Tensor, envs: Tensor
    ) -> dict[str, Metric]:
        config = self.config
        mask = rollout.valid[:, envs].flatten()
        output = self.policy(rollout.sequences(envs))
        new = output.distribution
        surrogate = clipped_surrogate(
            new.logprobs(rollout.actions(envs)),
            rollout.logprobs[:, envs].flatten(),
            normalise_advantages(advantages[:, envs].flatten(), mask),
            mask,
            clip_ratio_low=config.clip_ratio_low,
            clip_ratio_high=config.clip_ratio_high,
        )
        critic = value_loss(
            output.values,
            rollout.values[:-1, envs].flatten(),
            returns[:, envs].flatten(),
            mask,
            clip_range=config.vf_clip_range,
        )
        entropy = masked_mean(new.entropy(), mask)
        kl = masked_mean(new.kl_from(rollout.distribution(envs, new)), mask)
        loss = surrogate.loss + config.vf_coef * critic - config.ent_coef * entropy
        if config.kl_coef > 0:
            loss = loss + self.state.kl_coef * kl
        norm = self._descend(loss)
        count = int(mask.sum())
        metrics = {
            "loss/policy": surrogate.loss,
            "loss/value": critic,
            "policy/entropy": entropy,
            "policy/kl": kl,
            "policy/clip_fraction": surrogate.clip_fraction,
            "gradient/norm": norm,
        }
        for m, name in enumerate(self.policy.perception.names):
            metrics[f"fusion/gate/{name}"] = masked_mean(output.fused.gates[:, m].detach(), mask)
        for head, value in new.entropies().items():
            metrics[f"policy/entropy/{head}"] = masked_mean(value, mask)
        return {name: Mean.of(float(value.detach()), count) for name, value in metrics.items()}

    def _descend(self, loss: Tensor) -> Tensor:
        """One step of the optimiser, or none where the loss or a gradient is not finite."""
        self.optimizer.zero_grad(set_to_none=True)
        if not torch.isfinite(loss):
            self._skip("the loss")
            return torch.full((), math.nan)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm)
        if not torch.isfinite(norm):
            self._skip("the gradient of " + self._first_bad_gradient())
            return norm
        self.optimizer.step()
        self.state.skipped_in_a_row = 0
        return norm.detach()

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
                perception.update_filters(name, rollout.tables[name].values)
