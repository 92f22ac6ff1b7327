import dataclasses
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.code import CodeState
from sensorium.observations.config import ReadConfig
from sensorium.observations.read import read
from sensorium.observations.source import Source
from sensorium.observations.values import TextValue

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [{"cell_type": "code", "id": "a", "source": "1", "outputs": [], "metadata": {}}],
}
MESSAGES = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]


def kinds(raw: Any, **more: Any) -> list[tuple[str, str, str]]:
    observation = read(raw, **more)
    assert len({part.id for part in observation}) == len(observation)
    text = observation.model_dump_json()
    assert Observation.model_validate_json(text).model_dump_json() == text
    return [(part.id, part.modality.value, part.value.kind) for part in observation]


@dataclasses.dataclass
class Robot:
    battery: float = 0.5


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("go to the door", [("text", "text", "text")]),
        ("/etc/passwd", [("text", "text", "text")]),
        ('{"a": 1}', [("structured", "text", "structured")]),
        (json.dumps(NOTEBOOK), [("notebook/cell-a", "notebook", "cell")]),
        (NOTEBOOK, [("notebook/cell-a", "notebook", "cell")]),
        (MESSAGES, [("messages", "text", "messages")]),
        ({"messages": MESSAGES}, [("messages", "text", "messages")]),
        ({"a": 1, "b": {"c": [1, 2]}}, [("data", "text", "structured")]),
        ([1, 2, 3], [("data", "text", "structured")]),
        ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [("table", "table", "table")]),
        (np.zeros((4, 5, 3), np.uint8), [("image", "image", "image")]),
        (np.zeros((4, 5)), [("array", "table", "array")]),
        (Robot(), [("data", "text", "structured")]),
        (None, [("data", "text", "structured")]),
        (1.5, [("data", "text", "structured")]),
        (b"a,b\n1,2\n", [("text", "text", "text")]),
        (b"\x89PNG\r\n\x1a\nbroken", [("image", "image", "problem")]),
        (b"%PDF-1.7 ...", [("binary", "text", "problem")]),
        (b"#!/usr/bin/env python\nprint(1)\n", [("code", "code", "code")]),
        ({}, [("data", "text", "structured")]),
        ([], [("data", "text", "structured")]),
        (b"", [("text", "text", "text")]),
        (Part(id="p", modality=Modality.TEXT, value=TextValue(text="x")), [("p", "text", "text")]),
    ],
)
def test_the_reader_follows_the_type(raw: Any, expected: list[tuple[str, str, str]]) -> None:
    assert kinds(raw) == expected


def test_named_raw_states_get_a_part_each_and_numbers_share_one() -> None:
    raw = {
        "rgb": np.zeros((4, 5, 3), np.uint8),
        "depth": np.ones((4, 5), np.float32),
        "proprio": np.arange(3.0),
        "scan": np.arange(3.0),
        "instruction": "turn left",
        "report.ipynb": NOTEBOOK,
        "chat": MESSAGES,
        "reward": 1.0,
        "done": False,
        "config": {"speed": 2},
    }
    assert kinds(raw) == [
        ("rgb", "image", "image"),
        ("depth", "depth", "array"),
        ("proprio", "proprio", "proprio"),
        ("scan", "table", "array"),
        ("instruction", "text", "text"),
        ("report.ipynb/cell-a", "notebook", "cell"),
        ("chat", "text", "messages"),
        ("config", "text", "structured"),
        ("values", "text", "structured"),
    ]
    assert kinds(raw, name="step-3")[0][0] == "step-3/rgb"


def test_texts_under_file_names_are_files() -> None:
    raw = {"src/a.py": "x = 1", "README.md": "# hi", "data.csv": "a,b\n1,2\n", "c.json": '{"a": 1}'}
    assert kinds(raw) == [
        ("src/a.py", "code", "code"),
        ("README.md", "text", "text"),
        ("data.csv", "table", "table"),
        ("c.json", "text", "structured"),
    ]


def test_a_source_forces_the_reading_and_carries_time_weight_and_meaning() -> None:
    raw = [
        Source(
            "a,b\n1,2\n", modality=Modality.TABLE, importance=2.0, timestamp_s=4.0, meanings={"a": "apples"}
        ),
        Source("x = 1\n", modality=Modality.CODE, language="python", state=CodeState(cursor=1)),
        Source({"speed": 1.0}, modality=Modality.PROPRIO, units={"speed": "m/s"}),
        Source(np.ones((2, 2), np.uint16) * 500, modality=Modality.DEPTH),
        Source('{"a": 1}', modality=Modality.TEXT),
        Source(json.dumps(NOTEBOOK), modality=Modality.NOTEBOOK, importance=0.0),
    ]
    parts = read(raw, timestamp_s=9.0).parts
    table, code, proprio, depth, text, cell = parts
    assert (table.importance, table.timestamp_s, table.value.columns[0].meaning) == (2.0, 4.0, "apples")
    assert (code.value.cursor_line, code.value.language, code.timestamp_s) == (1, "python", 9.0)
    assert proprio.value.units == ("m/s",)
    assert (depth.modality, depth.value.high) == (Modality.DEPTH, 0.5)
    assert text.value.kind == "text"
    assert (cell.importance, cell.id) == (0.0, "item-5/cell-a")


def test_observations_are_merged_with_their_times_and_unique_ids() -> None:
    inner = read({"a.md": "x", "b.md": "y"}, timestamp_s=0.0)
    merged = read([inner, inner, Source(inner, importance=3.0, timestamp_s=5.0)])
    assert [p.id for p in merged] == ["a.md", "b.md", "a.md~2", "b.md~2", "a.md~3", "b.md~3"]
    assert {p.timestamp_s for p in merged} == {0.0}
    assert merged["a.md~3"].importance == 3.0


def test_an_exception_is_a_traceback() -> None:
    try:
        {}["x"]  # type: ignore[index]
    except KeyError as error:
        (part,) = read(error)
    assert part.is_error
    assert part.value.format == "traceback"
    assert "KeyError: 'x'" in (part.text or "")


def test_an_unknown_object_is_shown_by_its_repr_without_address() -> None:
    class Thing:
        pass

    (part,) = read(Thing())
    assert "Thing" in (part.text or "")
    assert "0x" not in (part.text or "")
    assert "shown by its repr" in part.notes[0]


def test_pillow_pictures_and_data_frames_are_found_by_their_library() -> None:
    image = pytest.importorskip("PIL.Image")
    pandas = pytest.importorskip("pandas")
    raw = {
        "shot": image.new("RGB", (3, 2)),
        "frame": pandas.DataFrame({"a": [1]}),
        "col": pandas.Series([1, 2]),
    }
    assert [kind for *_, kind in kinds(raw)] == ["image", "table", "table"]


def test_samples_with_their_rate_are_a_sound() -> None:
    pytest.importorskip("soundfile")
    assert kinds((np.zeros(800, np.float32), 16_000)) == [("audio", "audio", "audio")]


def test_pictures_in_messages_become_parts() -> None:
    buffer = io.BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (3, 2)).save(buffer, "PNG")
    import base64

    url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
    found = kinds([{"role": "user", "content": content}])
    assert [(modality, kind) for _, modality, kind in found] == [("text", "messages"), ("image", "image")]


def test_a_message_whose_picture_is_missing_has_a_part_that_says_so() -> None:
    blocks = [
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "input_audio", "input_audio": {"data": None, "format": "wav"}},
        {"type": "image", "source": {"type": "base64", "data": "QUJDR"}},
    ]
    chat, *media = read([{"role": "user", "content": blocks}])
    assert [(part.id, part.modality.value, part.value.kind) for part in media] == [
        ("messages/message-0/image-0", "image", "problem"),
        ("messages/message-0/audio-0", "audio", "problem"),
        ("messages/message-0/image-1", "image", "problem"),
    ]
    assert "holds none" in media[0].value.what
    assert "base64" in media[2].value.what
    assert "[image: messages/message-0/image-0]" in chat.value.turns[0].content


def test_a_report_of_tests_is_read_as_their_results(tmp_path: Path) -> None:
    report = '<?xml version="1.0"?>\n<testsuites><testcase classname="t" name="a"/>%s</testsuites>'
    (tmp_path / "junit.xml").write_text(report % '<testcase name="b"><failure message="no"/></testcase>')
    _, part = read(tmp_path, name="d")
    assert (part.id, part.modality, part.is_error) == ("d/junit.xml", Modality.CODE, True)
    assert [(test.name, test.status) for test in part.value.tests] == [("t::a", "passed"), ("b", "failed")]
    assert kinds(report % "") == [("structured", "code", "code")]


def test_packed_files_are_read_by_the_ending_of_what_is_packed(tmp_path: Path) -> None:
    for name, text in (("a.yaml.gz", "x: 1\n"), ("b.py.gz", "x = 1\n"), ("c.log.gz", "words\n")):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    _, data, code, log = read(tmp_path)
    assert data.value.data == {"x": 1}
    assert code.value.language == "python"
    assert log.value.format == "log"


def test_saved_arrays_are_read_and_pickles_are_not(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", x=np.arange(2), y=np.eye(2))
    np.save(tmp_path / "c.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "d.pkl").write_bytes(b"\x80\x04N.")
    assert kinds(tmp_path / "a.npy") == [("a.npy", "table", "array")]
    assert [i for i, *_ in kinds(tmp_path / "b.npz")] == ["b.npz/x", "b.npz/y"]
    assert kinds(tmp_path / "c.npy") == [("c.npy", "table", "problem")]
    (part,) = read(tmp_path / "d.pkl")
    assert "can run code" in part.value.what


def test_a_directory_is_listed_and_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    files: dict[str, bytes] = {
        "main.py": b"print(1)\n",
        "src/util.py": b"x = 1\n",
        "data/t.csv": b"a,b\n1,2\n",
        "nb.ipynb": json.dumps(NOTEBOOK).encode(),
        "broken.ipynb": b'{"cells": [{"cell_type": "code", "source": "ab',
        "notes.md": b"# Hi\n",
        "lib.so": b"\x7fELF\x02\x01",
        "blob": b"\x00\x01\x02\x03" * 100,
        "big.json.gz": gzip.compress(b'{"a": [1, 2]}'),
        ".git/HEAD": b"ref",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    os.mkfifo(root / "pipe")
    observation = read(root)
    found = {part.id: part.value.kind for part in observation}
    assert next(iter(found)) == "project"
    assert found["project/main.py"] == "code"
    assert found["project/src/util.py"] == "code"
    assert found["project/data/t.csv"] == "table"
    assert found["project/nb.ipynb/cell-a"] == "cell"
    assert found["project/broken.ipynb/problem-0"] == "problem"
    assert found["project/big.json.gz"] == "structured"
    listing = observation["project"].text or ""
    assert "main.py (9 B)" in listing
    assert "- lib.so: binary" in listing
    assert "- blob: binary" in listing
    assert "- pipe: a pipe" in listing
    assert "- .git: ignored" in listing
    assert [p.id for p in read(root)] == [p.id for p in observation]


def test_paths_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing.py", tmp_path / "pipe", Path("/dev/zero"), Path("a\0b")):
        (part,) = read(path)
        assert part.value.kind == "problem", path
    (tmp_path / "lfs.png").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (part,) = read(tmp_path / "lfs.png")
    assert part.value.mend == "Run: git lfs pull"


def test_files_above_the_limit_are_sampled_cut_or_refused_by_kind(tmp_path: Path) -> None:
    config = ReadConfig(max_bytes=4_000)
    (tmp_path / "a.csv").write_text("k,v\n" + "".join(f"{k},{k}\n" for k in range(5_000)))
    (tmp_path / "a.txt").write_text("word " * 5_000)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY" + b"\0" * 9_000)
    (table,) = read(tmp_path / "a.csv", config=config)
    assert table.value.is_sample
    (text,) = read(tmp_path / "a.txt", config=config)
    assert len(text.text or "") <= 4_000
    assert any("25,000 bytes" in note for note in text.notes)
    (array,) = read(tmp_path / "a.npy", config=config)
    assert "more than the limit" in array.value.what


def test_two_files_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    assert [i for i, *_ in kinds([tmp_path / "x" / "n.ipynb", tmp_path / "y" / "n.ipynb"])] == [
        "n.ipynb/cell-a",
        "n.ipynb~2/cell-a",
    ]


def test_cyclic_and_deep_containers_end() -> None:
    cyclic: dict[str, Any] = {"a": b"x"}
    cyclic["self"] = cyclic
    assert kinds(cyclic)
    ring: list[Any] = [b"x"]
    ring.append(ring)
    assert kinds(ring)
    deep: Any = b"x"
    for _ in range(5_000):
        deep = {"k": deep}
    assert kinds(deep)
    assert kinds("[" * 100_000)


def test_objects_whose_attributes_raise_are_told() -> None:
    class Evil:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __repr__(self) -> str:
            raise RuntimeError("repr")

    assert [kind for *_, kind in kinds({"a": Evil(), "b": b"x"})][-1] == "text"


RAW = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=40)
    | st.sampled_from(
        [NOTEBOOK, MESSAGES, Path("/nonexistent/x.csv"), np.zeros((2, 3)), np.zeros((2, 2, 3), np.uint8)]
    )
    | st.builds(
        Source, st.text(max_size=9), modality=st.sampled_from(list(Modality)), importance=st.floats(0, 3)
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "b", "a.py", "depth", "rgb"]) | st.text(max_size=4), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(raw=RAW, name=st.sampled_from(["", "n", "a.ipynb"]))
def test_anything_is_read_into_parts_with_unique_ids_that_survive_json(raw: Any, name: str) -> None:
    first, second = kinds(raw, name=name), kinds(raw, name=name)
    assert first == second


@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=120),
    head=st.sampled_from(
        [b"", b"\x89PNG\r\n\x1a\n", b"RIFF....WAVE", b"PK\x03\x04", b"\x93NUMPY", b'{"cells": [', b"GIF8"]
    ),
    suffix=st.sampled_from(
        ["", ".ipynb", ".csv", ".json", ".py", ".png", ".xlsx", ".md", ".npz", ".xml", ".yaml"]
    ),
)
def test_any_file_is_read(
    data: bytes, head: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"file{suffix}"
    path.write_bytes(head + data)
    assert kinds(path)
    assert kinds(head + data)


def test_reading_text_and_json_loads_no_heavy_library() -> None:
    script = (
        "import sys\n"
        "from sensorium.observations.read import read\n"
        "read({'a': 'text', 'b': {'c': 1}, 'd': b'bytes', 'e.py': 'x = 1'})\n"
        "print([m for m in ('pandas', 'torch', 'polars', 'PIL', 'nbformat') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
