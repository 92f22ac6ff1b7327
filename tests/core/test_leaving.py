import subprocess
import sys
import time

STUCK = """
import sys, threading, time
from sensorium.core.leaving import leave_within
threading.Thread(target=time.sleep, args=(300,), name="a stuck tool").start()
print("done")
leave_within(0.2, 3)
"""


def test_a_process_ends_although_a_thread_does_not():
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=120)
    assert time.monotonic() - began < 100
    assert (done.returncode, done.stdout) == (3, "done\n")
    assert "a stuck tool" in done.stderr


def test_a_process_that_ends_by_itself_keeps_its_status():
    code = "from sensorium.core.leaving import leave_within; leave_within(60, 3)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
