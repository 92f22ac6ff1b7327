"""When a curriculum goes on to the next stage, or back: a rule over counted successes."""

from enum import StrEnum
from typing import NamedTuple

from sensorium.core.intervals import Interval, wilson_interval


class Verdict(StrEnum):
    """What a curriculum does next."""

    PROMOTE = "promote"
    """The stage is mastered: go on to the next one."""
    DEMOTE = "demote"
    """The stage is too hard: go back to the one before."""
    STAY = "stay"


class PromotionDecision(NamedTuple):
    """Verdict, and what led to it."""

    verdict: Verdict
    below: int
    """Checks in a row at which the stage looked too hard; give it to the next check, keep it in a
    checkpoint."""
    interval: Interval
    """Wilson interval of the success rate at this stage."""


def judge_stage(
    successes: int,
    trials: int,
    below: int = 0,
    *,
    theta: float,
    theta_demote: float,
    min_episodes: int,
    patience: int,
    confidence: float = 0.95,
) -> PromotionDecision:
    """Promote when low >= theta; demote when high < theta_demote at `patience` checks in a row; else stay.

    (low, high) is the Wilson interval of the success rate. Between the two thresholds nothing happens, so
    that a success rate that does not change never leads to both verdicts. Demotion needs several checks, as a
    stage that has just begun is always worse than the one before.

    Args:
        successes: Episodes that solved the task at this stage, over a recent window.
        trials: Episodes at this stage in the window: all that finished, not a selection by difficulty or
            success; episodes that an engine broke off are not counted.
        below: `PromotionDecision.below` of the check before; 0 at the first check of a stage.
        theta: Success rate that counts as mastered, within (0, 1).
        theta_demote: Success rate that counts as too hard, within [0, theta); 0 never demotes.
        min_episodes: With fewer trials the verdict is to stay, and `below` stays what it was; at least 1.
        patience: Checks in a row before a demotion, at least 1.
        confidence: Of the interval, two-sided.

    Raises:
        ValueError: An argument is out of range.
    """
    if not 0 <= theta_demote < theta < 1:
        raise ValueError(
            f"Expected 0 <= theta_demote < theta < 1, found theta_demote={theta_demote} and theta={theta}. "
            f"A lower bound never reaches 1, and equal thresholds would swing between stages."
        )
    if min_episodes < 1 or patience < 1 or below < 0:
        raise ValueError(
            f"Expected min_episodes >= 1, patience >= 1 and below >= 0, "
            f"found {min_episodes}, {patience} and {below}."
        )
    interval = wilson_interval(successes, trials, confidence)
    if trials < min_episodes:
        return PromotionDecision(Verdict.STAY, below, interval)
    if interval.low >= theta:
        return PromotionDecision(Verdict.PROMOTE, 0, interval)
    if interval.high >= theta_demote:
        return PromotionDecision(Verdict.STAY, 0, interval)
    if below + 1 >= patience:
        return PromotionDecision(Verdict.DEMOTE, 0, interval)
    return PromotionDecision(Verdict.STAY, below + 1, interval)


def next_stage(stage: int, verdict: Verdict, num_stages: int) -> int:
    """Number of the stage after a verdict; the first stage is not left downwards, nor the last upwards.

    Raises:
        ValueError: There is no such stage.
    """
    if not 0 <= stage < num_stages:
        raise ValueError(f"Expected a stage from 0 to {num_stages - 1}, found {stage}.")
    move = {Verdict.PROMOTE: 1, Verdict.DEMOTE: -1, Verdict.STAY: 0}[verdict]
    return min(max(stage + move, 0), num_stages - 1)
