import pytest
import torch

from sensorium.algorithms.token_gae import token_gae, turn_ends, turn_gae

VALUES = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.5]])
MASK = torch.tensor([[True, True, False, True, True]])


def test_tokens_of_tools_are_passed_over():
    made = token_gae(
        torch.tensor([[0.0, 0, 0, 1]]),
        VALUES[:, :4],
        torch.tensor([[True, False, True, True]]),
        gamma=0.9,
        gae_lambda=0.95,
    )
    wanted = torch.tensor([[0.6599, 0.0, 0.5730, 0.6]])
    torch.testing.assert_close(made.advantages, wanted, atol=1e-4, rtol=0)
    torch.testing.assert_close(made.returns, torch.tensor([[0.7599, 0, 0.8730, 1.0]]), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("rewards", "wanted"),
    [
        ((-0.1, 1.0), [0.7, 0.6, 0, 0.6, 0.5]),
        ((0.0, 1.0), [0.8, 0.7, 0, 0.6, 0.5]),
        ((1.0, 0.0), [0.9, 0.8, 0, -0.4, -0.5]),
    ],
)
def test_turns_end_where_the_mask_says_also_without_reward(rewards, wanted):
    given = torch.zeros(1, 5)
    given[0, 1], given[0, 4] = rewards
    made = turn_gae(given, VALUES, MASK, gamma=1.0, gae_lambda=1.0, gamma_turn=0.9)
    torch.testing.assert_close(made.advantages, torch.tensor([wanted]), atol=1e-6, rtol=0)


def test_without_discounts_both_levels_are_the_ordinary_estimate():
    torch.manual_seed(3)
    values, rewards = torch.randn(6, 20), torch.randn(6, 20)
    mask = torch.rand(6, 20) < 0.7
    rewards = torch.where(turn_ends(mask), rewards, 0.0)
    bootstrap = torch.randn(6)
    torch.testing.assert_close(
        turn_gae(rewards, values, mask, gamma=1.0, gae_lambda=1.0, gamma_turn=1.0, bootstrap=bootstrap),
        token_gae(rewards, values, mask, gamma=1.0, gae_lambda=1.0, bootstrap=bootstrap),
        atol=1e-4,
        rtol=1e-4,
    )


def test_turns_of_one_token_are_tokens():
    torch.manual_seed(4)
    values, rewards = torch.randn(6, 20), torch.randn(6, 20)
    mask = torch.tensor([True, False] * 10).expand(6, 20)
    torch.testing.assert_close(
        turn_gae(rewards, values, mask, gamma=0.3, gae_lambda=0.9, gamma_turn=0.97),
        token_gae(rewards, values, mask, gamma=0.97, gae_lambda=0.9),
    )


def test_what_was_cut_off_goes_on_with_its_value():
    mask = torch.tensor([[True]])
    zero = torch.zeros(1, 1)
    made = token_gae(zero, zero, mask, gamma=0.9, gae_lambda=1.0, bootstrap=torch.tensor([2.0]))
    assert made.advantages.item() == pytest.approx(1.8)
