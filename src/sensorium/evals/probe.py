"""What every suite works with: a loaded run, how many episodes to play, and whom to tell."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorium.core import derive_seed
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.evals.episodes import EpisodeResults, play_episodes
from sensorium.evals.faults import Fault, FaultKind
from sensorium.evals.loading import LoadedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """What a user may choose; a suite reads what concerns it."""

    episodes: int | None = None
    """Episodes per condition; None: those of the run's settings."""
    seed: int | None = None
    """Decides episodes and faults; None: derived from the run's seed, never one of training."""
    kinds: tuple[FaultKind, ...] | None = None
    """Kinds of sensor fault; None: the suite's own choice."""
    recovery_steps: int | None = None
    """Length of a failure that ends; None: a quarter of the clean episodes' mean length."""
    combinations: Path | str | None = None
    """Held-out combinations, ``"rgb+speech,depth+instruction"``, or a YAML file: `held_out`, `trained`."""
    trained: str | None = None
    """Combinations of training, ``"rgb+instruction,all"``."""
    sampled: bool = False
    """Draw actions, as training does, instead of taking the likeliest ones."""
    world: dict[str, Any] = field(default_factory=dict)
    """Settings of the environment to change, nested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Plays episodes of one run for a suite and reports progress.

    Without a function to call, nothing is reported.
    """

    run: LoadedRun
    request: SuiteRequest
    env: MultiModalVectorEnv
    """The worlds that a condition plays in unless it says otherwise."""
    shifted: MultiModalVectorEnv | None = None
    """Worlds with changed settings, where a suite compares both."""
    on_total: Callable[[int], None] | None = None
    """Called once with the number of episodes to come."""
    on_episode: Callable[[str], None] | None = None
    """Called with the condition's name when an episode ends."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The policy's sensors, canonical order."""
        return self.run.agent.policy.perception.names

    @property
    def seed(self) -> int:
        """Decides episodes and faults."""
        return evaluation_seed(self.run.config.seed) if self.request.seed is None else self.request.seed

    @property
    def episodes(self) -> int:
        """Episodes per condition, before rounding up."""
        return self.request.episodes or self.run.config.evaluation.subset_episodes

    @property
    def full_episodes(self) -> int:
        """Episodes with all senses, where a suite gives them more."""
        return self.request.episodes or self.run.config.evaluation.episodes

    def expect(self, episodes: Iterable[int]) -> None:
        """Announce the conditions, each with its wanted number of episodes."""
        if self.on_total is not None:
            worlds = self.env.num_envs
            self.on_total(sum(-(-wanted // worlds) * worlds for wanted in episodes))

    def play(
        self,
        condition: str,
        *,
        episodes: int | None = None,
        blanked: frozenset[str] = frozenset(),
        fault: Fault | None = None,
        env: MultiModalVectorEnv | None = None,
    ) -> EpisodeResults:
        """Play the same episodes as every other condition; see `play_episodes`."""
        report = self.on_episode
        return play_episodes(
            self.run.agent,
            env or self.env,
            episodes=episodes or self.episodes,
            seed=self.seed,
            blanked=blanked,
            fault=fault,
            sampled=self.request.sampled,
            on_episode=None if report is None else lambda: report(condition),
        )


def evaluation_seed(run_seed: int) -> int:
    """Seed of a run's evaluations; far from those of its training."""
    return derive_seed(run_seed, "evaluation") >> 1
