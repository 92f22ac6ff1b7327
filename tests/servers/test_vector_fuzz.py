import random
import struct
import threading

import numpy as np
import pytest
from live_servers import resources, running
from websockets.sync.client import connect

from sensorium.core.frames import MAGIC, pack, unpack
from sensorium.envs.remote import RemoteVectorEnv

STRANGE = {"config": {"task": "strange_gym:Strange-v0", "render": "none"}}
ARENA = {"config": {"task": "arena/find", "image_size": 32}}


@pytest.fixture(scope="module")
def urls():
    with running(
        resources("gymnasium", "strange", **STRANGE), resources("embodied", "arena", **ARENA)
    ) as found:
        yield found


class Garbage:
    """Messages that are nearly right, or not at all; the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth=0):
        draw = self.random
        options = [None, True, -1, 2**70, 0.5, "x", "ß" * 40, np.zeros(draw.randrange(5)), np.array([np.nan])]
        options += [np.array(draw.randrange(-5, 15)), np.array([draw.randrange(-2, 12)]), [0], [7.5], ["a"]]
        if depth < 3:
            options += [[self.value(depth + 1) for _ in range(draw.randrange(4))]]
            options += [{f"k{i}": self.value(depth + 1) for i in range(draw.randrange(4))}]
        return draw.choice(options)

    def message(self):
        draw = self.random
        kinds = ["reset", "step", "step", "step", "open", "advance", "describe", "", None, 5]
        names = ["seed", "options", "action", "num_envs", "settings", "as", "reset", "step", "world", "mask"]
        told = {name: self.value() for name in draw.sample(names, draw.randrange(5))}
        if isinstance(told.get("num_envs"), int):
            told["num_envs"] = draw.randrange(-1, 3)
        data = pack({"type": draw.choice(kinds), **told})
        match draw.randrange(6):
            case 0:
                return data[: draw.randrange(len(data))]
            case 1:
                place = draw.randrange(len(data))
                return data[:place] + draw.randbytes(3) + data[place + 3 :]
            case 2:
                return struct.pack("<4sI", MAGIC, draw.randrange(2**32)) + draw.randbytes(draw.randrange(60))
            case 3 if draw.random() < 0.3:
                return "text, not bytes"
        return data


def attack(url, kind, seed, count):
    """Returns the kinds of answers."""
    garbage, found = Garbage(seed), set()
    with connect("ws" + url.removeprefix("http") + "/vector", compression=None, proxy=None) as there:
        for number in range(count):
            if number % 25 == 0:
                there.send(pack({"type": "open", "as": kind, "num_envs": 1}))
                assert unpack(there.recv(20))["type"] == "opened"
            there.send(garbage.message())
            reply = unpack(there.recv(20))
            found.add(reply.get("kind", reply["type"]))
            assert "Traceback" not in str(reply)
            assert reply.get("kind") != "internal_error"
    return found


@pytest.mark.parametrize(("name", "kind"), [("strange", "vector"), ("arena", "vector"), ("arena", "worlds")])
def test_strange_messages_are_answered_and_touch_no_other_client(urls, name, kind, caplog):
    other = RemoteVectorEnv(urls[name], 1)
    other.reset(seed=0)
    found = set()
    threads = [
        threading.Thread(target=lambda seed=seed: found.update(attack(urls[name], kind, seed, 150)))
        for seed in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        for _ in range(20):
            other.step([0])
        thread.join()
    assert "invalid_request" in found
    assert not [one for one in caplog.records if "a connection to" in one.message]
    other.reset(seed=0)
    assert other.step([0])[1].shape == (1,)
    other.close()
