import math

import numpy as np
import pytest

from sensorium.analysis import (
    bootstrap_interval,
    interquartile_mean,
    paired_success_ratio,
    stratified_bootstrap,
)
from sensorium.analysis.statistics import interquartile_mean_of_rates, interquartile_rate_interval


def test_interquartile_mean_by_hand() -> None:
    assert interquartile_mean([100, 2, 3, -50]) == 2.5
    # 5 values of weight 1/5: the quartiles cut through the second and the fourth: 0.15 of each is left
    assert interquartile_mean([0, 1, 2, 4, 1000]) == pytest.approx((0.15 * 1 + 0.2 * 2 + 0.15 * 4) / 0.5)
    assert interquartile_mean(7.0) == 7.0


def test_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for seed in range(100):
        low, high = bootstrap_interval(random.normal(3, 2, 60), resamples=300, seed=seed)
        hits += low <= 3 <= high
    assert 88 <= hits <= 99


def test_bootstrap_repeats_and_takes_another_statistic() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 500.0]
    assert bootstrap_interval(values, seed=4) == bootstrap_interval(values, seed=4)
    robust = bootstrap_interval(np.array([1.0] * 12 + [500.0]), statistic=interquartile_mean, resamples=200)
    assert robust == (1.0, 1.0)
    assert bootstrap_interval([5.0, 5.0]) == (5.0, 5.0)


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_means_refuse_what_has_none(values: list[float]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        interquartile_mean(values)
    with pytest.raises(ValueError, match="Expected"):
        bootstrap_interval(values)


def test_stratified_bootstrap_resamples_each_stratum_by_itself() -> None:
    # Every stratum is constant, so no resample can differ: the interval is the statistic itself.
    assert stratified_bootstrap([[0.0] * 5, [1.0] * 5, [2.0] * 5, [3.0] * 5]) == (1.5, 1.5)
    # Pooled, the mean of 3 zeros and 3 ones could be anything from 0 to 1; within strata it is 1/2.
    halves = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    assert stratified_bootstrap(halves, statistic=interquartile_mean_of_rates) == (0.5, 0.5)


def test_stratified_bootstrap_covers_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    rates = np.array([0.2, 0.5, 0.6, 0.9])
    truth = 0.55  # the middle half of four rates
    hits = 0
    for seed in range(60):
        strata = [(random.random(100) < rate).astype(float) for rate in rates]
        low, high = stratified_bootstrap(
            strata, statistic=interquartile_mean_of_rates, resamples=200, seed=seed
        )
        hits += low <= truth <= high
    assert 52 <= hits <= 60


def test_interval_of_rates_covers_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    for rates in ([0.2, 0.5, 0.6, 0.9], [0.9, 0.95, 0.97, 1.0]):
        truth = interquartile_mean(rates)
        hits = 0
        for seed in range(100):
            strata = [(random.random(50) < rate).astype(float) for rate in rates]
            low, high = interquartile_rate_interval(strata, resamples=200, seed=seed)
            hits += low <= truth <= high
        assert 90 <= hits <= 100


def test_interval_of_rates_has_a_width_when_all_episodes_end_alike() -> None:
    low, high = interquartile_rate_interval([np.ones(16)])
    assert 0.8 < low < 0.95  # one stratum: the interval of Jeffreys, 0.86 on this side
    assert high == 1.0
    low, high = interquartile_rate_interval([np.zeros(16)] * 4)
    assert low == 0.0
    assert 0.01 < high < 0.2
    with pytest.raises(ValueError, match="at least one stratum"):
        interquartile_rate_interval([])


def test_interval_of_rates_equals_the_bootstrap_on_many_episodes() -> None:
    random = np.random.default_rng(4)
    strata = [(random.random(3000) < rate).astype(float) for rate in (0.3, 0.5, 0.6, 0.8)]
    ours = interquartile_rate_interval(strata, resamples=4000)
    theirs = stratified_bootstrap(strata, statistic=interquartile_mean_of_rates, resamples=4000)
    assert ours == pytest.approx(theirs, abs=2e-3)


def test_interquartile_mean_of_rates_by_hand() -> None:
    strata = [np.array([0.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 0.0])]
    assert interquartile_mean_of_rates(strata) == 0.5
    assert interquartile_mean_of_rates([np.array([0.0, 1.0, 1.0, 1.0])]) == 0.75


def test_paired_ratio_agrees_with_the_delta_method_on_many_episodes() -> None:
    """Var(log ratio) = (n10 + n01) / (x y) with x, y successes before and after."""
    both, only_before, only_after, neither = 4000, 2000, 500, 3500
    before = np.repeat([1, 1, 0, 0], [both, only_before, only_after, neither])
    after = np.repeat([1, 0, 1, 0], [both, only_before, only_after, neither])
    ratio = paired_success_ratio(before, after)
    assert ratio is not None
    assert ratio.value == 4500 / 6000
    spread = math.sqrt((only_before + only_after) / (6000 * 4500))
    assert ratio.low == pytest.approx(0.75 * math.exp(-1.96 * spread), abs=1e-3)
    assert ratio.high == pytest.approx(0.75 * math.exp(1.96 * spread), abs=1e-3)


def test_paired_ratio_has_a_width_when_all_pairs_agree() -> None:
    same = paired_success_ratio([1.0] * 50, [1.0] * 50)
    assert same is not None
    assert same.low < same.value == 1.0 < same.high
    assert same.high - same.low < 0.15
    nothing = paired_success_ratio([1.0] * 50, [0.0] * 50)
    assert nothing is not None
    assert nothing.low == nothing.value == 0.0 < nothing.high < 0.1
    assert paired_success_ratio([0.0, 0.0], [1.0, 0.0]) is None


def test_pairing_narrows_the_interval() -> None:
    """Episodes that both runs lose or win say more than two independent samples would."""
    outcomes = np.arange(200) % 2
    paired = paired_success_ratio(outcomes, outcomes)
    crossed = paired_success_ratio(outcomes, 1 - outcomes)
    assert paired is not None
    assert crossed is not None
    assert paired.value == crossed.value == 1.0
    assert paired.high - paired.low < 0.2 * (crossed.high - crossed.low)


def test_paired_and_stratified_samples_must_make_sense() -> None:
    with pytest.raises(ValueError, match="pairs"):
        paired_success_ratio([1.0, 0.0], [1.0])
    with pytest.raises(ValueError, match="stratum"):
        stratified_bootstrap([])
    with pytest.raises(ValueError, match="at least one value"):
        stratified_bootstrap([[1.0], []])
