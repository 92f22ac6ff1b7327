import asyncio

import pytest
from live_servers import resources, running

from sensorium.envs import Action, ToolCall, find_env
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.env_session import EnvSession
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.http import HttpClient
from sensorium.servers.neighbour import NeighbourEpisode
from sensorium.servers.remote import Limits, RemoteEpisode
from sensorium.servers.runtime import Runtime

LOOKUP = [
    Action(
        text="first",
        calls=(
            ToolCall(id="a", name="lookup", arguments={"item": "gear", "attribute": "price"}),
            ToolCall(id="b", name="calculate", arguments={"expression": "1 +"}),
        ),
    ),
    Action(text="only talk"),
    Action.call("fetch_part", ref="ref:"),
    Action.call("submit", answer=3.5),
]
PICTURES = [
    Action.call("look", closer=True),
    Action.call("look"),
    Action(calls=(ToolCall(id="x", name="look", arguments="{half"),)),
    Action.call("answer", text="nothing"),
]


async def play(episode, task, actions):
    opening = await episode.start(task, seed=5)
    turns = [await episode.act(action, number) for number, action in enumerate(actions)]
    verdict = await episode.verdict()
    await episode.close()
    return opening, turns, verdict


def views(opening, turns):
    shown = [opening.view, *(turn.view for turn in turns)]
    return [None if one is None else one.messages for one in shown]


@pytest.mark.parametrize("place", ["elsewhere", "beside"])
@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize(
    ("environment", "task_id", "actions"),
    [("lookup", "train-0-7", LOOKUP), ("picture_env:Pictures", "train-7", PICTURES)],
)
def test_a_remote_and_a_local_session_give_the_same_prompts(environment, task_id, actions, replaces, place):
    definition = find_env(environment)
    config = definition.config_type()
    task = definition.task(config, task_id)
    settings = {"context_management": {"drop_full_history": replaces}}
    pipeline = ObservationPipeline(PipelineConfig().updated(settings))
    local = EnvSession(definition.make(config), pipeline, system=definition.system)
    here = asyncio.run(play(local, task, actions))

    async def remotely(url):
        http = HttpClient()
        try:
            return await play(RemoteEpisode(http, url), task, actions)
        finally:
            await http.close()

    async def beside():
        host = EpisodeHost(ResourcesConfig(environment=environment, **settings), "env", Runtime())
        return await play(NeighbourEpisode(host, {"task_id": task_id}, Limits()), task, actions)

    if place == "beside":
        there = asyncio.run(beside())
    else:
        with running(resources(environment, **settings)) as urls:
            there = asyncio.run(remotely(urls["env"]))
    assert views(*here[:2]) == views(*there[:2])
    assert [v.model_dump_json() for m in views(*here[:2]) if m for v in m] == [
        v.model_dump_json() for m in views(*there[:2]) if m for v in m
    ]
    assert here[0].tools == there[0].tools
    assert here[2] == there[2]
    assert [t.view.replaces for t in there[1] if t.view is not None] == [replaces] * 3
    assert [(t.reward, t.terminated) for t in here[1]] == [(t.reward, t.terminated) for t in there[1]]


def test_the_client_may_ask_for_the_other_kind_of_view():
    definition = find_env("lookup")
    task = definition.task(definition.config_type(), "train-0-7")

    async def remotely(url):
        http = HttpClient()
        try:
            one = RemoteEpisode(http, url, replaces=False)
            await one.start(task)
            turn = await one.act(LOOKUP[1], 0)
            await one.close()
            return turn
        finally:
            await http.close()

    with running(resources("lookup")) as urls:
        assert asyncio.run(remotely(urls["env"])).view.replaces is False
