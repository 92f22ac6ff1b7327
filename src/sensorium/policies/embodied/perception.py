"""All senses of a policy: filters, encoders and fusion, from raw tensors to one vector."""

from collections.abc import Mapping
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sensorium.core import Modality, PolicyError
from sensorium.nn.config import ConvConfig, NetworkConfig, SpaceTimeConfig
from sensorium.nn.conv import ConvEncoder
from sensorium.nn.fusion import Fused, Prepared, build_fusion
from sensorium.nn.normalise import RunningNorm
from sensorium.nn.pretrained import load_pretrained
from sensorium.nn.sound import SoundEncoder, TextProjection, VectorEncoder
from sensorium.nn.space_time import SpaceTimeEncoder
from sensorium.nn.tokens import Tokens, TokenShape
from sensorium.representations.tensors import SensorInput, TableRows

_SIGHT = (Modality.IMAGE, Modality.DEPTH)


class Perception(nn.Module):
    """Encodes every sensor and fuses the tokens.

    Args:
        inputs: The sensors, canonical order.
        config: Sizes and alternatives.

    Raises:
        PolicyError: A sensor's shape does not suit its encoder.
    """

    def __init__(self, inputs: tuple[SensorInput, ...], config: NetworkConfig) -> None:
        super().__init__()
        self.inputs = {sensor.name: sensor for sensor in inputs}
        self.names = tuple(self.inputs)
        self.filters = nn.ModuleDict(
            {sensor.name: RunningNorm(_num_features(sensor)) for sensor in inputs if sensor.normalise}
        )
        self.encoders = nn.ModuleDict({sensor.name: _encoder(sensor, config) for sensor in inputs})
        self.staleness = nn.Parameter(torch.zeros(len(inputs), config.fusion.embed_dim))
        shapes = {name: cast(TokenShape, encoder.token_shape) for name, encoder in self.encoders.items()}
        sight = [sensor.name for sensor in inputs if sensor.modality in _SIGHT]
        self.fusion = build_fusion(shapes, config.fusion, sight)

    def num_frames(self, name: str) -> int:
        """Frames that the encoder of `name` looks at: 1, or the length of a clip."""
        return int(getattr(self.encoders[name], "num_frames", 1))

    def encode_tables(self, tables: Mapping[str, TableRows]) -> dict[str, Tokens]:
        """Encode each distinct reading of the tabled sensors once."""
        return {name: self._encode_table(name, table) for name, table in tables.items()}

    def _encode_table(self, name: str, table: TableRows) -> Tokens:
        encoder = self.encoders[name]
        if isinstance(encoder, TextProjection):
            return encoder(table.values, table.mask)  # type: ignore[no-any-return]
        values = self._filtered(name, table.values)
        if isinstance(encoder, SoundEncoder) and values.ndim == 3:
            values = values.unsqueeze(1)  # one ear
        return encoder(values)  # type: ignore[no-any-return]

    def encode_dense(
        self, name: str, reading: Tensor, valid: Bool[Tensor, "batch frames"] | None = None
    ) -> Tokens:
        """Encode one sensor.

        Args:
            name: A dense sensor.
            reading: (batch, ...) in the sensor's layout; (batch, frames, H, W, C) for a clip encoder.
            valid: For a clip encoder: which frames belong to the running episode.
        """
        values = self._filtered(name, reading)
        encoder = self.encoders[name]
        if isinstance(encoder, SpaceTimeEncoder):
            return encoder(values, valid)  # type: ignore[no-any-return]
        return encoder(values)  # type: ignore[no-any-return]

    def prepare(self, tokens: Mapping[str, Tokens], age_s: Float[Tensor, "batch sensors"]) -> Prepared:
        """All that fusion does whoever is present; the age of a reading shifts its summary."""
        aged = {
            name: tokens[name]._replace(summary=tokens[name].summary + age_s[:, m, None] * self.staleness[m])
            for m, name in enumerate(self.names)
        }
        return self.fusion.prepare(aged)

    def combine(self, prepared: Prepared, present: Bool[Tensor, "*sets batch sensors"]) -> Fused:
        """Fuse what `prepare` returned; dimensions in front of the batch are sets of senses."""
        return self.fusion.combine(prepared, present)

    def fuse(
        self,
        tokens: Mapping[str, Tokens],
        present: Bool[Tensor, "batch sensors"],
        age_s: Float[Tensor, "batch sensors"],
    ) -> Fused:
        """Both at once."""
        return self.combine(self.prepare(tokens, age_s), present)

    def sensor_parameters(self) -> dict[str, list[nn.Parameter]]:
        """Sensor -> parameters that it alone has: its encoder, and what reads it in the fusion.

        Lists of different sensors are disjoint. What is in none of them is shared by all senses.
        """
        return {
            name: [*self.encoders[name].parameters(), *self.fusion.own_parameters(name)]
            for name in self.names
        }

    def damp(self, sensor: str, bias: float = -4.0) -> None:
        """Shut a sense nearly, in whatever way the fusion has; for a sense that has just been added.

        Args:
            sensor: Its name.
            bias: Score of its gate; about sigmoid(bias) of it gets through. Training opens it again.

        Raises:
            ConfigError: There is no such sensor.
        """
        self.fusion.damp(sensor, bias)

    def load_pretrained(self) -> None:
        """Start the encoders from the pretrained weights that their configs name, if any.

        Only a new run needs this: a checkpoint holds all weights.

        Raises:
            ConfigError: A model cannot be found or read, is of another type, or differs in a size.
            MissingDependencyError: A model is named, and transformers is not installed.
        """
        for name, encoder in self.encoders.items():
            if isinstance(encoder, SpaceTimeEncoder) and encoder.config.pretrained is not None:
                field = "vision" if self.inputs[name].modality is Modality.IMAGE else "depth"
                load_pretrained(encoder, encoder.config.pretrained, setting=f"network.{field}")

    def update_filters(self, name: str, readings: Tensor) -> None:
        """Let the running mean and variance of `name` see more readings; nothing where it has no filter."""
        if name in self.filters:
            running = self.filters[name]
            assert isinstance(running, RunningNorm)
            running.update(readings)

    def _filtered(self, name: str, values: Tensor) -> Tensor:
        return self.filters[name](values) if name in self.filters else values


def _num_features(sensor: SensorInput) -> int:
    return 1 if sensor.modality in _SIGHT else sensor.shape[-1]


def _encoder(sensor: SensorInput, config: NetworkConfig) -> nn.Module:
    dim = config.fusion.embed_dim
    shape = sensor.shape
    if sensor.modality in _SIGHT:
        vision = config.vision if sensor.modality is Modality.IMAGE else config.depth
        return _vision_encoder(sensor, vision, config)
    if sensor.modality is Modality.AUDIO:
        if len(shape) not in (2, 3) or shape[-1] > 512:
            raise PolicyError(
                f"Sensor {sensor.name!r} has shape {shape}; the sound encoder reads log-mel frames "
                f"(frames, mels) or (ears, frames, mels). Leave waveform off to train a policy."
            )
        ears, frames, mels = shape if len(shape) == 3 else (1, *shape)
        return SoundEncoder(config.sound, (ears, frames, mels), dim)
    if sensor.modality is Modality.TEXT:
        return TextProjection((shape[0], shape[1]), dim)
    return VectorEncoder(shape[-1], dim)


def _vision_encoder(
    sensor: SensorInput, config: ConvConfig | SpaceTimeConfig, network: NetworkConfig
) -> nn.Module:
    height, width, channels = sensor.shape
    smallest, largest = network.image_sizes or (1, max(height, width))
    if not smallest <= min(height, width) <= max(height, width) <= largest:
        sides = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
        raise PolicyError(
            f"Sensor {sensor.name!r} is {height}x{width} pixels; a network of size {network.size!r} is made "
            f"for sides of {sides}. Set env.image_size to {sides}, or network.image_sizes to null to try it "
            f"as it is."
        )
    cell = config.cell_size
    if height % cell or width % cell:
        nearest = max(round(height / cell), 1) * cell
        raise PolicyError(
            f"Sensor {sensor.name!r} is {height}x{width} pixels, not a multiple of {cell}, the "
            f"side of a token of its {config.type} encoder. Set env.image_size to a multiple, e.g. "
            f"{nearest}, or change the encoder's patch_size."
        )
    dim = network.fusion.embed_dim
    if isinstance(config, SpaceTimeConfig):
        return SpaceTimeEncoder(config, (height, width), channels, dim)
    return ConvEncoder(config, (height, width), channels, dim)
