"""Reward terms, each a pure function from what happened in N worlds at one step to N numbers.

The horizon `max_steps` makes the terms sums over an episode that are bounded whatever its length: per-step
penalties are divided by it, and are not paid beyond it. Otherwise a long solved episode could rank below a
short idle one, and a bonus for each safe step would pay an agent for standing still.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


def task_term(rewards: Floats, active: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the environment's own reward, (N,); 0 where nobody acted.

    Args:
        rewards: (N,) reward of the step, in the task's own unit.
        active: (N,) False for steps that nobody took: the reset step of an autoreset, a broken world.

    Raises:
        ValueError: The shapes differ.
    """
    _check_shapes(rewards=rewards, active=active)
    return np.where(active, rewards, 0.0).astype(np.float32)


def divergence_term(
    divergence: Floats, active: NDArray[np.bool_], steps: Integers, *, max_steps: int
) -> NDArray[np.float32]:
    """Return divergence / max_steps, (N,): over an episode, at most the mean divergence of its steps.

    Args:
        divergence: (N,) divergence between the policy given one sense and given all, nats, >= 0, from a copy
            of the network that is frozen during a rollout: otherwise the same deed earns another reward
            later.
        active: (N,) False for steps that nobody took.
        steps: (N,) steps of the episode so far, this one included; beyond `max_steps` nothing is paid.
        max_steps: Length of the longest episode, or, where there is no limit, the horizon that penalties are
            spread over; >= 1.

    Raises:
        ValueError: The shapes differ, or `max_steps` is below 1.
    """
    _check_shapes(divergence=divergence, active=active, steps=steps)
    _check_horizon(max_steps)
    paid = active & (steps <= max_steps)
    return np.where(paid, divergence / max_steps, 0.0).astype(np.float32)


def safety_term(
    violated: NDArray[np.bool_],
    solved: NDArray[np.bool_],
    steps: Integers,
    violations: Integers,
    *,
    max_steps: int,
    violation_cost: float = 1.0,
) -> NDArray[np.float32]:
    """Return [solved] * (1 - violations / steps) - [violated] * violation_cost / max_steps, (N,).

    The bonus is paid once, at the end, and only for solving: an agent that does nothing is safe, and earns
    nothing for it. Summed over an episode the term lies in [-violation_cost, 1].

    Args:
        violated: (N,) this step was unsafe, or a safety layer had to replace the proposed action.
        solved: (N,) the episode ended with success at this step.
        steps: (N,) steps of the episode so far, this one included.
        violations: (N,) violations of the episode so far, this step included.
        max_steps: Length of the longest episode; >= 1. Violations beyond as many steps cost nothing more.
        violation_cost: Cost of an episode in which every step is a violation, >= 0.

    Raises:
        ValueError: The shapes differ, a number is out of range, or a world that acted has more violations
            than steps.
    """
    _check_shapes(violated=violated, solved=solved, steps=steps, violations=violations)
    _check_horizon(max_steps)
    if not 0 <= violation_cost < np.inf:
        raise ValueError(f"violation_cost must be a finite number >= 0, found {violation_cost}.")
    if np.any((violations < violated) | (violations > steps)):
        world = int(np.flatnonzero((violations < violated) | (violations > steps))[0])
        raise ValueError(
            f"Expected violations from 0 to steps, this step included; world {world} has "
            f"{violations[world]} in {steps[world]} steps, violated now: {bool(violated[world])}."
        )
    bonus = np.where(solved, 1.0 - violations / np.maximum(steps, 1), 0.0)
    cost = np.where(violated & (violations <= max_steps), violation_cost / max_steps, 0.0)
    return (bonus - cost).astype(np.float32)


def _check_shapes(**arrays: NDArray[Any]) -> None:
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"Expected one number per world in every array, found shapes {shapes}.")


def _check_horizon(max_steps: int) -> None:
    if max_steps < 1:
        raise ValueError(f"max_steps must be at least 1, found {max_steps}.")
