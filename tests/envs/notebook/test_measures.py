import math

import numpy as np
import pytest

from sensorium.envs.notebook import measures


def test_values_worked_out_by_hand():
    values = np.array([2.0, 4.0, 4.0, 10.0])
    assert measures.quantile(values, 0.5) == 4.0
    assert measures.quantile(values, 0.9) == pytest.approx(8.2)
    assert measures.variance(values) == pytest.approx(12.0)
    assert measures.ranks(np.array([30.0, 10.0, 30.0, 20.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert measures.pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])) == pytest.approx(
        5 / math.sqrt(2 * 38 / 3)
    )
    assert measures.chi_square(np.array([[10.0, 20.0], [20.0, 10.0]])) == pytest.approx(20 / 3)
    assert measures.anova([np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0])]) == pytest.approx(24.0)


def test_a_line_through_points_is_found():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    coefficients, r_squared = measures.least_squares([x], 2.0 * x - 1.0)
    assert coefficients == pytest.approx([-1.0, 2.0])
    assert r_squared == pytest.approx(1.0)


def test_separable_classes_have_no_logistic_regression():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert measures.logistic([x], np.array([0.0, 0.0, 1.0, 1.0])) is None


def test_tests_and_models_agree_with_scipy_and_statsmodels():
    stats = pytest.importorskip("scipy.stats")
    linear = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=40), rng.normal(0.5, 2.0, size=60)
    t, freedom, p = measures.welch(a, b)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert (t, freedom, p) == pytest.approx((theirs.statistic, theirs.df, theirs.pvalue), rel=1e-10)
    assert measures.welch(a, b + 9.0)[2] == pytest.approx(
        stats.ttest_ind(a, b + 9.0, equal_var=False).pvalue, rel=1e-8
    )
    assert measures.skewness(a) == pytest.approx(stats.skew(a, bias=False))
    assert measures.anova([a, b]) == pytest.approx(stats.f_oneway(a, b).statistic)
    y = (rng.random(60) < 1 / (1 + np.exp(-b))).astype(float)
    other = rng.normal(50.0, 10.0, size=60)
    fitted = linear.Logit(y, linear.add_constant(np.column_stack([b, other]))).fit(disp=0)
    assert measures.logistic([b, other], y) == pytest.approx(fitted.params, rel=1e-6)
    fitted = linear.OLS(other, linear.add_constant(b)).fit()
    coefficients, r_squared = measures.least_squares([b], other)
    assert coefficients == pytest.approx(fitted.params)
    assert r_squared == pytest.approx(fitted.rsquared)
