import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from sensorium.trainers.tensor_files import latest_checkpoint

SMALL = (
    "--env.visual_obs=[rgb]",
    "--env.audio_obs",
    "[ ]",  # must come back in quotes
    "--env.max_episode_steps=10",
    "--env.image_size=16",
    "--algo.num_envs=8",
    "--algo.num_steps=8",
    "--device=cpu",
)
TIMEOUT_S = 120


def sensorium(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sensorium.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def test_ctrl_c_saves_and_the_printed_command_goes_on(tmp_path: Path) -> None:
    train = ("train", "quickstart", "--runs", "my runs", *SMALL, "--algo.total_steps=100000000")
    process = sensorium(*train, cwd=tmp_path)
    try:
        started = time.monotonic()
        logs = "my runs/*/*/metrics.jsonl"
        while not any(log.stat().st_size for log in tmp_path.glob(logs)) and process.poll() is None:
            assert time.monotonic() - started < TIMEOUT_S
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out.startswith("interrupted · checkpoint saved · go on with: sensorium train quickstart ")
    (run,) = tmp_path.glob("my runs/*/*")
    checkpoint = latest_checkpoint(run)
    assert checkpoint is not None
    steps = int(checkpoint.name)
    assert steps > 0

    advice = out.strip().partition("go on with: ")[2]
    again = sensorium(*shlex.split(advice)[1:], cwd=tmp_path)
    try:
        started = time.monotonic()
        log = run / "metrics.jsonl"
        while f'"step": {steps + 64},' not in log.read_text() and again.poll() is None:
            assert time.monotonic() - started < TIMEOUT_S
            time.sleep(0.1)
        again.send_signal(signal.SIGINT)
        out, err = again.communicate(timeout=TIMEOUT_S)
    finally:
        again.kill()
    assert again.returncode == 130, err
    later = latest_checkpoint(run)
    assert later is not None
    assert int(later.name) > steps
