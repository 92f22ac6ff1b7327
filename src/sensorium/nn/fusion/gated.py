"""Gated multimodal unit: a gate for every feature of every sensor."""

import math
from collections.abc import Collection, Mapping

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from sensorium.nn.config import GatedFusionConfig
from sensorium.nn.fusion.base import Fusion, Mixed, Prepared
from sensorium.nn.tokens import Tokens, TokenShape


class GatedFusion(Fusion):
    """z = sum_m presence_m g_m * tanh(W_m x_m),  g_m = sigmoid(V_m [x_1, ..., x_M] + b_m),  x_m = LN(s_m).

    An absent sensor's x is zero. The gates that are reported are means over the features, divided by their
    sum over the sensors.

    Source: Arevalo et al. 2017, arXiv:1702.01992, section 3.1 (the unit for more than two modalities), with
    a presence mask, a normalisation of the inputs and a bias per sensor.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: Widths.
        sight: Sensors of the first of two streams.
    """

    def __init__(
        self, shapes: Mapping[str, TokenShape], config: GatedFusionConfig, sight: Collection[str] = ()
    ) -> None:
        super().__init__(shapes, config.features, sight=sight, streams=config.streams)
        dim, width = config.embed_dim, config.stream_width
        self.dim = dim
        self.norm = nn.LayerNorm(dim)
        self.project = nn.ModuleList(nn.Linear(dim, width) for _ in shapes)
        self.gate = nn.ModuleList(nn.Linear(len(shapes) * dim, width, bias=False) for _ in shapes)
        self.gate_bias = nn.Parameter(torch.zeros(len(shapes)))

    def prepare(self, tokens: Mapping[str, Tokens]) -> Prepared:
        """Normalise, and project each sensor's features."""
        summaries = self.summaries(tokens)
        x = self.norm(summaries)
        features = torch.stack([project(x[:, m]) for m, project in enumerate(self.project)], dim=1)
        return Prepared(summaries, (x, torch.tanh(features)))

    def mix(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Mixed:
        """Gate each sensor's features by what all present sensors say."""
        x, features = prepared.parts
        here = present.to(x.dtype)
        everything = (x * here.unsqueeze(-1)).flatten(-2)
        scores = torch.stack([gate(everything) for gate in self.gate], dim=-2)
        gates = (scores + self.gate_bias[:, None]).sigmoid()
        openness = gates.mean(-1) * here
        shares = openness / openness.sum(-1, keepdim=True).clamp(min=1e-9)
        return Mixed(self.pooled(here, gates * features), self.alone(present), shares)

    def own_parameters(self, sensor: str) -> list[nn.Parameter]:
        """Projection and gate of `sensor`."""
        m = self.sensors.index(sensor)
        return [*self.project[m].parameters(), *self.gate[m].parameters()]

    def shut(self, m: int, bias: float) -> None:
        """Lower the gate of sensor `m`, and what it says about the gates of the others."""
        self.gate_bias[m] = bias
        columns = slice(m * self.dim, (m + 1) * self.dim)
        for weight in self.gate.parameters():
            weight[:, columns] *= 1.0 / (1.0 + math.exp(-bias))
