import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.metrics import Histogram, Latest, Max, Mean, Metric, Min, Std, Sum, merge_metrics

EDGES = (0.0, 1.0, 2.0, 4.0)
numbers = st.lists(st.floats(-1e6, 1e6), max_size=30)


def test_mean_weighs_each_value() -> None:
    mean = Mean.of([1.0, 2.0, 6.0], weights=[1, 1, 2])
    assert mean.value == pytest.approx(15 / 4)
    assert Mean.of(2.0, weights=3).merge(Mean.of(6.0, weights=1)).value == pytest.approx(3.0)


def test_mean_takes_arrays_of_any_shape_and_type() -> None:
    assert Mean.of(np.array([[1, 2], [3, 4]], np.int32)).value == 2.5
    assert Mean.of(np.array([True, False, True, True])).value == 0.75
    assert Mean.of(7).value == 7.0


@pytest.mark.parametrize("weights", [-1.0, math.nan, [1.0, -0.5]])
def test_mean_refuses_weights_that_mean_nothing(weights: object) -> None:
    with pytest.raises(ValueError, match="Weights"):
        Mean.of([1.0, 2.0], weights=weights)  # type: ignore[arg-type]


def test_sum_max_min() -> None:
    assert Sum.of([1, 2, 3]).merge(Sum.of(4)).value == 10
    assert Max.of([1, 5, 3]).merge(Max.of(4)).value == 5
    assert Min.of([3, 1, 5]).merge(Min.of(-4)).value == -4


def test_latest_keeps_the_later_one_even_if_it_is_not_finite() -> None:
    merged = Latest.of(1.0).merge(Latest.of(math.inf))
    assert merged.value == math.inf
    assert merged.non_finite == 1
    assert Latest.of(np.array([3.0])).value == 3.0
    with pytest.raises(ValueError, match="one number, found 2"):
        Latest.of([1.0, 2.0])


def test_std_is_the_sample_standard_deviation() -> None:
    assert Std.of([2, 4, 4, 4, 5, 5, 7, 9]).value == pytest.approx(math.sqrt(32 / 7))
    assert math.isnan(Std.of([1.0]).value)


def test_std_keeps_its_digits_beside_a_large_mean() -> None:
    parts = [Std.of([1e9 + i]) for i in range(4)]
    merged = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    assert merged.value == pytest.approx(np.std([0, 1, 2, 3], ddof=1), rel=1e-9)


def test_histogram_counts_what_lies_outside_at_its_ends() -> None:
    histogram = Histogram.of([-1.0, 0.0, 0.5, 1.0, 3.9, 4.0, 100.0], EDGES)
    assert histogram.counts == (1, 2, 1, 1, 2)
    assert histogram.value["count"] == 7
    assert histogram.value["mean"] == pytest.approx(108.4 / 7)
    assert histogram.value["p95"] == 4.0


def test_histogram_interpolates_quantiles_within_a_bin() -> None:
    histogram = Histogram.of([0.1, 0.2, 0.3, 0.4, 2.1, 2.2, 2.3, 2.4], EDGES)
    assert histogram.quantile(0.25) == pytest.approx(0.5)
    assert histogram.quantile(0.5) == pytest.approx(1.0)
    assert histogram.quantile(0.75) == pytest.approx(3.0)
    assert histogram.quantile(0.0) == pytest.approx(0.0)


def test_histogram_refuses_other_edges() -> None:
    with pytest.raises(ValueError, match="different edges"):
        Histogram.of([1.0], EDGES).merge(Histogram.of([1.0], (0.0, 1.0)))
    with pytest.raises(ValueError, match="rising"):
        Histogram.of([1.0], (1.0, 1.0))
    with pytest.raises(ValueError, match="5 counts"):
        Histogram(edges=EDGES, counts=(1, 2))


@pytest.mark.parametrize("kind", [Mean, Sum, Max, Min, Std])
def test_what_is_not_finite_is_counted_and_left_out(kind: type[Mean]) -> None:
    dirty = kind.of([1.0, math.nan, 3.0, math.inf, -math.inf])
    clean = kind.of([1.0, 3.0])
    assert dirty.value == clean.value
    assert dirty.non_finite == 3
    assert dirty.merge(kind.of([math.nan])).non_finite == 4
    assert dirty.merge(kind.of([math.nan])).value == clean.value


@pytest.mark.parametrize("kind", [Mean, Max, Min, Std])
def test_nothing_measured_is_nan(kind: type[Mean]) -> None:
    assert math.isnan(kind.of([]).value)
    assert math.isnan(kind.of([]).merge(kind.of([math.nan])).value)
    assert math.isnan(Histogram.of([], EDGES).value["p50"])
    assert Sum.of([]).value == 0


def build(values: list[float]) -> dict[str, Metric]:
    return {
        "mean": Mean.of(values),
        "sum": Sum.of(values),
        "max": Max.of(values),
        "min": Min.of(values),
        "std": Std.of(values),
        "histogram": Histogram.of(values, (-1e5, -10.0, 0.0, 10.0, 1e5)),
    }


@given(numbers, numbers, numbers)
def test_merging_parts_equals_measuring_everything(a: list[float], b: list[float], c: list[float]) -> None:
    left = merge_metrics([merge_metrics([build(a), build(b)]), build(c)])
    right = merge_metrics([build(a), merge_metrics([build(b), build(c)])])
    whole = build(a + b + c)
    for name, metric in whole.items():
        for merged in (left[name], right[name]):
            assert merged.value == pytest.approx(metric.value, rel=1e-6, abs=1e-3, nan_ok=True), name


def test_merge_metrics_takes_names_that_are_not_everywhere() -> None:
    merged = merge_metrics([{"a": Sum.of(1)}, {"b": Latest.of(5)}, {"a": Sum.of(2), "b": Latest.of(6)}])
    assert {name: metric.value for name, metric in merged.items()} == {"a": 3, "b": 6}
    assert merge_metrics([]) == {}


def test_merge_metrics_names_the_metric_that_does_not_fit() -> None:
    with pytest.raises(TypeError, match=r"'loss/policy'.*Sum with Mean"):
        merge_metrics([{"loss/policy": Sum.of(1)}, {"loss/policy": Mean.of(1)}])


def test_values_are_immutable_and_picklable() -> None:
    for metric in [*build([1.0, 2.0]).values(), Latest.of(3)]:
        assert pickle.loads(pickle.dumps(metric)) == metric
        before = copy.deepcopy(metric)
        metric.merge(metric)
        assert metric == before
        with pytest.raises(AttributeError):
            metric.non_finite = 9  # type: ignore[misc]
