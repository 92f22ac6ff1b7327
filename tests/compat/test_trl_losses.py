"""Losses and advantages equal those of the real TRL on random numbers."""

from pathlib import Path
from typing import Any

import pytest
import torch

trl = pytest.importorskip("trl", reason="needs the extra trl")

from sensorium.algorithms.group_advantages import group_advantages  # noqa: E402
from sensorium.algorithms.token_loss import kl_per_token, loss_weights, token_policy_loss  # noqa: E402
from sensorium.llm.local import tiny_model  # noqa: E402

ROWS, TOKENS, MOST = 8, 12, 16
NORMALISERS = {"grpo": "sequence", "bnpo": "token", "dapo": "token", "dr_grpo": "constant"}
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"), template=TEMPLATE)


def trainer(folder: Path, kind: Any = None, **settings: Any) -> Any:
    """One of TRL's trainers; nothing is trained."""
    import datasets
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config = trl.RLOOConfig if kind is trl.RLOOTrainer else trl.GRPOConfig
    args = config(
        output_dir=str(folder / "out"), max_steps=1, per_device_train_batch_size=ROWS, num_generations=4,
        max_completion_length=MOST, use_cpu=True, bf16=False, activation_checkpointing=False,
        report_to="none", **settings,
    )  # fmt: skip
    return (kind or trl.GRPOTrainer)(
        model=AutoModelForCausalLM.from_pretrained(folder),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=lambda completions, **more: [0.0] * len(completions),
        train_dataset=datasets.Dataset.from_list([{"prompt": "Say"}] * ROWS),
        args=args,
    )


def batch(seed: int) -> dict[str, torch.Tensor]:
    """Log-probabilities of three policies, advantages, and which tokens count; some ratios are clipped."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    now = -normal(ROWS, TOKENS).abs()
    lengths = torch.randint(1, TOKENS + 1, (ROWS, 1), generator=generator)
    of_answer = torch.arange(TOKENS) < lengths
    of_model = torch.rand(ROWS, TOKENS, generator=generator) < 0.7
    of_model[:, 0] = True  # a row without any token of the model's is counted by TRL, and not by us
    return {
        "now": now,
        "old": now + 0.4 * normal(ROWS, TOKENS),
        "reference": now + 0.3 * normal(ROWS, TOKENS),
        "advantages": normal(ROWS),
        "answer": of_answer,
        "model": of_model,
    }


def of_trl(made: Any, given: dict[str, torch.Tensor], *, is_on_policy: bool) -> torch.Tensor:
    logprobs = given["now"].clone().requires_grad_()
    made._get_per_token_logps_and_entropies = lambda *args, **more: (
        logprobs,
        torch.zeros(ROWS, TOKENS),
        None,
    )
    made.model.eval()
    mask = given["answer"] & given["model"]
    ones = torch.ones(ROWS, 3, dtype=torch.long)
    inputs = {
        "prompt_ids": ones,
        "prompt_mask": ones,
        "completion_ids": torch.ones(ROWS, TOKENS, dtype=torch.long),
        "completion_mask": given["answer"].long(),
        "tool_mask": given["model"].long(),
        "advantages": given["advantages"],
        "ref_per_token_logps": given["reference"],
        "num_items_in_batch": mask.sum(),
    }
    if not is_on_policy:
        inputs["old_per_token_logps"] = given["old"]
    loss = made._compute_loss(made.model, inputs)
    loss.backward()
    return torch.cat((loss.detach()[None], logprobs.grad.flatten()))


def of_ours(given: dict[str, torch.Tensor], normaliser: Any, beta: float, **settings: Any) -> torch.Tensor:
    logprobs = given["now"].clone().requires_grad_()
    mask = given["answer"] & given["model"]
    old = logprobs.detach() if settings.pop("is_on_policy") else given["old"]
    spread = given["advantages"][:, None].expand(ROWS, TOKENS)
    per_token = token_policy_loss(logprobs, old, spread, mask, **settings).per_token
    per_token = per_token + beta * kl_per_token(logprobs, given["reference"], mask)
    loss = (loss_weights(mask.sum(1), normaliser, max_tokens=MOST).double()[:, None] * per_token).sum()
    loss.backward()
    return torch.cat((loss.detach()[None], logprobs.grad.flatten()))


@pytest.mark.parametrize("beta", [0.0, 0.07])
@pytest.mark.parametrize("loss_type", NORMALISERS)
def test_losses_and_gradients_are_equal(folder: Path, loss_type: str, beta: float) -> None:
    plain = {"use_bias_correction_kl": False}  # by default the ratio stands before the divergence there
    made = trainer(folder, loss_type=loss_type, beta=beta, epsilon=0.2, epsilon_high=0.28, **plain)
    for seed in range(5):
        for is_on_policy in (False, True):
            given = batch(seed)
            theirs = of_trl(made, given, is_on_policy=is_on_policy)
            ours = of_ours(
                given,
                NORMALISERS[loss_type],
                beta,
                clip_ratio_low=0.2,
                clip_ratio_high=0.28,
                is_on_policy=is_on_policy,
            )
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    ratio = (given["now"] - given["old"]).exp()
    assert (ratio < 0.8).any(), "clipping took part"
    assert (ratio > 1.28).any()


def test_the_bound_of_bad_tokens_and_the_ratio_of_sequences_are_equal(folder: Path) -> None:
    bounded = trainer(folder, loss_type="dapo", delta=1.5)
    whole = trainer(folder, loss_type="grpo", importance_sampling_level="sequence", epsilon=0.03)
    for seed in range(5):
        given = batch(seed)
        theirs = of_trl(bounded, given, is_on_policy=False)
        ours = of_ours(given, "token", 0.0, dual_clip=1.5, is_on_policy=False)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
        theirs = of_trl(whole, given, is_on_policy=False)
        clips = {"clip_ratio_low": 0.03, "clip_ratio_high": 0.03}
        ours = of_ours(given, "sequence", 0.0, ratio_of="sequence", is_on_policy=False, **clips)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def advantages_of_trl(made: Any, rewards: torch.Tensor) -> torch.Tensor:
    """Let it generate something and judge that with these rewards."""
    made._calculate_rewards = lambda *args: rewards[:, None]
    inputs = [{"prompt": "Say"} for _ in range(ROWS)]
    found: torch.Tensor = made._generate_and_score_completions(inputs)["advantages"]
    return found


@pytest.mark.parametrize(
    ("scale_rewards", "estimator"), [("group", "grpo"), ("none", "dr_grpo")], ids=["grpo", "dr_grpo"]
)
def test_advantages_are_equal_also_beside_failed_episodes(
    folder: Path, scale_rewards: str, estimator: Any
) -> None:
    made = trainer(folder, scale_rewards=scale_rewards)
    groups = torch.arange(ROWS) // 4
    for seed in range(4):
        rewards = torch.randn(ROWS, generator=torch.Generator().manual_seed(seed))
        if seed > 1:
            rewards[5] = torch.nan  # what a failed episode is to TRL
        ours = group_advantages(rewards, groups, ~rewards.isnan(), estimator=estimator, eps=1e-4)
        torch.testing.assert_close(ours, advantages_of_trl(made, rewards), rtol=0, atol=1e-6)


def test_leave_one_out_advantages_are_equal(folder: Path) -> None:
    made = trainer(folder, trl.RLOOTrainer, beta=0.0, normalize_advantages=False)
    rewards = torch.randn(ROWS, generator=torch.Generator().manual_seed(3))
    ours = group_advantages(rewards, torch.arange(ROWS) // 4, estimator="rloo")
    torch.testing.assert_close(ours, advantages_of_trl(made, rewards), rtol=0, atol=1e-6)
