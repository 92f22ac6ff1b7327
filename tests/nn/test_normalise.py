import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.nn import RunningNorm


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.integers(0, 2**31))
def test_equals_mean_and_std_of_all_readings(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    batches = [rng.normal(3.0, 2.0, (n, 4)).astype(np.float32) for n in sizes]
    norm = RunningNorm(4)
    for batch in batches:
        norm.update(torch.from_numpy(batch))
    everything = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(norm.mean.numpy(), everything.mean(0), atol=1e-4)
    np.testing.assert_allclose(norm.var.numpy(), everything.var(0), atol=1e-3)
    assert norm.count.item() == len(everything)


def test_one_feature_pools_the_whole_image() -> None:
    depth = torch.rand(3, 4, 5, 1, generator=torch.Generator().manual_seed(0)) * 7
    norm = RunningNorm(1)
    norm.update(depth)
    y = norm(depth)
    assert abs(y.mean().item()) < 1e-5
    assert abs(y.std(correction=0).item() - 1) < 1e-4


def test_readings_that_are_not_finite_are_left_out() -> None:
    norm = RunningNorm(2)
    norm.update(torch.tensor([[1.0, 2.0], [float("nan"), 0.0], [3.0, 4.0], [0.0, float("inf")]]))
    torch.testing.assert_close(norm.mean, torch.tensor([2.0, 3.0]))
    assert norm.count.item() == 2
    norm.update(torch.tensor([[float("nan"), 0.0]]))
    assert norm.count.item() == 2


def test_forward_leaves_the_statistics_alone() -> None:
    norm = RunningNorm(2).train()
    norm.update(torch.randn(10, 2))
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    assert set(before) == {"mean", "var", "count"}
    norm(torch.randn(5, 2) * 100)
    assert all(torch.equal(before[name], value) for name, value in norm.state_dict().items())
    assert not list(norm.parameters())


def test_output_is_clipped_and_a_constant_stays_finite() -> None:
    norm = RunningNorm(1)
    norm.update(torch.full((50, 1), 5.0))
    y = norm(torch.tensor([[5.0], [6.0], [-1e9]]))
    torch.testing.assert_close(y, torch.tensor([[0.0], [10.0], [-10.0]]))
