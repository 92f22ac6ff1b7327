"""Group-relative policy optimisation of a language model's agent: collect, compare, learn, evaluate."""

import asyncio
import copy
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic_core import to_json

from sensorium.analysis.language_summary import LanguageSummary
from sensorium.core import ConfigError, Stopwatch, derive_seed, wilson_interval
from sensorium.core.files import atomic_write_bytes, atomic_write_json
from sensorium.features import find_model
from sensorium.llm.local import LocalChatModel, tiny_model, tiny_seeing_model
from sensorium.llm.local.loading import load_model
from sensorium.metrics import JsonlSink, Mean, Metric, MultiSink, TensorBoardSink
from sensorium.metrics.sinks import read_jsonl
from sensorium.rollouts.trajectory import Trajectory
from sensorium.trainers.interrupts import interrupt_flag
from sensorium.trainers.language.ahead import CollectingAhead
from sensorium.trainers.language.checkpoint import Pending, load_run, save_run
from sensorium.trainers.language.collect import Collected, Collector, TaskSampler
from sensorium.trainers.language.config import ALGORITHM_VERSION, LanguageRunConfig
from sensorium.trainers.language.credit import credit
from sensorium.trainers.language.learner import Learner, Rows, minibatch
from sensorium.trainers.language.model import with_adapters
from sensorium.trainers.language.samples import pictures_of, samples_of
from sensorium.trainers.language.told import is_success, told_of_episodes, told_of_samples
from sensorium.trainers.run_lock import only_process
from sensorium.trainers.tensor_files import latest_checkpoint

TINY, TINY_SEEING = "tiny", "tiny-vlm"
"""Names of models that are made for the run; the second takes pictures."""
TINY_CONTEXT = 2048
"""Tokens of its context, where the config does not say."""
_SPREAD = 0.2  # nearly uniform answers, so that there is something to explore
_SHOWN_EPISODES = 8
_TOKENS = {"prompt_token_ids", "token_ids", "logprobs", "tempered_logprobs", "sampled_logprobs"}
_NOT_SHOWN: Any = {"steps": {"__all__": {"account": True, "completion": _TOKENS}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class GRPOProgress:
    """How a run stands, after each update."""

    update: int
    total_updates: int
    reward: float
    """Mean of the last round; NaN when nothing was collected."""
    success_rate: float
    eta_s: float


class GRPOTraining:
    """One run in its directory.

    Args:
        config: The run.
        run: Its directory, from `open_run`; an existing checkpoint there is resumed.

    Raises:
        ConfigError: Environment, model or settings do not exist or do not fit.
    """

    def __init__(self, config: LanguageRunConfig, run: Path) -> None:
        self.config, self.run_dir = config, run
        base, reader = load_model(config.model, self._find)
        seed = derive_seed(config.seed, "adapters") % 2**31
        needs_frozen = config.algo.kl_coef > 0 and config.lora is None
        frozen = copy.deepcopy(base).requires_grad_(False) if needs_frozen else None
        model = with_adapters(base, config.lora, seed=seed) if config.lora else base
        base.eval()  # no dropout: the same weights give the same tokens
        self.chat = LocalChatModel(base, reader, config.model)  # adapters, if any, are inside its layers
        tokenizer = self.chat.tokenizer.tokenizer
        pad = tokenizer.pad_token_id
        self.learner = Learner(
            model,
            config.algo,
            pad=int(tokenizer.eos_token_id if pad is None else pad),
            temperature=config.agent.temperature,
            answer_tokens=config.agent.max_tokens,
            frozen=frozen,
            see=None if self.chat.vision is None else self.chat.vision.picture,
        )
        self._check_template()
        self.collector = Collector(config, self.chat)
        self.sampler = TaskSampler(self.collector.tasks(config.split, config.num_tasks), config.seed)
        self.update = 0
        self.wall_s = 0.0
        self._pending: Pending | None = None
        self._waiting: Sequence[Collected] = ()
        self._ahead: CollectingAhead | None = None
        self._stopwatch = Stopwatch()
        # With adapters the reference is the model without them, which nobody may sample from meanwhile.
        self._switches = config.algo.kl_coef > 0 and config.lora is not None
        found = latest_checkpoint(run)
        if found is not None:
            self._resume(found)
        self._cursor = self.sampler.cursor

    def _check_template(self) -> None:
        """Where a conversation goes on, what the model reads must be what it read and wrote before."""
        agent = self.config.agent
        drops = self.config.observation.context_management.drop_full_history
        if drops or agent.rewritten_history == "allow":
            return
        found = self.chat.rewritten_message(with_tools=agent.offer_tools)
        if found is not None:
            self.chat.engine.close()
            raise ConfigError(
                f"The chat template of {self.chat.model} writes earlier messages anew as a conversation goes "
                f"on, {found}. Set observation.context_management.drop_full_history: true, mend the "
                "template, or set agent.rewritten_history: allow."
            )

    def _resume(self, checkpoint: Path) -> None:
        saved = load_run(checkpoint, self.learner)
        self.update, self.wall_s = int(saved.counters["update"]), float(saved.counters["wall_s"])
        self.sampler.cursor = int(saved.counters["cursor"])
        self._pending, self._waiting = saved.pending, saved.waiting
        with self.chat.engine.paused(version=self.update):
            pass

    def _find(self, name: str) -> Path | str:
        """Folder of a model; tiny ones are made of random weights, for tests of everything but skill."""
        if name not in (TINY, TINY_SEEING):
            return find_model(name)
        folder = self.run_dir / name
        if not folder.exists():
            make = tiny_model if name == TINY else tiny_seeing_model
            length = self.config.model.engine.context_tokens or TINY_CONTEXT
            make(folder, seed=self.config.seed, spread=_SPREAD, context_tokens=length)
        return folder

    def run(self, report: Callable[[GRPOProgress], None] = lambda progress: None) -> bool:
        """Train to the end of the run, or until the user interrupts.

        Args:
            report: Called after each update.

        Returns:
            Whether the run came to its end.

        Raises:
            TrainingError: Nothing can be learnt: all episodes fail, groups are missing, or the loss diverged.
            RunDirectoryError: Another process trains this run.
        """
        with only_process(self.run_dir):
            return self._run(report)

    def _run(self, report: Callable[[GRPOProgress], None]) -> bool:
        sink = JsonlSink(self.run_dir / "metrics.jsonl")
        sink.truncate_after(self.update)
        board = TensorBoardSink(self.run_dir / "tensorboard", purge_step=self.update + 1)
        sinks = MultiSink([sink, board])
        began, done_before = time.perf_counter(), self.update
        wall_before = self.wall_s
        try:
            if self.config.evaluation.at_start and not read_jsonl(self.run_dir / "metrics.jsonl"):
                sinks.write(0, self._evaluated())
            self._begin_ahead()
            with interrupt_flag() as interrupted:
                while self.update < self.config.algo.total_updates:
                    metrics = self._round(interrupted.is_set)
                    if metrics is not None and self._is_due(self.config.evaluation.every):
                        metrics |= self._evaluated()
                    self.wall_s = wall_before + time.perf_counter() - began
                    if metrics is None:
                        self._save()
                        return False
                    sinks.write(self.update, metrics)
                    rate = (time.perf_counter() - began) / (self.update - done_before)
                    report(self._progress(metrics, rate))
                    if self._is_due(self.config.checkpoint_every):
                        self._save()
            self._save()
            self._write_summary()
            return True
        finally:
            sinks.close()
            if self._ahead is not None:
                self._ahead.close()
            self.chat.engine.close()

    def _begin_ahead(self) -> None:
        """Collect while learning, where samples may be stale."""
        algo = self.config.algo
        if algo.max_staleness > 0:
            self._ahead = CollectingAhead(
                functools.partial(self.collector.collect, self.sampler),
                max_staleness=algo.max_staleness,
                first=self.update + (self._pending is not None),
                last=algo.total_updates,
                waiting=self._waiting,
            )
            self._ahead.updated(self.update)

    def _collected(self, is_interrupted: Callable[[], bool]) -> Collected | None:
        """The episodes of the next update; None when the user interrupts before they are there."""
        made: Collected | None = None
        if self._ahead is not None:
            made = self._ahead.take(is_interrupted)
        elif not is_interrupted():
            made = asyncio.run(self.collector.collect(self.sampler, self.update))
        if made is not None:
            self._cursor = made.cursor
        return made

    def _round(self, is_interrupted: Callable[[], bool]) -> dict[str, Metric] | None:
        """Collect, unless a round is under way, and learn from it; None when interrupted in it."""
        algo, seed = self.config.algo, derive_seed(self.config.seed, "order", self.update)
        pending = self._pending
        if pending is None:
            with self._stopwatch.measure("collect"):
                collected = self._collected(is_interrupted)
            if collected is None:
                return None
            pending = self._pending = self._compared(collected)
        rows, told = pending.rows, {name: list(values) for name, values in pending.told.items()}
        num_steps = algo.num_epochs * min(algo.num_minibatches, len(rows.samples))
        for position in range(pending.position, num_steps):
            if is_interrupted():
                self._pending = pending._replace(position=position, told=told)
                return None
            chosen = minibatch(len(rows.samples), algo.num_minibatches, position, seed)
            piece = Rows(
                [rows.samples[i] for i in chosen], rows.advantages[chosen], rows.groups[chosen], rows.pictures
            )
            with self._stopwatch.measure("learn"):
                for name, value in self._learnt(piece, position, num_steps).items():
                    told.setdefault(name, []).append(value)
        if not num_steps:
            with self.chat.engine.paused(version=self.update + 1):
                pass  # the weights stay, but an update has gone by
        self._pending = None
        self.update += 1
        if self._ahead is not None:
            self._ahead.updated(self.update)
        return self._told(pending, told)

    def _learnt(self, piece: Rows, position: int, num_steps: int) -> dict[str, float]:
        """One optimiser step; nobody samples while the weights change."""
        algo = self.config.algo
        paused = functools.partial(self.chat.engine.paused, version=self.update + (position == num_steps - 1))
        is_fresh = algo.max_staleness == 0 or algo.importance_cap is not None
        step = functools.partial(self.learner.step, piece, is_on_policy=is_fresh and num_steps == 1)
        if self._switches:
            with paused():
                return step()
        return step(changing=paused)

    def _told(self, pending: Pending, told: dict[str, list[float]]) -> dict[str, Metric]:
        """All metrics of a round that is done."""
        made: dict[str, Metric] = {name: Mean.of(value) for name, value in pending.metrics.items()}
        made |= {name: Mean.of(values) for name, values in told.items()}
        if told:
            made["policy/first_ratio_deviation"] = Mean.of(told["policy/ratio_deviation"][0])
        taken = self._stopwatch.drain()
        for part, seconds in taken.items():
            made[f"time/{part}_s"] = Mean.of(seconds)
        if "collect" in taken and "tokens/sampled" in pending.metrics:  # not when a stopped round went on
            made["time/tokens_per_s"] = Mean.of(pending.metrics["tokens/sampled"] / sum(taken.values()))
        return made

    def _compared(self, collected: Collected) -> Pending:
        """A round that can be learnt from, and what is told of it."""
        algo, trajectories, metrics = self.config.algo, collected.trajectories, told_of_episodes(collected)
        sees = self.chat.vision is not None
        samples = samples_of(trajectories, sees=sees)
        if not samples:
            empty = torch.zeros(0)
            return Pending(Rows([], empty, empty.long()), 0, metrics, {})
        pictures = pictures_of(trajectories) if sees else {}
        goes_on = not self.config.observation.context_management.drop_full_history
        metrics |= told_of_samples(samples, self.update, goes_on=goes_on)
        is_stale = algo.max_staleness > 0
        if algo.importance_cap is not None or (not is_stale and algo.num_epochs * algo.num_minibatches > 1):
            with self._stopwatch.measure("rescore"):
                samples = self.learner.rescored(samples, pictures)
        made = credit(trajectories, samples, algo)
        self._show(trajectories)
        return Pending(Rows(samples, made.advantages, made.groups, pictures), 0, metrics | made.metrics, {})

    def _evaluated(self) -> dict[str, Metric]:
        with self._stopwatch.measure("evaluate"):
            played = self.collector.evaluate()
        judged = [t for t in played if t.verdict.failure is None]
        told = {
            "eval/failed_episodes": float(len(played) - len(judged)),
            "time/evaluate_s": self._stopwatch.drain()["evaluate"],
        }
        if judged:
            told["eval/success_rate"] = float(np.mean([is_success(t) for t in judged]))
            told["eval/return_mean"] = float(np.mean([t.verdict.reward or 0.0 for t in judged]))
        return {name: Mean.of(value) for name, value in told.items()}

    def _write_summary(self) -> None:
        """What the run came to, for people and tools: `summary.json`."""
        rows = read_jsonl(self.run_dir / "metrics.jsonl")
        before, last = [row for row in rows if row["step"] == 0], rows[-1]
        judged = self.config.evaluation.tasks - int(last["eval/failed_episodes"])
        rate = last.get("eval/success_rate")
        solved = round(rate * judged) if rate is not None else 0
        interval = wilson_interval(solved, judged) if judged else None
        summary = LanguageSummary(
            task=self.config.env,
            model=self.config.model.model,
            algorithm=ALGORITHM_VERSION,
            unit=self.config.algo.unit,
            seed=self.config.seed,
            updates=self.update,
            wall_s=self.wall_s,
            sampled_tokens=int(sum(row.get("tokens/sampled", 0.0) for row in rows)),
            success_rate=rate,
            success_ci95=None if interval is None else (interval.low, interval.high),
            episodes=judged,
            mean_return=last.get("eval/return_mean"),
            first_success_rate=before[0].get("eval/success_rate") if before else None,
            first_return=rows[len(before)].get("rollout/return_mean"),
            last_return=last.get("rollout/return_mean"),
        )
        atomic_write_json(self.run_dir / "summary.json", summary.model_dump(mode="json"))

    def _is_due(self, every: int) -> bool:
        at_end = self.update == self.config.algo.total_updates
        return at_end or (every > 0 and self.update % every == 0)

    def _save(self) -> None:
        name = f"{self.update:06d}" + (f".{self._pending.position:06d}" if self._pending else "")
        path = self.run_dir / "checkpoints" / name
        if path.exists():
            return
        waiting = [] if self._ahead is None else self._ahead.waiting()
        cursor = waiting[-1].cursor if waiting else self._cursor  # a round under way is collected again
        counters = {"update": self.update, "wall_s": self.wall_s, "cursor": cursor}
        save_run(path, self.learner, counters, self._pending, waiting)

    def _show(self, trajectories: Sequence[Trajectory]) -> None:
        """Keep some episodes of each round for the report and for people, the best and the worst of them."""
        ordered = sorted(trajectories, key=lambda t: t.verdict.reward or 0.0)
        half = _SHOWN_EPISODES // 2
        shown = ordered if len(ordered) <= _SHOWN_EPISODES else ordered[:half] + ordered[-half:]
        text = to_json(shown, indent=2, exclude={"__all__": _NOT_SHOWN}, inf_nan_mode="null")
        atomic_write_bytes(self.run_dir / "episodes" / f"{self.update:06d}.json", text)

    def _progress(self, metrics: dict[str, Metric], rate_s: float) -> GRPOProgress:
        def told(name: str) -> float:
            found = metrics.get(name)
            return found.value if isinstance(found, Mean) else float("nan")

        total = self.config.algo.total_updates
        return GRPOProgress(
            update=self.update,
            total_updates=total,
            reward=told("rollout/return_mean"),
            success_rate=told("rollout/success_rate"),
            eta_s=rate_s * (total - self.update),
        )
