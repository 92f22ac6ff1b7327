import json
import os
import subprocess
import sys

import pytest

from sensorium.core import RunDirectoryError
from sensorium.rollouts.journal import Journal, read_rows
from sensorium.rollouts.jsonl import dumps, line_problem, loads
from sensorium.rollouts.run_record import RunFiles, check_record, without_places, write_record


@pytest.mark.parametrize(
    ("tail", "cut", "kept"),
    [
        (b'{"n": 3, "text": "torn', 22, 2),
        (b"\0" * 40, 40, 2),
        (b"{", 1, 2),
        (b'{"n": 3}', 0, 3),
        (b"", 0, 2),
        (b"\xff\xfe", 2, 2),
    ],
)
def test_a_torn_last_line_is_cut_off_and_nothing_else(tmp_path, tail, cut, kept):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2}\n' + tail)
    with Journal(path) as journal:
        repair = journal.repair()
        assert repair.cut_bytes == cut
        assert (repair.describe(path) is None) == (tail == b"")
        journal.append(b'{"n": 9}')
    rows = [row["n"] for row in read_rows(path)]
    assert rows == [*range(1, kept + 1), 9]


def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"n": 1}\n{"text": "' + b"x" * 3_000_000)
    with Journal(path) as journal:
        assert journal.repair().cut_bytes == 3_000_000 + len(b'{"text": "')
    assert path.read_bytes() == b'{"n": 1}\n'


def test_a_file_of_one_torn_line_becomes_empty(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"n"')
    with Journal(path) as journal:
        journal.repair()
        assert journal.size == 0


def test_reading_passes_over_a_torn_last_line_but_not_over_damage(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"n": 1}\n\n{"n": 2}\n{"n"')
    assert [row["n"] for row in read_rows(path)] == [1, 2]
    path.write_bytes(b'{"n": 1}\nbroken\n{"n": 2}\n')
    with pytest.raises(RunDirectoryError, match="line 2 is damaged"):
        list(read_rows(path))


def test_two_writers_are_refused_also_from_another_process(tmp_path):
    path = tmp_path / "out.jsonl"
    with Journal(path):
        with pytest.raises(RunDirectoryError, match="being written by another process"):
            Journal(path)
        code = "from sensorium.rollouts.journal import *; import sys; Journal(Path(sys.argv[1]))"
        other = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert "being written by another process" in other.stderr
    Journal(path).close()


def test_a_full_disk_leaves_whole_lines_only(tmp_path, monkeypatch):
    path = tmp_path / "out.jsonl"
    write = os.write
    with Journal(path) as journal:
        journal.append(b'{"n": 1}')

        def half(file, data):
            if len(data) > 3:
                return write(file, data[:3])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space"):
            journal.append(b'{"n": 22}')
        monkeypatch.undo()
        journal.append(b'{"n": 3}')
    assert [row["n"] for row in read_rows(path)] == [1, 3]


def test_json_of_any_text_and_number_survives():
    value = {"half": "\ud83d", "big": 10**30, "text": "ä\u2028\n", "list": [1.5]}
    line = dumps(value)
    assert b"\n" not in line
    assert loads(line) == value
    assert loads(dumps({"x": float("nan")})) == {"x": None}
    assert loads(dumps({"x": [float("inf"), "\ud83d"]}, pretty=True)) == {"x": [None, "\ud83d"]}
    assert loads('"\\ud83d"') == "\ud83d"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1]", "a JSON array"),
        (b"null", "a JSON null"),
        (b"12", "a JSON number"),
        (b"true", "a JSON boolean"),
        (b'"x"', "a JSON string"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(line, said):
    assert said in line_problem(line)


def test_a_changed_run_is_refused_with_what_changed(tmp_path):
    files = RunFiles(tmp_path / "out.jsonl")
    identity = {"seed": 0, "servers": {"a": {"max_steps": 8, "old": 1}}, "model": "m"}
    write_record(files, identity)
    check_record(files, json.loads(json.dumps(identity)))
    with pytest.raises(RunDirectoryError) as told:
        check_record(files, {"seed": 1, "servers": {"a": {"max_steps": 10, "new": 2}}, "model": "m"})
    for said in (
        "seed was 0, is 1",
        "servers.a.max_steps was 8, is 10",
        "servers.a.old is gone",
        "servers.a.new is new",
    ):
        assert said in str(told.value)
    files.record.write_text("{")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        check_record(files, identity)
    files.record.unlink()
    with pytest.raises(RunDirectoryError, match="missing"):
        check_record(files, identity)


def test_addresses_and_secrets_are_in_no_record():
    settings = {
        "a": {
            "host": "h",
            "port": 1,
            "max_steps": 3,
            "openai_api_key": "sk-1",
            "list": [{"token": "t", "url": "u"}],
        },
        "policy_api_key": "sk-2",
        "max_tokens": 5,
        "api_key_env": "NAME",
    }
    assert without_places(settings) == {
        "a": {"max_steps": 3, "openai_api_key": "***", "list": [{"token": "***"}]},
        "policy_api_key": "***",
        "max_tokens": 5,
        "api_key_env": "NAME",
    }


def test_a_file_cut_at_any_byte_keeps_all_whole_rows(tmp_path):
    lines = [dumps({"n": n, "text": "ä\n" * n}) + b"\n" for n in range(3)]
    whole = b"".join(lines)
    path = tmp_path / "out.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with Journal(path) as journal:
            journal.repair()
        kept = [row["n"] for row in read_rows(path)]
        ends = [len(b"".join(lines[: n + 1])) for n in range(3)]
        assert kept == [n for n in range(3) if cut >= ends[n] - 1], cut
        assert path.read_bytes() in (b"", *(whole[:end] for end in ends))
