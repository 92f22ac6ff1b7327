"""Shares of the budget that follow what was useful: learnt weights per kind of part, bounded and logged.

After every step the agent's action is compared with what it had been shown. A kind of part is *used* as far
as rare words of it turn up in the action, or the agent asked for more of it; after an episode its success
says whether the shares of that episode should be approached or left.

    log w_k <- clip(log w_k + rate * (used_k - mean(used)),              log low, log high)   after a step
    log w_k <- clip(log w_k + rate * (success - b) * (share_k - mean),   log low, log high)   after an episode

with b the moving average of success. This is a bounded bandit-like rule of this project, not taken from a
paper; its weights multiply those of `weights`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

from pydantic import Field

from sensorium.observations.base import Observation
from sensorium.representations.base import Level, Record, Representation
from sensorium.representations.config import AdaptiveConfig
from sensorium.representations.scoring import terms


class AdaptiveState(Record):
    """What was learnt so far; survives a trip through JSON."""

    weights: dict[str, float] = Field(default_factory=dict)
    """Kind of value -> weight."""
    success: float | None = None
    """Moving average of success; None before the first episode."""
    episodes: int = 0
    shares: dict[str, float] = Field(default_factory=dict)
    """Kind -> tokens shown since the episode began."""


class Adaptive:
    """Learns a weight per kind of part.

    Args:
        config: Rate and bounds.
        state: To go on from.
    """

    def __init__(self, config: AdaptiveConfig, state: AdaptiveState | None = None) -> None:
        self._config = config
        self.state = state or AdaptiveState()

    @property
    def weights(self) -> Mapping[str, float]:
        """Kind -> weight, in [low, high]."""
        return self.state.weights

    def acted(
        self, observation: Observation, shown: Representation, action: str, fetched: tuple[str, ...] = ()
    ) -> dict[str, float]:
        """Learn from one action.

        Args:
            observation: What was perceived.
            shown: What of it was shown.
            action: What the agent did.
            fetched: Ids of parts it asked for.

        Returns:
            Kind -> how much it was used, in [0, 1]: for the log.
        """
        used: dict[str, float] = defaultdict(float)
        shares = defaultdict(float, self.state.shares)
        said = terms(action)
        rare = self._rare(observation)
        for entry in shown.account.entries:
            if entry.part_id not in observation:
                continue
            part = observation[entry.part_id]
            kind = part.value.kind
            shares[kind] += entry.tokens_after
            credit = 1.0 if entry.part_id in fetched else 0.0
            if entry.level not in (Level.DROPPED, Level.REFERENCE) and part.text is not None:
                own = rare & terms(part.text)
                credit = max(credit, min(1.0, len(own & said) / 3.0))
            used[kind] = max(used[kind], credit)
        if used:
            mean = sum(used.values()) / len(used)
            self._move({kind: value - mean for kind, value in used.items()})
        self.state = self.state.model_copy(update={"shares": dict(shares)})
        return dict(used)

    def finished(self, success: float) -> None:
        """Learn from the end of an episode.

        Args:
            success: In [0, 1].

        Raises:
            ValueError: It is not in [0, 1].
        """
        if not 0.0 <= success <= 1.0:
            raise ValueError(f"success must be in [0, 1], found {success}")
        before = self.state.success
        total = sum(self.state.shares.values())
        if before is not None and total > 0:
            shares = {kind: tokens / total for kind, tokens in self.state.shares.items()}
            mean = 1.0 / len(shares)
            self._move({kind: (success - before) * (share - mean) for kind, share in shares.items()})
        average = success if before is None else before + self._config.rate * (success - before)
        self.state = self.state.model_copy(
            update={"success": average, "episodes": self.state.episodes + 1, "shares": {}}
        )

    def _move(self, steps: Mapping[str, float]) -> None:
        low, high = math.log(self._config.low), math.log(self._config.high)
        weights = dict(self.state.weights)
        for kind, step in steps.items():
            moved = math.log(weights.get(kind, 1.0)) + self._config.rate * step
            weights[kind] = math.exp(min(high, max(low, moved)))
        self.state = self.state.model_copy(update={"weights": weights})

    @staticmethod
    def _rare(observation: Observation) -> frozenset[str]:
        """Words that only one part of the observation has."""
        once: set[str] = set()
        several: set[str] = set()
        for part in observation.parts:
            words = terms(part.text or "")
            several |= once & words
            once |= words
        return frozenset(once - several)
