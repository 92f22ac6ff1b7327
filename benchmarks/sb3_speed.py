"""The peers of `ppo_speed`: PPO of Stable-Baselines3 and RecurrentPPO of sb3-contrib.

They get what makes them fast and comparable:

- our encoder modules (`ConvEncoder` for rgb and depth, `SoundEncoder` for speech) as features extractor,
  their summaries concatenated and projected to the width of our LSTM; no cross-modal attention, no
  observation filters, which ours pays for and they do not;
- heads of the same width; RecurrentPPO shares one LSTM of our width between actor and critic (its default of
  two would be slower);
- their own image path: uint8 height x width x channel, transposed and divided by 255 by the library.

Worlds reset in the same step, as Stable-Baselines3 expects, with `terminal_observation` and
`TimeLimit.truncated`. That costs a second look at all worlds whenever an episode ends (2 to 3 % of its time).
Every step that is counted is an agent's own; on our side too, where reset steps are left out.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from ppo_speed import SEED, Sizes, config, parameters
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from timing import Result, speed
from torch import Tensor, nn

from sensorium.core import EpisodeStatus, Stopwatch
from sensorium.envs.embodied.config import EmbodiedEnvConfig
from sensorium.envs.embodied.worlds import Worlds
from sensorium.nn import ConvEncoder, SoundEncoder
from sensorium.nn.config import ConvConfig, NetworkConfig

Observation = dict[str, NDArray[Any]]


class ArenaVecEnv(VecEnv):
    """Our worlds as Stable-Baselines3 wants them: a flat dict of arrays, autoreset in the same step.

    Args:
        env: Task and senses.
        num_envs: How many worlds.
    """

    def __init__(self, env: EmbodiedEnvConfig, num_envs: int) -> None:
        self.worlds = Worlds(env, num_envs)
        self._names = tuple(self.worlds.sensors)
        space = gymnasium.spaces.Dict({name: spec.space for name, spec in self.worlds.sensors.items()})
        super().__init__(num_envs, space, self.worlds.action_space)
        self._nobody = np.zeros(num_envs, np.bool_)
        self._everyone = np.ones(num_envs, np.bool_)
        self._chosen: NDArray[np.int64] = np.zeros(num_envs, np.int64)

    def _observe(self, started: NDArray[np.bool_]) -> Observation:
        observation = self.worlds.observe(started)
        return {name: observation[name] for name in self._names}

    def reset(self) -> Observation:
        """Start new episodes everywhere."""
        self.worlds.seed(np.arange(self.num_envs, dtype=np.uint64) + np.uint64(SEED))
        self.worlds.reset(self._everyone)
        return self._observe(self._everyone)

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Remember what to do."""
        self._chosen = actions

    def step_wait(self) -> Any:
        """Act, and start the next episode where one has ended."""
        outcome = self.worlds.step(self._chosen, self._everyone)
        observation = self._observe(self._nobody)
        ended = outcome.terminated | outcome.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if ended.any():
            for world in np.flatnonzero(ended):
                infos[world] = {
                    "terminal_observation": {name: reading[world] for name, reading in observation.items()},
                    "TimeLimit.truncated": bool(outcome.truncated[world]),
                    "is_success": outcome.status[world] == EpisodeStatus.SUCCESS.value,
                }
            self.worlds.reset(ended)
            observation = self._observe(ended)
        return observation, outcome.reward, ended, infos

    def close(self) -> None:
        """Free the worlds."""
        self.worlds.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """One value for every world."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all worlds."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Worlds have no methods of their own."""
        raise NotImplementedError(f"Worlds have no method {method_name!r}.")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No world is wrapped."""
        return [False] * self.num_envs


class Senses(BaseFeaturesExtractor):
    """Our encoders, concatenated and projected.

    Args:
        observation_space: rgb (3, height, width) as the library hands it on, depth (height, width, 1),
            speech (frames, mels).
        network: Sizes.
    """

    def __init__(self, observation_space: gymnasium.spaces.Dict, network: NetworkConfig) -> None:
        super().__init__(observation_space, features_dim=network.fusion.hidden_dim)
        dim = network.fusion.embed_dim
        shapes = {name: space.shape or () for name, space in observation_space.spaces.items()}
        assert isinstance(network.vision, ConvConfig)
        assert isinstance(network.depth, ConvConfig)
        frames, mels = shapes["speech"]
        size = shapes["depth"][0], shapes["depth"][1]
        self.encoders = nn.ModuleDict(
            {
                "rgb": ConvEncoder(network.vision, size, 3, dim),
                "depth": ConvEncoder(network.depth, size, 1, dim),
                "speech": SoundEncoder(network.sound, (1, frames, mels), dim),
            }
        )
        self.project = nn.Sequential(nn.Linear(3 * dim, network.fusion.hidden_dim), nn.Tanh())

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Encode one batch, (batch, features)."""
        readings = {
            "rgb": observations["rgb"].permute(0, 2, 3, 1),  # a view; the encoder copies patches anyway
            "depth": observations["depth"],
            "speech": observations["speech"].unsqueeze(1),
        }
        summaries = [encoder(readings[name]).summary for name, encoder in self.encoders.items()]
        projected: Tensor = self.project(torch.cat(summaries, dim=-1))
        return projected


class _CollectTime(BaseCallback):
    """Tells acting from updating."""

    def __init__(self) -> None:
        super().__init__()
        self.stopwatch = Stopwatch()
        self._running = self.stopwatch.measure("collect_s")

    def _on_rollout_start(self) -> None:
        self._running = self.stopwatch.measure("collect_s")
        self._running.__enter__()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._running.__exit__(None, None, None)


def ppo(*, seconds: float, fewest: int, **sizes: Any) -> Result:
    """`PPO("MultiInputPolicy")`."""
    return _measure(PPO, "MultiInputPolicy", {}, Sizes(**sizes), seconds=seconds, fewest=fewest)


def recurrent_ppo(*, seconds: float, fewest: int, **sizes: Any) -> Result:
    """`RecurrentPPO("MultiInputLstmPolicy")`."""
    from sb3_contrib import RecurrentPPO

    memory = {
        "lstm_hidden_size": NetworkConfig().fusion.hidden_dim,
        "shared_lstm": True,
        "enable_critic_lstm": False,
    }
    return _measure(
        RecurrentPPO, "MultiInputLstmPolicy", memory, Sizes(**sizes), seconds=seconds, fewest=fewest
    )


def _measure(
    algorithm: Any, policy: str, memory: dict[str, Any], sizes: Sizes, *, seconds: float, fewest: int
) -> Result:
    train = config(sizes)
    hidden: Sequence[int] = [train.network.fusion.hidden_dim]
    env = ArenaVecEnv(train.env, sizes.num_envs)
    model: OnPolicyAlgorithm = algorithm(
        policy,
        env,
        learning_rate=sizes.lr,
        n_steps=sizes.num_steps,
        batch_size=sizes.batch_size,
        n_epochs=sizes.num_epochs,
        gamma=train.algo.gamma,
        gae_lambda=train.algo.gae_lambda,
        clip_range=train.algo.clip_ratio_low,
        ent_coef=train.algo.ent_coef,
        vf_coef=train.algo.vf_coef,
        max_grad_norm=train.algo.max_grad_norm,
        policy_kwargs={
            "features_extractor_class": Senses,
            "features_extractor_kwargs": {"network": train.network},
            "net_arch": {"pi": list(hidden), "vf": list(hidden)},
            **memory,
        },
        device="cpu",
        seed=SEED,
    )
    steps = sizes.num_envs * sizes.num_steps
    callback = _CollectTime()

    def round_of_training() -> int:
        model.learn(steps, callback=callback, log_interval=10**9, reset_num_timesteps=False)
        return steps

    round_of_training()
    callback.stopwatch.drain()
    result = speed(round_of_training, seconds=seconds, warm_up=0, fewest=fewest)
    env.close()
    collect_s = callback.stopwatch.drain()["collect_s"]
    senses = model.policy.features_extractor
    assert isinstance(senses, Senses)
    times = {"collect_s": collect_s, "update_s": result["wall_s"] - collect_s}
    sizes_of = {
        "parameters": parameters(model.policy),
        "encoder_parameters": parameters(senses.encoders),
    }
    return result | times | sizes_of
