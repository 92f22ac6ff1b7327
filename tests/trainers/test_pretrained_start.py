"""A run reads pretrained vision weights once, at its start; its checkpoints need them no more."""

import shutil
from pathlib import Path

import pytest
import torch
from cue_agents import SPACE_TIME, cue_config

from sensorium.evals import load_agent
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.training import Training

transformers = pytest.importorskip("transformers")


@pytest.mark.usefixtures("cue_backend")
def test_a_run_starts_from_pretrained_weights(tmp_path: Path) -> None:
    model = transformers.ViTModel(
        transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=16,
            patch_size=8,
        )
    )
    model.save_pretrained(tmp_path / "vit")
    vision = SPACE_TIME.model_copy(
        update={"pretrained": str(tmp_path / "vit"), "cls_token": "clip", "layer_norm_eps": 1e-12}
    )
    config = cue_config(vision=vision, algo={"total_steps": 64})
    run = open_run(config, tmp_path / "runs", OnExisting.FAIL)
    training = Training(config, run)
    start = training.agent.policy.perception.encoders["rgb"].blocks[0].mlp[0].weight
    assert torch.equal(start, model.layers[0].mlp.fc1.weight)
    training.run(lambda _: None)
    trained = start.detach().clone()
    assert not torch.equal(trained, model.layers[0].mlp.fc1.weight)
    shutil.rmtree(tmp_path / "vit")
    agent = load_agent(run)[1]
    assert torch.equal(agent.policy.perception.encoders["rgb"].blocks[0].mlp[0].weight, trained)
    assert Training(config, run).env_steps == 64, "resumed without the folder"
