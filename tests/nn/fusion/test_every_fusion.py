"""What holds for every alternative."""

import itertools

import pytest
import torch
from fusion_cases import (
    BATCH,
    DIM,
    FEATURES,
    ONE_STREAM,
    SENSORS,
    SHAPES,
    TWO_STREAMS,
    build,
    everyone,
    some_tokens,
    without,
)

from sensorium.core import ConfigError
from sensorium.nn import Tokens, build_fusion
from sensorium.nn.fusion import FUSIONS

ALL = (*ONE_STREAM, *TWO_STREAMS)
every = pytest.mark.parametrize("config", ALL, ids=lambda c: f"{c.type}-{getattr(c, 'streams', 1)}")


def test_every_registered_fusion_is_tested() -> None:
    assert {config.type for config in ONE_STREAM} == set(FUSIONS)


@every
@pytest.mark.parametrize("absent", range(len(SHAPES)))
def test_an_absent_sensor_never_changes_the_output(config: object, absent: int) -> None:
    fusion, present = build(config), without(absent)
    name = SENSORS[absent]
    tokens, other = some_tokens(), some_tokens()
    garbage = some_tokens(seed=9)[name]
    other[name] = Tokens(garbage.values * 100, garbage.mask, garbage.summary * 100)
    before, after = fusion(tokens, present), fusion(other, present)
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a, b)
    with_it = fusion(other, everyone())
    assert not torch.allclose(with_it.features, fusion(tokens, everyone()).features)


@every
def test_rows_do_not_mix(config: object) -> None:
    fusion, present = build(config), everyone()
    present[1, 0] = present[2, 1] = False
    whole = fusion(some_tokens(), present)
    for row in range(BATCH):
        one = {name: tokens.at(torch.tensor([row])) for name, tokens in some_tokens().items()}
        single = fusion(one, present[row : row + 1])
        torch.testing.assert_close(single.features[0], whole.features[row], atol=1e-6, rtol=1e-5)


@every
def test_a_missing_token_is_added_for_each_absent_sensor(config: object) -> None:
    fusion, present = build(config), everyone()
    present[0, 0] = present[1, 1] = present[1, 2] = False
    with_tokens = fusion(some_tokens(), present).features
    with torch.no_grad():
        learnt = fusion.missing.clone()
        fusion.missing.zero_()
    without_tokens = fusion(some_tokens(), present).features
    difference = with_tokens - without_tokens
    torch.testing.assert_close(difference[0], learnt[0])
    torch.testing.assert_close(difference[1], learnt[1] + learnt[2])
    assert torch.equal(difference[2:], torch.zeros(3, FEATURES))


@every
def test_a_missing_token_is_trained_by_absence_alone(config: object) -> None:
    fusion = build(config)
    fusion(some_tokens(), without(1)).features.sum().backward()
    assert fusion.missing.grad is not None
    assert fusion.missing.grad[1].tolist() == [BATCH] * FEATURES
    assert (fusion.missing.grad[[0, 2]] == 0).all()


@every
def test_new_missing_tokens_change_nothing(config: object) -> None:
    assert (build_fusion(SHAPES, config).missing == 0).all()  # type: ignore[arg-type]


@every
def test_nothing_present_is_finite(config: object) -> None:
    fusion = build(config)
    fused = fusion(some_tokens(), ~everyone())
    assert torch.isfinite(fused.features).all()
    assert is_constant(fused.features), "nothing was perceived"
    assert torch.equal(fused.gates, torch.zeros(BATCH, 3))
    torch.testing.assert_close(fused.attention[..., -1], torch.ones(BATCH, 3))
    fused.features.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in fusion.parameters())


@every
@pytest.mark.parametrize("present", [p for p in itertools.product([False, True], repeat=3) if any(p)])
def test_gates_and_attention_are_shares(config: object, present: tuple[bool, ...]) -> None:
    row = torch.tensor([present]).expand(BATCH, 3)
    fused = build(config)(some_tokens(), row)
    torch.testing.assert_close(fused.gates.sum(-1), torch.ones(BATCH))
    assert (fused.gates[~row] == 0).all()
    assert (fused.gates[row] > 0).all()
    torch.testing.assert_close(fused.attention.sum(-1), torch.ones(BATCH, 3))
    assert (fused.attention[..., :3][~row[:, None].expand(BATCH, 3, 3)] == 0).all()


@pytest.mark.parametrize("config", ONE_STREAM[1:], ids=lambda c: c.type)
def test_without_attention_each_sensor_is_on_itself(config: object) -> None:
    attention = build(config)(some_tokens(), without(1)).attention
    assert attention[0].tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


@every
def test_summaries_are_each_sensors_own_and_carry_gradients(config: object) -> None:
    tokens = some_tokens()
    for one in tokens.values():
        one.summary.requires_grad_()
    summaries = build(config)(tokens, without(2)).summaries
    assert summaries.shape == (BATCH, 3, DIM)
    assert torch.equal(summaries[:, 0], tokens["rgb"].summary)
    assert torch.equal(summaries[:, 2], torch.zeros(BATCH, DIM))
    summaries.sum().backward()
    assert torch.equal(tokens["rgb"].summary.grad, torch.ones(BATCH, DIM))


@every
@pytest.mark.parametrize("absent", range(len(SHAPES)))
def test_own_parameters_are_disjoint_and_idle_when_their_sensor_is_absent(
    config: object, absent: int
) -> None:
    fusion = build(config)
    own = {name: fusion.own_parameters(name) for name in SENSORS}
    ids = [id(p) for parameters in own.values() for p in parameters]
    assert len(ids) == len(set(ids)) > 0
    assert set(ids) < {id(p) for p in fusion.parameters()}
    fusion(some_tokens(), without(absent)).features.square().sum().backward()
    for m, name in enumerate(SENSORS):
        moved = [p.grad is not None and bool((p.grad != 0).any()) for p in own[name]]
        assert not any(moved) if m == absent else all(moved)


@every
def test_a_damped_sensor_is_almost_absent(config: object) -> None:
    """What was done without the sensor, its missing token included, is what is done with it damped."""
    tokens = some_tokens()
    fusion = build(config)
    absent, opened = fusion(tokens, without(1)).features, fusion(tokens, everyone()).features
    fusion.damp("speech", -4.0)
    damped = fusion(tokens, everyone()).features
    assert (damped - absent).norm() < 0.25 * (opened - absent).norm()
    torch.testing.assert_close(fusion(tokens, without(1)).features, absent, atol=1e-5, rtol=1e-5)
    shut = build(config)
    shut.damp("speech", -25.0)
    torch.testing.assert_close(shut(tokens, everyone()).features, absent, atol=1e-4, rtol=1e-4)


@every
def test_training_opens_a_damped_sensor_again(config: object) -> None:
    fusion = build(config)
    fusion.damp("speech")
    fusion(some_tokens(), everyone()).features.square().sum().backward()
    assert all(bool((p.grad != 0).any()) for p in fusion.own_parameters("speech"))
    damped = fusion(some_tokens(), everyone()).gates[:, 1]
    assert damped.max() < build(config)(some_tokens(), everyone()).gates[:, 1].min() or config.type == "early"  # type: ignore[attr-defined]


@every
def test_damping_a_sensor_that_does_not_exist_is_refused(config: object) -> None:
    with pytest.raises(ConfigError, match=r"Unknown sensor 'speach'\. Did you mean 'speech'"):
        build(config).damp("speach")


@pytest.mark.parametrize("config", TWO_STREAMS, ids=lambda c: c.type)
def test_two_streams_keep_sight_apart(config: object) -> None:
    """What rgb adds is in the first half, what the others add in the second."""
    fusion = build(config)
    with torch.no_grad():
        fusion.missing.zero_()
    half = FEATURES // 2
    blind = fusion(some_tokens(), without(0)).features
    assert is_constant(blind[:, :half])
    assert not is_constant(blind[:, half:])
    only_sight = fusion(some_tokens(), without(1, 2)).features
    assert not is_constant(only_sight[:, :half])
    assert is_constant(only_sight[:, half:])


def test_two_streams_without_any_sight_leave_the_first_empty() -> None:
    fusion = build_fusion(SHAPES, TWO_STREAMS[0])
    features = fusion(some_tokens(), everyone()).features
    assert features.shape == (BATCH, FEATURES)
    assert is_constant(features[:, : FEATURES // 2])
    assert not is_constant(features[:, FEATURES // 2 :])


def is_constant(features: torch.Tensor) -> bool:
    """Whether a stream says the same of every row: nothing was perceived there.

    Some processors round equal rows of a product differently.
    """
    return torch.allclose(features, features[:1].expand_as(features), rtol=1e-5, atol=1e-6)


@every
def test_sets_of_senses_are_fused_as_if_each_came_alone(config: object) -> None:
    fusion, tokens = build(config), some_tokens()
    sets = torch.stack([everyone(), without(0), without(1, 2), ~everyone()])
    together = fusion.combine(fusion.prepare(tokens), sets)
    for s, present in enumerate(sets):
        for found, expected in zip(together, fusion(tokens, present), strict=True):
            torch.testing.assert_close(found[s], expected, atol=1e-6, rtol=1e-5)


@every
def test_prepared_rows_can_be_gathered(config: object) -> None:
    fusion, rows = build(config), torch.tensor([3, 0, 3])
    whole = fusion(some_tokens(), without(1)).features
    some = fusion.combine(fusion.prepare(some_tokens()).at(rows), without(1)[rows]).features
    torch.testing.assert_close(some, whole[rows], atol=1e-6, rtol=1e-5)
