"""The whole command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil


class Launched:
    def __init__(self, tmp_path, *arguments, text, env=None):
        path = tmp_path / "servers.yaml"
        path.write_text(text)
        self.ready_file = tmp_path / "ready.json"
        support = Path(__file__).parent
        command = [sys.executable, "-m", "sensorium.cli.main", "serve", str(path)]
        self.process = subprocess.Popen(
            [*command, "--ready-file", str(self.ready_file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(support), **(env or {})},
        )

    def ready(self):
        until = time.monotonic() + 60
        while not self.ready_file.exists():
            assert time.monotonic() < until
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.05)
        return json.loads(self.ready_file.read_text())

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def gone(pids, limit_s=30.0):
    until = time.monotonic() + limit_s
    while any(psutil.pid_exists(p) and psutil.Process(p).status() != "zombie" for p in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
