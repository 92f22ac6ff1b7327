"""Environment steps per second of training: Sample Factory's APPO on the task of `doom_task`.

Runs in an environment of its own (`make bench-peers`) and imports nothing of Sensorium. Sample Factory gets
our network through its registry and works as it does by default: processes that step worlds, one that infers
and one that learns, all at the same time (the learner trains on pictures that a slightly older policy saw).
Its input normaliser is off, so that pixels stay uint8 until the network reads them.
"""

import os
import tempfile
import time
from typing import Any

import gymnasium
import torch
from doom_task import DoomTask
from doom_world import DoomWorld
from peer_network import Sight, parameters
from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.utils.context import global_model_factory
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.actor_critic import ActorCritic, create_actor_critic, default_make_actor_critic_func
from sample_factory.model.core import ModelCoreRNN
from sample_factory.model.encoder import Encoder
from sample_factory.train import make_runner
from timing import Result, cpu_s_of_all, versions
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

TASK_VARIABLE = "DOOM_TASK"
"""Environment variable by which the worker processes learn the task."""


def _task() -> DoomTask:
    return DoomTask.from_text(os.environ[TASK_VARIABLE])


class SightEncoder(Encoder):
    """Our encoder; reads uint8 pixels."""

    def __init__(self, cfg: Any, obs_space: Any) -> None:
        super().__init__(cfg)
        self.sight = Sight(_task())

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Encode (batch, height, width, 3)."""
        features: Tensor = self.sight(observation["obs"])
        return features

    def get_out_size(self) -> int:
        """Width of the result."""
        return self.sight.out_dim

    def type_for_input_tensor(self, input_tensor_name: str) -> torch.dtype:
        """Leave pixels as they are."""
        return torch.uint8


class RememberingCore(ModelCoreRNN):
    """An LSTM whose input is handed on beside its output, as our heads read both."""

    def __init__(self, cfg: Any, input_size: int) -> None:
        super().__init__(cfg, input_size)
        self.core_output_size = input_size + cfg.rnn_size

    def forward(self, head_output: Any, rnn_states: Tensor) -> tuple[Any, Tensor]:
        """(batch, input) or a packed sequence -> the same with input and memory side by side."""
        remembered, states = super().forward(head_output, rnn_states)
        if torch.is_tensor(head_output):
            return torch.cat([head_output, remembered], dim=-1), states
        both = torch.cat([head_output.data, remembered.data], dim=-1)
        return PackedSequence(both, *remembered[1:]), states


def make_actor_critic(cfg: Any, obs_space: Any, action_space: Any) -> ActorCritic:
    """The whole policy; its first actions are random, as ours are."""
    policy: ActorCritic = default_make_actor_critic_func(cfg, obs_space, action_space)
    head = policy.action_parameterization.distribution_linear
    nn.init.orthogonal_(head.weight, 0.01)
    nn.init.zeros_(head.bias)
    return policy


def make_world(
    full_env_name: str, cfg: Any = None, env_config: Any = None, render_mode: str | None = None
) -> gymnasium.Env[Any, Any]:
    """One world; each has a seed of its own."""
    world = 0 if env_config is None else env_config.env_id
    return DoomWorld(_task(), seed=_task().seed + world)


class _Steps(AlgoObserver):  # type: ignore[misc]
    """Notes how many steps were learned from when, and ends the run."""

    def __init__(self, warm_up_s: float, seconds: float) -> None:
        self._warm_up_s, self._seconds = warm_up_s, seconds
        self._begin = 0.0
        self.seen: list[tuple[float, float, int]] = []

    def on_training_step(self, runner: Runner, training_iteration_since_resume: int) -> None:
        """Called when a rollout has been trained on."""
        now, steps = time.perf_counter(), runner.env_steps.get(0, 0)
        self._begin = self._begin or now
        if now - self._begin < self._warm_up_s or steps == 0:
            return
        self.seen.append((now, cpu_s_of_all(), steps))
        if now - self.seen[0][0] >= self._seconds and len(self.seen) > 1:
            runner.cfg.train_for_env_steps = 0

    def result(self) -> Result:
        """Speed between the first and the last note."""
        (start, cpu_start, first), (end, cpu_end, last) = self.seen[0], self.seen[-1]
        steps, wall_s = last - first, end - start
        return {"rate": steps / wall_s, "steps": steps, "wall_s": wall_s, "cpu_s": cpu_end - cpu_start}


def _arguments(task: DoomTask, folder: str, more: dict[str, Any]) -> list[str]:
    settings: dict[str, Any] = {
        "algo": "APPO",
        "env": "doom",
        "experiment": "speed",
        "train_dir": folder,
        "device": "cpu",
        "seed": task.seed,
        "num_workers": task.processes,
        "num_envs_per_worker": task.num_envs // task.processes,
        "worker_num_splits": 2,
        "rollout": task.num_steps,
        "recurrence": task.num_steps,
        "batch_size": task.batch_size,
        "num_batches_per_epoch": task.num_minibatches,
        "num_epochs": task.num_epochs,
        "learning_rate": task.lr,
        "use_rnn": True,
        "rnn_type": "lstm",
        "rnn_size": task.hidden_dim,
        "decoder_mlp_layers": 2 * task.hidden_dim,  # as wide as our two heads together
        "nonlinearity": "tanh",
        "normalize_input": False,
        "normalize_returns": False,
        "policy_initialization": "torch_default",
        "max_grad_norm": 0.5,
        "summaries_use_frameskip": False,
    }
    return [f"--{name}={value}" for name, value in (settings | more).items()]


def appo(*, task: dict[str, Any], seconds: float, warm_up_s: float, **more: Any) -> Result:
    """Train for a while and count the steps that were learned from.

    Args:
        task: A `DoomTask`.
        seconds: How long to measure.
        warm_up_s: How long to train before that.
        **more: Further settings of Sample Factory.
    """
    wanted = DoomTask.from_json(task)
    os.environ[TASK_VARIABLE] = wanted.as_text()
    register_env("doom", make_world)
    factory = global_model_factory()
    factory.register_encoder_factory(SightEncoder)
    factory.register_model_core_factory(RememberingCore)
    factory.register_actor_critic_factory(make_actor_critic)
    with tempfile.TemporaryDirectory() as folder:
        arguments = _arguments(wanted, folder, more)
        parser, _ = parse_sf_args(arguments)
        cfg, runner = make_runner(parse_full_cfg(parser, arguments))
        steps = _Steps(warm_up_s, seconds)
        runner.register_observer(steps)
        status = runner.init()
        if status == ExperimentStatus.SUCCESS:
            status = runner.run()
        if status != ExperimentStatus.SUCCESS:
            raise RuntimeError(f"Sample Factory ended with status {status}.")
    lengths = runner.policy_avg_stats.get("len", [[]])[0]
    return steps.result() | {
        "episode_steps": sum(lengths) / len(lengths) if lengths else None,
        "parameters": parameters(
            create_actor_critic(cfg, runner.env_info.obs_space, runner.env_info.action_space)
        ),
        "settings": more,
        "versions": versions("sample-factory", "torch", "numpy", "vizdoom"),
    }
