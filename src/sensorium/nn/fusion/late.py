"""Late fusion: every sensor on its own up to the fused width, then their average."""

from collections.abc import Collection, Mapping

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from sensorium.nn.config import LateFusionConfig
from sensorium.nn.fusion.base import Fusion, Mixed, Prepared, shares
from sensorium.nn.tokens import Tokens, TokenShape


class LateFusion(Fusion):
    """z = M * sum_m g_m tanh(MLP_m(LN(s_m))),  g = softmax(b_m + log presence).

    The biases start at zero, which makes g the mean over the present sensors. They do not depend on the
    readings; they are what lets a new sensor start nearly shut, and open.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: Widths.
        sight: Sensors of the first of two streams.
    """

    def __init__(
        self, shapes: Mapping[str, TokenShape], config: LateFusionConfig, sight: Collection[str] = ()
    ) -> None:
        super().__init__(shapes, config.features, sight=sight, streams=config.streams)
        dim, hidden = config.embed_dim, config.mlp_dim or config.hidden_dim
        self.norm = nn.LayerNorm(dim)
        self.gate_bias = nn.Parameter(torch.zeros(len(shapes)))
        self.head = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, config.stream_width))
            for _ in shapes
        )

    def prepare(self, tokens: Mapping[str, Tokens]) -> Prepared:
        """Ask each sensor's head."""
        summaries = self.summaries(tokens)
        x = self.norm(summaries)
        heads = torch.stack([head(x[:, m]) for m, head in enumerate(self.head)], dim=1)
        return Prepared(summaries, (torch.tanh(heads),))

    def mix(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Mixed:
        """Average the heads of the present sensors."""
        (heads,) = prepared.parts
        gates = shares(self.gate_bias.expand(present.shape), present)
        return Mixed(self.pooled(gates, heads) * len(self.sensors), self.alone(present), gates)

    def own_parameters(self, sensor: str) -> list[nn.Parameter]:
        """The head of `sensor`."""
        return list(self.head[self.sensors.index(sensor)].parameters())

    def shut(self, m: int, bias: float) -> None:
        """Lower the weight of sensor `m` in the average."""
        self.gate_bias[m] = bias
