"""One update of a language model's policy from samples and their advantages."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sensorium.algorithms.token_loss import (
    kl_per_token,
    loss_weights,
    token_policy_loss,
    truncated_importance,
)
from sensorium.core import TrainingError
from sensorium.llm.local.requests import Picture
from sensorium.trainers.language.config import GRPOConfig
from sensorium.trainers.language.model import answer_scores, as_before_training, trained_parameters
from sensorium.trainers.language.samples import Batch, Sample, as_batch, micro_batches
from sensorium.trainers.language.shared_prompts import takes_shared_prompts


class Rows(NamedTuple):
    """Samples of one optimiser step."""

    samples: Sequence[Sample]
    advantages: Float[Tensor, " rows"]
    groups: Int[Tensor, " rows"]
    """Task of each."""
    pictures: Mapping[str, str] = MappingProxyType({})
    """Hash -> ``data:`` URL of what the samples show."""


class _Sums:
    """Sums over tokens, for means over the whole step."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add(self, **values: Tensor | float) -> None:
        for name, value in values.items():
            self.values[name] = self.values.get(name, 0.0) + float(value)


class Learner:
    """Model, optimiser, and the loss.

    Args:
        model: Causal language model of transformers, with adapters or without.
        config: The algorithm.
        pad: Token for padding.
        temperature: At which answers are sampled.
        answer_tokens: Longest answer.
        frozen: The model before training, when the divergence from it counts and there are no adapters.
        see: Turns a ``data:`` URL into a picture; of a model that sees.
    """

    def __init__(
        self,
        model: Any,
        config: GRPOConfig,
        *,
        pad: int,
        temperature: float,
        answer_tokens: int,
        frozen: nn.Module | None = None,
        see: Callable[[str], Picture] | None = None,
    ) -> None:
        self._see = see
        self.model, self.config = model, config
        self.parameters = trained_parameters(model)
        self._device = next(iter(self.parameters.values())).device
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(),
            lr=config.lr,
            weight_decay=config.weight_decay,
            fused=self._device.type == "cpu" or None,  # elsewhere torch chooses a fast way by itself
        )
        self.num_steps = 0
        self._pad, self._temperature = pad, temperature
        self._answer_tokens, self._frozen = answer_tokens, frozen

    def rescored(
        self, samples: Sequence[Sample], pictures: Mapping[str, str] = MappingProxyType({})
    ) -> list[Sample]:
        """The samples with log-probabilities of the model as it is now, instead of the sampler's.

        The sampler reads one token at a time and in company that time decides, which rounds differently; and
        it may have had earlier weights. With `importance_cap` that difference becomes the tokens' weights.
        """
        cap = self.config.importance_cap
        made = list(samples)
        with torch.no_grad():
            for piece in self._pieces(samples):
                batch = self._batch([samples[row] for row in piece], pictures)
                scores = answer_scores(self.model, batch, temperature=self._temperature).logprobs
                weights = batch.weights
                if cap is not None:
                    weights = truncated_importance(scores, batch.logprobs, batch.mask, cap=cap)
                for row, scored, weighed in zip(piece, scores.tolist(), weights.tolist(), strict=True):
                    length = len(samples[row].answer)
                    made[row] = samples[row]._replace(
                        logprobs=tuple(scored[:length]),
                        weights=None if cap is None else tuple(weighed[:length]),
                    )
        return made

    def step(
        self,
        rows: Rows,
        *,
        is_on_policy: bool = False,
        changing: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> dict[str, float]:
        """One optimiser step; the loss does not depend on how samples are split into micro batches.

        Args:
            rows: What is learnt from.
            is_on_policy: The log-probabilities of the samples are those of the model as it is: every ratio
                is 1.
            changing: Entered while the weights change.

        Returns:
            Name of a metric -> value.

        Raises:
            TrainingError: The loss or a gradient is not finite.
        """
        samples, sums = rows.samples, _Sums()
        counted = torch.tensor([self._counted(sample) for sample in samples])
        weights = loss_weights(
            counted, self.config.normaliser, groups=rows.groups, max_tokens=self._answer_tokens
        )
        for parameter in self.parameters.values():  # Adam's moments go on also where nothing is learnt
            parameter.grad = torch.zeros_like(parameter)
        learns = (rows.advantages != 0) | (self.config.kl_coef > 0)
        for piece in self._pieces(samples, learns.tolist()):
            if not bool(counted[piece].any()):
                continue
            batch = self._batch([self._masked(samples[row]) for row in piece], rows.pictures)
            with torch.set_grad_enabled(bool(learns[piece].any())):
                loss = self._loss(batch, rows.advantages[piece], weights[piece], sums, is_on_policy)
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"The loss is {loss.item()} after {self.num_steps} steps. Lower lr, or raise kl_coef."
                )
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.config.max_grad_norm)
        if not bool(torch.isfinite(norm)):
            raise TrainingError(f"The gradient is {norm.item()} after {self.num_steps} steps. Lower lr.")
        lr = self.config.lr * min(1.0, (self.num_steps + 1) / max(1, self.config.warmup_steps))
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        with changing():
            self.optimizer.step()
        self.num_steps += 1
        return self._told(sums, counted) | {"gradient/norm": float(norm), "lr": lr}

    def _loss(
        self,
        batch: Batch,
        advantages: Float[Tensor, " rows"],
        weights: Float[Tensor, " rows"],
        sums: _Sums,
        is_on_policy: bool,
    ) -> Float[Tensor, ""]:
        config, mask = self.config, batch.mask
        scores = answer_scores(self.model, batch, temperature=self._temperature)
        spread = advantages.to(scores.logprobs)[:, None].expand_as(scores.logprobs)
        old = scores.logprobs.detach() if is_on_policy else batch.logprobs
        made = token_policy_loss(
            scores.logprobs,
            old,
            spread,
            mask,
            clip_ratio_low=config.clip_ratio_low,
            clip_ratio_high=config.clip_ratio_high,
            dual_clip=config.dual_clip,
            ratio_of=config.ratio_of,
        )
        weight = weights.to(scores.logprobs)[:, None]
        loss = (weight * batch.weights * made.per_token).sum()
        sums.add(policy=loss.detach())
        if config.kl_coef > 0:
            with torch.no_grad(), as_before_training(self.model, self._frozen) as before:
                reference = answer_scores(before, batch, temperature=self._temperature).logprobs
            divergence = kl_per_token(scores.logprobs, reference, mask, config.kl_kind)
            loss = loss + config.kl_coef * (weight * divergence).sum()
            sums.add(reference_kl=divergence.detach().sum())
        with torch.no_grad():
            moved = kl_per_token(old, scores.logprobs, mask, "k3")
            apart = torch.where(mask, (batch.logprobs - scores.logprobs).abs(), 0.0).max()
            sums.values["apart"] = max(float(apart), sums.values.get("apart", 0.0))
            sums.add(
                kl=moved.sum(),
                entropy=torch.where(mask, scores.entropy, 0.0).sum(),
                low=made.clipped_low.sum(),
                high=made.clipped_high.sum(),
                importance=torch.where(mask, batch.weights, 0.0).sum(),
            )
            worst = float(torch.where(mask, (made.ratio - 1).abs(), 0.0).max())
            sums.values["ratio"] = max(worst, sums.values.get("ratio", 0.0))
        return loss

    def _batch(self, samples: Sequence[Sample], urls: Mapping[str, str]) -> Batch:
        shown = {digest for sample in samples for digest in sample.pictures}
        pictures = {digest: self._see(urls[digest]) for digest in shown} if self._see is not None else {}
        return as_batch(samples, pad=self._pad, device=self._device, pictures=pictures)

    def _pieces(self, samples: Sequence[Sample], learns: Sequence[bool] = ()) -> Iterator[list[int]]:
        """Micro batches; samples that teach nothing are by themselves, as they need no gradient."""
        limit = self.config.micro_batch_tokens
        shares = takes_shared_prompts(self.model) and not any(sample.pictures for sample in samples)
        for kind in (True, False) if learns else (None,):
            rows = [row for row in range(len(samples)) if kind is None or learns[row] is kind]
            yield from micro_batches(samples, rows, limit, share_prompts=shares)

    def _told(self, sums: _Sums, counted: Int[Tensor, " rows"]) -> dict[str, float]:
        found, tokens = sums.values, max(1, int(counted.sum()))
        told = {
            "loss/policy": found.get("policy", 0.0),
            "policy/entropy": found.get("entropy", 0.0) / tokens,
            "policy/kl": found.get("kl", 0.0) / tokens,
            "policy/clip_fraction_low": found.get("low", 0.0) / tokens,
            "policy/clip_fraction_high": found.get("high", 0.0) / tokens,
            "policy/ratio_deviation": found.get("ratio", 0.0),
            "policy/logprob_change": found.get("apart", 0.0),
        }
        if self.config.importance_cap is not None:
            told["policy/importance"] = found.get("importance", 0.0) / tokens
        if self.config.kl_coef > 0:
            told["policy/reference_kl"] = found.get("reference_kl", 0.0) / tokens
        return told

    def _counted(self, sample: Sample) -> int:
        return sum(self._masked(sample).counts)

    def _masked(self, sample: Sample) -> Sample:
        if self.config.mask_cut_answers and sample.is_cut:
            return sample._replace(counts=(False,) * len(sample.counts))
        return sample


def minibatch(num_samples: int, num_minibatches: int, position: int, seed: int) -> list[int]:
    """Rows of one optimiser step: every pass takes all samples once, in an order of its own.

    Args:
        num_samples: In the round.
        num_minibatches: Steps per pass; fewer when there are fewer samples.
        position: Number of the step in the round, from 0.
        seed: Of the order.
    """
    pieces = min(num_minibatches, num_samples)
    epoch, piece = divmod(position, pieces)
    generator = torch.Generator().manual_seed((seed + epoch) % 2**63)
    order = torch.randperm(num_samples, generator=generator).tolist()
    size = math.ceil(num_samples / pieces)
    return order[piece * size : (piece + 1) * size]
