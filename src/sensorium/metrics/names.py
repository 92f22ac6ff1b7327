"""What every metric means, in one sentence: the report and the docs read it from here.

A name is `room/quantity`, with the unit at the end where there is one (`time/rollout_s`). A part in braces
stands for any text: `gradient/norm/{sensor}` explains `gradient/norm/rgb`. An exact name wins over a
template, an earlier template over a later one.
"""

import functools
import re

METRIC_MEANINGS: dict[str, str] = {
    "rollout/success_rate": "Share of the finished training episodes that solved the task, 0 to 1.",
    "rollout/return_mean": "Mean sum of rewards of the finished training episodes, undiscounted.",
    "rollout/return_std": "How much the returns of the finished training episodes differ.",
    "rollout/return_max": "Best return among the finished training episodes.",
    "rollout/return_min": "Worst return among the finished training episodes.",
    "rollout/episode_length": "Mean number of steps of the finished training episodes.",
    "rollout/episodes": "Number of training episodes that finished.",
    "rollout/reward_mean": "Mean reward of a training step.",
    "rollout/truncated_rate": "Share of the finished training episodes that ran into the step limit.",
    "rollout/outcome": "Mean reward of all judged episodes of the update, of groups that were left out, too.",
    "eval/success_rate": "Share of the evaluation episodes that solved the task, on seeds not trained on.",
    "eval/return_mean": "Mean return of the evaluation episodes, on seeds not trained on.",
    "eval/episode_length": "Mean number of steps of the evaluation episodes.",
    "eval/failed_episodes": "Evaluation episodes that failed for a reason beside the agent; not scored.",
    "time/steps_per_s": "Environment steps per second of wall time, learning included.",
    "time/eta_s": "Seconds until training is expected to end.",
    "time/tokens_per_s": "Tokens of answers per second of an update, sampling and learning together.",
    "time/{part}_s": "Wall time of {part} per update, in seconds.",
    "loss/total": "The loss that the optimiser minimised: policy, value and all bonuses together.",
    "loss/policy": "Clipped surrogate: below 0 when actions that turned out well became more likely.",
    "loss/value": "Squared error of the critic's prediction of the return.",
    "loss/entropy_bonus": "Entropy times its coefficient: what keeps the policy exploring.",
    "loss/kl": "Divergence from the policy that acted, times its coefficient.",
    "loss/alignment": "Divergence of the policy given one sense from that given all, times its coefficient.",
    "loss/contrastive": "Confusion of what senses embed of different instructions, times its coefficient.",
    "loss/{term}": "Loss term {term}, before it is added to the others.",
    "policy/entropy": "How undecided the policy is, in nats; falls as it learns, 0 is fully decided.",
    "policy/entropy/{head}": "How undecided the policy is about the {head} part of its action, in nats.",
    "policy/kl": "How far one update moved the policy from the one that acted, in nats; above 0.05 is a lot.",
    "policy/kl_last_epoch": "The same divergence, over the last pass through the batch only.",
    "policy/kl_coef": "Weight of the divergence in the loss; adapts to keep the divergence near its target.",
    "policy/clip_fraction": "Share of steps where the update wanted to go further than the clip allows.",
    "policy/clip_fraction_low": "Share of the tokens that the lower clip bound kept from becoming rarer.",
    "policy/clip_fraction_high": "Share of the tokens that the upper clip bound kept from becoming likelier.",
    "policy/ratio_deviation": "Largest distance of a token's probability ratio from 1; 0 with one step.",
    "policy/first_ratio_deviation": "Largest distance of a ratio from 1 at the first step: rounding, or age.",
    "policy/importance": "Mean weight of a token by the age of its sample; 1 for what is fresh.",
    "policy/logprob_change": "Largest difference of a token's log-probability from when it was scored.",
    "policy/reference_kl": "How far the policy is from the model before training, per token, in nats.",
    "policy/ratio": "New probability of the action over old one; 1 means unchanged.",
    "policy/ratio_max": "Largest ratio between the new and the old probability of an action.",
    "policy/std": "Mean standard deviation of the continuous actions.",
    "value/explained_variance": "How well the critic predicts returns: 1 perfectly, 0 like their mean.",
    "value/mean": "Mean return that the critic predicts.",
    "advantage/std": "Spread of the advantages; of embodied runs before they are normalised.",
    "groups/no_signal": "Share of the episodes whose group is all alike, so that comparing teaches nothing.",
    "groups/singletons": "Share of the steps that are alone in their group and compared with nothing.",
    "groups/size": "Mean number of steps in a group.",
    "groups/rounds": "Rounds of playing that the update took.",
    "groups/left_out": "Groups that were all alike and were replaced by others.",
    "tokens/prompt": "Mean length of what the model read before an answer, in tokens.",
    "tokens/first_prompt": "Mean length of what the model read before its first answer of an episode.",
    "tokens/last_prompt": "Mean length of what the model read before its last answer of an episode.",
    "tokens/kept_prefix": "Share of the steps whose prompt begins with all tokens of the step before.",
    "tokens/answer": "Mean length of an answer, in tokens.",
    "tokens/cut_answers": "Share of the answers that the limit of tokens cut off, 0 to 1.",
    "tokens/sampled": "Tokens of all answers that the update learnt from.",
    "staleness/mean": "Mean age of the samples: updates done since the weights that sampled them.",
    "staleness/max": "Age of the oldest sample, in updates; never above algo.max_staleness.",
    "tools/calls": "Mean number of tool calls in a training episode.",
    "tools/failure_rate": "Share of the tool calls that brought no result, 0 to 1.",
    "gradient/norm": "Length of the whole gradient before it is clipped.",
    "gradient/norm/{sensor}": "Length of the gradient that reaches the encoder of {sensor}, before clipping.",
    "gradient/update_norm/{sensor}": "Length of the step that the encoder of {sensor} took, after gating.",
    "gradient/clip_fraction": "Share of the minibatches whose gradient was clipped.",
    "gradient/skipped_updates": "Minibatch updates skipped because the loss or gradient was not finite.",
    "lr": "Learning rate of the optimiser.",
    "lr/{group}": "Learning rate of {group}.",
    "env/failed_episodes": "Episodes that a crash or time limit of the engine ended; not scored at all.",
    "env/restarts": "Worker processes that died and were started again.",
    "reward/{term}": "Mean of the reward term {term}, weighted: per step, of language models per episode.",
    "attention/{from}->{to}": "Share of the attention of {from} that goes to {to}, 0 to 1.",
    "attention/entropy/{sensor}": "How evenly {sensor} attends: 0 to one token only, 1 to all alike.",
    "contribution/{sensor}": "What {sensor} adds to values and policy now: its Shapley value phi.",
    "gate/{sensor}": "Factor k on the learning rate of {sensor}; below 1 it waits for other senses.",
    "similarity/cosine/{pair}": "Whether {pair} point the same way: cosine of centred features, -1 to 1.",
    "similarity/cka/{pair}": "Likeness of the structure of {pair}: 0 unrelated, 1 equal but for axes.",
    "similarity/effective_rank/{sensor}": "Dimensions that {sensor} really uses; a fall warns of collapse.",
    "contrastive/accuracy": "Share of rows whose nearest row in another sense has the same instruction.",
    "contrastive/chance": "What contrastive/accuracy would be for a row drawn at random.",
    "curriculum/stage": "Number of the curriculum's stage, from 0.",
    "curriculum/success_lower": "Lower confidence bound of success at this stage, which promotion looks at.",
    "fusion/gate/{sensor}": "How far the gate lets {sensor} through, 0 shut to 1 open.",
    "presence/{sensor}": "Share of steps at which a reading of {sensor} was present.",
    "memory/rss_mib": "Memory of the training process, in MiB.",
    "observation/count": "Representations that were made for the language model.",
    "observation/num_tokens": "Tokens of a whole representation: how many there were of which size.",
    "observation/budget_used": "Share of the token limit that a representation takes, 0 to 1.",
    "observation/tokens/{modality}": "Tokens that a part of kind {modality} costs in the messages.",
    "observation/tokens_before/{modality}": "Tokens of a whole part of kind {modality}.",
    "observation/kept_share/{modality}": "Tokens of kind {modality} that were sent, over those there were.",
    "observation/retained/{modality}": "Estimated share of what {modality} says that is still there, 0 to 1.",
    "observation/parts/{level}": "Parts that were sent as {level}.",
    "observation/extraction_ms/{modality}": "Milliseconds of extraction per part of kind {modality}.",
    "observation/extraction_{quantile}_ms/{modality}": "Extraction of {modality}: {quantile} of ms per part.",
    "observation/cache_hit_rate": "Share of the features that needed no extraction, 0 to 1.",
    "observation/facts_retained": "Share of the planted probe facts that the representation still holds.",
    "observation/similarity": "Cosine of the embeddings of the full text and of what was sent, -1 to 1.",
}
"""Metric name, or template of names, -> what it says to someone who reads it for the first time."""

NON_FINITE_SUFFIX = "/non_finite"
"""Sinks write `{metric}/non_finite` when values of a metric were NaN or infinite."""


def meaning(name: str) -> str | None:
    """Return what a metric means in one sentence, or None for a name that nobody has explained.

    Example:
        >>> meaning("presence/rgb")
        'Share of steps at which a reading of rgb was present.'
    """
    if name in METRIC_MEANINGS:
        return METRIC_MEANINGS[name]
    if name.endswith(NON_FINITE_SUFFIX):
        return f"How many values of {name.removesuffix(NON_FINITE_SUFFIX)} were NaN or infinite and left out."
    for pattern, fields, sentence in _templates():
        if match := pattern.fullmatch(name):
            found = dict(zip(fields, match.groups(), strict=True))
            return _FIELD.sub(lambda field, found=found: found[field[1]], sentence)  # type: ignore[misc]
    return None


_FIELD = re.compile(r"\{(\w+)\}")


@functools.cache
def _templates() -> list[tuple[re.Pattern[str], list[str], str]]:
    """Pattern, names of its groups and sentence of every template, in the order of the table."""
    return [
        (
            re.compile(
                "".join("([^/]+?)" if i % 2 else re.escape(s) for i, s in enumerate(_FIELD.split(name)))
            ),
            _FIELD.findall(name),
            sentence,
        )
        for name, sentence in METRIC_MEANINGS.items()
        if _FIELD.search(name)
    ]
