"""What was perceived in acting is perceived again in the update, whatever was done to it."""

from typing import Any

import pytest
import torch
from cue_agents import CONV, cue_config, cue_round

from sensorium.core import ActionKind
from sensorium.envs.embodied import EmbodiedEnvConfig
from sensorium.envs.embodied.augment import AugmentConfig
from sensorium.nn.config import CrossAttentionConfig, NetworkConfig, SoundConfig
from sensorium.rollouts.embodied import Collector, Rollout
from sensorium.trainers.build import build_agent, build_env
from sensorium.trainers.config import DAPOConfig, TrainConfig
from sensorium.trainers.dapo import build_learner

AUGMENTATIONS: dict[str, dict[str, Any]] = {
    "modal_dropout": {"p": 0.4},
    "outage": {"p": 0.6, "latest_onset_steps": 3, "min_steps": 1, "max_steps": 4},
    "time_warp": {"sigma": 1.0, "max_lag_steps": 3, "knot_steps": 2},
    "color_jitter": {},
}
ALGO = {"type": "dapo", "num_envs": 4, "num_steps": 12, "num_minibatches": 1, "num_epochs": 1}


def arena(augment: dict[str, Any]) -> TrainConfig:
    return TrainConfig(
        env=EmbodiedEnvConfig(
            task="arena/find",
            visual_obs=("rgb", "depth"),
            audio_obs=("speech",),
            image_size=16,
            max_episode_steps=9,  # some episodes end within a rollout
            augment=AugmentConfig.model_validate(augment),
        ),
        algo=DAPOConfig.model_validate(ALGO),
        network=NetworkConfig(
            vision=CONV,
            depth=CONV,
            sound=SoundConfig(channels=(8,)),
            fusion=CrossAttentionConfig(embed_dim=16, num_heads=2, hidden_dim=16),
            image_sizes=None,
        ),
        device="cpu",
    )


def largest_log_ratio(collector: Collector, rollout: Rollout) -> float:
    everyone = torch.arange(rollout.rewards.shape[1])
    with torch.no_grad():
        output = collector.policy(rollout.sequences(everyone))
    again = output.distribution.logprobs(rollout.actions(everyone))
    return float((again - rollout.logprobs.flatten()).abs().max())


def check_ratio(collector: Collector, config: TrainConfig) -> list[Rollout]:
    """The second rollout begins in the middle of episodes, with filters that have moved."""
    learner = build_learner(collector.policy, config.algo, collector.generator)
    rollouts = []
    for _ in range(2):
        rollout = collector.collect(config.algo.num_steps)
        assert largest_log_ratio(collector, rollout) < 2e-5
        metrics = learner.update(rollout, progress=0.0)
        assert metrics["policy/clip_fraction"].value == 0
        assert float(metrics["policy/kl"].value) == pytest.approx(0, abs=1e-6)  # type: ignore[arg-type]
        rollouts.append(rollout)
    return rollouts


@pytest.mark.parametrize("names", [(name,) for name in AUGMENTATIONS] + [tuple(AUGMENTATIONS)])
def test_the_ratio_is_one_on_arena(names: tuple[str, ...]) -> None:
    config = arena({name: AUGMENTATIONS[name] for name in names})
    env = build_env(config, augmented=True)
    agent = build_agent(config, env)
    collector = Collector(env, agent.policy, agent.representer, torch.Generator().manual_seed(0))
    collector.restart(5)
    rollouts = check_ratio(collector, config)
    env.close()
    absent = any(not rollout.present.all() for rollout in rollouts)
    assert absent == bool({"modal_dropout", "outage"} & set(names))
    if "time_warp" in names:
        assert any((rollout.age_s[..., 0] > 0).any() for rollout in rollouts)


@pytest.mark.usefixtures("cue_backend")
def test_the_ratio_is_one_on_cue_with_every_sensor() -> None:
    sensors = ("rgb", "depth", "speech", "env_sound", "instruction", "proprio")
    config = cue_config(sensors, ActionKind.HYBRID, algo=ALGO).updated({"env": {"augment": AUGMENTATIONS}})
    made = cue_round(config, augmented=True)
    assert not check_ratio(made.collector, config)[0].present.all()


@pytest.mark.usefixtures("cue_backend")
def test_evaluation_never_augments() -> None:
    config = cue_config(("rgb", "depth")).updated(
        {
            "env": {"augment": AUGMENTATIONS | {"combinations": [["rgb"], ["depth"]]}},
            "curriculum": {"stages": [{"sensors": ["rgb"]}, {"sensors": ["rgb", "depth"]}]},
        }
    )
    plain, clean = build_env(config, 32), build_env(cue_config(("rgb", "depth")), 32)
    augmented = build_env(config, 32, augmented=True)
    seen, same, changed = (env.reset(seed=3)[0] for env in (plain, clean, augmented))
    assert all((seen["present"][name] == 1).all() for name in ("rgb", "depth"))
    assert (seen["rgb"] == same["rgb"]).all()
    assert (changed["rgb"] != same["rgb"]).any()
    assert not (changed["present"]["depth"] == 1).all()
    assert plain.num_envs == 32
