"""Decoupled Actor-Policy Optimisation of a recurrent multimodal policy.

PPO, with what keeps senses in balance. Before each update the Shapley contribution of every sense is measured
on the rollout; a sense that contributes little then learns at a higher rate than the others (update gating).
Parts of the policy have learning rates of their own. Optional are a mixed reward and two auxiliary losses:
alignment of single-sense policies with the whole one, and a contrastive loss between the senses' encodings.
With gating off, equal rates and no extras, every number is that of PPO, bit for bit.

The published method of the same name for language models (decoupled clip and dynamic sampling, Yu et al.
2025, arXiv:2503.14476) is another one; its asymmetric clip is at hand here as `clip_ratio_low` and
`clip_ratio_high`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sensorium.algorithms import masked_mean
from sensorium.core import ConfigError
from sensorium.metrics import Mean, Metric
from sensorium.policies.embodied import ActorCritic
from sensorium.rollouts.embodied import Rollout
from sensorium.trainers.auxiliary import Minibatch, alignment_loss, contrast, mixed_rewards
from sensorium.trainers.config import DAPOConfig, PPOConfig
from sensorium.trainers.gating import UpdateGate
from sensorium.trainers.groups import parameter_groups
from sensorium.trainers.ppo import PPO, AuxiliaryLosses


class DAPO(PPO):
    """The update rule: a rollout in, better parameters and metrics out.

    Args:
        policy: Trained in place.
        config: Settings.
        generator: Source of the minibatch order.

    Raises:
        ConfigError: An auxiliary loss needs two senses, and there is one.
    """

    config: DAPOConfig

    def __init__(self, policy: ActorCritic, config: DAPOConfig, generator: torch.Generator) -> None:
        self.gate = UpdateGate(config.gate, policy.perception.names)
        super().__init__(policy, config, generator)
        if len(policy.perception.names) < 2 and (config.alignment or config.contrastive):
            raise ConfigError(
                f"algo.alignment and algo.contrastive compare senses; this policy has only "
                f"{policy.perception.names[0]!r}. Add a sensor or leave them out."
            )

    def parameter_groups(self) -> list[dict[str, Any]]:
        """One group per sense, `policy` and `value`."""
        return parameter_groups(self.policy, self.config.learning_rates, self.config.lr)

    def prepare(self, rollout: Rollout, returns: Tensor) -> dict[str, Metric]:
        """Measure what the senses contribute and set their gates, which stand still during the update."""
        if not self.gate.on:
            return super().prepare(rollout, returns)
        diagnosis = self._diagnose(rollout, returns)
        if diagnosis is None:
            return {}
        gates = self.gate.update(diagnosis.contributions)
        for group in self.optimizer.param_groups:
            group["gate"] = gates.get(group["name"], 1.0)
        return diagnosis.metrics | {f"gate/{name}": Mean.of(k) for name, k in gates.items()}

    def rewards(self, rollout: Rollout) -> tuple[Tensor, dict[str, Metric]]:
        """What to learn from: the task's reward, or with `reward` its mix with divergence and safety."""
        if self.config.reward is None:
            return super().rewards(rollout)
        total, terms = mixed_rewards(
            self.policy,
            rollout,
            self.config.reward,
            reward_scale=self.config.reward_scale,
            num_minibatches=self.config.num_minibatches,
        )
        count = rollout.num_valid
        means = {name: float(masked_mean(term, rollout.valid)) for name, term in terms.items()}
        return total, {f"reward/{name}": Mean.of(mean, count) for name, mean in means.items()}

    def auxiliary_losses(self, rollout: Rollout, minibatch: Minibatch) -> AuxiliaryLosses:
        """Alignment and contrastive loss of a minibatch, each with its weight in it."""
        losses: dict[str, Tensor] = {}
        measures: dict[str, Tensor] = {}
        aligned, contrasted = self.config.alignment, self.config.contrastive
        if aligned is not None:
            losses["alignment"] = aligned.coef * alignment_loss(self.policy, minibatch, rows=aligned.rows)
        if contrasted is not None:
            found = contrast(
                self.policy,
                rollout,
                minibatch,
                temperature=contrasted.temperature,
                generator=self.generator,
            )
            losses["contrastive"] = contrasted.coef * found.loss
            measures = {"contrastive/accuracy": found.accuracy, "contrastive/chance": found.chance}
        return AuxiliaryLosses(losses, measures)

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint must keep beside tensors."""
        return super().to_json() | {"gate": self.gate.to_json()}

    def from_json(self, values: Mapping[str, Any]) -> None:
        """Go on where `to_json` was called."""
        super().from_json(values)
        self.gate.from_json(values["gate"])


def build_learner(policy: ActorCritic, config: PPOConfig, generator: torch.Generator) -> PPO:
    """The update rule that a config describes."""
    if isinstance(config, DAPOConfig):
        return DAPO(policy, config, generator)
    return PPO(policy, config, generator)
