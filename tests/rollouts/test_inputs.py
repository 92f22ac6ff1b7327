import json

import pytest

from sensorium.core import ConfigError
from sensorium.rollouts.inputs import read_inputs

GOOD = {"responses_create_params": {"input": "hello"}, "agent_ref": {"name": "a"}}


def write(path, *lines):
    made = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(made) + b"\n")
    return path


def test_every_problem_of_every_line_is_told(tmp_path):
    params = "responses_create_params"
    path = write(
        tmp_path / "in.jsonl",
        GOOD,
        b"{broken",
        b'[1, "\xff"]',
        {},
        {params: {"input": 3, "tools": "x", "metadata": {"n": 1, "extra_body": "[]"}}, "agent_ref": "a"},
        b"",
        {
            params: {"input": [{"role": "nobody", "content": [3]}, 7, {"type": "reasoning"}]},
            "agent_ref": {"name": "a"},
        },
        {"task_id": {"taskset": "t", "task_id": ""}, "task_input": 3},
        {**GOOD, "image": "media:in_media/" + "0" * 64 + ".png"},
        {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"a": 1}},
    )
    inputs = read_inputs(path, needs_agent=True)
    told = {}
    for problem in inputs.problems:
        told.setdefault(problem.line, []).append(problem.text)
    assert len(inputs.rows) == 2
    assert sorted(told) == [2, 3, 4, 5, 7, 8, 9]
    assert "not JSON" in told[2][0]
    assert "not UTF-8" in told[3][0]
    assert len(told[4]) == 2, "neither agent nor request"
    assert len(told[5]) == 6
    assert any('role is "nobody"' in text for text in told[7])
    assert any("input[1] is 7" in text for text in told[7])
    assert len(told[8]) == 2
    assert "missing" in told[9][0]
    with pytest.raises(ConfigError) as refused:
        inputs.require_clean()
    for line in sorted(told):
        assert f"line {line}:" in str(refused.value)
    assert "7 of 9 rows" in str(refused.value)


def test_a_limit_counts_rows_and_looks_no_further(tmp_path):
    path = write(tmp_path / "in.jsonl", b"", GOOD, b"", GOOD, b"broken")
    inputs = read_inputs(path, limit=2, needs_agent=True)
    assert (len(inputs.rows), inputs.problems) == (2, [])


def test_what_the_runner_needs_decides(tmp_path):
    path = write(tmp_path / "in.jsonl", {"task_id": "train-0-0"})
    assert read_inputs(path, needs_request=False).problems == []
    assert len(read_inputs(path).problems) == 1
    checked = read_inputs(path, needs_request=False, check=lambda row: f"no task {row['task_id']}")
    assert checked.problems[0].text == "no task train-0-0"


def test_a_byte_order_mark_and_unknown_fields_are_no_problem(tmp_path):
    row = {**GOOD, "anything": {"deep": [1]}, "expected": "x"}
    path = write(tmp_path / "in.jsonl", b"\xef\xbb\xbf" + json.dumps(row).encode())
    assert read_inputs(path).rows[0][1] == row


def test_task_indices_on_some_rows_only_are_a_problem(tmp_path):
    path = write(tmp_path / "in.jsonl", {**GOOD, "_ng_task_index": 4}, GOOD)
    assert [problem.line for problem in read_inputs(path).problems] == [2]


def test_files_that_are_none_or_empty_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no file"):
        read_inputs(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_inputs(tmp_path)
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(ConfigError, match="no rows"):
        read_inputs(tmp_path / "empty.jsonl")
