"""What every fusion has in common: two halves, missing tokens, streams, and what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sensorium.core.errors import unknown_name
from sensorium.nn.tokens import Tokens, TokenShape

NEVER = -1e9
"""Score of what must not be chosen; finite, so that a row without any choice stays a number."""


class Fused(NamedTuple):
    """The senses in one vector, and how they got there."""

    features: Float[Tensor, "*batch features"]
    attention: Float[Tensor, "*batch sensors slots"]
    """Attention mass that each sensor puts on each sensor's tokens; the last slot is the null slot, on which
    an absent sensor is all. A fusion without attention: a present sensor is all on itself."""
    gates: Float[Tensor, "*batch sensors"]
    """Share of each sensor in the fused vector; sums to 1 over the present ones, 0 where nothing is present.
    A fusion without gates: equal shares."""
    summaries: Float[Tensor, "*batch sensors dim"]
    """Each sensor's own encoding, before other senses mix in; zero where it is absent."""


class Prepared(NamedTuple):
    """What a fusion makes of the senses before it asks which are present: dear, and the same for any set."""

    summaries: Float[Tensor, "batch sensors dim"]
    """Each sensor's own encoding, present or not."""
    parts: tuple[Float[Tensor, "batch ..."], ...]
    """What the alternative needs besides."""

    def at(self, rows: Tensor) -> "Prepared":
        """Gather rows."""
        parts = tuple(part.index_select(0, rows) for part in self.parts)
        return Prepared(self.summaries.index_select(0, rows), parts)


class Mixed(NamedTuple):
    """What an alternative computes, before the tokens of missing sensors are added."""

    features: Float[Tensor, "*batch features"]
    attention: Float[Tensor, "*batch sensors slots"]
    gates: Float[Tensor, "*batch sensors"]


class Fusion(nn.Module, ABC):
    """Base of all alternatives: features = mix(prepare(tokens), presence) + sum of missing tokens.

    All that does not depend on presence is in `prepare`, so that many sets of senses can be fused for little
    more than the price of one. An absent sensor carries no weight in `mix`; its learned missing token, a
    vector of the fused width, is added instead. With all sensors present nothing is added.

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
        return self.combine(self.prepare(tokens), present)

    @abstractmethod
    def prepare(self, tokens: Mapping[str, Tokens]) -> Prepared:
        """Take in every sensor, whether it is present or not."""

    def combine(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Fused:
        """Fuse what was read.

        Args:
            prepared: From `prepare`.
            present: Which sensors deliver; dimensions in front of the batch are sets of senses, each of which
                is fused as if it came alone.
        """
        mixed = self.mix(prepared, present)
        lost = functional.linear((~present).to(self.missing.dtype), self.missing.t(), self.offset)
        summaries = prepared.summaries.masked_fill(~present.unsqueeze(-1), 0.0)
        return Fused(mixed.features + lost, mixed.attention, mixed.gates, summaries)

    @abstractmethod
    def mix(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Mixed:
        """Bring the present senses together; what an absent one says must not matter."""

    def summaries(self, tokens: Mapping[str, Tokens]) -> Float[Tensor, "batch sensors dim"]:
        """Every sensor's summary."""
        return torch.stack([tokens[name].summary for name in self.sensors], dim=1)

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
        self, weights: Float[Tensor, "*sets batch sensors"], parts: Float[Tensor, "... batch sensors width"]
    ) -> Float[Tensor, "*sets batch features"]:
        """Weighted sum of the sensors' parts, stream by stream."""
        if len(self.streams) == 1:
            return torch.einsum("...m,...md->...d", weights, parts)
        sums = [
            torch.einsum("...m,...md->...d", weights[..., stream], parts[..., stream, :])
            for stream in self.streams
        ]
        return torch.cat(sums, dim=-1)

    def alone(self, present: Bool[Tensor, "*batch sensors"]) -> Float[Tensor, "*batch sensors slots"]:
        """Attention of a fusion that has none: each present sensor on itself, the others on the null slot."""
        here = present.to(self.missing.dtype)
        itself = torch.eye(len(self.sensors), device=present.device) * here.unsqueeze(-1)
        return torch.cat([itself, 1.0 - here.unsqueeze(-1)], dim=-1)


def shares(
    scores: Float[Tensor, "*batch sensors"], present: Bool[Tensor, "*batch sensors"]
) -> Float[Tensor, "*batch sensors"]:
    """Softmax over the present sensors; zero where nothing is present."""
    # With nothing present the softmax would spread over missing sensors; the mask keeps it at zero.
    return scores.masked_fill(~present, NEVER).softmax(-1) * present
