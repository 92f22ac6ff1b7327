"""Running mean and variance of a reading, kept inside the network so that every export has it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class RunningNorm(nn.Module):
    """Observation filter: (x - mean) / std, clipped to +-10; frozen except in `update`.

    Statistics are per feature: the last axis for vectors (..., dim) and spectrograms (..., mels); one
    value for depth images.

    Source: parallel update of mean and variance, Chan, Golub and LeVeque 1979.

    Args:
        num_features: Number of features; 1 shares the statistics over the whole reading.
    """

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("var", torch.ones(num_features))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, x: Float[Tensor, "..."]) -> None:
        """Take readings into account; non-finite ones are left out."""
        rows = x.detach().reshape(-1, self.num_features).float()
        rows = rows[torch.isfinite(rows).all(-1)]
        if len(rows) == 0:
            return
        var, mean = torch.var_mean(rows, dim=0, correction=0)
        total = self.count + len(rows)
        delta = mean - self.mean
        pooled = self.var * self.count + var * len(rows) + delta**2 * self.count * len(rows) / total
        self.mean.copy_(self.mean + delta * len(rows) / total)
        self.var.copy_(pooled / total)
        self.count.copy_(total)

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Normalise; the variance has a floor of 1e-6 so that a constant reading stays finite."""
        return ((x - self.mean) / (self.var + 1e-6).sqrt()).clamp(-10.0, 10.0)
