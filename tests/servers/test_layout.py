from pathlib import Path

import pytest
import yaml

from sensorium.core import ConfigError, parse_config
from sensorium.envs import find_env
from sensorium.servers.layout import build_layout, read_layout, relocated
from sensorium.servers.nemo import read_instance

BASE = """
env:
  resources_servers:
    lookup: {config: {num_items: 3}, observation: {max_tokens: 999}}
policy_model:
  responses_api_models:
    openai_model: {base_url: "${policy_base_url}", model: "${policy_model_name}"}
agent:
  responses_api_agents:
    simple_agent:
      resources_server: {type: resources_servers, name: env}
      model_server: {type: responses_api_models, name: policy_model}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY = ["policy_base_url=http://x/v1", "+policy_model_name=qwen"]


def write(tmp_path, text=BASE, name="a.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_in_the_layout_of_nemo_gym(tmp_path):
    layout = read_layout(write(tmp_path), [*POLICY, "++env.resources_servers.lookup.port=8123"])
    env = layout.named("env")
    assert (env.kind, env.implementation, env.config.port) == ("resources_servers", "lookup", 8123)
    assert env.config.pipeline.observation.max_tokens == 999
    assert layout.named("policy_model").config.model == "qwen"
    made = layout.instances[-1]
    assert (made.name, made.implementation) == ("agent_environment_server", "legacy_agent")
    assert made.config.agent_server.name == "agent"
    assert layout.head.port == 11000
    moved = relocated(layout, host="::1", head_port=0)
    assert {one.config.host for one in moved.instances} == {"::1"}
    assert (moved.head.host, moved.head.port) == ("::1", 0)


def test_values_come_from_other_files_and_the_environment(tmp_path, monkeypatch):
    write(tmp_path, BASE, "base.yaml")
    write(tmp_path, "policy_base_url: http://y/v1\npolicy_model_name: ${oc.env:MODEL_NAME}\n", "env.yaml")
    path = write(
        tmp_path, "config_paths: [base.yaml]\nenv: {resources_servers: {lookup: {num_workers: 2}}}\n"
    )
    monkeypatch.setenv("MODEL_NAME", "from-the-environment")
    layout = read_layout(path)
    assert layout.named("policy_model").config.model == "from-the-environment"
    config = layout.named("env").config
    assert (config.num_workers, config.config) == (2, {"num_items": 3})
    monkeypatch.delenv("MODEL_NAME")
    with pytest.raises(ConfigError, match="MODEL_NAME is not set"):
        read_layout(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("env.resources_servers.lookup.max_sesions=3", "max_sesions"),
        ("env.resources_servers.lookup.observation.max_token=3", "max_tokens"),
        ("agent.responses_api_agents.simple_agent.model_server.name=policy_modell", "policy_model"),
        ("agent.responses_api_agents.simple_agent.model_server.name=env", "one of the resources_servers"),
        ("other.resource_servers.lookup={}", "resources_servers"),
        ("thing=5", "no server"),
        ("policy_base_url=${nowhere.at.all}", "nowhere.at.all"),
        ("policy_base_url=${policy_base_url}", "itself"),
        ("env.resources_servers.other={}", "one implementation"),
        ("agent.responses_api_agents={no_such_agent: {}}", "simple_agent"),
        ("just words", "Expected an override"),
        ("env.resources_servers.lookup.port=99999", "port"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_right_one(tmp_path, change, says):
    with pytest.raises(ConfigError, match=says):
        read_layout(write(tmp_path), [*POLICY, change])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_can_be_read(path):
    layout = read_layout(path, POLICY)
    kinds = {one.kind for one in layout.instances}
    assert "resources_servers" in kinds
    assert ("environment_servers" in kinds) is ("responses_api_agents" in kinds)
    for one in layout.instances:
        if one.kind == "resources_servers":
            definition = find_env(one.config.environment or one.implementation)
            assert parse_config(definition.config_type, one.config.config)


def test_a_missing_value_says_where_it_may_be_set(tmp_path):
    with pytest.raises(ConfigError, match=r"policy_base_url.*env\.yaml"):
        read_layout(write(tmp_path))


def test_servers_elsewhere_are_named_by_their_address():
    text = BASE.replace(
        "lookup: {config: {num_items: 3}, observation: {max_tokens: 999}}", "any: {url: http://far:1}"
    )
    values = yaml.safe_load(text) | {"policy_base_url": "http://x/v1", "policy_model_name": "m"}
    layout = build_layout(values)
    assert layout.elsewhere == {"env": "http://far:1"}
    assert [one.name for one in layout.instances] == ["policy_model", "agent", "agent_environment_server"]


def test_secrets_are_not_told():
    values = {
        "m": {
            "responses_api_models": {
                "openai_model": {"base_url": "http://x/v1", "model": "m", "api_key": "k9"}
            }
        }
    }
    assert "k9" not in str(build_layout(values).instances[0].block)


def test_an_instance_under_the_launcher_of_nemo_gym():
    values = {
        "env": {
            "resources_servers": {
                "lookup": {
                    "entrypoint": "app.py",
                    "host": "127.0.0.1",
                    "port": 5001,
                    "domain": "other",
                    "something_of_theirs": 1,
                }
            }
        },
        "model": {"responses_api_models": {"vllm_model": {"host": "127.0.0.1", "port": 5002}}},
        "head_server": {"host": "127.0.0.1", "port": 11000},
    }
    instance, urls = read_instance(yaml.safe_dump(values), "env")
    assert (instance.implementation, instance.config.port) == ("lookup", 5001)
    assert urls == {"env": "http://127.0.0.1:5001", "model": "http://127.0.0.1:5002"}
    with pytest.raises(ConfigError, match="no instance"):
        read_instance(yaml.safe_dump(values), "none")
