import json
import socket

import pytest
from live_servers import Client, resources, running

from sensorium.core import ConfigError
from sensorium.servers.config import ResourcesConfig, ServerConfig
from sensorium.servers.guard import Buckets
from sensorium.servers.identity import read_token, session_token
from sensorium.servers.resources import build_resources_app
from sensorium.servers.security import Signer, build_access, host_name, is_loopback

KEY = "a-long-secret-key"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_need_a_key(host, monkeypatch):
    monkeypatch.delenv("SENSORIUM_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="SENSORIUM_API_KEY"):
        build_resources_app(ResourcesConfig(host=host), "lookup")
    monkeypatch.setenv("SENSORIUM_API_KEY", KEY)
    assert build_resources_app(ResourcesConfig(host=host), "lookup")


def test_addresses_of_this_machine():
    assert all(is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.1.2.3"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "no.such.name.invalid"))
    assert host_name("LocalHost:80") == "localhost"
    assert host_name("[::1]:80") == "[::1]"
    assert host_name("a.example") == "a.example"


def test_a_key_is_wanted_everywhere_but_for_health(monkeypatch):
    monkeypatch.setenv("SENSORIUM_API_KEY", KEY)
    with running(resources("lookup")) as urls:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": KEY[:-1]}, {"X-API-Key": "ü"}):
            status, body, reply = Client(urls["env"], **headers).send("/reset", {"task_id": "train-0-0"})
            assert (status, body["error"]["kind"]) == (401, "unauthorized")
            assert reply["WWW-Authenticate"] == "Bearer"
        for headers in ({"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}):
            assert Client(urls["env"], **headers).send("/reset", {"task_id": "train-0-0"})[0] == 200
        assert Client(urls["env"]).send("/openapi.json")[0] == 401
        for path in ("/", "/health", "/readyz"):
            assert Client(urls["env"]).send(path)[:2] == (200, {"status": "ok"})
    assert KEY not in repr(build_access(ServerConfig(), "x"))


def test_pages_of_a_browser_may_not_call():
    with running(
        resources("lookup", allowed_hosts=["box.local"], allowed_origins=["https://tool.example"])
    ) as urls:
        task = {"task_id": "train-0-0"}
        client = Client(urls["env"])
        status, body, _ = client.send("/reset", task, Host="evil.example")
        assert (status, body["error"]["kind"]) == (421, "wrong_host")
        assert client.send("/reset", task, Host="box.local:1234")[0] == 200
        status, body, reply = client.send("/reset", task, Origin="https://evil.example")
        assert (status, body["error"]["kind"]) == (403, "wrong_origin")
        assert "Access-Control-Allow-Origin" not in reply
        assert client.send("/reset", task, Origin="https://tool.example")[0] == 200
        for origin in ("null", "http://["):
            assert client.send("/reset", task, Origin=origin)[0] == 403


def raw(url, head, body=b""):
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head.replace("HOST", host).encode() + body)
        data = b""
        while piece := connection.recv(65536):
            data += piece
            if b"\r\n\r\n" in data:
                break
        return int(data.split()[1])


def test_bodies_are_limited_also_in_chunks():
    with running(resources("lookup", limits={"max_body_mb": 0.01})) as urls:
        client = Client(urls["env"])
        assert client.send("/reset", {"task_id": "train-0-0", "pad": "x" * 5000})[0] == 200
        assert (
            raw(urls["env"], "POST /reset HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999\r\n\r\n") == 413
        )
        chunked = "POST /reset HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n"
        piece = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
        assert raw(urls["env"], chunked, piece * 8 + b"0\r\n\r\n") == 413
        assert client.send("/health")[0] == 200


def test_bodies_that_are_no_good_json():
    with running(resources("lookup")) as urls:
        client = Client(urls["env"])
        for body in (b"{", b"\xff\xfe", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 100_000, b"nul"):
            status, answer, _ = client.send("/reset", raw=body)
            assert (status, answer["error"]["kind"]) == (400, "invalid_json"), body[:20]
        for body in (b"[]", b"3", b'"text"', b"null", b"{}"):
            assert client.send("/reset", raw=body)[0] == 422
        deep = (
            b'{"action": {"calls": [{"id": "c", "name": "submit", "arguments": '
            + b'{"a":' * 150
            + b"1"
            + b"}" * 154
        )
        assert client.send("/step", raw=deep)[0] in (400, 409, 422)


def test_too_many_requests_are_told_to_wait():
    with running(resources("lookup", limits={"requests_per_s": 1.0, "burst": 5})) as urls:
        client = Client(urls["env"])
        answers = [client.send("/health") for _ in range(8)]
        assert [answer[0] for answer in answers].count(429) >= 2
        assert int(answers[-1][2]["Retry-After"]) >= 1
        assert answers[-1][1]["error"]["kind"] == "rate_limit"


def test_buckets_fill_again():
    buckets = Buckets(2.0, 2)
    assert [buckets.take("a", 0.0) > 0 for _ in range(3)] == [False, False, True]
    assert buckets.take("b", 0.0) == 0
    assert buckets.take("a", 0.5) == 0
    assert buckets.take("a", 0.5) == pytest.approx(0.5)


def test_a_request_that_takes_too_long_is_answered_and_can_be_asked_again():
    with running(resources("picture_env:Pictures", limits={"request_timeout_s": 2.0})) as urls:
        client = Client(urls["env"])
        client.send("/reset", {"task_id": "train-1"})
        action = {"calls": [{"id": "c", "name": "dawdle", "arguments": {"seconds": 4.0}}]}
        status, body, _ = client.send("/step", {"action": action, "step_id": 0})
        assert (status, body["error"]["kind"]) == (504, "request_timeout")
        for _ in range(100):
            status, body, _ = client.send("/step", {"action": action, "step_id": 0})
            if status != 504:
                break
        assert status == 200
        assert body["info"]["tool_outputs"][0]["output"] == "done"


def test_cookies_cannot_be_forged():
    one, other = Signer(), Signer()
    token = session_token(one, 0, "s; odd, näme")
    assert read_token(one, token) == "s; odd, näme"
    assert read_token(other, token) is None
    assert read_token(one, token[:-1] + ("0" if token[-1] != "0" else "1")) is None
    assert read_token(one, None) is None
    with running(resources("lookup", "one"), resources("lookup", "two")) as urls:
        client, thief = Client(urls["one"]), Client(urls["one"])
        client.send("/reset", {"task_id": "train-0-0"})
        name, value = next(iter(client.cookies.items()))
        payload, _, _ = value.rpartition(".")
        for forged in (payload + "." + "0" * 32, payload, value[::-1], "", "x" * 5000):
            thief.cookies = {name: forged}
            assert thief.send("/step", {"action": {"text": "mine now"}})[0] == 409
        elsewhere = Client(urls["two"])
        elsewhere.cookies = {name.replace("one", "two"): value}
        assert elsewhere.send("/step", {"action": {"text": "mine now"}})[0] == 409


def test_errors_tell_nothing_of_the_inside(monkeypatch, caplog):
    hosts = []
    with running(resources("lookup", hosts=hosts)) as urls:

        async def broken(*args, **kwargs):
            raise RuntimeError("/home/user/secret.py line 3")

        monkeypatch.setattr(hosts[0], "begin", broken)
        status, body, _ = Client(urls["env"]).send("/reset", {"task_id": "train-0-0"})
        assert status == 500
        assert body["error"]["kind"] == "internal_error"
        assert "secret" not in json.dumps(body)
        assert "secret" in caplog.text
