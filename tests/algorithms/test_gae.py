import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from torch import Tensor

from sensorium.algorithms import gae


def column(values: list[float]) -> Tensor:
    return torch.tensor(values).unsqueeze(-1)


def flags(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.bool).unsqueeze(-1)


def test_golden_vector() -> None:
    """V = [.1, .3, .4], r = [0, 0, 1]: what verl's core_algos gives once its masked token is dropped."""
    advantages = gae(
        column([0.0, 0.0, 1.0]),
        column([0.1, 0.3, 0.4, 9.9]),
        flags([0, 0, 1]),
        flags([0, 0, 1]),
        flags([1, 1, 1]),
        gamma=0.9,
        gae_lambda=0.95,
    )
    torch.testing.assert_close(advantages, column([0.6599, 0.5730, 0.6]), atol=1e-4, rtol=0)


def test_termination_does_not_bootstrap_and_truncation_does() -> None:
    rewards, values = column([1.0, 2.0]), column([0.5, 0.25, 4.0])
    kwargs = {"gamma": 0.5, "gae_lambda": 1.0}
    ended = flags([0, 1])
    terminated = gae(rewards, values, flags([0, 1]), ended, flags([1, 1]), **kwargs)
    truncated = gae(rewards, values, flags([0, 0]), ended, flags([1, 1]), **kwargs)
    # delta_1 = 2 - 0.25 (+ 0.5 * 4), delta_0 = 1 + 0.5 * 0.25 - 0.5, A_0 = delta_0 + 0.5 * A_1
    torch.testing.assert_close(terminated, column([0.625 + 0.5 * 1.75, 1.75]))
    torch.testing.assert_close(truncated, column([0.625 + 0.5 * 3.75, 3.75]))


def test_nothing_flows_back_over_an_end_or_a_reset_step() -> None:
    """Episode ends at step 0, step 1 is the reset step that nobody took, step 2 is another episode."""
    kwargs = {"gamma": 0.9, "gae_lambda": 0.9}
    ended, valid = flags([1, 0, 0]), flags([1, 0, 1])
    values = column([0.3, 0.7, 0.2, 0.1])
    some = gae(column([1.0, 0.0, 5.0]), values, ended, ended, valid, **kwargs)
    other = gae(column([1.0, 99.0, -5.0]), values, ended, ended, valid, **kwargs)
    assert some[0] == other[0] == pytest.approx(1.0 - 0.3)
    assert some[1] == other[1] == 0.0
    assert some[2] == pytest.approx(5.0 + 0.9 * 0.1 - 0.2)


def test_lambda_zero_is_one_step_and_lambda_one_is_monte_carlo() -> None:
    rewards, values = column([1.0, 2.0, 3.0]), column([0.1, 0.2, 0.3, 0.0])
    end, valid = flags([0, 0, 1]), flags([1, 1, 1])
    one_step = gae(rewards, values, end, end, valid, gamma=0.9, gae_lambda=0.0)
    torch.testing.assert_close(one_step, column([1 + 0.9 * 0.2 - 0.1, 2 + 0.9 * 0.3 - 0.2, 3 - 0.3]))
    whole = gae(rewards, values, end, end, valid, gamma=0.9, gae_lambda=1.0)
    torch.testing.assert_close(whole[0, 0], torch.tensor(1 + 0.9 * 2 + 0.81 * 3 - 0.1))


@pytest.mark.parametrize(
    ("gamma", "gae_lambda", "says"),
    [(0.0, 0.9, "gamma"), (1.1, 0.9, "gamma"), (0.9, -0.1, "lambda"), (0.9, 1.1, "lambda")],
)
def test_ranges_are_checked(gamma: float, gae_lambda: float, says: str) -> None:
    one = torch.zeros(1, 1)
    no = torch.zeros(1, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match=says):
        gae(one, torch.zeros(2, 1), no, no, no, gamma=gamma, gae_lambda=gae_lambda)


def slow_gae(
    r: NDArray[np.float64],
    v: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    gamma: float,
    lam: float,
) -> NDArray[np.float64]:
    """A_t as the sum of discounted deltas, each world by itself."""
    a = np.zeros_like(r)
    for e in range(r.shape[1]):
        for t in range(len(r)):
            weight = 1.0
            for k in range(t, len(r)):
                if not valid[k, e]:
                    break
                bootstrap = 0.0 if terminated[k, e] else gamma * v[k + 1, e]
                a[t, e] += weight * (r[k, e] + bootstrap - v[k, e])
                if ended[k, e]:
                    break
                weight *= gamma * lam
    return a


FLOATS = st.floats(-3, 3, width=32)
FLAGS = arrays(np.bool_, (6, 2))


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float32, (6, 2), elements=FLOATS),
    arrays(np.float32, (7, 2), elements=FLOATS),
    FLAGS,
    FLAGS,
    FLAGS,
    st.floats(0.1, 1.0),
    st.floats(0.0, 1.0),
)
def test_equals_the_sum_over_each_episode(
    r: NDArray[np.float32],
    v: NDArray[np.float32],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    gamma: float,
    lam: float,
) -> None:
    ended = terminated | truncated
    ours = gae(*(torch.from_numpy(x) for x in (r, v, terminated, ended, valid)), gamma=gamma, gae_lambda=lam)
    slow = slow_gae(r.astype(np.float64), v.astype(np.float64), terminated, ended, valid, gamma, lam)
    np.testing.assert_allclose(ours.numpy(), slow, atol=2e-4)


def test_equals_stable_baselines() -> None:
    """Its buffer has no truncation; episodes that terminate are where the two must agree."""
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    spaces = pytest.importorskip("gymnasium.spaces")
    rng = np.random.default_rng(0)
    steps, envs = 20, 3
    box = spaces.Box(-1, 1, (1,), np.float32)
    buffer = buffers.RolloutBuffer(steps, box, box, device="cpu", gamma=0.97, gae_lambda=0.9, n_envs=envs)
    rewards = rng.normal(size=(steps, envs)).astype(np.float32)
    values = rng.normal(size=(steps + 1, envs)).astype(np.float32)
    dones = rng.random((steps, envs)) < 0.2
    starts = np.vstack([np.ones((1, envs), np.bool_), dones[:-1]])
    zeros = np.zeros((envs, 1), np.float32)
    for t in range(steps):
        value = torch.from_numpy(values[t])
        buffer.add(zeros, zeros, rewards[t], starts[t], value, torch.zeros(envs))
    buffer.compute_returns_and_advantage(torch.from_numpy(values[-1]), dones[-1])
    ended = torch.from_numpy(dones)
    ours = gae(
        torch.from_numpy(rewards),
        torch.from_numpy(values),
        ended,
        ended,
        torch.ones_like(ended),
        gamma=0.97,
        gae_lambda=0.9,
    )
    np.testing.assert_allclose(ours.numpy(), buffer.advantages, atol=1e-5)
