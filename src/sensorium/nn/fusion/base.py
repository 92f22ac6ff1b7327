"""What every fusion has in common: missing tokens, streams, and what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import NamedTuple

import torch
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sensorium.core.errors import unknown_name
from sensorium.nn.tokens import Tokens, TokenShape

NEVER = -1e9
"""Score of what must not be chosen; finite, so that a row without any choice stays a number."""


class Fused(NamedTuple):
    """The senses in one vector, and how they got there."""

    features: Float[Tensor, "batch features"]
    attention: Float[Tensor, "batch sensors slots"]
    """Attention mass that each sensor puts on each sensor's tokens; the last slot is the null slot. A fusion
    without attention: a present sensor is all on itself, an absent one all on the null slot."""
    gates: Float[Tensor, "batch sensors"]
    """Share of each sensor in the fused vector; sums to 1 over the present ones, 0 where nothing is present.
    A fusion without gates: equal shares."""
    summaries: Float[Tensor, "batch sensors dim"]
    """Each sensor's own encoding, before other senses mix in; zero where it is absent."""


class Mixed(NamedTuple):
    """What an alternative computes, before the tokens of missing sensors are added."""

    features: Float[Tensor, "batch features"]
    attention: Float[Tensor, "batch sensors slots"]
    gates: Float[Tensor, "batch sensors"]


class Fusion(nn.Module, ABC):
    """Base of all alternatives: features = mix(summaries, tokens, presence) + sum of missing tokens.

    An absent sensor carries no weight in `mix`; its learned missing token, a vector of the fused width, is
    added instead. With all sensors present nothing is added.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        features: Width of the fused vector.
        sight: Sensors of the first stream; the others are in the second.
        streams: 1 adds all sensors into one vector; 2 keeps sight and the other senses apart.
    """

    offset: Tensor

    def __init__(
        self,
        shapes: Mapping[str, TokenShape],
        features: int,
        *,
        sight: Collection[str] = (),
        streams: int = 1,
    ) -> None:
        super().__init__()
        self.sensors = tuple(shapes)
        self.features = features
        self.missing = nn.Parameter(torch.zeros(len(shapes), features))
        self.register_buffer("offset", torch.zeros(features))
        halves = [[m for m, name in enumerate(shapes) if (name in sight) == first] for first in (True, False)]
        self.streams = halves if streams == 2 else [list(range(len(shapes)))]

    def forward(self, tokens: Mapping[str, Tokens], present: Bool[Tensor, "batch sensors"]) -> Fused:
        """Fuse one batch.

        Args:
            tokens: Every sensor's tokens; those of an absent sensor carry no weight. They must be finite,
                which holds when absent readings are zeros.
            present: Which sensors deliver.
        """
        summaries = torch.stack([tokens[name].summary for name in self.sensors], dim=1)
        summaries = summaries.masked_fill(~present.unsqueeze(-1), 0.0)
        mixed = self.mix(summaries, tokens, present)
        lost = functional.linear((~present).to(summaries.dtype), self.missing.t(), self.offset)
        return Fused(mixed.features + lost, mixed.attention, mixed.gates, summaries)

    @abstractmethod
    def mix(
        self,
        summaries: Float[Tensor, "batch sensors dim"],
        tokens: Mapping[str, Tokens],
        present: Bool[Tensor, "batch sensors"],
    ) -> Mixed:
        """Bring the present senses together; what an absent one says must not matter."""

    @abstractmethod
    def own_parameters(self, sensor: str) -> list[nn.Parameter]:
        """Parameters that belong to `sensor` alone; those of different sensors are disjoint."""

    @torch.no_grad()
    def damp(self, sensor: str, bias: float = -4.0) -> None:
        """Shut `sensor` nearly, as a sense that has just been added should start.

        What the policy does with the sensor present becomes almost what it did with it absent: the missing
        token, which training without the sensor has made a part of every fused vector, stays in.

        Args:
            sensor: One of `sensors`.
            bias: Score of its gate; it lets about sigmoid(bias) through, 0.018 at -4.

        Raises:
            ConfigError: There is no such sensor.
        """
        if sensor not in self.sensors:
            raise unknown_name("sensor", sensor, self.sensors)
        m = self.sensors.index(sensor)
        self.offset += self.missing[m]
        self.missing[m] = 0.0
        self.shut(m, bias)

    @abstractmethod
    def shut(self, m: int, bias: float) -> None:
        """Let about sigmoid(bias) of sensor `m` through; the alternative's part of `damp`."""

    def pooled(
        self, weights: Float[Tensor, "batch sensors"], parts: Float[Tensor, "batch sensors width"]
    ) -> Float[Tensor, "batch features"]:
        """Weighted sum of the sensors' parts, stream by stream."""
        if len(self.streams) == 1:
            return einsum(weights, parts, "b m, b m d -> b d")
        sums = [
            einsum(weights[:, stream], parts[:, stream], "b m, b m d -> b d")
            if stream
            else torch.zeros_like(parts[:, 0])
            for stream in self.streams
        ]
        return torch.cat(sums, dim=-1)

    def alone(self, present: Bool[Tensor, "batch sensors"]) -> Float[Tensor, "batch sensors slots"]:
        """Attention of a fusion that has none: each present sensor on itself, the others on the null slot."""
        here = present.to(self.missing.dtype)
        itself = torch.eye(len(self.sensors), device=present.device) * here.unsqueeze(-1)
        return torch.cat([itself, 1.0 - here.unsqueeze(-1)], dim=-1)


def shares(
    scores: Float[Tensor, "batch sensors"], present: Bool[Tensor, "batch sensors"]
) -> Float[Tensor, "batch sensors"]:
    """Softmax over the present sensors; zero where nothing is present."""
    # With nothing present the softmax would spread over missing sensors; the mask keeps it at zero.
    return scores.masked_fill(~present, NEVER).softmax(-1) * present
