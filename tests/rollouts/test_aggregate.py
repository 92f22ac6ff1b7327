import json
import math
from pathlib import Path

import pytest

from sensorium.rollouts.aggregate import aggregate_metrics, by_task, stripped
from sensorium.rollouts.pass_at_k import highest_k, pass_at_k, pass_majority_metrics, subset_metrics
from sensorium.rollouts.student_t import t_interval, t_quantile

GOLDEN = json.loads((Path(__file__).parents[1] / "compat" / "golden" / "metrics.json").read_text())
"""What NeMo Gym 0.7.0 itself answered."""


def differences(ours, theirs, place=""):
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or set(ours) != set(theirs):
            found = set(ours) if isinstance(ours, dict) else ours
            return [f"{place}: {sorted(found ^ set(theirs)) if isinstance(found, set) else found}"]
        return [d for name in theirs for d in differences(ours[name], theirs[name], f"{place}/{name}")]
    if isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{place}: {len(ours)} entries, not {len(theirs)}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for n, (a, b) in pairs for d in differences(a, b, f"{place}[{n}]")]
    if isinstance(theirs, float | int) and not isinstance(theirs, bool):
        same = isinstance(ours, float | int) and math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
        return [] if same else [f"{place}: {ours} instead of {theirs}"]
    return [] if ours == theirs else [f"{place}: {ours} instead of {theirs}"]


@pytest.mark.parametrize("name", GOLDEN)
def test_metrics_are_those_of_nemo_gym(name):
    case = GOLDEN[name]
    theirs = case["expected"]["aggregate"]
    ours = aggregate_metrics(case["rows"])
    for part in (
        "group_level_metrics",
        "agent_metrics",
        "key_metrics",
        "repeat_level_metrics",
        "perf_summary",
    ):
        assert differences(ours[part], theirs.get(part)) == [], part


@pytest.mark.parametrize("name", GOLDEN)
def test_pass_at_k_and_majority_are_those_of_nemo_gym(name):
    case = GOLDEN[name]
    expected = case["expected"]
    ours = pass_majority_metrics(by_task(case["rows"]), answer_key=case.get("answer_key"))
    theirs = expected["pass_majority"]
    known = {
        name: value for name, value in ours.items() if "avg_sample_std_dev" not in name or name in theirs
    }
    assert differences(known, theirs) == []
    assert differences(highest_k(ours, "pass@{k}"), expected["highest_pass"]) == []
    assert differences(highest_k(ours, "pass@1[avg-of-{k}]"), expected["highest_average"]) == []
    if "subset_key" in case:
        subsets = subset_metrics(by_task(case["rows"]), case["subset_key"], answer_key=case.get("answer_key"))
        kept = {name: value for name, value in subsets.items() if "avg_sample_std_dev" not in name}
        assert differences(kept, expected["subsets"]) == []


def test_pass_at_k_by_hand():
    assert pass_at_k(1, 4, 1) == 0.25
    assert pass_at_k(1, 4, 2) == 0.5  # 1 - C(3,2)/C(4,2) = 1 - 3/6
    assert pass_at_k(2, 4, 3) == 1.0  # two of four are wrong: three cannot all be
    with pytest.raises(ValueError, match="k <= count"):
        pass_at_k(1, 2, 3)


@pytest.mark.parametrize(
    ("degrees", "wanted"),
    # Table of quantiles at 0.975 in Abramowitz and Stegun, 26.10, with digits of a higher precision
    [
        (1, 12.706204736),
        (2, 4.302652730),
        (3, 3.182446305),
        (9, 2.262157163),
        (30, 2.042272456),
        (999, 1.962341461),
    ],
)
def test_quantiles_of_student_t(degrees, wanted):
    assert t_quantile(0.975, degrees) == pytest.approx(wanted, rel=1e-9)
    assert t_quantile(0.025, degrees) == pytest.approx(-wanted, rel=1e-9)


def test_an_interval_by_hand():
    low, high = t_interval(2.0, 0.5, 10)
    assert (low, high) == pytest.approx((2 - 0.5 * 2.262157163, 2 + 0.5 * 2.262157163))
    assert t_interval(2.0, 0.0, 10) == (2.0, 2.0)
    with pytest.raises(ValueError, match="degree"):
        t_quantile(0.9, 0)


def test_numbers_that_are_none_do_not_break_the_rest():
    rows = [
        {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": math.inf, "other": math.nan, "n": 1},
        {"_ng_task_index": 0, "_ng_rollout_index": 1, "reward": 1.0, "other": None, "text": "x", "n": 3},
    ]
    metrics = aggregate_metrics(rows)["agent_metrics"]
    assert metrics["mean/reward"] == math.inf
    assert metrics["min/reward"] == 1.0
    assert "mean/other" not in metrics
    assert "std/reward" not in metrics
    assert metrics["std/n"] == pytest.approx(math.sqrt(2))


def test_rows_are_stripped_of_what_metrics_do_not_need():
    row = {
        "reward": 1.0,
        "response": {"output": ["..."], "usage": {"input_tokens": 3}, "incomplete_details": None},
        "responses_create_params": {},
        "sensorium": {},
        "ng_trajectory": {},
    }
    assert stripped(row) == {"reward": 1.0, "response": {"usage": {"input_tokens": 3}}}
