"""Cross-modal attention with a presence mask and a null slot, then a gate per sensor."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.nn.config import FusionConfig
from sensorium.nn.tokens import Tokens


class Fused(NamedTuple):
    """The senses in one vector, and how they got there."""

    features: Float[Tensor, "batch hidden"]
    attention: Float[Tensor, "batch queries slots"]
    """Attention mass that each sensor puts on each sensor's tokens; the last slot is the null slot."""
    gates: Float[Tensor, "batch sensors"]
    """Share of each sensor in the fused vector; sums to 1 over the present ones."""


class CrossModalFusion(nn.Module):
    """Each sensor's summary asks every sensor's tokens; gates weigh the answers.

        h_m = LN(s_m + Attn(q_m, K, V, presence)),  g = softmax(w . h_m + log presence),
        z = sum_m g_m tanh(W_m h_m) * M

    A missing sensor's tokens are never attended to, its summary is a learned missing token and its gate
    is zero. The null slot keeps the softmax defined when nothing is present.

    Source: gates after Arevalo et al. 2017, arXiv:1702.01992 (gated multimodal unit), generalised to any
    number of sensors with a presence mask.

    Args:
        sensors: Sensor names, canonical order.
        config: Widths and heads.
    """

    def __init__(self, sensors: tuple[str, ...], config: FusionConfig) -> None:
        super().__init__()
        dim = config.embed_dim
        self.sensors = sensors
        self.num_heads = config.num_heads
        self.missing = nn.Parameter(torch.randn(len(sensors), dim) * 0.02)
        self.kind = nn.Parameter(torch.randn(len(sensors), dim) * 0.02)
        self.null = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.query = nn.ModuleList(nn.Linear(dim, dim) for _ in sensors)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.attention_out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, 1)
        nn.init.zeros_(self.gate.weight)
        self.project = nn.ModuleList(nn.Linear(dim, config.hidden_dim) for _ in sensors)

    def forward(
        self, tokens: Mapping[str, Tokens], present: Bool[Tensor, "batch sensors"]
    ) -> Fused:
        """Fuse one batch.

        Args:
            tokens: Every sensor's tokens; those of an absent sensor are ignored, whatever they hold.
            present: Which sensors deliver.
        """
        here = present.unsqueeze(-1)
        summaries = torch.stack([tokens[name].summary for name in self.sensors], dim=1)
        summaries = torch.where(here, summaries, self.missing)
        attended, attention = self._attend(summaries, tokens, present)
        h = self.norm(summaries + attended)
        scores = self.gate(h).squeeze(-1).masked_fill(~present, -1e9)
        # With nothing present the softmax would spread over missing tokens; the mask keeps it at zero.
        gates = scores.softmax(-1) * present
        parts = torch.stack([project(h[:, m]) for m, project in enumerate(self.project)], dim=1)
        features = einsum(gates, torch.tanh(parts), "b m, b m d -> b d") * len(self.sensors)
        return Fused(features, attention, gates)

    def _attend(
        self, summaries: Tensor, tokens: Mapping[str, Tokens], present: Tensor
    ) -> tuple[Tensor, Tensor]:
        batch = summaries.shape[0]
        slots = [tokens[name].values + self.kind[m] for m, name in enumerate(self.sensors)]
        masks = [tokens[name].mask & present[:, m, None] for m, name in enumerate(self.sensors)]
        lengths = [slot.shape[1] for slot in slots]
        slots.append(self.null.expand(batch, 1, -1))
        masks.append(torch.ones(batch, 1, dtype=torch.bool, device=present.device))
        # A masked token may hold anything, NaN included: replace it, since 0 * NaN is NaN.
        mask = torch.cat(masks, dim=1)
        memory = torch.where(mask.unsqueeze(-1), torch.cat(slots, dim=1), 0.0)
        q = torch.stack([query(summaries[:, m]) for m, query in enumerate(self.query)], dim=1)
        q = rearrange(q, "b m (h d) -> b h m d", h=self.num_heads)
        k, v = rearrange(self.key_value(memory), "b n (k h d) -> k b h n d", k=2, h=self.num_heads)
        scores = (q @ k.transpose(-1, -2)) * (q.shape[-1] ** -0.5)
        weights = scores.masked_fill(~mask[:, None, None, :], -1e9).softmax(-1)
        attended = self.attention_out(rearrange(weights @ v, "b h m d -> b m (h d)"))
        mean = weights.mean(1)
        attention = torch.stack([part.sum(-1) for part in mean.split([*lengths, 1], dim=-1)], dim=-1)
        return attended, attention
