"""Cross-modal attention with a presence mask and a null slot, then a gate per sensor."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.nn.config import FusionConfig
from sensorium.nn.tokens import Tokens, TokenShape

_NEVER = -1e9  # finite, so that a row without any token stays a number


class Fused(NamedTuple):
    """The senses in one vector, and how they got there."""

    features: Float[Tensor, "batch hidden"]
    attention: Float[Tensor, "batch sensors slots"]
    """Attention mass that each sensor puts on each sensor's tokens; the last slot is the null slot."""
    gates: Float[Tensor, "batch sensors"]
    """Share of each sensor in the fused vector; sums to 1 over the present ones."""


class _Memory(nn.Module):
    """Keys and values of one sensor's tokens, applied to the queries instead of to the tokens.

    There are far more tokens than queries: q . (W_k x) = (W_k^T q) . x and sum_i a_i W_v x_i = W_v sum_i
    a_i x_i give multi-head attention without a projection of every token.
    """

    def __init__(self, shape: TokenShape, num_heads: int, head_dim: int) -> None:
        super().__init__()
        scale = shape.channels**-0.5
        self.key = nn.Parameter(torch.randn(num_heads, head_dim, shape.channels) * scale)
        self.value = nn.Parameter(torch.randn(num_heads, shape.channels, head_dim) * scale)
        self.position = nn.Parameter(torch.randn(shape.num_tokens, shape.channels) * 0.1)

    def scores(
        self, query: Float[Tensor, "batch sensors heads head_dim"], tokens: Float[Tensor, "batch tokens channels"]
    ) -> Float[Tensor, "batch queries tokens"]:
        """Scaled dot products; queries are (sensors, heads) flattened."""
        q = einsum(query, self.key, "b m h d, h d c -> b m h c").flatten(1, 2) * query.shape[-1] ** -0.5
        return torch.baddbmm(q @ self.position.t(), q, tokens.transpose(1, 2))

    def read(
        self, weights: Float[Tensor, "batch queries tokens"], tokens: Float[Tensor, "batch tokens channels"]
    ) -> Float[Tensor, "batch sensors heads head_dim"]:
        """Weighted sum of values."""
        context = torch.baddbmm(weights @ self.position, weights, tokens)
        context = rearrange(context, "b (m h) c -> b m h c", h=len(self.value))
        return einsum(context, self.value, "b m h c, h c d -> b m h d")


class CrossModalFusion(nn.Module):
    """Each sensor's summary asks every sensor's tokens; gates weigh the answers.

        h_m = LN(s_m + Attn(q_m, K, V, presence)),  g = softmax(w . h_m + log presence),
        z = sum_m g_m tanh(W_m h_m) * M

    A missing sensor's tokens are never attended to, its summary is a learned missing token and its gate
    is zero. The null slot keeps the softmax defined when nothing is present.

    Source: gates after Arevalo et al. 2017, arXiv:1702.01992 (gated multimodal unit), generalised to any
    number of sensors with a presence mask.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: Widths and heads.
    """

    def __init__(self, shapes: Mapping[str, TokenShape], config: FusionConfig) -> None:
        super().__init__()
        dim, heads = config.embed_dim, config.num_heads
        self.sensors = tuple(shapes)
        self.num_heads = heads
        self.missing = nn.Parameter(torch.randn(len(shapes), dim) * 0.02)
        self.query = nn.ModuleList(nn.Linear(dim, dim) for _ in shapes)
        self.memories = nn.ModuleList(_Memory(shape, heads, dim // heads) for shape in shapes.values())
        self.null_score = nn.Parameter(torch.zeros(len(shapes) * heads))
        self.attention_out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, 1)
        nn.init.zeros_(self.gate.weight)
        self.project = nn.ModuleList(nn.Linear(dim, config.hidden_dim) for _ in shapes)

    def forward(self, tokens: Mapping[str, Tokens], present: Bool[Tensor, "batch sensors"]) -> Fused:
        """Fuse one batch.

        Args:
            tokens: Every sensor's tokens; those of an absent sensor carry no weight. They must be finite,
                which holds when absent readings are zeros.
            present: Which sensors deliver.
        """
        summaries = torch.stack([tokens[name].summary for name in self.sensors], dim=1)
        summaries = torch.where(present.unsqueeze(-1), summaries, self.missing)
        attended, attention = self._attend(summaries, tokens, present)
        h = self.norm(summaries + attended)
        scores = self.gate(h).squeeze(-1).masked_fill(~present, _NEVER)
        # With nothing present the softmax would spread over missing tokens; the mask keeps it at zero.
        gates = scores.softmax(-1) * present
        parts = torch.stack([project(h[:, m]) for m, project in enumerate(self.project)], dim=1)
        features = einsum(gates, torch.tanh(parts), "b m, b m d -> b d") * len(self.sensors)
        return Fused(features, attention, gates)

    def _attend(
        self, summaries: Tensor, tokens: Mapping[str, Tokens], present: Tensor
    ) -> tuple[Tensor, Tensor]:
        query = torch.stack([query(summaries[:, m]) for m, query in enumerate(self.query)], dim=1)
        query = rearrange(query, "b m (h d) -> b m h d", h=self.num_heads)
        scores: list[Tensor] = []
        for m, (name, memory) in enumerate(zip(self.sensors, self.memories, strict=True)):
            score = memory.scores(query, tokens[name].values)
            absent = ~present[:, m, None, None]
            mask = tokens[name].mask
            scores.append(score.masked_fill(absent if mask is None else absent | ~mask[:, None], _NEVER))
        scores.append(self.null_score[:, None].expand(summaries.shape[0], -1, 1))
        lengths = [score.shape[-1] for score in scores]
        weights = torch.cat(scores, dim=-1).softmax(-1).split(lengths, dim=-1)
        answers = [
            memory.read(weight, tokens[name].values)
            for name, memory, weight in zip(self.sensors, self.memories, weights[:-1], strict=True)
        ]
        attended = self.attention_out(rearrange(torch.stack(answers).sum(0), "b m h d -> b m (h d)"))
        mass = torch.stack([weight.detach().sum(-1) for weight in weights], dim=-1)
        return attended, rearrange(mass, "b (m h) s -> b m h s", h=self.num_heads).mean(2)
