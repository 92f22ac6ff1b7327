import asyncio

import pytest

from sensorium.servers.http import HttpClient, TransportError

URL = "http://127.0.0.1:8001"


async def answering(scope, receive, send):
    message = await receive()
    headers = dict(scope["headers"])
    told = f"{scope['method']} {scope['path']} {scope['query_string'].decode()} ".encode()
    told += headers[b"x-mine"] + b" " + message["body"]
    sent = [(b"content-type", b"text/plain"), (b"set-cookie", b"a=1; Path=/"), (b"set-cookie", b"b=2")]
    await send({"type": "http.response.start", "status": 203, "headers": sent})
    await send({"type": "http.response.body", "body": told[:5], "more_body": True})
    await send({"type": "http.response.body", "body": told[5:]})


def test_an_app_is_sent_what_a_socket_would_bring():
    async def run():
        http = HttpClient("the-key", apps={URL: answering})
        reply = await http.post(f"{URL}/a%20b?c=d", {"x": 1}, timeout_s=5, headers={"X-Mine": "yes"})
        await http.close()
        return reply

    reply = asyncio.run(run())
    assert (reply.status, reply.text) == (203, 'POST /a b c=d yes {"x":1}')
    assert reply.cookies == {"a": "1", "b": "2"}
    assert reply.headers["Content-Type"] == "text/plain"


def test_other_addresses_still_need_sockets():
    async def run():
        http = HttpClient(apps={URL: answering})
        with pytest.raises(TransportError) as caught:
            await http.post("http://127.0.0.1:9/a", {}, timeout_s=5)
        await http.close()
        return caught.value.kind

    assert asyncio.run(run()) == "transport_unreachable"


@pytest.mark.parametrize("begun", [False, True])
def test_an_app_that_breaks_is_a_broken_connection(begun, caplog):
    async def breaking(scope, receive, send):
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("no")

    async def run():
        with pytest.raises(TransportError) as caught:
            await HttpClient(apps={URL: breaking}).post(f"{URL}/a", {}, timeout_s=5)
        return caught.value.kind

    assert asyncio.run(run()) == "transport_peer_drop"
    assert "POST /a broke its answer off" in caplog.text


def test_an_app_whose_caller_is_late_ends_by_itself():
    seen = []

    async def patient(scope, receive, send):
        await receive()
        await asyncio.sleep(0.05)  # not torn apart
        seen.append("finished")
        seen.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def run():
        http = HttpClient(apps={URL: patient})
        with pytest.raises(TransportError) as caught:
            await http.post(f"{URL}/a", {}, timeout_s=0.01)
        assert caught.value.kind == "transport_timeout"
        assert seen == []
        await asyncio.sleep(0.2)

    asyncio.run(run())
    assert seen == ["finished", "http.disconnect"]
