import json
from pathlib import Path

import pytest
import yaml

from sensorium.cli.main import main
from sensorium.core import ConfigError, parse_config
from sensorium.envs import find_env
from sensorium.interop.nemo_rl import NemoRLConfig, write_nemo_rl
from sensorium.rollouts.task_rows import row_task
from sensorium.servers.config import ResourcesConfig


def written(folder, **settings):
    settings = {"num_tasks": 3, "num_validation_tasks": 2} | settings
    return write_nemo_rl(folder, parse_config(NemoRLConfig, settings))


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_show_what_our_agents_see_and_hide_the_rest(tmp_path):
    files = written(tmp_path, environment="lookup", config={"num_items": 3})
    train, validation = rows_of(files.train), rows_of(files.validation)
    assert (len(train), len(validation)) == (3, 2)
    assert train[0]["agent_ref"] == {"name": files.agent}
    assert files.agent == "lookup_simple_agent"
    definition = find_env("lookup")
    settings = definition.config_type(num_items=3)
    for rows, split in ((train, "train"), (validation, "test")):
        for number, row in enumerate(rows):
            task = row_task(row, "lookup", lambda id: definition.task(settings, id))
            assert task == definition.task(settings, f"{split}-0-{number}")
            system, user = row["responses_create_params"]["input"]
            assert (system["role"], user["role"]) == ("system", "user")
            assert task.instruction in user["content"][0]["text"]
            assert "hidden" not in json.dumps(row)
    assert [tool["name"] for tool in train[0]["responses_create_params"]["tools"]] == [
        "lookup",
        "calculate",
        "submit",
    ]


def test_pictures_are_in_the_rows_unless_openings_are_left_out(tmp_path):
    files = written(tmp_path / "a", environment="picture_env:Pictures", split="train", num_tasks=1)
    (row,) = rows_of(files.train)
    assert "data:image/" in json.dumps(row["responses_create_params"]["input"])
    files = written(tmp_path / "b", environment="picture_env:Pictures", openings=False, num_tasks=1)
    (row,) = rows_of(files.train)
    content = row["responses_create_params"]["input"][-1]["content"]
    assert [part["type"] for part in content] == ["input_text"]


def test_our_servers_read_the_configuration(tmp_path, capsys):
    files = written(
        tmp_path,
        environment="lookup",
        pipeline={"observation": {"max_tokens": 2048}},
        episode={"max_steps": 7, "fetch_tool": False},
    )
    blocks = yaml.safe_load(files.servers.read_text())
    settings = blocks["lookup"]["resources_servers"]["lookup"]
    known = {key: value for key, value in settings.items() if key in ResourcesConfig.model_fields}
    config = parse_config(ResourcesConfig, known)
    assert config.environment == "lookup"
    assert config.episode.max_steps == 7
    assert config.pipeline.observation.max_tokens == 2048
    assert not config.pipeline.context_management.drop_full_history
    endpoint = "{base_url: 'http://127.0.0.1:1/v1', model: m}"
    model = f"policy_model: {{responses_api_models: {{openai_model: {endpoint}}}}}\n"
    both = tmp_path / "serve.yaml"
    both.write_text(files.servers.read_text() + model)
    assert main(["serve", str(both), "--check"]) == 0
    assert "lookup_simple_agent_environment_server" in capsys.readouterr().out


def test_the_training_configuration_names_the_files(tmp_path):
    files = written(
        tmp_path, environment="lookup", checkout="/home/me/RL", base="examples/nemo_gym/other.yaml"
    )
    training = yaml.safe_load(files.training.read_text())
    assert training["defaults"] == "/home/me/RL/examples/nemo_gym/other.yaml"
    assert Path(training["data"]["train"]["data_path"]) == files.train
    assert Path(training["data"]["validation"]["data_path"]) == files.validation
    paths = training["env"]["nemo_gym"]["config_paths"]
    assert paths[0].endswith("vllm_model_for_training.yaml")
    assert Path(paths[1]) == files.servers
    assert training["env"]["_override_"], "servers of the configuration below are not started"
    assert "from sensorium.servers.nemo import main" in (files.servers.parents[1] / "app.py").read_text()


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ConfigError, match="no split"):
        written(tmp_path, environment="lookup", split="exam")
    with pytest.raises(ConfigError, match="lookupp"):
        written(tmp_path, environment="lookupp")
    assert not list(tmp_path.iterdir())
