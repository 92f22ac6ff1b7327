"""Cross-modal attention with a presence mask and a null slot, then a gate per sensor."""

from collections.abc import Collection, Mapping

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sensorium.nn.config import CrossAttentionConfig
from sensorium.nn.fusion.base import NEVER, Fusion, Mixed, shares
from sensorium.nn.tokens import Tokens, TokenShape


class CrossModalFusion(Fusion):
    """Each sensor's summary asks every sensor's tokens; gates weigh the answers.

        h_m = LN(s_m + Attn(q_m, K, V, presence)),  g = softmax(w . h_m + b_m + log presence),
        s = M * sum_m g_m tanh(W_m h_m),  z = s + MLP(s)

    The MLP sees all senses at once (of a stream). Without it, what two senses say together (this is red, and
    red is asked for) is left to the memory and the heads, and is learnt at half the speed or slower. A
    missing sensor's tokens are never attended to and its gate is zero. The null slot keeps the softmax
    defined when nothing is present.

    Source: gates after Arevalo et al. 2017, arXiv:1702.01992 (gated multimodal unit), generalised to any
    number of sensors with a presence mask.

    Args:
        shapes: Sensor -> number and width of its tokens, canonical order.
        config: Widths and heads.
        sight: Sensors of the first of two streams.
    """

    def __init__(
        self, shapes: Mapping[str, TokenShape], config: CrossAttentionConfig, sight: Collection[str] = ()
    ) -> None:
        super().__init__(shapes, config.features, sight=sight, streams=config.streams)
        dim, heads = config.embed_dim, config.num_heads
        self.num_heads = heads
        self.widths = [heads * shape.channels for shape in shapes.values()]
        self.query = nn.ModuleList(nn.Linear(dim, sum(self.widths)) for _ in shapes)
        self.position = nn.ParameterList(torch.randn(*shape) * 0.1 for shape in shapes.values())
        self.null_score = nn.Parameter(torch.zeros(len(shapes) * heads))
        self.attention_bias = nn.Parameter(torch.zeros(len(shapes)))
        self.attention_out = nn.Linear(sum(self.widths), dim)
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, 1, bias=False)
        nn.init.zeros_(self.gate.weight)
        self.gate_bias = nn.Parameter(torch.zeros(len(shapes)))
        self.project = nn.ModuleList(nn.Linear(dim, config.stream_width) for _ in shapes)
        width = config.stream_width
        self.joint = nn.ModuleList(_joint_mlp(width) for _ in self.streams)

    def mix(
        self,
        summaries: Float[Tensor, "batch sensors dim"],
        tokens: Mapping[str, Tokens],
        present: Bool[Tensor, "batch sensors"],
    ) -> Mixed:
        """Attend, then gate."""
        attended, attention = self._attend(summaries, tokens, present)
        h = self.norm(summaries + attended)
        gates = shares(self.gate(h).squeeze(-1) + self.gate_bias, present)
        parts = torch.stack([project(h[:, m]) for m, project in enumerate(self.project)], dim=1)
        together = self.pooled(gates, torch.tanh(parts)) * len(self.sensors)
        streams = together.chunk(len(self.streams), dim=-1)
        joined = [stream + joint(stream) for joint, stream in zip(self.joint, streams, strict=True)]
        return Mixed(torch.cat(joined, dim=-1), attention, gates)

    def own_parameters(self, sensor: str) -> list[nn.Parameter]:
        """Query, token positions and projection of `sensor`."""
        m = self.sensors.index(sensor)
        own = [*self.query[m].parameters(), *self.project[m].parameters()]
        return [*own, list(self.position.parameters())[m]]

    def shut(self, m: int, bias: float) -> None:
        """Lower the gate of sensor `m`, and the other senses' attention to its tokens."""
        self.gate_bias[m] = bias
        self.attention_bias[m] = bias

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
            position = self.position[m]
            place = functional.linear(q, position, self.attention_bias[m].expand(len(position)))
            score = torch.baddbmm(place, q, values.transpose(1, 2))
            absent = ~present[:, m, None, None]
            scores.append(score.masked_fill(absent if mask is None else absent | ~mask[:, None], NEVER))
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


def _joint_mlp(width: int) -> nn.Sequential:
    """A residual branch: it adds nothing before it has learnt something."""
    hidden, out = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
    nn.init.zeros_(out.weight)
    nn.init.zeros_(out.bias)
    return nn.Sequential(hidden, nn.ReLU(), out)


def num_parameters(shapes: Mapping[str, TokenShape], config: CrossAttentionConfig) -> int:
    """Number of parameters of a `CrossModalFusion`, without building it."""
    sensors, dim, heads = len(shapes), config.embed_dim, config.num_heads
    asked = heads * sum(shape.channels for shape in shapes.values())
    positions = sum(shape.num_tokens * shape.channels for shape in shapes.values())
    attention = sensors * (dim + 1) * asked + (asked + 1) * dim + positions + sensors * (heads + 1)
    gates = 2 * dim + dim + sensors + sensors * (dim + 1) * config.stream_width
    width = config.stream_width
    joint = config.streams * ((width + 1) * 2 * width + (2 * width + 1) * width)
    return attention + gates + joint + sensors * config.features
