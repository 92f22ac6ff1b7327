"""Steps against trajectories: `grpo_step_grid` beside GRPO of whole episodes that keeps the conversation.

python benchmarks/step_grid.py                         four arms, three seeds, one after another: half an hour
python benchmarks/step_grid.py --arms trajectory       some arms; runs that are complete are not repeated
python benchmarks/step_grid.py --report                only table, plots and result file, from runs there are

Every arm is the preset with its 32 episodes an update; `ARMS` says what differs. Arms that solve the task
need fewer actions an episode, so they are compared at an equal budget of actions (each is three sampled
tokens): the largest that every run reached. Any other flag is passed on to ``sensorium train``, e.g.
``--algo.total_updates 2``.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from recording import CONSOLE, RESULTS, describe_machine, installed_versions, load_average, write_results
from rich.table import Table
from step_grid_plots import plot_curves, plot_prompts

from sensorium.cli.train import resolve_config
from sensorium.core import wilson_interval
from sensorium.core.files import atomic_write_json
from sensorium.metrics.sinks import read_jsonl
from sensorium.trainers.language.config import LanguageRunConfig
from sensorium.trainers.run_directory import run_path

PRESET = "grpo_step_grid"
KEPT = ["--observation.context_management.drop_full_history", "false"]
ARMS: dict[str, list[str]] = {
    "episode and step": [],
    "step": ["--algo.unit", "step"],
    "trajectory": ["--algo.unit", "trajectory", *KEPT],
    "trajectory, history dropped": ["--algo.unit", "trajectory"],
}
"""Arm -> what differs from the preset, which credits a step with both its episode and itself."""
FOLDER = RESULTS / "step_grid"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
PACKAGES = ("sensorium", "torch", "transformers", "numpy", "gymnasium", "minigrid")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def train(arm: str, seed: int, folder: Path, flags: Sequence[str]) -> None:
    """Train an arm with a seed in a process of its own, unless its result is there, and write what was found.

    Raises:
        SystemExit: The command failed; it has said why.
    """
    given = ["--seed", str(seed), "--evaluation.at_start", "true", *ARMS[arm], *flags]
    config = resolve_config(PRESET, [], given)
    file = result_file(folder, arm, seed)
    if file.exists() and json.loads(file.read_text())["settings"] == config.digest():
        return
    with tempfile.TemporaryDirectory(prefix="sensorium-step-grid-") as runs:
        command = [
            sys.executable,
            "-m",
            "sensorium.cli.main",
            "train",
            PRESET,
            "--runs",
            runs,
            "--json",
            *given,
        ]
        before = _cpu_s_of_children()
        process = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL)
        if process.returncode != 0:
            raise SystemExit(process.returncode)
        cpu_s = _cpu_s_of_children() - before
        assert isinstance(config, LanguageRunConfig)
        found = {
            "arm": arm,
            "seed": seed,
            "settings": config.digest(),
            "flags": [*ARMS[arm], *flags],
            "cpu_s": cpu_s,
        }
        found |= read_run(run_path(config, Path(runs)), config.evaluation.tasks)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write_json(file, found)
    last = found["evaluations"][-1]
    CONSOLE.print(f"{arm}, seed {seed}: {last['successes']} of {last['episodes']}, {cpu_s:.0f} CPU s")


def read_run(run: Path, tasks: int) -> dict[str, Any]:
    """Learning curve, evaluations and lengths of prompts of a run."""
    actions, curve, evaluations = 0, list[dict[str, float]](), list[dict[str, int]]()
    for row in read_jsonl(run / "metrics.jsonl"):
        if "tokens/sampled" in row:
            played = round(row["tokens/sampled"] / row["tokens/answer"])
            actions += played
            curve.append(
                {
                    "actions": actions,
                    "sampled_tokens": row["tokens/sampled"],
                    "read_tokens": round(row["tokens/prompt"] * played),
                    "success": row["rollout/success_rate"],
                    "episode_length": row["rollout/episode_length"],
                    "prompt_tokens": row["tokens/prompt"],
                }
            )
        if "eval/success_rate" in row:
            judged = tasks - int(row["eval/failed_episodes"])
            won = round(row["eval/success_rate"] * judged)
            evaluations.append({"actions": actions, "successes": won, "episodes": judged})
    return {"curve": curve, "evaluations": evaluations, "prompt_tokens_by_step": _prompts_by_step(run)}


def _prompts_by_step(run: Path) -> list[float]:
    """Mean tokens of the prompts of an episode's first step, second step and so on, of the episodes kept."""
    lengths: list[list[int]] = []
    for file in sorted((run / "episodes").glob("*.json")):
        for episode in json.loads(file.read_text()):
            for number, step in enumerate(episode["steps"]):
                if number == len(lengths):
                    lengths.append([])
                lengths[number].append(step["completion"]["usage"]["prompt_tokens"])
    return [float(np.mean(one)) for one in lengths]


def _cpu_s_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def result_file(folder: Path, arm: str, seed: int) -> Path:
    """Where the result of a run is kept."""
    return folder / f"{arm.replace(',', '').replace(' ', '_')}-{seed}.json"


def read_arms(arms: Sequence[str], seeds: Sequence[int], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Arm -> its runs, of those arms that have all of them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for arm in arms:
        files = [result_file(folder, arm, seed) for seed in seeds]
        if all(file.exists() for file in files):
            found[arm] = [json.loads(file.read_text()) for file in files]
    return found


def summarise(runs: Sequence[Mapping[str, Any]], budget: int) -> dict[str, Any]:
    """What the runs of an arm came to, at the budget and at their end."""
    prompts = [run["prompt_tokens_by_step"] for run in runs]
    last = min(map(len, prompts)) - 1
    return {
        "at_budget": _judged([_within(run["evaluations"], budget) for run in runs]),
        "at_end": _judged([run["evaluations"][-1] for run in runs]),
        "actions": [run["curve"][-1]["actions"] for run in runs],
        "sampled_tokens": [round(sum(row["sampled_tokens"] for row in run["curve"])) for run in runs],
        "read_tokens": [sum(row["read_tokens"] for row in run["curve"]) for run in runs],
        "last_step": last + 1,
        "first_prompt_tokens": float(np.mean([one[0] for one in prompts])),
        "last_prompt_tokens": float(np.mean([one[last] for one in prompts])),
        "cpu_s": [run["cpu_s"] for run in runs],
    }


def _within(evaluations: Sequence[dict[str, int]], budget: int) -> dict[str, int]:
    """The last evaluation that is within the budget."""
    return [one for one in evaluations if one["actions"] <= budget][-1]


def _judged(evaluations: Sequence[dict[str, int]]) -> dict[str, Any]:
    """Success over all seeds with its 95 % Wilson interval, and of each seed."""
    won, episodes = sum(e["successes"] for e in evaluations), sum(e["episodes"] for e in evaluations)
    interval = wilson_interval(won, episodes)
    return {
        "success": won / episodes,
        "ci95": [interval.low, interval.high],
        "by_seed": [e["successes"] / e["episodes"] for e in evaluations],
        "actions": [e["actions"] for e in evaluations],
    }


def print_arms(arms: Mapping[str, Mapping[str, Any]], budget: int) -> None:
    """Print a table with a row per arm."""
    table = Table(title=f"success [95 % Wilson] on unseen tasks, all seeds; budget: {budget:,} actions")
    headings = ("arm", "at the budget", "by seed", "at the end", "actions", "prompt, first to last step")
    for heading in (*headings, "read tokens", "CPU s"):
        table.add_column(heading)
    for name, arm in arms.items():
        table.add_row(
            name,
            _success(arm["at_budget"]),
            ", ".join(f"{rate:.2f}" for rate in arm["at_budget"]["by_seed"]),
            _success(arm["at_end"]),
            f"{np.mean(arm['actions']):,.0f}",
            f"{arm['first_prompt_tokens']:.0f} to {arm['last_prompt_tokens']:.0f}",
            f"{np.mean(arm['read_tokens']) / 1e6:.1f} M",
            f"{np.mean(arm['cpu_s']):.0f}",
        )
    CONSOLE.print(table)


def _success(judged: Mapping[str, Any]) -> str:
    low, high = judged["ci95"]
    return f"{judged['success']:.2f} [{low:.2f}, {high:.2f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table, draw, write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where a file is kept for each run")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of the plots")
    parser.add_argument("--output", type=Path, default=RESULTS / "step_grid.json", help="result file")
    args, flags = parser.parse_known_args(arguments)
    load_before = load_average()
    if not args.report:
        for seed in args.seeds:
            for arm in args.arms:
                train(arm, seed, args.folder, flags)
    found = read_arms(list(ARMS), args.seeds, args.folder)
    if not found:
        parser.error(f"no arm has all its runs in {args.folder}")
    budget = min(run["curve"][-1]["actions"] for runs in found.values() for run in runs)
    arms = {arm: summarise(runs, budget) for arm, runs in found.items()}
    print_arms(arms, budget)
    plot_curves(found, budget, args.images / "step_grid_curves.svg")
    plot_prompts(found, args.images / "step_grid_prompts.svg")
    content = {
        "machine": describe_machine() | {"load_before": load_before, "load_after": load_average()},
        "versions": installed_versions(PACKAGES),
        "preset": PRESET,
        "seeds": args.seeds,
        "budget_actions": budget,
        "arms": arms,
    }
    write_results(args.output, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
