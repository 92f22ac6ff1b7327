"""The two plots of `step_grid.py`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "sensorium", "axes.spines.top": False, "axes.spines.right": False}

from matplotlib import pyplot as plt  # noqa: E402  # the backend is chosen before

Runs = Mapping[str, Sequence[Mapping[str, Any]]]
_COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73")
"""Of Okabe and Ito: told apart also by those who see colours differently."""
_DASHES = ("-", "--", "-", ":")
"""Lines that lie upon each other are still seen."""
_SIZE_INCHES = (7.0, 3.6)


def plot_curves(arms: Runs, budget: int, file: Path) -> None:
    """Success on unseen tasks over actions: a thin line for each seed, a thick one for their mean.

    Args:
        arms: Arm -> its runs.
        budget: Actions at which arms are compared.
        file: Where to.
    """
    figure, axes = plt.subplots(figsize=_SIZE_INCHES, layout="constrained")
    for (arm, runs), colour in zip(arms.items(), _COLOURS, strict=False):
        lines = [_line(run["evaluations"]) for run in runs]
        for actions, success in lines:
            axes.plot(actions, success, color=colour, linewidth=0.8, alpha=0.5)
        points = np.linspace(0, min(actions[-1] for actions, _ in lines), 200)
        mean = np.mean([np.interp(points, *line) for line in lines], axis=0)
        axes.plot(points, mean, color=colour, linewidth=2.2, label=arm)
    axes.axvline(budget, color="#888888", linewidth=0.8, linestyle=":")
    axes.set(xlabel="actions (three sampled tokens each)", ylabel="success on unseen tasks", ylim=(0, 1.02))
    _finish(figure, axes, file)


def plot_prompts(arms: Runs, file: Path) -> None:
    """Mean length of the prompt over the number of the step in its episode."""
    figure, axes = plt.subplots(figsize=_SIZE_INCHES, layout="constrained")
    for (arm, runs), colour, dashes in zip(arms.items(), _COLOURS, _DASHES, strict=False):
        steps = min(len(run["prompt_tokens_by_step"]) for run in runs)
        mean = np.mean([run["prompt_tokens_by_step"][:steps] for run in runs], axis=0)
        axes.plot(range(1, steps + 1), mean, dashes, color=colour, linewidth=2.2, label=arm)
    axes.set(xlabel="step of the episode", ylabel="tokens of the prompt", ylim=(0, None))
    _finish(figure, axes, file)


def _line(evaluations: Sequence[Mapping[str, int]]) -> tuple[list[int], list[float]]:
    rates = [one["successes"] / one["episodes"] for one in evaluations]
    return [one["actions"] for one in evaluations], rates


def _finish(figure: Any, axes: Any, file: Path) -> None:
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    axes.grid(alpha=0.25)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
