import asyncio
import os
import signal

import psutil
import pytest
from launched import Launched, gone
from live_servers import Client
from starlette.datastructures import Headers

from sensorium.envs import Action, find_env
from sensorium.envs.episode import EpisodeError
from sensorium.servers.http import HttpClient
from sensorium.servers.identity import SESSION_HEADER, session_token
from sensorium.servers.remote import Limits, RemoteEpisode
from sensorium.servers.routing import Router
from sensorium.servers.security import Signer

FILE = """
lookup:
  resources_servers:
    lookup: {num_workers: 2, multimodal: {image: {encoding: url}}}
head_server: {enabled: false}
"""


def test_a_router_picks_by_what_names_the_session():
    router, signer = Router(["http://a", "http://b", "http://c"]), Signer()
    nothing = Headers({})
    assert [router.pick("/reset", nothing, b"") for _ in range(4)] == [0, 1, 2, 0]
    for worker in range(3):
        token = session_token(signer, worker, "s1")
        cookie = Headers({"cookie": f"other=1; odd/name=2; Lookup___x={token}"})
        assert router.pick("/step", cookie, b"") == worker
        assert router.pick("/mcp", Headers({"X-NeMo-Gym-Session-Token": token}), b"") == worker
        assert router.pick(f"/media/{worker}-abc.png", nothing, b"") == worker
    body = b'{"resources_session_id": "r-1"}'
    named = {router.pick("/seed_session", nothing, body), router.pick("/close_session", nothing, body)}
    assert len(named) == 1
    assert {router.pick("/x", Headers({SESSION_HEADER: f"name-{n:020d}"}), b"") for n in range(30)} == {
        0,
        1,
        2,
    }
    assert router.pick("/step", Headers({"cookie": "A___b=99.x.y"}), b"") in (0, 1, 2)


@pytest.fixture
def launched(tmp_path):
    one = Launched(tmp_path, text=FILE)
    yield one
    if one.process.poll() is None:
        one.process.kill()
    one.process.communicate()


def test_episodes_stay_with_their_worker_and_one_that_dies_costs_its_own(launched):
    url = launched.ready()["servers"]["lookup"]
    workers = psutil.Process(launched.process.pid).children(recursive=True)
    assert len(workers) == 2
    clients = [Client(url) for _ in range(6)]
    for number, client in enumerate(clients):
        assert client.send("/reset", {"task_id": f"train-0-{number}"})[0] == 200
        assert client.send("/calculate", {"expression": "1 + 1"})[:2] == (200, 2)
    owners = {next(iter(client.cookies.values())).partition(".")[0] for client in clients}
    assert owners == {"0", "1"}
    typed = {
        "resources_session_id": "typed-1",
        "episode_id": {"rollout_id": "r"},
        "task_id": {"taskset": "t", "task_id": "train-0-0"},
        "task_data": {},
    }
    one = Client(url)
    assert one.send("/seed_session", typed)[0] == 200
    assert one.send("/calculate", {"expression": "2 + 1"})[:2] == (200, 3)
    definition = find_env("lookup")
    tasks = definition.tasks(definition.config_type(), count=8)

    async def play():
        http = HttpClient(attempts=2)
        try:
            episodes = [RemoteEpisode(http, url, limits=Limits(step_s=60)) for _ in tasks]
            for episode, task in zip(episodes, tasks, strict=True):
                await episode.start(task)
            os.kill(workers[0].pid, signal.SIGKILL)
            lost = []
            for episode in episodes:
                try:
                    turn = await episode.act(Action.call("submit", answer=1.0), 0)
                    assert turn.done
                except EpisodeError as error:
                    lost.append(error.failure.kind)
                await episode.close()
            return lost
        finally:
            await http.close()

    lost = asyncio.run(play())
    assert 0 < len(lost) < len(tasks)
    assert set(lost) == {"session_lost"}
    code, _, err = launched.end()
    assert code == 0, err
    assert gone([worker.pid for worker in workers])
