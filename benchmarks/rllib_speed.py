"""Environment steps per second of training: RLlib's PPO on the task of `doom_task`.

Runs in an environment of its own (`make bench-peers`) and imports nothing of Sensorium. RLlib's new API stack
has no encoder for uint8 pixels or dicts (its PPO ends with an error on both), so it gets our network as an
`RLModule` of its own, which reads the pixels as they are.
"""

import os
from itertools import count
from typing import Any

import numpy as np
import ray
import torch
from doom_task import DoomTask
from doom_world import NUM_ACTIONS, DoomWorld
from peer_network import Sight, parameters
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env
from timing import Result, cpu_s_of_all, speed, versions
from torch import Tensor, nn


class SightAndMemory(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """Our network: `Sight`, an LSTM, and two heads that read both."""

    def setup(self) -> None:
        """Make the layers."""
        task = DoomTask.from_json(self.model_config["task"])
        hidden = task.hidden_dim
        self.sight = Sight(task)
        self.memory = nn.LSTM(hidden, hidden, batch_first=True)
        self.actor = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, NUM_ACTIONS))
        self.critic = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)
        nn.init.zeros_(self.actor[-1].bias)

    def get_initial_state(self) -> dict[str, np.ndarray]:
        """State of a world that has seen nothing."""
        hidden = self.memory.hidden_size
        return {"h": np.zeros(hidden, np.float32), "c": np.zeros(hidden, np.float32)}

    def _features(self, batch: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        """(batch, time, 2 * hidden): what is seen and what is remembered."""
        pictures, state = batch[Columns.OBS], batch[Columns.STATE_IN]
        sights = self.sight(pictures.flatten(0, 1)).unflatten(0, pictures.shape[:2])
        before = (state["h"].unsqueeze(0), state["c"].unsqueeze(0))
        remembered, (h, c) = self.memory(sights, before)
        return torch.cat([sights, remembered], dim=-1), {"h": h.squeeze(0), "c": c.squeeze(0)}

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, state = self._features(batch)
        return {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.STATE_OUT: state}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, state = self._features(batch)
        logits = self.actor(features)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.STATE_OUT: state, Columns.EMBEDDINGS: features}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """(batch, time) values; from `embeddings` where a pass has just made them."""
        features = self._features(batch)[0] if embeddings is None else embeddings
        values: Tensor = self.critic(features).squeeze(-1)
        return values


_WORLDS = count()


def _make_world(context: Any) -> DoomWorld:
    """One world; each has a seed of its own."""
    task = DoomTask.from_json(context["task"])
    return DoomWorld(task, seed=task.seed + 1000 * context.worker_index + next(_WORLDS))


def _config(task: DoomTask, *, runners: int) -> PPOConfig:
    return (
        PPOConfig()
        .environment("doom", env_config={"task": task.as_json()})
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=task.num_envs // max(runners, 1),
            rollout_fragment_length=task.num_steps,
            sample_timeout_s=300,
        )
        .learners(num_learners=0)
        .training(
            lr=task.lr,
            gamma=0.99,
            lambda_=0.95,
            clip_param=0.2,
            vf_loss_coeff=0.5,
            entropy_coeff=0.01,
            use_kl_loss=False,
            grad_clip=0.5,
            train_batch_size_per_learner=task.num_envs * task.num_steps,
            minibatch_size=task.batch_size,
            num_epochs=task.num_epochs,
            shuffle_batch_per_epoch=True,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=SightAndMemory,
                model_config={"task": task.as_json(), "max_seq_len": task.num_steps},
            )
        )
        .debugging(seed=task.seed, log_level="ERROR")
    )


def ppo(*, task: dict[str, Any], seconds: float, warm_up_s: float, runners: int) -> Result:
    """Train for a while and count the steps that were sampled and learned from.

    Args:
        task: A `DoomTask`.
        seconds: How long to measure.
        warm_up_s: How long to train before that.
        runners: Processes that sample; 0 samples in the process that learns.
    """
    wanted = DoomTask.from_json(task)
    register_env("doom", _make_world)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=max(runners + 1, wanted.processes), include_dashboard=False, log_to_driver=False)
    algorithm = _config(wanted, runners=runners).build_algo()
    sampled, episode_steps = 0, None

    def round_of_training() -> int:
        nonlocal sampled, episode_steps
        found = algorithm.train()["env_runners"]
        before, sampled = sampled, int(found["num_env_steps_sampled_lifetime"])
        episode_steps = found.get("episode_len_mean", episode_steps)  # no episode has ended before that
        return sampled - before

    speed(round_of_training, seconds=warm_up_s, warm_up=0)
    result = speed(round_of_training, seconds=seconds, warm_up=0, cpu_clock=cpu_s_of_all)
    module = algorithm.get_module()
    algorithm.stop()
    ray.shutdown()
    return result | {
        "episode_steps": episode_steps,
        "parameters": parameters(module),
        "settings": {"num_env_runners": runners},
        "versions": versions("ray", "torch", "numpy", "gymnasium", "vizdoom"),
    }
