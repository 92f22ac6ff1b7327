"""Which parameter belongs to which sense, and networks of every size and fusion."""

from pathlib import Path

import pytest
import torch
from cue_agents import ALL_SENSORS, SPACE_TIME, cue_config, cue_round, perturb

from sensorium.core import ActionKind, ConfigError, Modality, PolicyError
from sensorium.nn.config import NetworkConfig
from sensorium.policies.embodied import ActionHeads, ActorCritic
from sensorium.policies.embodied.perception import Perception
from sensorium.representations.tensors import SensorInput
from sensorium.trainers.config import TrainConfig

FUSIONS = ("cross_attention", "early", "late", "gated")
HEADS = ActionHeads(num_options=4, continuous_dim=0, parameter_mask=None)


def with_fusion(config: TrainConfig, kind: str) -> TrainConfig:
    return config.updated({"network": {"fusion": {"type": kind, "embed_dim": 16, "hidden_dim": 16}}})


def inputs(image_size: int) -> tuple[SensorInput, ...]:
    """Every kind of sensor, as an environment with such images would offer them."""

    def sensor(name: str, modality: Modality, *shape: int, dtype: str = "float32") -> SensorInput:
        tabled = modality is Modality.TEXT
        return SensorInput(
            name=name, modality=modality, shape=shape, dtype=dtype, tabled=tabled, normalise=False
        )

    return (
        sensor("rgb", Modality.IMAGE, image_size, image_size, 3, dtype="uint8"),
        sensor("depth", Modality.DEPTH, image_size, image_size, 1),
        sensor("speech", Modality.AUDIO, 50, 40),
        sensor("instruction", Modality.TEXT, 24, 384),
        sensor("proprio", Modality.PROPRIO, 7),
    )


@pytest.mark.parametrize("kind", FUSIONS)
def test_sensor_parameters_are_disjoint_and_hold_each_encoder(kind: str, cue_backend: None) -> None:
    perception = cue_round(with_fusion(cue_config(ALL_SENSORS), kind)).agent.policy.perception
    own = perception.sensor_parameters()
    assert tuple(own) == perception.names == ALL_SENSORS
    ids = [id(p) for parameters in own.values() for p in parameters]
    assert len(ids) == len(set(ids))
    for name, parameters in own.items():
        encoder = {id(p) for p in perception.encoders[name].parameters()}
        assert encoder < {id(p) for p in parameters}, "the encoder, and something of the fusion"
    shared = {name for name, p in perception.named_parameters() if id(p) not in ids}
    assert {"fusion.missing", "staleness"} <= shared


@pytest.mark.parametrize("kind", FUSIONS)
def test_only_the_parameters_of_senses_that_are_there_are_trained(kind: str, cue_backend: None) -> None:
    made = cue_round(with_fusion(cue_config(ALL_SENSORS), kind))
    policy = made.agent.policy
    perturb(policy)
    rollout = made.collector.collect(2)
    rollout.present[:, :, ALL_SENSORS.index("speech")] = False
    rollout.present[:, :, ALL_SENSORS.index("rgb")] = True
    policy(rollout.sequences(torch.arange(4))).values.square().sum().backward()
    own = policy.perception.sensor_parameters()
    assert all(p.grad is None or (p.grad == 0).all() for p in own["speech"])
    assert all(p.grad is not None and (p.grad != 0).any() for p in own["rgb"])


@pytest.mark.parametrize("kind", FUSIONS)
def test_a_damped_sense_hardly_speaks(kind: str, cue_backend: None) -> None:
    made = cue_round(with_fusion(cue_config(("rgb", "proprio")), kind))
    policy = made.agent.policy
    batch = made.collector.collect(4).sequences(torch.arange(8))
    everything = torch.ones_like(batch.present)
    alone = everything.clone()
    alone[..., 1] = False

    def distance() -> float:
        """How much the second sense changes what is remembered and acted on."""
        with torch.no_grad():
            encoded = policy.encode(batch)
            both, one = (policy.fuse_sequences(encoded, batch, p).fused.features for p in (everything, alone))
        return float((both - one).norm())

    before = distance()
    policy.perception.damp("proprio")
    assert distance() < 0.2 * before
    with pytest.raises(ConfigError, match="Did you mean 'proprio'"):
        policy.perception.damp("propio")


@pytest.mark.parametrize(("size", "image_size"), [("tiny", 48), ("small", 64), ("small", 96)])
@pytest.mark.parametrize("kind", FUSIONS)
def test_a_size_perceives(size: str, image_size: int, kind: str) -> None:
    network = NetworkConfig.model_validate({"size": size, "fusion": {"type": kind}})
    perception = Perception(inputs(image_size), network)
    tokens = perception.encode_tables({})
    for sensor in inputs(image_size):
        reading = torch.zeros(2, *sensor.shape, dtype=getattr(torch, sensor.dtype))
        frames = perception.num_frames(sensor.name)
        if sensor.tabled:
            tokens[sensor.name] = perception.encoders[sensor.name](reading, torch.ones(2, 24) > 0)
        elif frames > 1:
            clip = reading.unsqueeze(1).expand(-1, frames, -1, -1, -1)
            tokens[sensor.name] = perception.encode_dense(sensor.name, clip, torch.ones(2, frames) > 0)
        else:
            ears = reading.unsqueeze(1) if sensor.modality is Modality.AUDIO else reading
            tokens[sensor.name] = perception.encode_dense(sensor.name, ears)
    fused = perception.fuse(tokens, torch.ones(2, 5) > 0, torch.zeros(2, 5))
    assert fused.features.shape == (2, network.fusion.features)
    assert fused.summaries.shape == (2, 5, network.fusion.embed_dim)


def test_base_is_built_as_announced() -> None:
    """On the meta device: shapes without memory."""
    with torch.device("meta"):
        policy = ActorCritic(inputs(224), HEADS, NetworkConfig(size="base"))
    encoder = policy.perception.encoders["rgb"]
    assert encoder.token_shape == (14 * 14, 768)
    assert len(encoder.blocks) == 12  # type: ignore[arg-type]
    assert policy.memory.lstm.input_size == 2 * 768
    assert policy.memory.lstm.hidden_size == 1024
    assert policy.perception.fusion.streams == [[0, 1], [2, 3, 4]], "sight, and the other senses"
    vit = sum(p.numel() for p in encoder.blocks.parameters())  # type: ignore[union-attr]
    assert 110e6 < vit < 125e6  # ViT-Base, 85 M, and attention over time


@pytest.mark.parametrize(
    ("size", "image_size", "says"),
    [
        ("base", 48, r"'rgb' is 48x48 pixels; .* size 'base' is made for sides of 224\. Set env\.image_size"),
        ("small", 24, "made for sides of 48 to 128"),
        ("small", 60, r"not a multiple of 8, .* Set env\.image_size to a multiple, e\.g\. 64"),
    ],
)
def test_images_that_do_not_fit_the_size_are_refused(size: str, image_size: int, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Perception(inputs(image_size), NetworkConfig(size=size))  # type: ignore[arg-type]


def test_another_image_size_can_be_asked_for() -> None:
    network = NetworkConfig.model_validate(
        {
            "size": "base",
            "image_sizes": None,
            "vision": {"depth": 1},
            "depth": {"channels": [8, 8], "patch_size": 8},
        }
    )
    perception = Perception(inputs(48)[:2], network)
    assert perception.encoders["rgb"].token_shape == (9, 768)


def test_encoders_start_from_the_weights_that_their_configs_name(tmp_path: Path, cue_backend: None) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.ViTModel(
        transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=16,
            patch_size=8,
        )
    )
    model.save_pretrained(tmp_path)
    vit = SPACE_TIME.model_copy(
        update={"pretrained": str(tmp_path), "cls_token": "clip", "layer_norm_eps": 1e-12}
    )
    policy = cue_round(cue_config(("rgb", "depth"), ActionKind.DISCRETE, vision=vit)).agent.policy
    expected = model.layers[0].mlp.fc1.weight
    assert not torch.equal(policy.perception.encoders["rgb"].blocks[0].mlp[0].weight, expected)
    policy.perception.load_pretrained()
    for name in ("rgb", "depth"):
        assert torch.equal(policy.perception.encoders[name].blocks[0].mlp[0].weight, expected)
    model.config.num_hidden_layers = 2
    model.config.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"lack .* tensors|--network\.vision\.depth 2"):
        policy.perception.load_pretrained()
