"""The policy of embodied agents: perception, memory, an actor for any action space and a critic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.core import ActionKind
from sensorium.envs.embodied.base import ActionSpec
from sensorium.nn.config import NetworkConfig
from sensorium.nn.fusion import Fused, Prepared
from sensorium.nn.recurrent import LSTMState, SegmentLSTM
from sensorium.nn.tokens import Tokens
from sensorium.policies.embodied.batch import PolicyState, SequenceBatch, steps_since_start
from sensorium.policies.embodied.distributions import ActionDistribution
from sensorium.policies.embodied.perception import Perception
from sensorium.representations.tensors import SensorInput, TensorObservation


class PolicyStep(NamedTuple):
    """What a policy makes of one moment."""

    distribution: ActionDistribution
    values: Float[Tensor, " batch"]
    state: PolicyState
    fused: Fused


class PolicyOutput(NamedTuple):
    """What a policy makes of whole sequences; rows are (time, batch) flattened, time first."""

    distribution: ActionDistribution
    values: Float[Tensor, " rows"]
    fused: Fused


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionHeads:
    """Sizes of the actor's heads."""

    num_options: int
    continuous_dim: int
    parameter_mask: Bool[np.ndarray, "options dims"] | None

    @classmethod
    def of(cls, action: ActionSpec) -> "ActionHeads":
        """Heads for an environment's action."""
        return cls(
            num_options=0 if action.kind is ActionKind.CONTINUOUS else action.num_options,
            continuous_dim=0 if action.kind is ActionKind.DISCRETE else action.continuous_dim,
            parameter_mask=action.parameter_mask if action.kind is ActionKind.HYBRID else None,
        )


class ActorCritic(nn.Module):
    """Senses -> fused vector -> LSTM -> action distribution and value.

    Args:
        inputs: The sensors, canonical order.
        heads: What an action is made of.
        config: Sizes and alternatives of the networks.
    """

    parameter_mask: Tensor | None

    def __init__(self, inputs: tuple[SensorInput, ...], heads: ActionHeads, config: NetworkConfig) -> None:
        super().__init__()
        self.inputs = inputs
        self.heads = heads
        self.config = config
        fused, hidden = config.fusion.features, config.fusion.hidden_dim
        self.perception = Perception(inputs, config)
        self.memory = SegmentLSTM(fused, hidden)
        self.actor = _mlp(fused + hidden, hidden, heads.num_options + heads.continuous_dim, gain=0.01)
        self.critic = _mlp(fused + hidden, hidden, 1, gain=1.0)
        self.log_std = nn.Parameter(torch.full((heads.continuous_dim,), -0.5))
        mask = None if heads.parameter_mask is None else torch.from_numpy(heads.parameter_mask)
        self.register_buffer("parameter_mask", mask, persistent=False)

    def initial_state(self, batch: int) -> PolicyState:
        """Memory of worlds that have seen nothing."""
        device = self.log_std.device
        clips = {
            sensor.name: torch.zeros(
                batch,
                self.perception.num_frames(sensor.name) - 1,
                *sensor.shape,
                dtype=getattr(torch, sensor.dtype),
                device=device,
            )
            for sensor in self.inputs
            if self.perception.num_frames(sensor.name) > 1
        }
        steps = torch.zeros(batch, dtype=torch.int64, device=device)
        return PolicyState(lstm=self.memory.initial_state(batch, device), clips=clips, steps=steps)

    def step(
        self,
        observation: TensorObservation,
        state: PolicyState,
        starts: Bool[Tensor, " batch"],
        table_tokens: Mapping[str, Tokens] | None = None,
    ) -> PolicyStep:
        """Perceive one moment.

        Args:
            observation: One moment in each world.
            state: Memory; worlds that start an episode forget it first.
            starts: Worlds whose episode begins with this observation.
            table_tokens: `perception.encode_tables(observation.tables)`, when it is at hand.
        """
        encoded = table_tokens or self.perception.encode_tables(observation.tables)
        tokens = {name: encoded[name].at(rows) for name, rows in observation.rows.items()}
        steps = torch.where(starts, 0, state.steps + 1)
        clips: dict[str, Tensor] = {}
        for name, reading in observation.dense.items():
            if name in state.clips:
                clip = torch.cat([state.clips[name], reading.unsqueeze(1)], dim=1)
                clips[name] = clip[:, 1:]
                # Not clip.shape[1], which is a tensor while the policy is traced for export.
                valid = _valid(steps, self.perception.num_frames(name))
                tokens[name] = self.perception.encode_dense(name, clip, valid)
            else:
                tokens[name] = self.perception.encode_dense(name, reading)
        fused = self.perception.fuse(tokens, observation.present, observation.age_s)
        remembered, lstm = self.memory.step(fused.features, state.lstm, starts)
        distribution, values = self._heads(torch.cat([fused.features, remembered], dim=-1))
        return PolicyStep(distribution, values, PolicyState(lstm=lstm, clips=clips, steps=steps), fused)

    def forward(self, batch: SequenceBatch) -> PolicyOutput:
        """Perceive whole sequences; equals `step` repeated, in one call per module."""
        return self.fuse_sequences(self.encode(batch), batch)

    def encode(self, batch: SequenceBatch) -> Prepared:
        """Encode every sensor; rows are (time, batch) flattened, time first. Presence plays no part."""
        encoded = self.perception.encode_tables(batch.tables)
        tokens = {name: encoded[name].at(rows.flatten()) for name, rows in batch.rows.items()}
        steps = steps_since_start(batch.starts, batch.state.steps).flatten()
        for name, readings in batch.dense.items():
            if name in batch.state.clips:
                frames = torch.cat([batch.state.clips[name].transpose(0, 1), readings])
                num_frames = self.perception.num_frames(name)
                clips = rearrange(frames.unfold(0, num_frames, 1), "t b h w c f -> (t b) f h w c")
                tokens[name] = self.perception.encode_dense(name, clips, _valid(steps, num_frames))
            else:
                tokens[name] = self.perception.encode_dense(name, readings.flatten(0, 1))
        return self.perception.prepare(tokens, batch.age_s.flatten(0, 1))

    def fuse_sequences(
        self,
        prepared: Prepared,
        batch: SequenceBatch,
        present: Bool[Tensor, "time batch sensors"] | None = None,
    ) -> PolicyOutput:
        """Fuse, remember and act on what `encode` returned.

        Args:
            prepared: Every sensor, from `encode(batch)`.
            batch: Episode starts and the memory before the first step.
            present: Which sensors to believe; None: those of the batch.
        """
        here = batch.present if present is None else present
        return self.fuse_sets(prepared, batch, here.unsqueeze(0))[0]

    def fuse_sets(
        self, prepared: Prepared, batch: SequenceBatch, present: Bool[Tensor, "sets time batch sensors"]
    ) -> list[PolicyOutput]:
        """What the policy makes of the same sequences given other sets of senses, e.g. with one taken away.

        As `fuse_sequences` for each set, in one call per module.

        Args:
            prepared: Every sensor, from `encode(batch)`.
            batch: Episode starts and the memory before the first step.
            present: Which sensors each set believes.
        """
        sets, time = len(present), len(batch.starts)
        fused = self.perception.combine(prepared, present.flatten(1, 2))
        sequence = rearrange(fused.features, "s (t b) d -> t (s b) d", t=time)
        state = LSTMState(*(x.repeat(sets, 1) for x in batch.state.lstm))
        remembered = self.memory(sequence, state, batch.starts.repeat(1, sets))
        remembered = rearrange(remembered, "t (s b) d -> s (t b) d", s=sets)
        distribution, values = self._heads(torch.cat([fused.features, remembered], dim=-1))
        return [
            PolicyOutput(distribution.at(s), values[s], Fused(*(part[s] for part in fused)))
            for s in range(sets)
        ]

    def _heads(self, features: Tensor) -> tuple[ActionDistribution, Tensor]:
        outputs = self.actor(features)
        options = self.heads.num_options
        logits = outputs[..., :options] if options else None
        mean = outputs[..., options:] if self.heads.continuous_dim else None
        log_std = None if mean is None else self.log_std.clamp(-3.0, 1.0).expand_as(mean)
        values = self.critic(features).squeeze(-1)
        return ActionDistribution(logits, mean, log_std, self.parameter_mask), values


def _valid(steps: Tensor, num_frames: int) -> Tensor:
    """(batch, num_frames): frames, oldest first, that belong to an episode `steps` old."""
    age = torch.arange(num_frames - 1, -1, -1, device=steps.device)
    return age <= steps.unsqueeze(-1)


def _mlp(in_dim: int, hidden: int, out_dim: int, *, gain: float) -> nn.Sequential:
    first, last = nn.Linear(in_dim, hidden), nn.Linear(hidden, out_dim)
    nn.init.orthogonal_(last.weight, gain)
    nn.init.zeros_(last.bias)
    return nn.Sequential(first, nn.Tanh(), last)
