"""Cross-modal attention with a presence mask and a null slot, then a gate per sensor."""

from collections.abc import Collection, Mapping

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.nn.config import CrossAttentionConfig
from sensorium.nn.fusion.base import NEVER, Fusion, Mixed, Prepared, shares
from sensorium.nn.tokens import Tokens, TokenShape


class CrossModalFusion(Fusion):
    """Each sensor's summary asks every sensor's tokens; gates weigh the answers.

        h_m = LN(s_m + Attn(q_m, K, V, presence)),  g = softmax(w . h_m + b_m + log presence),
        s = M * sum_m g_m tanh(W_m h_m),  z = s + MLP(s)

    The softmax over all tokens is taken in two steps, which is the same: first among the tokens of each
    sensor, then among the sensors that are present, each with the logarithm of its tokens' sum of
    exponentials as its score. Only the second step depends on presence, so that another set of senses costs
    no look at tokens.

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

    nowhere: Tensor
    """Attention of an absent sensor: all on the null slot."""

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
        nowhere = torch.cat([torch.zeros(len(shapes)), torch.ones(1)])
        self.register_buffer("nowhere", nowhere, persistent=False)

    def prepare(self, tokens: Mapping[str, Tokens]) -> Prepared:
        """Ask each sensor's tokens by themselves."""
        summaries = self.summaries(tokens)
        queries = torch.stack([query(summaries[:, m]) for m, query in enumerate(self.query)], dim=1)
        asked = torch.split(queries, self.widths, dim=-1)
        outs = torch.split(self.attention_out.weight, self.widths, dim=-1)
        scores: list[Tensor] = []
        answers: list[Tensor] = []
        for m, name in enumerate(self.sensors):
            score, answer = self._ask(asked[m], tokens[name], self.position[m])
            scores.append(score + self.attention_bias[m])
            out = rearrange(outs[m], "d (h c) -> h c d", h=self.num_heads)
            answers.append(torch.einsum("bmhc,hcd->bmhd", answer, out))
        return Prepared(summaries, (torch.stack(scores, dim=2), torch.stack(answers, dim=2)))

    def mix(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Mixed:
        """Attend, then gate."""
        attended, attention = self._attend(prepared, present)
        h = self.norm(prepared.summaries + attended)
        gates = shares(self.gate(h).squeeze(-1) + self.gate_bias, present)
        parts = torch.stack([project(h[..., m, :]) for m, project in enumerate(self.project)], dim=-2)
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
        self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]
    ) -> tuple[Float[Tensor, "*sets batch sensors dim"], Float[Tensor, "*sets batch sensors slots"]]:
        """Share each sensor's attention out among the present ones and the null slot, whose answer is 0."""
        scores, answers = prepared.parts
        null = self.null_score.view(len(self.sensors), 1, self.num_heads)
        absent = ~present[..., None, :, None]
        slots = [scores.masked_fill(absent, NEVER), null.expand(*present.shape, 1, self.num_heads)]
        weights = torch.cat(slots, dim=-2).softmax(-2)
        given = weights[..., :-1, :].flatten(-2)
        attended = torch.einsum("...k,...kd->...d", given, answers.flatten(2, 3)) + self.attention_out.bias
        return attended, torch.where(present.unsqueeze(-1), weights.detach().mean(-1), self.nowhere)

    def _ask(
        self, queries: Float[Tensor, "batch sensors width"], tokens: Tokens, position: Tensor
    ) -> tuple[Float[Tensor, "batch sensors heads"], Float[Tensor, "batch sensors heads channels"]]:
        """Every sensor's question to the tokens of one: log of the sum of exponentials, and the answer.

        There are far more tokens than queries, so the key and value projections are applied to the
        queries and to the answers: q . (W_k x) = (W_k^T q) . x, and sum_i a_i W_v x_i = W_v sum_i a_i x_i.
        """
        placed = tokens.values + position
        q = rearrange(queries, "b m (h c) -> b (m h) c", h=self.num_heads) * placed.shape[-1] ** -0.5
        score = torch.bmm(q, placed.transpose(1, 2))
        if tokens.mask is not None:
            score = score.masked_fill(~tokens.mask[:, None], NEVER)
        answer = torch.bmm(score.softmax(-1), placed)
        total = score.logsumexp(-1)
        return (
            rearrange(total, "b (m h) -> b m h", h=self.num_heads),
            rearrange(answer, "b (m h) c -> b m h c", h=self.num_heads),
        )


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
