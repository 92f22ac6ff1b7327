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
        self.widths = [heads * shape.channels for shape in shapes.values()]
        self.missing = nn.Parameter(torch.randn(len(shapes), dim) * 0.02)
        self.query = nn.ModuleList(nn.Linear(dim, sum(self.widths)) for _ in shapes)
        self.position = nn.ParameterList(torch.randn(*shape) * 0.1 for shape in shapes.values())
        self.null_score = nn.Parameter(torch.zeros(len(shapes) * heads))
        self.attention_out = nn.Linear(sum(self.widths), dim)
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
        """Multi-head attention of summaries over tokens.

        There are far more tokens than queries, so the key and value projections are applied to the
        queries and to the answers: q . (W_k x) = (W_k^T q) . x, and sum_i a_i W_v x_i = W_v sum_i a_i x_i.
        """
        queries = torch.stack([query(summaries[:, m]) for m, query in enumerate(self.query)], dim=1)
        per_sensor = torch.split(queries, self.widths, dim=-1)
        scores: list[Tensor] = []
        for m, (name, query) in enumerate(zip(self.sensors, per_sensor, strict=True)):
            values, mask, _ = tokens[name]
            q = rearrange(query, "b m (h c) -> b (m h) c", h=self.num_heads) * values.shape[-1] ** -0.5
            score = torch.baddbmm(q @ self.position[m].t(), q, values.transpose(1, 2))
            absent = ~present[:, m, None, None]
            scores.append(score.masked_fill(absent if mask is None else absent | ~mask[:, None], _NEVER))
        scores.append(self.null_score[:, None].expand(summaries.shape[0], -1, 1))
        lengths = [score.shape[-1] for score in scores]
        weights = torch.split(torch.cat(scores, dim=-1).softmax(-1), lengths, dim=-1)
        answers: list[Tensor] = []
        for m, name in enumerate(self.sensors):
            answer = torch.baddbmm(weights[m] @ self.position[m], weights[m], tokens[name].values)
            answers.append(rearrange(answer, "b (m h) c -> b m (h c)", h=self.num_heads))
        attended = self.attention_out(torch.cat(answers, dim=-1))
        mass = torch.stack([weight.detach().sum(-1) for weight in weights], dim=-1)
        return attended, rearrange(mass, "b (m h) s -> b m h s", h=self.num_heads).mean(2)
