"""Training that is interrupted after some optimiser steps."""

from collections.abc import Callable
from typing import Any


def stop_after(training: Any, num_steps: int, before_each: Callable[[], None] = lambda: None) -> None:
    """Interrupt a `GRPOTraining` once it has taken so many steps.

    Args:
        training: Not begun.
        num_steps: At least 1.
        before_each: Called before every step.
    """
    step, rounds, taken = training.learner.step, training._round, []

    def counted(*args: Any, **kwargs: Any) -> Any:
        before_each()
        taken.append(0)
        return step(*args, **kwargs)

    training.learner.step = counted
    training._round = lambda is_set: rounds(lambda: len(taken) >= num_steps)
