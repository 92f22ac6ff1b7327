import asyncio
import json

import pytest

from sensorium.core import ConfigError, RunDirectoryError
from sensorium.envs.episode import EpisodeError, Failure
from sensorium.rollouts.collect import CollectConfig
from sensorium.rollouts.inputs import Inputs
from sensorium.rollouts.journal import read_rows
from sensorium.rollouts.progress import LineReporter, SilentReporter, Tally, duration
from sensorium.rollouts.quota import RetryConfig
from sensorium.rollouts.row_names import RowKey
from sensorium.rollouts.run import RunOptions, run_rollouts
from sensorium.rollouts.run_record import RunFiles
from sensorium.rollouts.task_rows import Repeats, row_seed

FAST = RetryConfig(first_delay_s=0.0)


class Fake:
    """Runs a row by a function of the row and the number of the attempt."""

    needs_agent = False
    needs_request = False

    def __init__(self, do, identity=None):
        self.do, self.identity = do, identity or {"model": "fake"}
        self.calls, self.under_way, self.most = {}, 0, 0

    async def open(self):
        pass

    async def close(self):
        pass

    def problem(self, row):
        return None

    async def aggregate(self, server, rows):
        return None

    async def run(self, row, *, timeout_s):
        key = RowKey.of(row)
        self.calls[key] = self.calls.get(key, 0) + 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            made = self.do(row, self.calls[key])
            return await made if asyncio.iscoroutine(made) else made
        finally:
            self.under_way -= 1


def result(row, attempt=1):
    return {"reward": float(row["n"] % 2), "response": {"output": []}, "seed_seen": row_seed(row)}


def fail(kind="agent_run_error", **more):
    raise EpisodeError(Failure(kind=kind, reason="because", **more))


def collect(
    tmp_path, runner, *, num_tasks=10, num_repeats=2, concurrency=8, seed=0, reporter=None, **options
):
    rows = [{"n": n} for n in range(num_tasks)]
    inputs = Inputs(tmp_path / "in.jsonl", [(json.dumps(row), row) for row in rows], [])
    retries = options.pop("retries", FAST)
    collecting = {"timeout_s": options.pop("timeout_s", 60.0), "drain_s": options.pop("drain_s", 60.0)}
    config = CollectConfig(concurrency=concurrency, retries=retries, **collecting)
    run = run_rollouts(
        runner,
        inputs,
        Repeats(num_repeats, seed),
        tmp_path / "out.jsonl",
        RunOptions(collect=config, **options),
        reporter or SilentReporter(),
    )
    return asyncio.run(run)


def written(tmp_path, name="out.jsonl"):
    path = tmp_path / name
    return list(read_rows(path)) if path.exists() else []


def test_every_rollout_is_written_once_with_its_identity(tmp_path):
    runner = Fake(result)
    outcome, metrics = collect(tmp_path, runner, concurrency=5)
    assert (outcome.num_done, outcome.exit_code, outcome.describe()) == (20, 0, "")
    assert runner.most == 5
    rows = written(tmp_path)
    assert sorted(RowKey.of(row) for row in rows) == [
        (task, repeat) for task in range(10) for repeat in range(2)
    ]
    inputs = written(tmp_path, "out_materialized_inputs.jsonl")
    assert {RowKey.of(row): row_seed(row) for row in inputs} == {
        RowKey.of(row): row["seed_seen"] for row in rows
    }
    assert not RunFiles(tmp_path / "out.jsonl").failures.exists()
    (entry,) = json.loads((tmp_path / "out_aggregate_metrics.json").read_text())
    assert entry["key_metrics"]["mean/reward"] == 0.5
    assert entry["sensorium"]["pass_at_k"]["pass@2/accuracy"] == 50.0
    assert metrics[0]["agent_metrics"]["num_repeats"] == 2


def test_results_depend_on_the_seed_and_not_on_concurrency_or_order(tmp_path):
    def slow(row, attempt):
        async def run():
            await asyncio.sleep(0.001 * ((row["n"] * 7) % 5))
            return result(row)

        return run()

    made = {}
    for name, concurrency, seed in (("a", 1, 3), ("b", 20, 3), ("c", 20, 4)):
        folder = tmp_path / name
        folder.mkdir()
        collect(folder, Fake(slow), concurrency=concurrency, seed=seed, sort=True)
        made[name] = (folder / "out.jsonl").read_bytes()
    assert made["a"] == made["b"]
    assert made["a"] != made["c"]


def test_failures_are_tried_again_and_are_no_scores(tmp_path):
    def do(row, attempt):
        if row["n"] == 3 and attempt <= 2:
            fail("model_failed", stage="agent")
        if row["n"] == 4:
            fail("env_crashed", stage="seed")
        if row["n"] == 5:
            fail("context_overflow", stage="agent")
        return result(row)

    runner = Fake(do)
    outcome, metrics = collect(tmp_path, runner, num_repeats=1)
    assert outcome.num_done == 8
    assert outcome.exit_code == 3
    assert runner.calls[RowKey(3, 0)] == 3
    assert runner.calls[RowKey(4, 0)] == 3, "the quota"
    assert runner.calls[RowKey(5, 0)] == 1, "no use"
    failures = written(tmp_path, "out_failures.jsonl")
    assert len(failures) == 6
    assert all("reward" not in row and row["_ng_failure_stage"] for row in failures)
    kinds = {(one.kind, one.stage, one.num_rollouts) for one in outcome.lost}
    assert kinds == {("env_crashed", "seed", 1), ("context_overflow", "agent", 1)}
    assert "2 of 10 rollouts have no result" in outcome.describe()
    (third,) = [row for row in written(tmp_path) if RowKey.of(row).task == 3]
    assert third["_ng_attempt_index"] == 2
    assert metrics[0]["agent_metrics"]["mean/reward"] == pytest.approx(4 / 8)


def test_a_failed_row_of_a_server_keeps_what_is_known_but_no_reward(tmp_path):
    def do(row, attempt):
        if row["n"] == 1:
            failed = {"_ng_failure_class": "judge_failed", "_ng_failure_terminal": True, "reward": 0.0}
            return {**failed, "response": {"output": ["partial"]}, "mask_sample": True}
        return result(row)

    outcome, _ = collect(tmp_path, Fake(do), num_repeats=1)
    (failed,) = written(tmp_path, "out_failures.jsonl")
    assert "reward" not in failed
    assert failed["response"] == {"output": ["partial"]}
    assert [one.kind for one in outcome.lost] == ["judge_failed"]


@pytest.mark.parametrize("answer", [{}, {"reward": "1"}, {"reward": float("nan")}, {"detail": "x"}])
def test_answers_that_are_no_results_are_failures(tmp_path, answer):
    outcome, _ = collect(tmp_path, Fake(lambda row, attempt: dict(answer)), num_tasks=1, num_repeats=1)
    assert [one.kind for one in outcome.lost] == ["answer_unreadable"]


def test_rows_that_may_not_be_kept_are_run_again_and_written_nowhere(tmp_path):
    def do(row, attempt):
        return {"_ng_no_persist": True, "reward": 0.0} if row["n"] == 1 and attempt == 1 else result(row)

    outcome, _ = collect(tmp_path, Fake(do), num_repeats=1)
    assert outcome.exit_code == 0
    assert written(tmp_path, "out_failures.jsonl") == []


def test_masked_rows_stay_and_count_in_nothing_but_coverage(tmp_path):
    def do(row, attempt):
        return result(row) | {"mask_sample": row["n"] == 1, "failure_kind": None}

    outcome, metrics = collect(tmp_path, Fake(do), num_tasks=4, num_repeats=1)
    assert outcome.num_done == 4
    assert metrics[0]["key_metrics"]["coverage/masked_rollouts"] == 1
    assert metrics[0]["key_metrics"]["mean/reward"] == pytest.approx(1 / 3)


def test_a_dead_endpoint_ends_the_run_and_says_so(tmp_path):
    runner = Fake(lambda row, attempt: fail("transport_unreachable", stage="admission"))
    outcome, metrics = collect(tmp_path, runner, num_tasks=500, concurrency=16)
    assert sum(runner.calls.values()) < 60
    assert "attempts all failed" in outcome.stopped
    assert "transport_unreachable: because" in outcome.stopped
    assert outcome.exit_code == 3
    assert sum(one.num_rollouts for one in outcome.lost) == 1000
    assert {one.kind for one in outcome.lost} == {"transport_unreachable", "not_run"}
    assert metrics == []
    alive, _ = collect(tmp_path, Fake(result), num_tasks=500, concurrency=16, start="resume")
    assert alive.exit_code == 0, "what was never begun uses up no attempts"


def test_a_server_that_dies_in_the_middle_costs_what_was_under_way(tmp_path):
    served = []

    def do(row, attempt):
        served.append(row)
        if len(served) > 100:
            fail("transport_unreachable", stage="admission")
        return result(row)

    outcome, _ = collect(tmp_path, Fake(do), num_tasks=300, num_repeats=1)
    assert outcome.num_done == 100
    assert len(written(tmp_path)) == 100
    assert "of the last 40 attempts failed" in outcome.stopped
    assert len(served) < 160


def test_the_whole_run_has_a_quota_of_retries(tmp_path):
    def do(row, attempt):
        if row["n"] % 2:
            fail()
        return result(row)

    runner = Fake(do)
    collect(
        tmp_path,
        runner,
        num_tasks=100,
        num_repeats=1,
        retries=RetryConfig(first_delay_s=0.0, max_retry_share=0.2),
    )
    assert sum(runner.calls.values()) == 100 + 20


def test_a_resumed_run_does_only_what_is_missing(tmp_path):
    def do(row, attempt):
        if row["n"] in (2, 3):
            fail("context_overflow" if row["n"] == 2 else "env_crashed")
        return result(row)

    collect(tmp_path, Fake(do), retries=RetryConfig(first_delay_s=0.0, max_attempts=2))
    with (tmp_path / "out.jsonl").open("ab") as file:
        file.write(b'{"reward": 1.0, "torn')
    said = []

    class Hears(SilentReporter):
        def note(self, text):
            said.append(text)

    again = Fake(result)
    outcome, _ = collect(
        tmp_path, again, start="resume", reporter=Hears(), retries=RetryConfig(max_attempts=3)
    )
    assert set(again.calls) == {(3, 0), (3, 1)}
    assert outcome.num_done == 18
    assert any("torn" in text for text in said)
    last = Fake(result)
    outcome, metrics = collect(tmp_path, last, start="resume", retry_failed=True)
    assert set(last.calls) == {(2, 0), (2, 1)}
    assert outcome.exit_code == 0
    assert metrics[0]["agent_metrics"]["mean/reward"] == 0.5
    nothing = Fake(result)
    outcome, _ = collect(tmp_path, nothing, start="resume")
    assert (nothing.calls, outcome.num_done) == ({}, 20)


def test_files_with_rows_are_not_touched_unless_that_is_asked_for(tmp_path):
    collect(tmp_path, Fake(result))
    before = (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(RunDirectoryError, match="has rows already"):
        collect(tmp_path, Fake(result))
    with pytest.raises(RunDirectoryError, match="seed was 0, is 1"):
        collect(tmp_path, Fake(result), start="resume", seed=1)
    with pytest.raises(RunDirectoryError, match="model was 'fake', is 'other'"):
        collect(tmp_path, Fake(result, {"model": "other"}), start="resume")
    with pytest.raises(RunDirectoryError, match=r"input\.num_rows was 10, is 9"):
        collect(tmp_path, Fake(result), start="resume", num_tasks=9)
    assert (tmp_path / "out.jsonl").read_bytes() == before
    collect(tmp_path, Fake(result), start="overwrite", num_tasks=3, num_repeats=1)
    assert len(written(tmp_path)) == 3
    assert len(written(tmp_path, "out_materialized_inputs.jsonl")) == 3


def test_an_episode_that_takes_too_long_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("sensorium.rollouts.collect._GRACE_S", 0.0)
    runner = Fake(lambda row, attempt: asyncio.sleep(60) if row["n"] == 0 else result(row))
    retries = RetryConfig(max_attempts=1)
    outcome, _ = collect(tmp_path, runner, num_tasks=3, num_repeats=1, timeout_s=0.05, retries=retries)
    assert [one.kind for one in outcome.lost] == ["agent_timeout"]


def test_what_a_runner_raises_is_a_failure_of_one_row(tmp_path):
    def do(row, attempt):
        if row["n"] == 0:
            raise KeyError("odd")
        if row["n"] == 1:
            raise ConfigError("media are missing")
        return result(row)

    outcome, _ = collect(tmp_path, Fake(do), num_tasks=4, num_repeats=1)
    assert {one.kind for one in outcome.lost} == {"agent_run_error", "task_invalid"}
    assert outcome.num_done == 2


def test_a_result_that_cannot_be_written_ends_the_run(tmp_path, monkeypatch):
    from sensorium.rollouts.journal import Journal

    append = Journal.append

    def full(self, line):
        if self.size > 500:
            raise OSError(28, "No space left on device")
        append(self, line)

    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(OSError, match="No space"):
        collect(tmp_path, Fake(result), num_tasks=50)
    monkeypatch.undo()
    assert 0 < len(written(tmp_path)) < 50
    outcome, _ = collect(tmp_path, Fake(result), num_tasks=50, start="resume")
    assert outcome.exit_code == 0


def test_media_are_beside_the_file_or_in_it(tmp_path):
    url = "data:image/png;base64,iVBORw0KGgo="

    def picture(row, attempt):
        assert row["image"] == url, "rows are run with their media"
        return {"reward": 1.0, "response": {"output": [{"image_url": url}]}}

    rows = [{"n": 0, "image": url}]
    inputs = Inputs(tmp_path / "in.jsonl", [(json.dumps(row), row) for row in rows], [])
    for name, inline in (("out", False), ("whole", True)):
        options = RunOptions(inline_media=inline, collect=CollectConfig(concurrency=2))
        path = tmp_path / f"{name}.jsonl"
        asyncio.run(run_rollouts(Fake(picture), inputs, Repeats(3), path, options, SilentReporter()))
        text = path.read_text() + path.with_name(f"{name}_materialized_inputs.jsonl").read_text()
        assert text.count(url) == (6 if inline else 0)
    assert len(list((tmp_path / "out_media").iterdir())) == 1
    assert not (tmp_path / "whole_media").exists()
    used = Inputs(
        tmp_path / "out.jsonl",
        [("media:", row) for row in written(tmp_path, "out_materialized_inputs.jsonl")],
        [],
    )
    elsewhere = tmp_path / "else" / "again.jsonl"
    asyncio.run(run_rollouts(Fake(picture), used, Repeats(1), elsewhere, RunOptions(), SilentReporter()))
    assert len(list((tmp_path / "else" / "again_media").iterdir())) == 1


def test_progress_is_told_in_numbers(capsys):
    tally = Tally()
    tally.begin(10, 2)
    assert tally.describe() == "2 of 10 rollouts, 0 s so far"
    tally.finish(1.0)
    tally.finish(None)
    tally.fail(Failure(kind="env_crashed", reason=""), again=True)
    tally.fail(Failure(kind="env_crashed", reason=""), again=False)
    said = tally.describe()
    for part in ("4 of 10 rollouts", "mean reward 1.000", "1 tried again", "1 lost", "left"):
        assert part in said
    assert [duration(s) for s in (4, 75, 7500)] == ["4 s", "1 min 15 s", "2 h 05 min"]
    reporter = LineReporter(every_s=0.0)
    reporter.begun(2, 0)
    reporter.finished(0.5)
    reporter.failed(Failure(kind="env_crashed", reason="why"), again=False)
    reporter.closed()
    assert "first env_crashed (agent): why" in capsys.readouterr().err
