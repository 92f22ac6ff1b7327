"""Every fusion and every kind of CLS token in an ONNX file."""

from pathlib import Path
from typing import Any

import pytest
from cue_agents import CONV, SPACE_TIME, cue_config, cue_round, perturb

from sensorium.trainers.onnx_export import export_policy

pytestmark = pytest.mark.usefixtures("cue_backend")


@pytest.mark.parametrize(
    "changes",
    [
        {"fusion": {"type": "early", "hidden_dim": 16}},
        {"fusion": {"type": "late", "hidden_dim": 16}},
        {"fusion": {"type": "gated", "hidden_dim": 16}},
        {"fusion": {"feature_dim": 24, "streams": 2}},
    ],
    ids=lambda changes: changes["fusion"].get("type", "streams"),
)
def test_a_fusion_equals_pytorch(changes: dict[str, Any], tmp_path: Path) -> None:
    config = cue_config(("rgb", "speech", "proprio"), vision=CONV).updated({"network": changes})
    policy = cue_round(config).agent.policy
    perturb(policy, scale=0.1)
    assert 0 < export_policy(policy, tmp_path) < 2e-5


@pytest.mark.parametrize("cls_token", ["frame", "clip"])
def test_a_vision_transformer_equals_pytorch(cls_token: str, tmp_path: Path) -> None:
    vision = SPACE_TIME.model_copy(
        update={"cls_token": cls_token, "summary_channels": 4, "gradient_checkpointing": True}
    )
    policy = cue_round(cue_config(("rgb", "speech"), vision=vision)).agent.policy
    perturb(policy, scale=0.1)
    policy.perception.damp("speech")  # moves the missing token into a buffer that the file must hold
    assert 0 < export_policy(policy, tmp_path) < 2e-5
