import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from cue_agents import cue_config

from sensorium.core import RunDirectoryError
from sensorium.trainers.run_directory import OnExisting, discard_unstarted, open_run
from sensorium.trainers.run_lock import LOCK_FILE, only_process
from sensorium.trainers.training import Training

pytestmark = pytest.mark.usefixtures("cue_backend")

HOLD = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_run_that_another_process_trains_is_left_alone(tmp_path: Path) -> None:
    settings = cue_config(("rgb",), algo={"total_steps": 64})
    run = open_run(settings, tmp_path, OnExisting.FAIL)
    command = [sys.executable, "-c", HOLD, str(run / LOCK_FILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        for choice in (OnExisting.RESUME, OnExisting.RESTART):
            with pytest.raises(RunDirectoryError, match="trained by another process"):
                open_run(settings, tmp_path, choice)
        training = Training(settings, run)
        with pytest.raises(RunDirectoryError, match="only one can"):
            training.run(lambda _: None)
        training.env.close()
        assert not (run / "metrics.jsonl").exists()
        other.stdin.close()
    # The system has freed it with the process.
    assert (
        Training(settings, open_run(settings, tmp_path, OnExisting.RESUME)).run(lambda _: None).env_steps
        == 64
    )


def test_the_lock_is_free_again_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"), only_process(tmp_path):
        raise RuntimeError("broken")
    with only_process(tmp_path), pytest.raises(RunDirectoryError), only_process(tmp_path):
        pass


def test_a_run_in_which_nothing_happened_is_removed_with_its_lock(tmp_path: Path) -> None:
    settings = cue_config(("rgb",))
    open_run(settings, tmp_path, OnExisting.FAIL)
    run = open_run(settings, tmp_path, OnExisting.RESUME)
    discard_unstarted(run)
    assert not run.parent.exists()


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).mkdir()
    with pytest.raises(RunDirectoryError, match=f"{tmp_path} cannot be written"), only_process(tmp_path):
        pass


def test_a_file_system_without_locks_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def without(self: filelock.FileLock) -> None:
        raise NotImplementedError("FileSystem does not appear to support flock")

    monkeypatch.setattr(filelock.FileLock, "_acquire", without)
    with only_process(tmp_path):
        (tmp_path / "written").touch()
    assert "without locks" in caplog.text
