"""What the runs of `generalisation.py` come to: scores, intervals, ratios, and the tables of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from generalisation_arms import (
    BASELINE,
    CONCATENATED,
    CONFIRMED,
    DROPOUT,
    HELD_OUT,
    METHOD,
    ONE_MISSING,
    SENSORS,
    SWITCHED_OFF,
    TRAINED,
)
from numpy.typing import NDArray
from recording import CONSOLE
from rich.table import Table

from sensorium.analysis.statistics import interquartile_mean

RESAMPLES = 4000
CLAIMED_RATIO = 1.23

Scores = NDArray[np.float64]
"""(combinations, seeds) success of an arm."""


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


def report(runs: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Compare every arm with the baseline, prints the tables.

    Args:
        runs: Arm -> what its runs found, the baseline among them.
    """
    found: dict[str, Any] = {"verdict": {}, "arms": {}}
    for key, title in (("success", "equal frames"), ("at_equal_cpu", "equal CPU time")):
        peer = scores(runs[BASELINE], key, HELD_OUT)
        table = Table(title=f"success with held-out combinations at {title}, {len(runs[BASELINE])} seeds")
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
                said = _verdict(arm, found["arms"][arm][key])
                found["verdict"].setdefault(key, {})[arm] = said
                CONSOLE.print(f"At {title}: {said}")
    return found | {"dropout": dropout_report(runs, DROPOUT), "parts": _parts(runs)}


def _parts(runs: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
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


def dropout_report(runs: Mapping[str, Sequence[dict[str, Any]]], arms: Mapping[float, str]) -> dict[str, Any]:
    """What ModalDropout buys with one sense missing, and its price with all; prints a table."""
    if arms[0.0] not in runs:
        return {}
    found: dict[str, Any] = {}
    names = ["without " + next(n for n in SENSORS if n not in c) for c in ONE_MISSING]
    peer = scores(runs[arms[0.0]], "success", ONE_MISSING)
    table = Table(title="ModalDropout: success at equal frames, all senses and one missing")
    for heading in ("p", "all senses", "one missing, IQM [95 %]", "ratio to p = 0 [95 %]", *names):
        table.add_column(heading)
    for p, arm in arms.items():
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
    arms = found.get("arms", {})
    lines = [_line(*heads, "CPU s"), _line(*["---"] * (len(heads) + 1))] if arms else []
    for arm, of_arm in arms.items():
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
    parts = found.get("parts", {})
    if parts:
        lines += ["", _line("arm", "held out, IQM [95 %]", f"ratio to {CONCATENATED}"), _line(*["---"] * 3)]
    lines += [_line(arm, _span(row, "iqm"), _span(row, "ratio")) for arm, row in parts.items()]
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _span(row: Mapping[str, float], name: str) -> str:
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def _verdict(arm: str, row: dict[str, float]) -> str:
    """What the interval of an arm's ratio says about the claim."""
    low, high = row["ratio_low"], row["ratio_high"]
    better = f"{arm} shows no difference from {BASELINE}"
    if low > 1 or high < 1:
        better = f"{arm} is {'better' if low > 1 else 'worse'} than {BASELINE}"
    claim = f"+23 % is {'refuted' if high < CLAIMED_RATIO else 'not refuted'}"
    return f"{better}; {claim} (ratio {row['ratio']:.2f} [{low:.2f}, {high:.2f}])"
