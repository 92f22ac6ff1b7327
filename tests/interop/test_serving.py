"""Environments of others, named in the YAML of `sensorium serve`."""

import asyncio
import sys
from pathlib import Path

import pytest

from sensorium.core import ConfigError
from sensorium.envs import Action, find_env, list_envs
from sensorium.envs.definition import ADAPTERS
from sensorium.servers.build import build_instance
from sensorium.servers.layout import read_layout
from sensorium.servers.neighbour import NeighbourEpisode
from sensorium.servers.remote import Limits
from sensorium.servers.runtime import Runtime

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = ("policy_base_url=http://127.0.0.1:9/v1", "policy_model_name=m")


def host_of(example, *overrides):
    layout = read_layout(EXAMPLES / f"{example}.yaml", [*MODEL, *overrides])
    (instance,) = (one for one in layout.instances if one.kind == "resources_servers")
    return build_instance(instance, Runtime()).state.host


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_adapters_are_found_by_name_and_are_no_environments_of_their_own(name):
    assert find_env(name).config_type is not None
    assert name not in list_envs()


def test_a_gymnasium_environment_is_served():
    async def play():
        host = host_of("gymnasium")
        (task,) = host.definition.tasks(host.env_config, count=1)
        episode = NeighbourEpisode(host, {"task_id": task.id}, Limits())
        opening = await episode.start(task)
        assert opening.tools[0]["function"]["name"] == "act"
        assert "cell 0 of 0 to 15" in str(opening.view.messages)
        turn = await episode.act(Action.call("act", action="right"), 0)
        assert "cell 1 of 0 to 15" in str(turn.view.messages), "the ice is not slippery"
        await episode.close()
        return len(host.table)

    assert asyncio.run(play()) == 0


def test_what_is_not_installed_is_said_at_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "aviary", None)  # as where it is not installed
    with pytest.raises(ConfigError, match=r"story: Aviary is not installed here.*pip install fhaviary"):
        host_of("aviary")


def test_a_server_that_is_not_there_is_a_failure_with_its_name():
    async def play():
        host = host_of("openenv", "world.resources_servers.openenv.config.url=http://127.0.0.1:9")
        task = host.definition.task(host.env_config, "train-0-0")
        episode = NeighbourEpisode(host, {"task_id": task.id}, Limits())
        with pytest.raises(Exception, match="transport_unreachable") as caught:
            await episode.start(task)
        return caught.value.failure.stage, len(host.table)

    assert asyncio.run(play()) == ("seed", 0)
