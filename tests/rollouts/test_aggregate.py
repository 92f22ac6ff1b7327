import math

import pytest

from sensorium.rollouts.aggregate import aggregate_metrics, by_task, stripped
from sensorium.rollouts.pass_at_k import pass_at_k, pass_majority_metrics
from sensorium.rollouts.student_t import t_interval, t_quantile

ROWS = [
    {"_ng_task_index": task, "_ng_rollout_index": repeat, "reward": reward, "ok": reward > 0, "note": "x"}
    | {"response": {"usage": {"input_tokens": 10 * (task + 1)}}}
    for task, rewards in enumerate(((1.0, 0.0), (1.0, 1.0)))
    for repeat, reward in enumerate(rewards)
]


def test_metrics_by_hand():
    made = aggregate_metrics(ROWS)
    agent = made["agent_metrics"]
    assert agent["mean/reward"] == 0.75
    assert agent["std/reward"] == 0.5  # squares 3 x 0.0625 + 0.5625 = 0.75, over 3
    assert agent["median/reward"] == 1.0
    assert agent["mean/ok"] == 0.75
    assert agent["mean/input_tokens"] == 15.0
    assert "mean/note" not in agent
    assert agent["num_repeats"] == 2
    assert agent["mean_across_repeats/mean/reward"] == 0.75  # of 1.0 and 0.5
    assert agent["se_across_repeats/mean/reward"] == pytest.approx(0.25)
    half = 12.706204736 * 0.25  # one degree of freedom
    assert agent["ci_low_95_across_repeats/mean/reward"] == pytest.approx(0.75 - half)
    assert made["key_metrics"] == {name: value for name, value in agent.items() if name.startswith("mean/")}
    first, second = made["group_level_metrics"]
    assert (first["mean/reward"], first["num_rollouts"]) == (0.5, 2)
    assert first["std/reward"] == pytest.approx(math.sqrt(0.5))
    assert [info["rollout_id"] for info in second["rollout_infos"]] == ["1:0", "1:1"]
    assert [row["mean/reward"] for row in made["repeat_level_metrics"]] == [1.0, 0.5]
    assert made["perf_summary"] is None


def test_masked_rows_count_in_coverage_alone():
    masked = [row | {"mask_sample": row["_ng_task_index"] == 0} for row in ROWS]
    agent = aggregate_metrics(masked)["agent_metrics"]
    assert agent["mean/reward"] == 1.0
    assert agent["coverage/measured_rollouts"] == 2
    assert agent["coverage/fully_masked_tasks"] == 1
    assert "mean/mask_sample" not in agent
    nothing = aggregate_metrics([row | {"mask_sample": True} for row in ROWS])
    assert set(nothing["agent_metrics"]) == set(nothing["key_metrics"])
    assert all(name.startswith("coverage/") for name in nothing["agent_metrics"])


def test_repeats_by_hand():
    metrics = pass_majority_metrics(by_task(ROWS))
    assert metrics["pass@1/accuracy"] == 75.0
    assert metrics["pass@2/accuracy"] == 100.0
    assert metrics["pass@1[avg-of-2]/accuracy"] == 75.0
    assert metrics["pass@1[avg-of-2]/accuracy/std_dev_across_runs"] == pytest.approx(100 * math.sqrt(0.125))
    assert metrics["per_sample_aggregate"] == {"accuracy": [100.0, 50.0]}
    answers = [row | {"answer": ["a"]} for row in ROWS]
    assert pass_majority_metrics(by_task(answers), answer_key="answer")["majority@1/no_answer"] == 0.0


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
