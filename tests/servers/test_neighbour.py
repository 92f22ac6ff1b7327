import asyncio

import pytest

from sensorium.envs import Action, find_env
from sensorium.envs.episode import EpisodeError
from sensorium.servers.config import ResourcesConfig
from sensorium.servers.hosting import EpisodeHost
from sensorium.servers.neighbour import NeighbourEpisode
from sensorium.servers.remote import Limits
from sensorium.servers.runtime import Runtime


def lookup(**settings):
    return EpisodeHost(ResourcesConfig(environment="lookup", **settings), "env", Runtime())


def task(number=0):
    definition = find_env("lookup")
    return definition.task(definition.config_type(), f"train-0-{number}")


def neighbour(host, number=0, **limits):
    return NeighbourEpisode(host, {"sensorium": {"task": f"train-0-{number}"}}, Limits(**limits))


def test_it_is_one_of_the_servers_sessions_and_ends_with_the_episode():
    async def run():
        host = lookup()
        episode = neighbour(host)
        await episode.start(task())
        assert len(host.table) == 1
        turn = await episode.act(Action.call("submit", answer=1), 0)
        assert (turn.done, len(host.table)) == (True, 0)
        verdict = await episode.verdict()
        assert verdict.reward == 0.0
        await episode.close()

    asyncio.run(run())


def test_an_episode_that_is_left_is_closed():
    async def run():
        host = lookup()
        episode = neighbour(host, max_steps=1)
        await episode.start(task())
        turn = await episode.act(Action(text="hm"), 0)
        assert (turn.truncated, turn.view) == (True, None)
        await episode.close()
        assert len(host.table) == 0
        with pytest.raises(EpisodeError) as caught:
            await episode.act(Action(text="hm"), 1)
        assert caught.value.failure.kind == "session_lost"

    asyncio.run(run())


def test_what_the_server_refuses_has_a_kind_and_a_stage():
    async def run():
        unknown = NeighbourEpisode(lookup(), {"sensorium": {"task": "none-such"}}, Limits())
        with pytest.raises(EpisodeError) as caught:
            await unknown.start(task())
        failure = caught.value.failure
        assert (failure.kind, failure.stage, failure.terminal) == ("task_invalid", "seed", True)

    asyncio.run(run())


def test_a_full_server_is_waited_for():
    async def run():
        host = lookup(sessions={"max_sessions": 1})
        first, second = (neighbour(host, n, reset_s=5.0) for n in range(2))
        await first.start(task())
        waiting = asyncio.create_task(second.start(task(1)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await first.close()
        await asyncio.wait_for(waiting, 5.0)
        hasty = neighbour(host, 3, reset_s=0.1)
        with pytest.raises(EpisodeError) as caught:
            await hasty.start(task(3))
        assert (caught.value.failure.kind, caught.value.failure.terminal) == ("session_limit", False)

    asyncio.run(run())
