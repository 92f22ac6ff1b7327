import asyncio
import json
import socket
import threading
import time

import psutil
import pytest
from live_servers import Client, resources, running

from sensorium.envs import find_env
from sensorium.servers.config import SessionLimits
from sensorium.servers.errors import ServerError
from sensorium.servers.sessions import SessionTable

PICTURES = "picture_env:Pictures"


class Thing:
    def __init__(self, fails=False):
        self.closed, self.fails = 0, fails

    async def close(self):
        self.closed += 1
        if self.fails:
            raise OSError("no")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def table(**limits):
    clock = Clock()
    return SessionTable(SessionLimits(**limits), clock=clock), clock


def test_beginning_and_closing_twice_is_harmless():
    async def run():
        sessions, _ = table()
        made = []

        def make():
            made.append(Thing())
            return made[-1]

        one = await sessions.open("a", "same", make)
        assert await sessions.open("a", "same", make) is one
        with pytest.raises(ServerError, match="something else"):
            await sessions.open("a", "other", make)
        assert await sessions.close("a") is True
        assert await sessions.close("a") is False
        assert [thing.closed for thing in made] == [1]
        for id in ("a", "never"):
            await sessions.close(id)
            with pytest.raises(ServerError, match="closed") as caught:
                await sessions.open(id, "same", make)
            assert caught.value.status == 409
        assert len(sessions) == 0

    asyncio.run(run())


def test_a_failed_beginning_may_be_tried_again():
    async def run():
        sessions, _ = table()
        await sessions.open("a", "same", Thing)
        await sessions.discard("a")
        assert await sessions.open("a", "same", Thing)

    asyncio.run(run())


def test_idle_and_old_sessions_close_and_busy_ones_stay():
    async def run():
        sessions, clock = table(idle_timeout_s=10, max_age_s=100)
        idle, busy = await sessions.open("idle", "", Thing), await sessions.open("busy", "", Thing)
        go = asyncio.Event()
        doing = asyncio.create_task(sessions.run(busy, go.wait()))
        await asyncio.sleep(0)
        clock.now = 11
        assert await sessions.sweep() == 1
        assert idle.held.closed == 1
        assert sessions.find("busy") is busy
        go.set()
        await doing
        clock.now = 20
        assert sessions.find("busy") is busy  # counted from its end
        clock.now = 101
        sessions.find("busy")
        assert await sessions.sweep() == 1
        assert len(sessions) == 0

    asyncio.run(run())


def test_the_cap_says_so_and_makes_room_of_idle_ones():
    async def run():
        sessions, clock = table(max_sessions=2, idle_timeout_s=10)
        for id in "ab":
            await sessions.open(id, "", Thing)
        with pytest.raises(ServerError, match="All 2 sessions") as caught:
            await sessions.open("c", "", Thing)
        assert (caught.value.status, caught.value.kind) == (429, "session_limit")
        assert int(caught.value.headers["Retry-After"]) > 0
        clock.now = 11
        await sessions.open("c", "", Thing)
        assert len(sessions) == 1

    asyncio.run(run())


def test_memory_of_finished_and_closed_sessions_is_bounded():
    async def run():
        sessions, clock = table(max_sessions=2, max_remembered=10, remember_closed_s=50)
        for number in range(100):
            one = await sessions.open(f"s{number}", "", Thing)
            await sessions.finish(one)
            assert one.held.closed == 1
        assert len(sessions) == 0
        assert len(sessions._sessions) <= 10
        for number in range(100):
            await sessions.close(f"t{number}")
        assert len(sessions._closed) == 10
        clock.now = 60
        await sessions.sweep()
        assert len(sessions._closed) == 0

    asyncio.run(run())


def test_one_failing_close_costs_nobody_anything():
    async def run():
        sessions, clock = table(idle_timeout_s=1)
        things = [Thing(fails=n == 1) for n in range(3)]
        for number, thing in enumerate(things):
            await sessions.open(f"{number}", "", lambda thing=thing: thing)
        clock.now = 2
        assert await sessions.sweep() == 3
        assert [thing.closed for thing in things] == [1, 1, 1]
        assert len(sessions) == 0

    asyncio.run(run())


def test_what_was_begun_is_finished_when_the_asker_is_gone():
    async def run():
        sessions, _ = table()
        one = await sessions.open("a", "", Thing)
        steps, may_end = [], asyncio.Event()

        async def step():
            steps.append("begun")
            await may_end.wait()
            steps.append("done")

        asking = asyncio.create_task(sessions.run(one, step()))
        await asyncio.sleep(0.005)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert steps == ["begun"]
        may_end.set()
        assert await sessions.shut() == 1
        assert steps == ["begun", "done"]
        assert one.held.closed == 1
        with pytest.raises(ServerError, match="stopping"):
            await sessions.open("b", "", Thing)

    asyncio.run(run())


def wait_until(condition, limit_s=20.0):
    until = time.monotonic() + limit_s
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_abandoned_episodes_leave_nothing(count):
    hosts = []
    children = psutil.Process().children(recursive=True)
    limits = {"idle_timeout_s": 1.0, "sweep_every_s": 0.1, "max_sessions": 1000}
    with running(resources("lookup", hosts=hosts, sessions=limits)) as urls:
        client = Client(urls["env"])
        most = 0
        for number in range(count):
            client.cookies = {}
            assert client.send("/reset", {"task_id": f"train-0-{number}"})[0] == 200
            most = max(most, len(hosts[0].table))
        assert most > 1
        wait_until(lambda: len(hosts[0].table) == 0)
        status, body, _ = client.send("/step", {"action": {"text": "still there?"}})
        assert (status, body["error"]["kind"]) == (409, "session_lost")
        assert hosts[0].table.open_sessions() == []
        assert psutil.Process().children(recursive=True) == children


def test_a_full_server_answers_429_and_goes_on():
    hosts = []
    limits = {"max_sessions": 2}
    with running(resources("lookup", hosts=hosts, sessions=limits)) as urls:
        clients = [Client(urls["env"]) for _ in range(3)]
        for client in clients[:2]:
            assert client.send("/reset", {"task_id": "train-0-0"})[0] == 200
        status, body, headers = clients[2].send("/reset", {"task_id": "train-0-0"})
        assert (status, body["error"]["kind"]) == (429, "session_limit")
        assert int(headers["Retry-After"]) >= 1
        clients[0].send(
            "/step", {"action": {"calls": [{"id": "c", "name": "submit", "arguments": {"answer": 1}}]}}
        )
        assert clients[2].send("/reset", {"task_id": "train-0-0"})[0] == 200


def test_a_failing_close_of_an_environment_costs_one_episode():
    import picture_env

    hosts = []
    with running(resources(PICTURES, hosts=hosts, config={"closing_fails": True})) as urls:
        clients = [Client(urls["env"]) for _ in range(3)]
        for client in clients:
            client.send("/reset", {"task_id": "train-1"})
        assert clients[0].send("/close", {})[1] == {"closed": True}
        assert clients[1].send("/look", {})[0] == 200
        clients[1].send("/answer", {"text": "the-hidden-answer-train-1"})
        assert clients[1].send("/verdict", {})[1]["reward"] == 1.0
        assert len(hosts[0].table) == 1
    assert not picture_env.PicturesEnv.open


def test_a_step_that_is_sent_again_is_not_done_again():
    import picture_env

    with running(resources(PICTURES)) as urls:
        client = Client(urls["env"])
        client.send("/reset", {"task_id": "train-1", "reply": "turn"})
        picture_env.PicturesEnv.steps.clear()
        action = {"calls": [{"id": "c", "name": "dawdle", "arguments": {"seconds": 0.3}}]}
        answers = []

        def send(body):
            one = Client(urls["env"])
            one.cookies = dict(client.cookies)
            answers.append(one.send("/step", body))

        for body in (
            {"action": action, "step_id": 0, "reply": "turn"},
            {"response": {"output": []}, "action": action, "_ng_step_request_id": "abc"},
        ):
            threads = [threading.Thread(target=send, args=(body,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            send(body)
            assert len(answers) == 5
            assert len({json.dumps(answer[1]) for answer in answers}) == 1
            assert answers[0][0] == 200
            answers.clear()
        assert len(picture_env.PicturesEnv.steps) == 2
        status, body, _ = client.send("/step", {"action": action, "step_id": 9})
        assert (status, body["error"]["kind"]) == (409, "step_out_of_order")


def test_a_client_that_is_gone_leaves_a_whole_step_behind():
    import picture_env

    hosts = []
    with running(resources(PICTURES, hosts=hosts)) as urls:
        client = Client(urls["env"])
        client.send("/reset", {"task_id": "train-1"})
        picture_env.PicturesEnv.steps.clear()
        action = {"calls": [{"id": "c", "name": "dawdle", "arguments": {"seconds": 0.3}}]}
        raw_step(urls["env"], client, action)
        wait_until(lambda: picture_env.PicturesEnv.steps == [1])
        _, body, _ = client.send("/step", {"action": action, "step_id": 0})
        assert "step 1" in body["observation"]
        assert picture_env.PicturesEnv.steps == [1]


def test_a_session_closes_with_its_client_where_that_was_asked():
    hosts = []
    with running(resources(PICTURES, hosts=hosts)) as urls:
        client = Client(urls["env"])
        client.send("/reset", {"task_id": "train-1", "close_on_disconnect": True})
        action = {"calls": [{"id": "c", "name": "dawdle", "arguments": {"seconds": 0.3}}]}
        raw_step(urls["env"], client, action)
        wait_until(lambda: len(hosts[0].table) == 0)


def raw_step(url, client, action):
    """Send a step, and go away before its answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    body = json.dumps({"action": action}).encode()
    cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    head = f"POST /step HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        time.sleep(0.1)


def test_stopping_the_server_closes_all_episodes():
    import picture_env

    with running(resources(PICTURES)) as urls:
        for _ in range(3):
            Client(urls["env"]).send("/reset", {"task_id": "train-1"})
        assert len(picture_env.PicturesEnv.open) == 3
    assert not picture_env.PicturesEnv.open


def test_tasks_are_told_without_what_is_hidden():
    definition = find_env("lookup")
    with running(resources("lookup")) as urls:
        _, body, _ = Client(urls["env"]).send("/tasks?split=test&count=2&seed=4")
        tasks = definition.tasks(definition.config_type(), split="test", count=2, seed=4)
        assert body["tasks"] == [json.loads(task.public().model_dump_json()) for task in tasks]
        assert Client(urls["env"]).send("/tasks?split=none")[0] == 422
        assert Client(urls["env"]).send("/tasks?count=1000000")[0] == 422
