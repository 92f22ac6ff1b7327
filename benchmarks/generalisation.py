"""Does a policy use combinations of senses that it was never trained on? DAPO, its parts, and plain PPO.

python benchmarks/generalisation.py                     every arm, three seeds: about two hours of one core
python benchmarks/generalisation.py --arms 'ppo;dapo'   some arms; runs that are complete are not repeated
python benchmarks/generalisation.py --report            only the tables, from the runs that are there
python benchmarks/generalisation.py --report --markdown the same as docs/benchmarks.md has them
python benchmarks/generalisation.py --tune              the learning rates, on a seed of their own
python benchmarks/generalisation.py --plan confirm      what seeds 0 to 2 suggested, on seeds 3 to 9
python benchmarks/generalisation.py --plan doom         what was confirmed there, in ViZDoom
python benchmarks/generalisation.py --plan dropout      ModalDropout where training has every sense

Declared before the first run of an arm on this task:

- Task: `arena/find` with two objects in a room of 4 m, red and blue, a box and a pillar, "go to the red
  pillar", so that rgb tells them apart by both and depth by shape alone; a wrong choice ends the episode and
  costs nothing. Episodes of training have rgb+instruction, depth+speech or all four senses, a third each.
  Held out: rgb+speech and depth+instruction. Who goes to either object at random succeeds in half of them.
- Score of a run: success over 200 episodes of unseen seeds with each held-out combination, deterministic.
- Score of an arm: interquartile mean of its runs' scores (seeds x held-out combinations), with a 95 %
  interval of the stratified bootstrap (strata: combinations; resampled: seeds).
- Claim under test: DAPO's score is 23 % above that of PPO with concatenation. Supported when the interval of
  the ratio lies above 1, refuted when it lies below 1.23; it can be both, and neither.
- Compared at equal frames, and at equal CPU time: that which the baseline needs for its frames (a slower arm
  is judged as it is at that time, before its learning rate has been annealed).
- Length: 200,000 steps. Seeds: three, 0 to 2, so that every arm can be run: 17 arms at one to three minutes
  of CPU time a run.
- Equal effort: the learning rate of `ppo` and of `dapo` is the better of the same two on seed 100, judged by
  the combinations trained on. Everything else is what the presets use.
- ModalDropout: success with one sense missing (200 episodes for each of the four), against that of DAPO
  without dropout, by the same interquartile mean and bootstrap; its price is success with all senses.

Seen before this declaration: an older task (three objects, three colours and shapes, 32 pixels, a penalty
of 0.5 for a wrong choice, 600,000 steps, five seeds of `ppo` and `dapo`). Within it depth+speech was hardly
learnt (0.26 to 0.63, chance 0.33) and both arms stayed at or below chance with held-out combinations, so
that nothing could be said; its runs took 209 and 866 s of CPU time. This one was chosen on seed 100, by
short runs of `ppo` and, on other variants, of `dapo`: with three objects depth+speech was not learnt in
200,000 steps; with the pairs the other way round (trained: rgb+speech, depth+instruction) two objects were
so easy that `ppo` solved what was held out, too (0.93 and above), which leaves nothing to compare. As
declared `ppo` reached 0.94 and above with what it trained on, and 0.41 and 0.61 with what it did not. That
`ppo` had to leave room on seed 100 favours the others there; seeds 0 to 2 had not been looked at. Arms and
rules are those of the older task, but for two arms that were added when the tuning runs had been seen:
`ppo, dropout 0.1`, to tell dropout from the rest, and `ppo, learning rate 0.004`, since the combinations
trained on are near 1 with either rate (0.99 and 0.98) and cannot tell them apart, while those held out can
(0.47 and 0.13 with the rate that the rule takes, 0.98 and 0.84 with the other). The claim is judged by the
rule, and read beside that arm.

Declared after seeds 0 and 1 of all arms and before any run of seeds 3 to 9: `dapo with concatenation`, the
method on the network of `ppo`, did better than `dapo` on what is held out (0.56 to 0.90), and no arm did much
better. An arm that is chosen for that looks better than it is, so that it is judged anew on seven seeds of
its own, beside `ppo` and `dapo`, by the same scores, intervals and claim (`--plan confirm`).

Declared after that and before any run of these arms: `--plan confirm` also switches off each part of `dapo
with concatenation` in turn (gating, alignment, contrastive loss, KL penalty, dropout) on the same seven
seeds. Each is compared with the whole method: a part helps when the interval of the ratio lies below 1.

Declared before any run of `--plan doom` but those of seed 100: what was confirmed above is tried in a real
engine, `ppo` against `dapo with concatenation`, seeds 0 to 4, by the same combinations, scores, intervals and
claim. Task: `doom/find` with a red pillar and a medikit, both always there, in a room of 10 m without walls;
24 pixels, 40 steps, 300,000 steps of training. Looked at on seed 100, `ppo` only: with a blue skull in place
of the medikit depth told the objects apart too badly (depth+speech 0.46 and 0.53 at learning rates 0.002 and
0.001, chance 0.5); with the medikit 400,000 steps brought the trained combinations to 0.88 to 0.94 at 0.002
(held out: 0.88 and 0.74) and to 0.62 to 0.69 at 0.004. Both arms take 0.002; the method was not tuned there.

Declared before any run of `--plan dropout`: with the combinations above two thirds of the episodes lack two
senses without any dropout, so that they say little of what ModalDropout does for somebody whose agent always
has all its senses in training. `dapo with concatenation` on the same task, all four senses in every episode,
p in 0, 0.1, 0.2 and 0.3, seeds 0 to 4; scores as of ModalDropout above. That it raises success with one sense
missing is supported for a p when the interval of its ratio to p = 0 lies above 1.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from generalisation_arms import (
    ALWAYS_ALL,
    ARMS,
    BASELINE,
    BEST_RATE,
    CONFIRMED,
    CONFIRMING_SEEDS,
    DOOM_ARMS,
    DOOM_SEEDS,
    DROPPING,
    DROPPING_SEEDS,
    HELD_OUT,
    LEARNING_RATES,
    METHOD,
    SWITCHED_OFF,
    TRAINED,
    TUNING_SEED,
)
from generalisation_tables import dropout_report, markdown, report
from recording import CONSOLE, RESULTS, describe_machine, installed_versions, load_average, write_results
from rich.table import Table

from sensorium.core import available_cores

PACKAGES = ("sensorium", "torch", "numpy", "numba")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def train(
    arms: Sequence[str],
    seeds: Sequence[int],
    jobs: int,
    flags: Sequence[str],
    folder: Path,
    *,
    at_equal_cpu: bool,
) -> None:
    """Train what is not there yet, `jobs` runs at a time, one thread each; the baseline first.

    With `at_equal_cpu` arms are also judged once they have taken the CPU time of the baseline.
    """
    first = [arm for arm in arms if arm == BASELINE]
    for group in (first, [arm for arm in arms if arm != BASELINE]):
        budget = baseline_cpu_s(seeds, folder) if at_equal_cpu else None
        wanted = [
            (arm, seed) for seed in seeds for arm in group if not result_file(folder, arm, seed).exists()
        ]
        more = list(flags) if budget is None else [*flags, "--cpu-s", f"{budget:.1f}"]
        with ThreadPoolExecutor(jobs) as pool:
            for arm, seed in wanted:
                pool.submit(_run, arm, seed, result_file(folder, arm, seed), more)


def _run(arm: str, seed: int, file: Path, flags: Sequence[str]) -> None:
    script = str(Path(__file__).with_name("generalisation_run.py"))
    command = [sys.executable, script, arm, str(seed), str(file), *flags]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True)
    if done.returncode != 0:
        CONSOLE.print(f"[red]{arm}, seed {seed} failed[/red]\n{done.stderr[-2000:]}")
        return
    found = json.loads(file.read_text())
    CONSOLE.print(f"{arm}, seed {seed}: {found['cpu_s']:.0f} CPU s, held out {_held_out(found['success'])}")


def _held_out(success: dict[str, float]) -> str:
    return ", ".join(f"{'+'.join(c)} {success['+'.join(c)]:.2f}" for c in HELD_OUT)


def result_file(folder: Path, arm: str, seed: int, suffix: str = "") -> Path:
    """Where the result of a run is kept."""
    name = arm.replace(",", "").replace(" ", "_")
    return folder / f"{name}-{seed}{suffix}.json"


def baseline_cpu_s(seeds: Sequence[int], folder: Path) -> float | None:
    """Median CPU time of the baseline's runs; None before there are any."""
    files = [result_file(folder, BASELINE, seed) for seed in seeds]
    times = [json.loads(f.read_text())["cpu_s"] for f in files if f.exists()]
    return float(np.median(times)) if times else None


def read_runs(arm: str, seeds: Sequence[int], folder: Path) -> list[dict[str, Any]] | None:
    """What the runs of an arm found; None unless all are there."""
    files = [result_file(folder, arm, seed) for seed in seeds]
    return [json.loads(f.read_text()) for f in files] if all(f.exists() for f in files) else None


def tune(folder: Path, jobs: int, flags: Sequence[str]) -> None:
    """Train the baseline and the method with each learning rate and print what they reach."""
    tried = [(arm, lr) for arm in (BASELINE, METHOD) for lr in LEARNING_RATES]
    with ThreadPoolExecutor(jobs) as pool:
        for arm, lr in tried:
            file = result_file(folder, arm, TUNING_SEED, f"-lr{lr:g}")
            if not file.exists():
                pool.submit(_run, arm, TUNING_SEED, file, [*flags, "--lr", str(lr)])
    table = Table(title=f"success with the combinations trained on, seed {TUNING_SEED}")
    for heading in ("arm", "lr", "mean", *("+".join(c) for c in TRAINED)):
        table.add_column(heading)
    for arm, lr in tried:
        success = json.loads(result_file(folder, arm, TUNING_SEED, f"-lr{lr:g}").read_text())["success"]
        rates = [success["+".join(c)] for c in TRAINED]
        chosen = " (used)" if lr == BEST_RATE[arm] else ""
        table.add_row(arm, f"{lr:g}{chosen}", f"{np.mean(rates):.3f}", *(f"{rate:.3f}" for rate in rates))
    CONSOLE.print(table)


@dataclass(frozen=True, slots=True)
class Plan:
    """What was declared at the top: which arms, with which seeds."""

    name: str
    """Of the result file."""
    arms: Sequence[str]
    seeds: Sequence[int]
    world: str = "arena"
    compare: Callable[[Mapping[str, Sequence[dict[str, Any]]]], dict[str, Any]] = report
    """Arm -> what its runs found; prints tables."""


PLANS = {
    "arms": Plan("generalisation", tuple(ARMS), range(3)),
    "confirm": Plan(
        "generalisation_confirmed", (BASELINE, METHOD, *CONFIRMED, *SWITCHED_OFF), CONFIRMING_SEEDS
    ),
    "doom": Plan("generalisation_doom", DOOM_ARMS, DOOM_SEEDS, "doom"),
    "dropout": Plan(
        "generalisation_dropout",
        tuple(DROPPING),
        DROPPING_SEEDS,
        compare=lambda runs: {"dropout": dropout_report(runs, ALWAYS_ALL)},
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, print the tables, write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", choices=list(PLANS), default="arms", help="default: %(default)s")
    parser.add_argument("--arms", default=None, help="only these of the plan, separated by semicolons")
    parser.add_argument("--seeds", type=int, default=None, help="that many, from 0, instead of the plan's")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="runs at a time")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the documentation, too")
    parser.add_argument("--tune", action="store_true", help="try the learning rates instead")
    parser.add_argument("--folder", type=Path, default=None, help="where each run's result is kept")
    parser.add_argument("--output", type=Path, default=None, help="result file")
    args, flags = parser.parse_known_args(arguments)
    plan = PLANS[args.plan]
    folder = args.folder or RESULTS / ("generalisation" if plan.world == "arena" else plan.name)
    flags += ["--world", plan.world]
    if args.tune:
        tune(folder, args.jobs, flags)
        return 0
    seeds = plan.seeds if args.seeds is None else range(args.seeds)
    load_before = load_average()
    if not args.report:
        wanted = plan.arms if args.arms is None else [arm for arm in plan.arms if arm in args.arms.split(";")]
        train(wanted, seeds, args.jobs, flags, folder, at_equal_cpu=BASELINE in plan.arms)
    runs = {arm: read for arm in plan.arms if (read := read_runs(arm, seeds, folder)) is not None}
    if plan.arms[0] not in runs:
        CONSOLE.print(f"{plan.arms[0]} is not complete; nothing to compare with.")
        return 1
    found = plan.compare(runs)
    if args.markdown:
        sys.stdout.write(markdown(found) + "\n")
    machine = describe_machine() | {"load_before": load_before, "load_after": load_average()}
    write_results(
        args.output or RESULTS / f"{plan.name}.json",
        {"machine": machine, "versions": installed_versions(PACKAGES), "seeds": list(seeds)} | found,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
