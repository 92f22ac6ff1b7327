import pytest

from sensorium.core import ConfigError
from sensorium.envs.embodied.augment import ColorJitter, ModalDropout, RandomTimeWarp
from sensorium.envs.embodied.registry import check_config, find_task
from sensorium.nn.config import SpaceTimeConfig
from sensorium.presets import EMBODIED, LANGUAGE, find_preset
from sensorium.trainers.config import DAPOConfig, TrainConfig
from sensorium.trainers.language.config import LanguageRunConfig
from sensorium.trainers.run_directory import OnExisting, open_run
from sensorium.trainers.training import Training


@pytest.mark.parametrize("name", EMBODIED)
def test_a_preset_fits_its_task_and_survives_a_round_trip(name: str) -> None:
    config = find_preset(name)
    check_config(config.env, find_task(config.env.task))
    assert TrainConfig.model_validate(config.model_dump(mode="json")) == config
    assert config.env.max_episode_steps == find_task(config.env.task).default_max_steps
    assert config.algo.num_envs % config.algo.num_minibatches == 0


@pytest.mark.parametrize("name", LANGUAGE)
def test_a_language_preset_survives_a_round_trip(name: str) -> None:
    config = find_preset(name)
    assert LanguageRunConfig.model_validate(config.model_dump(mode="json")) == config
    assert config.run_name.endswith("_grpo-1")


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'quickstart'"):
        find_preset("quick_start")


def test_quickstart_is_named_after_its_task_senses_and_algorithm() -> None:
    assert find_preset("quickstart").run_name == "arena-find_rgb+depth+speech_dapo-1"


SMALL = {"num_envs": 4, "num_steps": 2, "num_minibatches": 1, "num_epochs": 1, "total_steps": 8}


NEEDS_AN_ACCELERATOR = {"dapo_base"}
TRAINABLE = [name for name in EMBODIED if name not in NEEDS_AN_ACCELERATOR]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.doom] if "doom" in name else []) for name in TRAINABLE]
)
def test_a_preset_trains_for_two_steps(name: str, tmp_path: pytest.TempPathFactory) -> None:
    config = find_preset(name).updated({"algo": SMALL})
    run = open_run(config, tmp_path, OnExisting.FAIL)  # type: ignore[arg-type]
    result = Training(config, run).run(lambda _: None)
    assert result.env_steps == 8
    assert (result.checkpoint / "policy.onnx").is_file()
    assert result.onnx_max_abs_diff <= 1e-4


def test_the_full_size_has_the_published_settings() -> None:
    config = find_preset("dapo_base")
    algo, network = config.algo, config.network
    assert isinstance(algo, DAPOConfig)
    assert isinstance(network.vision, SpaceTimeConfig)
    assert (config.env.image_size, network.vision.patch_size, network.vision.num_frames) == (224, 16, 8)
    assert (network.fusion.features, network.fusion.hidden_dim) == (2 * 768, 1024)
    rates = algo.learning_rates
    assert (rates.vision, rates.policy, rates.value) == (3e-5, 1e-4, 5e-4)
    assert (algo.gamma, algo.gae_lambda, algo.kl_coef, algo.num_epochs) == (0.99, 0.95, 0.2, 10)
    assert algo.contrastive is not None
    assert algo.contrastive.temperature == 0.1
    augment = config.env.augment
    assert augment.modal_dropout == ModalDropout(0.1)
    assert augment.time_warp == RandomTimeWarp(0.2)
    assert augment.color_jitter == ColorJitter(0.4, 0.4, 0.4)
