import os
import shutil
import signal

import psutil
import pytest
from launched import Launched, gone
from live_servers import Client

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap"),
]
FILE = """
notebook:
  resources_servers:
    notebook: {sessions: {idle_timeout_s: 3, sweep_every_s: 0.2}}
head_server: {enabled: false}
"""


@pytest.fixture
def launched(tmp_path):
    one = Launched(tmp_path, text=FILE)
    yield one
    if one.process.poll() is None:
        one.process.kill()
    one.process.communicate()


def children(launched):
    return [child.pid for child in psutil.Process(launched.process.pid).children(recursive=True)]


def begin(launched, count):
    url = launched.ready()["servers"]["notebook"]
    for number in range(count):
        assert Client(url).send("/reset", {"task_id": f"train-0-{number}"})[0] == 200
    return children(launched)


def test_kernels_of_abandoned_episodes_end(launched):
    kernels = begin(launched, 2)
    assert len(kernels) >= 2
    assert gone(kernels)
    assert launched.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kernels_end_with_their_server(launched, number):
    kernels = begin(launched, 1)
    assert kernels
    os.kill(launched.process.pid, number)
    assert gone(kernels)
