"""One sense, then two, then all: which senses episodes have, and when training goes on to the next stage."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.algorithms import Verdict, judge_stage, next_stage
from sensorium.core import ConfigError, EpisodeStatus, unknown_name
from sensorium.envs.embodied.augment.augmenter import Augmenter
from sensorium.metrics import Mean, Metric
from sensorium.policies.embodied import ActorCritic
from sensorium.rollouts.embodied import FinishedEpisode
from sensorium.trainers.config import CurriculumConfig


class StageChange(NamedTuple):
    """Training went from one stage to another."""

    before: int
    after: int
    success_rate: float
    low: float
    """Lower bound of the 95 % interval of the success rate at the stage that was left."""
    high: float
    episodes: int
    """Episodes that the decision rests on."""
    new_sensors: tuple[str, ...]
    """Sensors that the stage has and none of those that were played before had."""


class Curriculum:
    """Counts successes at the current stage and decides about the next.

    Args:
        config: Stages and thresholds.
        sensors: The sensors of the task, canonical order.

    Raises:
        ConfigError: A stage names a sensor that the task was not asked for, or the last stage lacks one.
    """

    def __init__(self, config: CurriculumConfig, sensors: Sequence[str]) -> None:
        self.config = config
        self.sensors = tuple(sensors)
        for number, stage in enumerate(config.stages):
            for name in stage.sensors:
                if name not in self.sensors:
                    raise unknown_name(f"sensor in curriculum.stages[{number}]", name, self.sensors)
        missing = [name for name in self.sensors if name not in config.stages[-1].sensors]
        if missing:
            raise ConfigError(
                f"The last stage of the curriculum lacks {', '.join(missing)}, which the policy would never "
                f"learn to use. Add {'it' if len(missing) == 1 else 'them'}, or leave the sensor out of env."
            )
        self.allowed: NDArray[np.bool_] = np.array(
            [[name in stage.sensors for name in self.sensors] for stage in config.stages]
        )
        self.stage = 0
        self.changes: list[dict[str, Any]] = []
        """Every stage change so far, for `curriculum.json`."""
        self._below = 0
        self._recent: deque[bool] = deque(maxlen=config.window_episodes)

    @property
    def _furthest(self) -> int:
        """The latest stage that was reached so far: after a setback, its sensors are not new again."""
        return max([self.stage, *(int(change["after"]) for change in self.changes)])

    @property
    def weights(self) -> NDArray[np.float64]:
        """(stages,) share of the new episodes at each stage: the current one, and a replay of older ones."""
        weights = np.zeros(len(self.config.stages))
        weights[: self.stage] = self.config.replay_share / max(self.stage, 1)
        weights[self.stage] = 1.0 - weights.sum()
        return weights

    def update(self, episodes: Iterable[FinishedEpisode], env_steps: int) -> StageChange | None:
        """Count the episodes that ended and decide.

        Args:
            episodes: Those of a rollout; only those of the current stage count, all of them.
            env_steps: Steps of the run so far, for the record.
        """
        counted = [e for e in episodes if e.stage == self.stage and e.status is not EpisodeStatus.ERROR]
        if not counted:
            return None
        self._recent.extend(e.status is EpisodeStatus.SUCCESS for e in counted)
        config = self.config
        decision = judge_stage(
            sum(self._recent),
            len(self._recent),
            self._below,
            theta=config.promote_at,
            theta_demote=config.demote_below,
            min_episodes=config.min_episodes,
            patience=config.patience,
        )
        self._below = decision.below
        after = next_stage(self.stage, decision.verdict, len(config.stages))
        if decision.verdict is Verdict.STAY or after == self.stage:
            return None
        change = StageChange(
            before=self.stage,
            after=after,
            success_rate=sum(self._recent) / len(self._recent),
            low=decision.interval.low,
            high=decision.interval.high,
            episodes=len(self._recent),
            new_sensors=tuple(
                name
                for m, name in enumerate(self.sensors)
                if self.allowed[after, m] and not self.allowed[: self._furthest + 1, m].any()
            ),
        )
        self.stage, self._below = after, 0
        self._recent.clear()
        record = change._asdict() | {"new_sensors": list(change.new_sensors)}  # as JSON has it
        self.changes.append({"env_steps": env_steps} | record)
        return change

    def open_stage(
        self, policy: ActorCritic, augmenter: Augmenter, change: StageChange | None = None
    ) -> None:
        """Let the episodes that begin from now on have the senses of the current stage.

        Args:
            policy: Its senses that have just joined start nearly shut.
            augmenter: Of the worlds.
            change: What led to the stage; None at the start of training and after a resume.
        """
        for name in () if change is None else change.new_sensors:
            policy.perception.damp(name, self.config.new_sense_bias)
        augmenter.set_stages(self.allowed, self.weights)

    def metrics(self) -> dict[str, Metric]:
        """Where the curriculum stands."""
        found: dict[str, Metric] = {"curriculum/stage": Mean.of(self.stage)}
        if self._recent:
            low = judge_stage(
                sum(self._recent),
                len(self._recent),
                theta=self.config.promote_at,
                theta_demote=self.config.demote_below,
                min_episodes=1,
                patience=self.config.patience,
            ).interval.low
            found["curriculum/success_lower"] = Mean.of(low)
        return found

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        recent = [int(success) for success in self._recent]
        return {"stage": self.stage, "below": self._below, "recent": recent, "changes": self.changes}

    def from_json(self, values: Mapping[str, Any]) -> None:
        """Go on where `to_json` was called."""
        self.stage = int(values["stage"])
        self._below = int(values["below"])
        self._recent.extend(bool(success) for success in values["recent"])
        self.changes = list(values["changes"])
