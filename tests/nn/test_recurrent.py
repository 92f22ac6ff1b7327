import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sensorium.nn import LSTMState, SegmentLSTM

TIME, BATCH, DIM = 7, 3, 5


def build() -> SegmentLSTM:
    torch.manual_seed(0)
    return SegmentLSTM(DIM, 4)


def carried_state() -> LSTMState:
    torch.manual_seed(1)
    return LSTMState(torch.randn(BATCH, 4), torch.randn(BATCH, 4))


@settings(max_examples=30, deadline=None)
@given(arrays(np.bool_, (TIME, BATCH)))
def test_whole_sequences_equal_a_step_by_step_loop(starts: NDArray[np.bool_]) -> None:
    lstm, state = build(), carried_state()
    x = torch.randn(TIME, BATCH, DIM, generator=torch.Generator().manual_seed(2))
    begin = torch.from_numpy(starts)
    with torch.no_grad():
        together = lstm(x, state, begin)
        steps = []
        for t in range(TIME):
            y, state = lstm.step(x[t], state, begin[t])
            steps.append(y)
    torch.testing.assert_close(together, torch.stack(steps), atol=1e-6, rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, TIME - 1), st.integers(0, BATCH - 1))
def test_nothing_before_a_start_matters(t: int, world: int) -> None:
    lstm = build()
    x = torch.randn(TIME, BATCH, DIM, generator=torch.Generator().manual_seed(2))
    starts = torch.zeros(TIME, BATCH, dtype=torch.bool)
    starts[t, world] = True
    zero = lstm.initial_state(BATCH, torch.device("cpu"))
    with torch.no_grad():
        before = lstm(x, carried_state(), starts)
        changed = x.clone()
        changed[:t, world] += 1.0
        after = lstm(changed, zero, starts)
    torch.testing.assert_close(before[t:, world], after[t:, world], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(before[:, (world + 1) % BATCH], after[:, (world + 1) % BATCH])


def test_a_memory_that_is_not_finite_ends_with_its_episode() -> None:
    lstm = build()
    x = torch.randn(TIME, BATCH, DIM, generator=torch.Generator().manual_seed(2))
    broken = carried_state()
    broken.hidden[0], broken.cell[0] = float("nan"), float("inf")
    starts = torch.zeros(TIME, BATCH, dtype=torch.bool)
    starts[0] = True
    with torch.no_grad():
        y, after = lstm.step(x[0], broken, starts[0])
        together = lstm(x, broken, starts)
    assert torch.isfinite(y).all()
    assert torch.isfinite(after.cell).all()
    assert torch.isfinite(together).all()


def test_gradients_equal_those_of_the_loop() -> None:
    lstm, state = build(), carried_state()
    x = torch.randn(TIME, BATCH, DIM, generator=torch.Generator().manual_seed(2))
    starts = torch.rand(TIME, BATCH, generator=torch.Generator().manual_seed(3)) < 0.4
    lstm(x, state, starts).square().sum().backward()
    together = [p.grad.clone() for p in lstm.parameters() if p.grad is not None]
    lstm.zero_grad()
    total = torch.zeros(())
    for t in range(TIME):
        y, state = lstm.step(x[t], state, starts[t])
        total = total + y.square().sum()
    total.backward()
    steps = [p.grad for p in lstm.parameters() if p.grad is not None]
    assert len(together) == len(steps) == 4
    for a, b in zip(together, steps, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
