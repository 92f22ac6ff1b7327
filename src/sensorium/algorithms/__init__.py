"""Pure functions of reinforcement learning; no loops over data, no networks."""

from sensorium.algorithms.alignment import (
    PolicyHeads,
    js_categorical,
    js_gaussian,
    modality_divergence,
    policy_divergence,
)
from sensorium.algorithms.contrastive import (
    MAX_LOG_SCALE,
    ContrastiveLoss,
    contrastive_loss,
    one_row_per_episode,
    symmetric_info_nce,
)
from sensorium.algorithms.gae import gae
from sensorium.algorithms.ppo import (
    SurrogateLoss,
    adapt_kl_coef,
    clipped_surrogate,
    explained_variance,
    masked_mean,
    normalise_advantages,
    value_loss,
)
from sensorium.algorithms.promotion import PromotionDecision, Verdict, judge_stage, next_stage
from sensorium.algorithms.shapley import ShapleyEstimate, shapley_coalitions, shapley_values
from sensorium.algorithms.similarity import (
    attention_entropy,
    centred_cosine,
    effective_rank,
    gradient_norm,
    joint_norm,
    linear_cka,
    update_norm,
)
from sensorium.algorithms.update_gating import (
    MovingAverage,
    cggm,
    coalition_worth,
    ogm_ge,
    softmax_gates,
    z_scores,
)

__all__ = [
    "MAX_LOG_SCALE",
    "ContrastiveLoss",
    "MovingAverage",
    "PolicyHeads",
    "PromotionDecision",
    "ShapleyEstimate",
    "SurrogateLoss",
    "Verdict",
    "adapt_kl_coef",
    "attention_entropy",
    "centred_cosine",
    "cggm",
    "clipped_surrogate",
    "coalition_worth",
    "contrastive_loss",
    "effective_rank",
    "explained_variance",
    "gae",
    "gradient_norm",
    "joint_norm",
    "js_categorical",
    "js_gaussian",
    "judge_stage",
    "linear_cka",
    "masked_mean",
    "modality_divergence",
    "next_stage",
    "normalise_advantages",
    "ogm_ge",
    "one_row_per_episode",
    "policy_divergence",
    "shapley_coalitions",
    "shapley_values",
    "softmax_gates",
    "symmetric_info_nce",
    "update_norm",
    "value_loss",
    "z_scores",
]
