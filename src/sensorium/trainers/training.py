"""A training run from its first step, or its last checkpoint, to its end."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sensorium.core import EpisodeStatus, Stopwatch, derive_seed
from sensorium.core.files import atomic_write_json
from sensorium.metrics import JsonlSink, Mean, Metric, MultiSink, Sum, TensorBoardSink
from sensorium.rollouts.embodied import FinishedEpisode, Rollout, RolloutSource
from sensorium.trainers.build import Agent, build_agent, build_env
from sensorium.trainers.checkpoint import checkpoint_path, load_learner, save_checkpoint
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.curriculum import Curriculum
from sensorium.trainers.dapo import build_learner
from sensorium.trainers.interrupts import interrupt_flag
from sensorium.trainers.run_lock import only_process
from sensorium.trainers.tensor_files import latest_checkpoint

RECENT_EPISODES = 400
"""Episodes over which the progress line averages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a run stands, after each round."""

    env_steps: int
    total_steps: int
    steps_per_s: float
    """Since this process began training."""
    success_rate: float
    """Over the last episodes of the acting (not deterministic) policy; NaN before the first one ended."""
    mean_return: float
    eta_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a run came to."""

    agent: Agent
    env_steps: int
    wall_s: float
    """Seconds of training, over all processes that worked on the run."""
    onnx_max_abs_diff: float
    checkpoint: Path
    interrupted: bool
    """The user stopped it; the checkpoint allows to go on."""


class Training:
    """One run of PPO or DAPO in its directory.

    Args:
        config: The run.
        run: Its directory, from `open_run`; an existing checkpoint there is resumed.
    """

    def __init__(self, config: TrainConfig, run: Path) -> None:
        self.config = config
        self.run_dir = run
        self.env = build_env(config, augmented=True)
        self.agent = build_agent(config, self.env)
        generator = torch.Generator().manual_seed(derive_seed(config.seed, "actions"))
        self.learner = build_learner(self.agent.policy, config.algo, generator)
        self.rollouts = RolloutSource(
            self.env,
            self.agent.policy,
            self.agent.representer,
            generator,
            num_steps=config.algo.num_steps,
            max_staleness=config.algo.max_staleness,
        )
        self.curriculum = None
        if config.curriculum is not None:
            self.curriculum = Curriculum(config.curriculum, self.agent.policy.perception.names)
        self.env_steps = 0
        self.wall_s = 0.0
        self.onnx_max_abs_diff = float("nan")
        self.checkpoint = latest_checkpoint(run)
        if self.checkpoint is None:
            self.agent.policy.perception.load_pretrained()
        else:
            state = load_learner(self.checkpoint, self.learner)
            self.env_steps = int(state["counters"]["env_steps"])
            self.wall_s = float(state["counters"]["wall_s"])
            self.onnx_max_abs_diff = float(state["onnx_max_abs_diff"])
            if self.curriculum is not None:
                self.curriculum.from_json(state["counters"]["curriculum"])
                self._write_stages()  # without the changes that came after the checkpoint
        if self.curriculum is not None:
            self.curriculum.open_stage(self.agent.policy, self.env.worlds.augmenter)
        self._recent: deque[FinishedEpisode] = deque(maxlen=RECENT_EPISODES)
        self._stopwatch = Stopwatch()

    def run(self, report: Callable[[Progress], None]) -> TrainingResult:
        """Train to the end of the run, or until the user interrupts.

        Args:
            report: Called after each round.

        Raises:
            TrainingError: Updates kept failing.
            CheckpointError: A checkpoint could not be written.
            RunDirectoryError: Another process trains this run.
        """
        with only_process(self.run_dir):
            return self._run(report)

    def _run(self, report: Callable[[Progress], None]) -> TrainingResult:
        jsonl = JsonlSink(self.run_dir / "metrics.jsonl")
        jsonl.truncate_after(self.env_steps)
        sinks = MultiSink(
            [jsonl, TensorBoardSink(self.run_dir / "tensorboard", purge_step=self.env_steps + 1)]
        )
        try:
            with interrupt_flag() as interrupted:
                self._loop(report, sinks, interrupted)
                stopped = interrupted.is_set()
        finally:
            sinks.close()
            self.rollouts.close()
            self.env.close()
        assert self.checkpoint is not None, "a run ends with a checkpoint"
        return TrainingResult(
            agent=self.agent,
            env_steps=self.env_steps,
            wall_s=self.wall_s,
            onnx_max_abs_diff=self.onnx_max_abs_diff,
            checkpoint=self.checkpoint,
            interrupted=stopped,
        )

    def _loop(
        self, report: Callable[[Progress], None], sinks: MultiSink, interrupted: threading.Event
    ) -> None:
        algo = self.config.algo
        session_start, session_steps = time.perf_counter(), self.env_steps
        wall_before = self.wall_s
        self._restart_worlds()
        next_checkpoint = self._next_checkpoint()
        while self.env_steps < algo.total_steps and not interrupted.is_set():
            steps = self.env_steps + algo.num_steps * algo.num_envs
            rollout = self.rollouts.take(more=steps < min(next_checkpoint, algo.total_steps))
            self.env_steps = steps
            with self._stopwatch.measure("update"):
                share = min(1.0, self.env_steps / algo.total_steps)
                metrics = self.learner.update(rollout, progress=share)
            elapsed_s = time.perf_counter() - session_start
            self.wall_s = wall_before + elapsed_s
            steps_per_s = (self.env_steps - session_steps) / elapsed_s
            metrics |= self._rollout_metrics(rollout) | {"time/steps_per_s": Mean.of(steps_per_s)}
            metrics |= self._advance_curriculum(rollout)
            sinks.write(self.env_steps, metrics)
            report(self._progress(steps_per_s))
            if self.env_steps >= next_checkpoint and self.env_steps < algo.total_steps:
                self._save()
                self._restart_worlds()
                next_checkpoint = self._next_checkpoint()
        if self.checkpoint is None or self.checkpoint != checkpoint_path(self.run_dir, self.env_steps):
            self._save()

    def _next_checkpoint(self) -> int:
        every = self.config.checkpoint_every
        return (self.env_steps // every + 1) * every

    def _restart_worlds(self) -> None:
        """Begin new episodes, decided by the run's seed and the step count alone."""
        self.rollouts.restart(derive_seed(self.config.seed, "worlds", self.env_steps) >> 1)

    def _save(self) -> None:
        path = checkpoint_path(self.run_dir, self.env_steps)
        counters: dict[str, Any] = {"env_steps": self.env_steps, "wall_s": self.wall_s}
        if self.curriculum is not None:
            counters["curriculum"] = self.curriculum.to_json()
        self.onnx_max_abs_diff = save_checkpoint(path, self.learner, counters)
        self.checkpoint = path

    def _write_stages(self) -> None:
        if self.curriculum is not None:
            atomic_write_json(self.run_dir / "curriculum.json", self.curriculum.changes)

    def _advance_curriculum(self, rollout: Rollout) -> dict[str, Metric]:
        """Count successes at the current stage and go on, or back, when they say so."""
        if self.curriculum is None:
            return {}
        change = self.curriculum.update(rollout.episodes, self.env_steps)
        if change is not None:
            self.rollouts.settle()
            self.curriculum.open_stage(self.agent.policy, self.env.worlds.augmenter, change)
            self._write_stages()
        return self.curriculum.metrics()

    def _rollout_metrics(self, rollout: Rollout) -> dict[str, Metric]:
        self._recent.extend(rollout.episodes)
        outcomes = [e for e in rollout.episodes if e.status is not EpisodeStatus.ERROR]
        metrics: dict[str, Metric] = {"env/failed_episodes": Sum.of(len(rollout.episodes) - len(outcomes))}
        if outcomes:
            successes = [e.status is EpisodeStatus.SUCCESS for e in outcomes]
            metrics["rollout/success_rate"] = Mean.of(np.array(successes, np.float64))
            metrics["rollout/return_mean"] = Mean.of([e.episode_return for e in outcomes])
            metrics["rollout/episode_length"] = Mean.of([e.length for e in outcomes])
        for m, sensor in enumerate(self.agent.policy.inputs):
            present = rollout.present[:, :, m][rollout.valid].double()
            if len(present):
                metrics[f"presence/{sensor.name}"] = Mean.of(present.mean().item())
        for part, seconds in (self._stopwatch.drain() | self.rollouts.seconds).items():
            metrics[f"time/{part}_s"] = Sum.of(seconds)
        return metrics

    def _progress(self, steps_per_s: float) -> Progress:
        outcomes = [e for e in self._recent if e.status is not EpisodeStatus.ERROR]
        successes = [e.status is EpisodeStatus.SUCCESS for e in outcomes]
        remaining = max(0, self.config.algo.total_steps - self.env_steps)
        return Progress(
            env_steps=self.env_steps,
            total_steps=self.config.algo.total_steps,
            steps_per_s=steps_per_s,
            success_rate=float(np.mean(successes)) if successes else float("nan"),
            mean_return=float(np.mean([e.episode_return for e in outcomes])) if outcomes else float("nan"),
            eta_s=remaining / steps_per_s,
        )
