"""One distribution over discrete, continuous and hybrid actions, with one joint log-probability."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_LOG_2PI = math.log(2.0 * math.pi)


class ActionBatch(NamedTuple):
    """Actions of a batch; a part that the action space lacks is None."""

    discrete: Int[Tensor, " batch"] | None
    continuous: Float[Tensor, "batch dims"] | None
    """As drawn; an environment clips it to [-1, 1]."""


class ActionDistribution(NamedTuple):
    """Categorical option, Gaussian parameters; in a hybrid action only the chosen option's count.

        log pi(k, x) = log pi_d(k) + sum_c mask[k, c] log N(x_c; mean_c, std_c)

    Entropy and KL are exact for the joint: H = H_d + sum_k pi_d(k) sum_c mask[k, c] H_c.
    """

    logits: Float[Tensor, "batch options"] | None
    mean: Float[Tensor, "batch dims"] | None
    log_std: Float[Tensor, "batch dims"] | None
    parameter_mask: Bool[Tensor, "options dims"] | None = None
    """Which parameters each option uses; None: all of them."""

    def at(self, rows: int | Tensor) -> "ActionDistribution":
        """The distributions of some rows; with a number, those that stand at it in the first dimension."""
        logits, mean, log_std = (
            None if part is None else part[rows] for part in (self.logits, self.mean, self.log_std)
        )
        return ActionDistribution(logits, mean, log_std, self.parameter_mask)

    def detach(self) -> "ActionDistribution":
        """The same numbers without gradient."""
        logits, mean, log_std = (
            None if part is None else part.detach() for part in (self.logits, self.mean, self.log_std)
        )
        return ActionDistribution(logits, mean, log_std, self.parameter_mask)

    def draw(self, generator: torch.Generator | None = None) -> ActionBatch:
        """Draw one action per row; the noise is drawn on the CPU, so it is the same on every device."""
        discrete = continuous = None
        if self.logits is not None:
            # Gumbel-max: argmax(logits - log E) with E ~ Exp(1) has the distribution softmax(logits).
            exponential = torch.empty(self.logits.shape).exponential_(generator=generator)
            discrete = (self.logits - exponential.log().to(self.logits.device)).argmax(-1)
        if self.mean is not None and self.log_std is not None:
            normal = torch.randn(self.mean.shape, generator=generator)
            continuous = self.mean + normal.to(self.mean.device) * self.log_std.exp()
        return ActionBatch(discrete, continuous)

    def mode(self) -> ActionBatch:
        """Deterministic action, leaf by leaf: the likeliest option, the mean of each parameter."""
        discrete = None if self.logits is None else self.logits.argmax(-1)
        return ActionBatch(discrete, self.mean)

    def logprobs(self, action: ActionBatch) -> Float[Tensor, " batch"]:
        """Joint log-probability (density) of each action."""
        total: Tensor | None = None
        if self.logits is not None and action.discrete is not None:
            chosen = self.logits.log_softmax(-1).gather(-1, action.discrete.unsqueeze(-1))
            total = chosen.squeeze(-1)
        if self.mean is not None and self.log_std is not None and action.continuous is not None:
            z = (action.continuous - self.mean) * (-self.log_std).exp()
            dims = -0.5 * (z**2 + _LOG_2PI) - self.log_std
            if self.parameter_mask is not None and action.discrete is not None:
                dims = dims * self.parameter_mask[action.discrete]
            total = dims.sum(-1) if total is None else total + dims.sum(-1)
        assert total is not None, "an action has a discrete or a continuous part"
        return total

    def entropy(self) -> Float[Tensor, " batch"]:
        """Joint entropy, nats; the continuous part may be negative."""
        return sum(self.entropies().values())  # type: ignore[return-value]

    def entropies(self) -> dict[str, Float[Tensor, " batch"]]:
        """Entropy of each head, the continuous one weighted by how often its parameters count."""
        heads: dict[str, Tensor] = {}
        if self.logits is not None:
            log_p = self.logits.log_softmax(-1)
            heads["discrete"] = -(log_p.exp() * log_p).sum(-1)
        if self.log_std is not None:
            heads["continuous"] = self._expect(self.log_std + 0.5 * (_LOG_2PI + 1.0))
        return heads

    def kl_from(self, old: "ActionDistribution") -> Float[Tensor, " batch"]:
        """KL(old || self), nats, exact for the joint."""
        total: Tensor | None = None
        if self.logits is not None and old.logits is not None:
            old_log_p = old.logits.log_softmax(-1)
            total = (old_log_p.exp() * (old_log_p - self.logits.log_softmax(-1))).sum(-1)
        if (
            self.mean is not None
            and self.log_std is not None
            and old.mean is not None
            and old.log_std is not None
        ):
            spread = ((2 * old.log_std).exp() + (old.mean - self.mean) ** 2) * (-2 * self.log_std).exp()
            dims = old._expect(self.log_std - old.log_std + 0.5 * (spread - 1.0))
            total = dims if total is None else total + dims
        assert total is not None, "a distribution has a discrete or a continuous part"
        return total

    def _expect(self, dims: Tensor) -> Tensor:
        """Sum over parameters, each weighted by the probability that the chosen option uses it."""
        if self.logits is None or self.parameter_mask is None:
            return dims.sum(-1)
        usage = self.logits.softmax(-1) @ self.parameter_mask.to(dims.dtype)
        return (usage * dims).sum(-1)
