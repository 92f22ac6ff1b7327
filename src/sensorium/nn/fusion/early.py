"""Early fusion: all summaries side by side, and one MLP. The baseline that other fusions have to beat."""

import math
from collections.abc import Collection, Mapping

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional

from sensorium.nn.config import CrossAttentionConfig, EarlyFusionConfig
from sensorium.nn.fusion.base import Fusion, Mixed, Prepared, shares
from sensorium.nn.fusion.cross_attention import num_parameters
from sensorium.nn.tokens import Tokens, TokenShape


class EarlyFusion(Fusion):
    """z = tanh(W relu(V [x_1, ..., x_M, presence] + b)), with x_m = LN(s_m).

    The weights of a presence bit are the token that stands in the hidden layer for an absent sensor, in
    place of its summary; so a summary of zero and an absent one differ. The first layer is kept as one
    matrix per sensor, which is the same as one over the concatenation.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: Widths.
        sight: Without effect: everything is mixed at once.
    """

    def __init__(
        self, shapes: Mapping[str, TokenShape], config: EarlyFusionConfig, sight: Collection[str] = ()
    ) -> None:
        super().__init__(shapes, config.features, sight=sight)
        dim, sensors = config.embed_dim, len(shapes)
        hidden = config.mlp_dim or fair_mlp_dim(shapes, config)
        self.norm = nn.LayerNorm(dim)
        self.read = nn.ModuleList(nn.Linear(dim, hidden, bias=False) for _ in shapes)
        self.absent = nn.Parameter(torch.zeros(sensors, hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Linear(hidden, config.features)
        for name, weight in self.read.named_parameters():
            assert name.endswith("weight")
            nn.init.normal_(weight, std=math.sqrt(2.0 / (sensors * dim)))  # He et al. 2015, for relu
        nn.init.normal_(self.out.weight, std=1.0 / math.sqrt(hidden))
        nn.init.zeros_(self.out.bias)

    def prepare(self, tokens: Mapping[str, Tokens]) -> Prepared:
        """Take each sensor's summary to the hidden layer."""
        summaries = self.summaries(tokens)
        x = self.norm(summaries)
        return Prepared(summaries, (torch.stack([read(x[:, m]) for m, read in enumerate(self.read)], dim=1),))

    def mix(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Mixed:
        """Add up what is there and what stands for what is not, and transform."""
        (said,) = prepared.parts
        hidden = functional.linear((~present).to(said.dtype), self.absent.t(), self.bias)
        hidden = hidden + torch.einsum("...m,...mh->...h", present.to(said.dtype), said)
        features = torch.tanh(self.out(torch.relu(hidden)))
        equal = shares(torch.zeros_like(present, dtype=said.dtype), present)
        return Mixed(features, self.alone(present), equal)

    def own_parameters(self, sensor: str) -> list[nn.Parameter]:
        """The columns of the first layer that read `sensor`."""
        return list(self.read[self.sensors.index(sensor)].parameters())

    def shut(self, m: int, bias: float) -> None:
        """Scale the columns that read sensor `m`; what stood for its absence becomes a part of the bias."""
        self.bias.add_(self.absent[m])
        self.absent[m] = 0.0
        for weight in self.read[m].parameters():
            weight.mul_(1.0 / (1.0 + math.exp(-bias)))


def fair_mlp_dim(shapes: Mapping[str, TokenShape], config: EarlyFusionConfig) -> int:
    """Hidden width with which early fusion has as many parameters as cross-modal attention."""
    twin = CrossAttentionConfig(
        embed_dim=config.embed_dim, hidden_dim=config.hidden_dim, feature_dim=config.feature_dim
    )
    sensors, features = len(shapes), config.features
    fixed = 2 * config.embed_dim + features + sensors * features
    per_unit = sensors * config.embed_dim + sensors + 1 + features
    return max(round((num_parameters(shapes, twin) - fixed) / per_unit), 8)
