"""From a config to the objects it describes."""

from dataclasses import dataclass

import torch

from sensorium.core import ConfigError, Modality, derive_seed
from sensorium.envs.embodied import MultiModalVectorEnv, SensorSpec
from sensorium.envs.embodied.augment import AugmentConfig
from sensorium.features.base import FrozenTextEncoder
from sensorium.features.text_encoder import build_text_encoder
from sensorium.policies.embodied import ActionHeads, ActorCritic
from sensorium.policies.embodied.inputs import sensor_inputs
from sensorium.representations.tensors import TensorRepresenter
from sensorium.trainers.config import TrainConfig


@dataclass(slots=True, kw_only=True)
class Agent:
    """A policy and what turns observations into its input."""

    policy: ActorCritic
    representer: TensorRepresenter
    device: torch.device


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA when there is one, else the CPU.

    Raises:
        ConfigError: The device does not exist.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"Device {name!r} is not available ({error}). Use cpu, cuda or auto.") from error
    return device


def build_env(
    config: TrainConfig, num_envs: int | None = None, *, augmented: bool = False
) -> MultiModalVectorEnv:
    """Build the worlds of a run.

    Args:
        config: The run.
        num_envs: Overrides the algorithm's number.
        augmented: Whether perception is augmented, as it is in training only.
    """
    env = config.env if augmented else config.env.model_copy(update={"augment": AugmentConfig()})
    return MultiModalVectorEnv(env, num_envs or config.algo.num_envs)


def build_agent(config: TrainConfig, env: MultiModalVectorEnv) -> Agent:
    """Build a freshly initialised policy for `env`; the run's seed decides its parameters."""
    device = choose_device(config.device)
    text_encoder = _text_encoder(config, env.worlds.sensors, device)
    inputs = sensor_inputs(env.worlds.sensors, text_encoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.seed, "parameters"))
        policy = ActorCritic(inputs, ActionHeads.of(env.worlds.action), config.network).to(device)
    return Agent(policy=policy, representer=TensorRepresenter(inputs, text_encoder, device), device=device)


def _text_encoder(
    config: TrainConfig, sensors: dict[str, SensorSpec], device: torch.device
) -> FrozenTextEncoder | None:
    if not any(spec.modality is Modality.TEXT for spec in sensors.values()):
        return None
    return build_text_encoder(config.text, device=str(device))
