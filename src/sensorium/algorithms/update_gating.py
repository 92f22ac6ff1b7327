"""Update gating: senses that contribute much learn slower, so that the others catch up.

    v(S)  worth of the senses S     ->  phi  Shapley contributions (`shapley.py`)
    phi   averaged over updates     ->  z    standardised over senses
    z     softmax with temperature  ->  k    gates, 1 on average before clipping

A gate multiplies the learning rate of its sense's parameter group and is frozen within an update. It does not
multiply the gradient: Adam divides by the gradient's own running size, which cancels a factor that changes
slowly. `ogm_ge` and `cggm` are gates from the literature to compare with.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sensorium.algorithms.ppo import masked_mean


def coalition_worth(
    returns: Float[Tensor, " batch"],
    values: Float[Tensor, " batch"],
    kl: Float[Tensor, " batch"],
    mask: Bool[Tensor, " batch"],
    *,
    ev_weight: float = 1.0,
    kl_weight: float = 1.0,
) -> Float[Tensor, ""]:
    """Worth of the senses S: v(S) = a * max(1 - Var(R - V_S) / Var(R), -1) - b * mean KL(pi_all || pi_S).

    The first part is the explained variance of the critic that has only S; the second how far the policy
    moves when the other senses are replaced by their missing tokens, 0 for all senses. Hence a sense's
    Shapley value is the explained value and the policy that would be lost without it.

    Args:
        returns: R, the targets of the critic on the rollout batch.
        values: V_S, the critic's predictions with the senses S; the others are replaced by missing tokens.
        kl: KL divergence from the policy with all senses to the one with S, nats, >= 0.
        mask: Steps that count; with none, v is 0.
        ev_weight: a, >= 0.
        kl_weight: b, >= 0, per nat.

    Returns:
        v(S), dtype and device of `returns`. Explained variance is clipped below at -1, as a critic that was
        never trained without a sense may be wrong without bound. It counts as 0 where the returns are
        constant up to rounding: then there is nothing to explain.

    Raises:
        ValueError: A weight is negative or not finite.
    """
    for name, weight in (("ev_weight", ev_weight), ("kl_weight", kl_weight)):
        if not 0 <= weight < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, found {weight}.")
    # Masked entries may hold anything, NaN included.
    total = _variance(torch.where(mask, returns, 0.0), mask)
    unexplained = _variance(torch.where(mask, returns - values, 0.0), mask)
    rounding = 8 * torch.finfo(returns.dtype).eps * torch.where(mask, returns, 0.0).abs().amax()
    constant = total <= rounding**2
    explained = (1.0 - unexplained / torch.where(constant, 1.0, total)).clamp(min=-1.0)
    return ev_weight * torch.where(constant, 0.0, explained) - kl_weight * masked_mean(kl, mask)


def _variance(x: Float[Tensor, " batch"], mask: Bool[Tensor, " batch"]) -> Float[Tensor, ""]:
    return masked_mean((x - masked_mean(x, mask)) ** 2, mask)


@dataclass(frozen=True)
class MovingAverage:
    """Exponential moving average of named numbers, bias-corrected, as an immutable value.

        mean_n = sum_i (1 - d) d^(n - i) x_i / (1 - d^n)

    Each name has its own count: one that joins later (a sense that a curriculum adds) is not pulled to 0.
    """

    decay: float = 0.9
    """d, weight of the past, within [0, 1)."""
    sums: tuple[tuple[str, float], ...] = ()
    """Weighted sum of each name."""
    weights: tuple[tuple[str, float], ...] = ()
    """Sum of the weights of each name, 1 - d^n after n numbers."""

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ValueError(f"decay must be in [0, 1), found {self.decay}.")

    def updated(self, numbers: Mapping[str, float]) -> "MovingAverage":
        """Return the average with one more number per name; names not given, or not finite, keep theirs."""
        sums, weights = dict(self.sums), dict(self.weights)
        for name, number in numbers.items():
            if math.isfinite(number):
                sums[name] = self.decay * sums.get(name, 0.0) + (1 - self.decay) * number
                weights[name] = self.decay * weights.get(name, 0.0) + (1 - self.decay)
        return MovingAverage(self.decay, tuple(sums.items()), tuple(weights.items()))

    def means(self, names: Sequence[str]) -> list[float]:
        """Mean of each name, in the order asked for; 0 for one that was never given."""
        sums, weights = dict(self.sums), dict(self.weights)
        return [sums[name] / weights[name] if name in sums else 0.0 for name in names]

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers for a checkpoint; JSON keeps them bit for bit."""
        return {"decay": self.decay, "sums": dict(self.sums), "weights": dict(self.weights)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "MovingAverage":
        """Read what `to_json` returned.

        Raises:
            ValueError: A key is missing, a name has no positive weight, or something is not a number.
        """
        try:
            sums = tuple((str(name), float(x)) for name, x in values["sums"].items())
            weights = tuple((str(name), float(x)) for name, x in values["weights"].items())
            decay = float(values["decay"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"Expected {{'decay': number, 'sums': {{name: number}}, 'weights': {{name: number}}}}, found "
                f"{dict(values)!r}."
            ) from error
        if dict(sums).keys() != dict(weights).keys() or any(not x > 0 for _, x in weights):
            raise ValueError(f"Every name needs a sum and a weight above 0, found {dict(values)!r}.")
        return cls(decay, sums, weights)


def z_scores(contributions: Float[Tensor, " senses"], *, min_std: float = 0.0) -> Float[Tensor, " senses"]:
    """Standardise over senses: z = (phi - mean) / max(std, min_std), the population's standard deviation.

    All equal (up to rounding), or a single sense, gives zeros.

    Args:
        contributions: phi of each sense.
        min_std: Spread below which senses count as nearly alike. With 0 the scale of phi drops out, and
            contributions that differ by noise are told apart like ones that differ by much: two senses then
            always have z = +1 and -1.

    Raises:
        ValueError: `min_std` is negative or not finite.
    """
    if not 0 <= min_std < math.inf:
        raise ValueError(f"min_std must be a finite number >= 0, found {min_std}.")
    centred = contributions - contributions.mean()
    std = (centred**2).mean().sqrt()
    rounding = 8 * torch.finfo(contributions.dtype).eps * contributions.abs().amax()
    equal = std <= rounding
    return torch.where(equal, 0.0, centred / torch.where(equal, 1.0, std.clamp(min=min_std)))


def softmax_gates(
    z: Float[Tensor, " senses"], *, tau: float, k_min: float, k_max: float
) -> Float[Tensor, " senses"]:
    """Gates k = clip(M * softmax(-z / tau), k_min, k_max): below 1 for senses that contribute most.

    Args:
        z: Standardised contributions of M senses.
        tau: Temperature, > 0: small lets one sense learn at a time, `math.inf` gives ones, bit for bit. 0.7
            to 1.3 is usual.
        k_min: Smallest gate, within [0, 1].
        k_max: Largest gate, >= 1.

    Returns:
        Gates with mean 1 before clipping; exactly 1 where all z are equal.

    Raises:
        ValueError: An argument is out of range.
    """
    if not tau > 0:
        raise ValueError(f"tau must be above 0 (math.inf for no gating), found {tau}.")
    _check_bounds(k_min, k_max)
    weights = (-(z - z.amin()) / tau).exp()  # 1 for the sense that contributes least: no overflow
    # M * w / sum(w) and not M * softmax: M * (1 / M) is not 1 for every M.
    return (weights * len(z) / weights.sum()).clamp(k_min, k_max)


def ogm_ge(scores: Float[Tensor, " senses"], *, alpha: float, k_min: float = 0.0) -> Float[Tensor, " senses"]:
    """Gates k = 1 - tanh(alpha * rho) where rho = score / mean(scores of the others) > 1, else 1.

    The published rule is for two senses; each is compared with the mean of the rest here, which is the same
    for two. Only leading senses are slowed; the noise of the published method is left out.

    Args:
        scores: How well each sense does alone or how much it contributes; below 0 counts as 0.
        alpha: Strength, >= 0; 0 gives ones. Published: 0.1 to 0.8.
        k_min: Smallest gate, within [0, 1]; a sense far ahead would stop learning with 0.

    Returns:
        Gates in [k_min, 1]: ones for a single sense, and where no score is above 0. Others that score 0 make
        rho infinite and the gate k_min.

    Raises:
        ValueError: An argument is out of range.

    Source: Peng et al. 2022, "Balanced multimodal learning via on-the-fly gradient modulation",
        arXiv:2203.15332.
    """
    if not 0 <= alpha < math.inf:
        raise ValueError(f"alpha must be a finite number >= 0, found {alpha}.")
    _check_bounds(k_min, 1.0)
    if alpha == 0 or len(scores) < 2:
        return torch.ones_like(scores)
    score = scores.clamp(min=0.0)
    # The others are added up without the sense itself: sum - score would leave rounding where they are 0.
    others = (score.expand(len(score), -1) * (1 - torch.eye(len(score)).to(score))).sum(-1) / (len(score) - 1)
    leads = score > others
    rho = score / torch.where(leads, others, 1.0)
    gates = torch.where(leads, 1.0 - (alpha * torch.where(leads, rho, 0.0)).tanh(), 1.0)
    return gates.clamp(min=k_min)


def cggm(
    improvements: Float[Tensor, " senses"], *, rho: float = 1.3, k_min: float = 0.0, k_max: float = 2.0
) -> Float[Tensor, " senses"]:
    """Gates k = clip(rho * (sum(d) - d_m) / sum(d), k_min, k_max), d = max(improvement, 0).

    The published formula takes improvements of either sign; their sum crosses zero, where gates are infinite
    and change sign. A sense that got worse counts as one that stood still here, so that d_m / sum(d) is a
    share in [0, 1]. Where no sense improved, all shares are equal.

    Args:
        improvements: Change of each sense's own score since the last update, e.g. of its explained variance.
        rho: Strength, > 0; published: 1.3.
        k_min: Smallest gate, within [0, 1].
        k_max: Largest gate, >= 1.

    Returns:
        Gates with sum rho * (M - 1) before clipping: not 1 on average; ones for a single sense.

    Raises:
        ValueError: An argument is out of range.

    Source: Guo et al. 2024, "Classifier-guided gradient modulation for enhanced multimodal learning",
        arXiv:2411.01409, with the changes named above.
    """
    if not 0 < rho < math.inf:
        raise ValueError(f"rho must be a finite number above 0, found {rho}.")
    _check_bounds(k_min, k_max)
    if len(improvements) < 2:
        return torch.ones_like(improvements)
    improved = improvements.clamp(min=0.0)
    improved = improved / improved.amax().clamp(min=torch.finfo(improved.dtype).tiny)
    total = improved.sum()
    share = torch.where(total > 0, improved / torch.where(total > 0, total, 1.0), 1.0 / len(improvements))
    return (rho * (1.0 - share)).clamp(k_min, k_max)


def _check_bounds(k_min: float, k_max: float) -> None:
    if not 0 <= k_min <= 1 <= k_max:
        raise ValueError(
            f"Expected 0 <= k_min <= 1 <= k_max, so that a gate can be 1, found {k_min}, {k_max}."
        )
