"""Does a policy use combinations of senses that it was never trained on? DAPO, its parts, and plain PPO.

python benchmarks/generalisation.py                     every arm, three seeds: about two hours of one core
python benchmarks/generalisation.py --arms 'ppo;dapo'   some arms; runs that are complete are not repeated
python benchmarks/generalisation.py --report            only the tables, from the runs that are there
python benchmarks/generalisation.py --report --markdown the same as docs/benchmarks.md has them
python benchmarks/generalisation.py --tune              the learning rates, on a seed of their own
python benchmarks/generalisation.py --confirm           what seeds 0 to 2 suggested, on seeds 3 to 9
python benchmarks/generalisation.py --world doom        what was confirmed there, in ViZDoom

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
its own, beside `ppo` and `dapo`, by the same scores, intervals and claim (`--confirm`).

Declared after that and before any run of these arms: `--confirm` also switches off each part of `dapo with
concatenation` in turn (gating, alignment, contrastive loss, KL penalty, dropout) on the same seven seeds.
Each is compared with the whole method: a part helps when the interval of the ratio lies below 1.

Declared before any run of `--world doom` but those of seed 100: what was confirmed above is tried in a real
engine, `ppo` against `dapo with concatenation`, seeds 0 to 4, by the same combinations, scores, intervals and
claim. Task: `doom/find` with a red pillar and a medikit, both always there, in a room of 10 m without walls;
24 pixels, 40 steps, 300,000 steps of training. Looked at on seed 100, `ppo` only: with a blue skull in place
of the medikit depth told the objects apart too badly (depth+speech 0.46 and 0.53 at learning rates 0.002 and
0.001, chance 0.5); with the medikit 400,000 steps brought the trained combinations to 0.88 to 0.94 at 0.002
(held out: 0.88 and 0.74) and to 0.62 to 0.69 at 0.004. Both arms take 0.002; the method was not tuned there.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from generalisation_arms import (
    ARMS,
    BASELINE,
    BEST_RATE,
    CONCATENATED,
    CONFIRMED,
    CONFIRMING_SEEDS,
    DOOM_ARMS,
    DOOM_SEEDS,
    DROPOUT,
    HELD_OUT,
    LEARNING_RATES,
    METHOD,
    ONE_MISSING,
    SENSORS,
    SWITCHED_OFF,
    TRAINED,
    TUNING_SEED,
    WORLDS,
)
from numpy.typing import NDArray
from recording import CONSOLE, RESULTS, describe_machine, installed_versions, load_average, write_results
from rich.table import Table

from sensorium.analysis.statistics import interquartile_mean
from sensorium.core import available_cores

PACKAGES = ("sensorium", "torch", "numpy", "numba")
RESAMPLES = 4000
CLAIMED_RATIO = 1.23
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

Scores = NDArray[np.float64]
"""(combinations, seeds) success of an arm."""


def train(arms: Sequence[str], seeds: Sequence[int], jobs: int, flags: Sequence[str], folder: Path) -> None:
    """Train what is not there yet, `jobs` runs at a time, one thread each; the baseline first."""
    first = [arm for arm in arms if arm == BASELINE]
    for group in (first, [arm for arm in arms if arm != BASELINE]):
        budget = baseline_cpu_s(seeds, folder)
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


def scores(runs: Sequence[dict[str, Any]], key: str, combinations: Sequence[Sequence[str]]) -> Scores:
    """Success of an arm's runs.

    Args:
        runs: From `read_runs`.
        key: `success` (at equal frames) or `at_equal_cpu`.
        combinations: Which.
    """
    rates = [run["success"] if key == "success" else run[key]["success"] for run in runs]
    return np.array([[rate["+".join(c)] for rate in rates] for c in combinations])


def compare(ours: Scores, peer: Scores) -> dict[str, float]:
    """Interquartile means of two arms and their ratio, each with its 95 % interval.

    Seeds are resampled within each combination; the two arms independently.
    """
    rng = np.random.default_rng(0)

    def draw(sample: Scores) -> float:
        return interquartile_mean(np.stack([row[rng.integers(0, row.size, row.size)] for row in sample]))

    draws = np.array([(draw(ours), draw(peer)) for _ in range(RESAMPLES)])
    own, ratios = draws[:, 0], draws[:, 0] / np.maximum(draws[:, 1], 1e-9)
    return {
        "iqm": interquartile_mean(ours),
        "iqm_low": float(np.quantile(own, 0.025)),
        "iqm_high": float(np.quantile(own, 0.975)),
        "ratio": interquartile_mean(ours) / max(interquartile_mean(peer), 1e-9),
        "ratio_low": float(np.quantile(ratios, 0.025)),
        "ratio_high": float(np.quantile(ratios, 0.975)),
    }


def report(seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Compare every arm that is complete with the baseline; prints the tables."""
    found: dict[str, Any] = {"verdict": {}, "arms": {}}
    known = (*ARMS, *SWITCHED_OFF)
    runs = {arm: read for arm in known if (read := read_runs(arm, seeds, folder)) is not None}
    if BASELINE not in runs:
        CONSOLE.print("The baseline is not complete; nothing to compare with.")
        return found
    for key, title in (("success", "equal frames"), ("at_equal_cpu", "equal CPU time")):
        peer = scores(runs[BASELINE], key, HELD_OUT)
        table = Table(title=f"success with held-out combinations at {title}, {len(seeds)} seeds")
        for heading in ("arm", "held out, IQM [95 %]", f"ratio to {BASELINE} [95 %]", "trained", "CPU s"):
            table.add_column(heading)
        for arm, of_arm in runs.items():
            ours, known = scores(of_arm, key, HELD_OUT), scores(of_arm, key, TRAINED)
            row = compare(ours, peer)
            trained, cpu_s = interquartile_mean(known), float(np.median([run["cpu_s"] for run in of_arm]))
            names = ["+".join(c) for c in (*TRAINED, *HELD_OUT)]
            found["arms"].setdefault(arm, {})[key] = row | {
                "trained_iqm": trained,
                "cpu_s": cpu_s,
                "by_combination": dict(zip(names, np.concatenate([known, ours]).tolist(), strict=True)),
            }
            table.add_row(
                arm,
                f"{row['iqm']:.3f} [{row['iqm_low']:.3f}, {row['iqm_high']:.3f}]",
                f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
                f"{trained:.3f}",
                f"{cpu_s:.0f}",
            )
        CONSOLE.print(table)
        for arm in (METHOD, *CONFIRMED):
            if arm in found["arms"]:
                said = verdict(arm, found["arms"][arm][key])
                found["verdict"].setdefault(key, {})[arm] = said
                CONSOLE.print(f"At {title}: {said}")
    found["dropout"] = dropout_report(runs)
    found["parts"] = parts_report(runs)
    return found


def parts_report(runs: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """What the method on the baseline's network loses without each of its parts; prints a table."""
    off = [arm for arm in SWITCHED_OFF if arm in runs]
    if CONCATENATED not in runs or not off:
        return {}
    found: dict[str, Any] = {}
    peer = scores(runs[CONCATENATED], "success", HELD_OUT)
    table = Table(title=f"{CONCATENATED}, a part switched off: held-out combinations at equal frames")
    for heading in ("arm", "held out, IQM [95 %]", f"ratio to {CONCATENATED} [95 %]"):
        table.add_column(heading)
    for arm in off:
        found[arm] = row = compare(scores(runs[arm], "success", HELD_OUT), peer)
        table.add_row(arm, _span(row, "iqm"), _span(row, "ratio"))
    CONSOLE.print(table)
    return found


def dropout_report(runs: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """What ModalDropout buys with one sense missing, and its price with all; prints a table."""
    if DROPOUT[0.0] not in runs:
        return {}
    found: dict[str, Any] = {}
    names = ["without " + next(n for n in SENSORS if n not in c) for c in ONE_MISSING]
    peer = scores(runs[DROPOUT[0.0]], "success", ONE_MISSING)
    table = Table(title="ModalDropout: success at equal frames, all senses and one missing")
    for heading in ("p", "all senses", "one missing, IQM [95 %]", "ratio to p = 0 [95 %]", *names):
        table.add_column(heading)
    for p, arm in DROPOUT.items():
        if arm not in runs:
            continue
        ours, full = (scores(runs[arm], "success", c) for c in (ONE_MISSING, [SENSORS]))
        row = compare(ours, peer)
        found[str(p)] = row | {"all_senses": full[0].tolist(), **dict(zip(names, ours.tolist(), strict=True))}
        table.add_row(
            f"{p:g}",
            f"{full.mean():.3f}",
            f"{row['iqm']:.3f} [{row['iqm_low']:.3f}, {row['iqm_high']:.3f}]",
            f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
            *(f"{rates.mean():.3f}" for rates in ours),
        )
    CONSOLE.print(table)
    return found


def markdown(found: Mapping[str, Any]) -> str:
    """The tables of `report` as docs/benchmarks.md has them."""
    names = ["+".join(c) for c in HELD_OUT]
    heads = (
        "arm",
        "trained, IQM",
        *names,
        "held out, IQM [95 %]",
        f"ratio to {BASELINE}",
        "at equal CPU time",
    )
    lines = [_line(*heads, "CPU s"), _line(*["---"] * (len(heads) + 1))]
    for arm, of_arm in found["arms"].items():
        row = of_arm["success"]
        seeds = [", ".join(f"{rate:.2f}" for rate in row["by_combination"][name]) for name in names]
        cells = (f"{row['trained_iqm']:.2f}", *seeds, _span(row, "iqm"), _span(row, "ratio"))
        lines.append(_line(arm, *cells, _span(of_arm["at_equal_cpu"], "ratio"), f"{row['cpu_s']:.0f}"))
    dropped = found["dropout"]
    lost = [f"without {name}" for name in SENSORS]
    if dropped:
        heads = ("p", "all senses", "one missing, IQM [95 %]", "ratio to p = 0", *lost)
        lines += ["", _line(*heads), _line(*["---"] * len(heads))]
    for p, row in dropped.items():
        each = [", ".join(f"{rate:.2f}" for rate in row[name]) for name in ("all_senses", *lost)]
        lines.append(_line(p, each[0], _span(row, "iqm"), _span(row, "ratio"), *each[1:]))
    if found["parts"]:
        lines += ["", _line("arm", "held out, IQM [95 %]", f"ratio to {CONCATENATED}"), _line(*["---"] * 3)]
    lines += [_line(arm, _span(row, "iqm"), _span(row, "ratio")) for arm, row in found["parts"].items()]
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _span(row: Mapping[str, float], name: str) -> str:
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def verdict(arm: str, row: dict[str, float]) -> str:
    """What the interval of an arm's ratio says about the claim."""
    low, high = row["ratio_low"], row["ratio_high"]
    better = f"{arm} shows no difference from {BASELINE}"
    if low > 1 or high < 1:
        better = f"{arm} is {'better' if low > 1 else 'worse'} than {BASELINE}"
    claim = f"+23 % is {'refuted' if high < CLAIMED_RATIO else 'not refuted'}"
    return f"{better}; {claim} (ratio {row['ratio']:.2f} [{low:.2f}, {high:.2f}])"


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
    """What was declared for one world."""

    name: str
    """Of the result file."""
    arms: Sequence[str]
    seeds: Sequence[int]


def declared(world: str, *, confirm: bool) -> Plan:
    """The arms and seeds of the declarations at the top."""
    if world == "doom":
        return Plan("generalisation_doom", DOOM_ARMS, DOOM_SEEDS)
    if confirm:
        arms = (BASELINE, METHOD, *CONFIRMED, *SWITCHED_OFF)
        return Plan("generalisation_confirmed", arms, CONFIRMING_SEEDS)
    return Plan("generalisation", tuple(ARMS), range(3))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, print the tables, write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--arms", default=None, help=f"separated by semicolons; default: all of {'; '.join(ARMS)}"
    )
    parser.add_argument("--seeds", type=int, default=None, help="number of seeds, from 0; default: 3, doom 5")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="runs at a time")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the documentation, too")
    parser.add_argument("--tune", action="store_true", help="try the learning rates instead")
    parser.add_argument("--confirm", action="store_true", help="a few arms on seeds of their own")
    parser.add_argument("--world", choices=list(WORLDS), default="arena", help="where; default: %(default)s")
    parser.add_argument("--folder", type=Path, default=None, help="where each run's result is kept")
    parser.add_argument("--output", type=Path, default=None, help="result file")
    args, flags = parser.parse_known_args(arguments)
    plan = declared(args.world, confirm=args.confirm)
    folder = args.folder or RESULTS / ("generalisation" if args.world == "arena" else plan.name)
    flags += ["--world", args.world]
    if args.tune:
        tune(folder, args.jobs, flags)
        return 0
    known = [*ARMS, *SWITCHED_OFF]
    arms = plan.arms if args.arms is None else [name for name in known if name in args.arms.split(";")]
    seeds = plan.seeds if args.seeds is None else range(args.seeds)
    load_before = load_average()
    if not args.report:
        train(arms, seeds, args.jobs, flags, folder)
    found = report(seeds, folder)
    if args.markdown and found["arms"]:
        sys.stdout.write(markdown(found) + "\n")
    if found["arms"]:
        machine = describe_machine() | {"load_before": load_before, "load_after": load_average()}
        write_results(
            args.output or RESULTS / f"{plan.name}.json",
            {"machine": machine, "versions": installed_versions(PACKAGES), "seeds": list(seeds)} | found,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
