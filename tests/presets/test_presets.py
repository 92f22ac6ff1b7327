import pytest

from sensorium.core import ConfigError
from sensorium.envs.embodied.registry import check_config, find_task
from sensorium.presets import PRESETS, find_preset
from sensorium.trainers.config import TrainConfig
from sensorium.trainers.run_directory import OnExisting, open_run, run_name
from sensorium.trainers.training import Training


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_its_task_and_survives_a_round_trip(name: str) -> None:
    config = find_preset(name)
    check_config(config.env, find_task(config.env.task))
    assert TrainConfig.model_validate(config.model_dump(mode="json")) == config
    assert config.env.max_episode_steps == find_task(config.env.task).default_max_steps
    assert config.algo.num_envs % config.algo.num_minibatches == 0


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'quickstart'"):
        find_preset("quick_start")


def test_quickstart_is_named_after_its_task_senses_and_algorithm() -> None:
    assert run_name(find_preset("quickstart")) == "arena-find_rgb+depth+speech_ppo-1"


SMALL = {"num_envs": 4, "num_steps": 2, "num_minibatches": 1, "num_epochs": 1, "total_steps": 8}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.doom] if "doom" in name else []) for name in PRESETS]
)
def test_a_preset_trains_for_two_steps(name: str, tmp_path: pytest.TempPathFactory) -> None:
    config = find_preset(name).updated({"algo": SMALL})
    run = open_run(config, tmp_path, OnExisting.FAIL)  # type: ignore[arg-type]
    result = Training(config, run).run(lambda _: None)
    assert result.env_steps == 8
    assert (result.checkpoint / "policy.onnx").is_file()
    assert result.onnx_max_abs_diff <= 1e-4
