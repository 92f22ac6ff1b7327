import gzip
import os
from pathlib import Path

from sensorium.observations.config import ReadConfig
from sensorium.observations.files import list_files, read_content, suffix_of
from sensorium.observations.read import read

SMALL = ReadConfig(max_bytes=1_000, max_files=5)


def test_directories_are_listed_in_order_without_caches_and_links_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("b.txt", "a.txt", "src/z.py", ".git/config", "src/__pycache__/z.pyc", "x.egg-info/a"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (tmp_path / "secret").write_text("s")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    (root / "inside").symlink_to(root / "a.txt")
    os.mkfifo(root / "pipe")
    listing = list_files(root, ReadConfig())
    assert [file.name for file in listing.files] == ["a.txt", "b.txt", "inside", "src/z.py"]
    why = dict(listing.passed_over)
    assert why[".git"] == "ignored"
    assert why["src/__pycache__"] == "ignored"
    assert why["out"] == "a link out of the directory"
    assert why["loop"] == "a link to a directory that is read already"
    assert why["pipe"] == "a pipe"
    assert "self" in why


def test_the_number_of_files_is_limited_and_the_rest_named(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text("x")
    listing = list_files(tmp_path, SMALL)
    assert len(listing.files) == 5
    assert listing.beyond == [f"{n}.txt" for n in (5, 6, 7)]
    assert listing.passed_over == []


def test_a_deep_directory_ends(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(80):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("x")
    assert any(why == "nested too deeply" for _, why in list_files(tmp_path, ReadConfig()).passed_over)


def test_the_ending_of_a_packed_file_is_that_of_what_is_packed() -> None:
    assert [suffix_of(name) for name in ("a.YAML.gz", "C:\\x\\b.py", "d/.bashrc", "e", "f.gz")] == [
        "yaml",
        "py",
        "",
        "",
        "",
    ]


def test_pipes_and_devices_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path / "pipe", "a pipe"),
        (Path("/dev/zero"), "a device"),
        (tmp_path, "a directory"),
    ):
        content = read_content(path, SMALL)
        assert content.problem is not None
        assert kind in content.problem.what


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", Path("a\0b"), tmp_path / ("x" * 500)):
        content = read_content(path, SMALL)
        assert content.data == b""
        assert content.problem is not None
    missing = read_content(tmp_path / "missing", SMALL).problem
    assert missing is not None
    assert missing.mend == "Check the path."


def test_long_files_are_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 5_000)
    content = read_content(path, SMALL)
    assert (len(content.data), content.size) == (1_000, 5_000)
    assert "first 1,000 of 5,000 bytes" in content.notes[0]
    path.write_bytes(b"x" * 1_000)
    assert read_content(path, SMALL).notes == ()


def test_packed_files_are_unpacked_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_content(path, SMALL).data == b"a,b\n1,2\n"
    path.write_bytes(gzip.compress(b"0" * 500_000))
    content = read_content(path, SMALL)
    assert len(content.data) == 1_000
    assert any("only the first 1,000" in note for note in content.notes)
    path.write_bytes(gzip.compress(os.urandom(500))[:300])
    assert any("cut off" in note for note in read_content(path, SMALL).notes)
    path.write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 100)
    damaged = read_content(path, SMALL).problem
    assert damaged is not None
    assert damaged.what.startswith("the gzip file is damaged")


def test_files_behind_the_limit_are_counted_in_one_line(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02d}.txt").write_text("x")
    (tmp_path / "z.pdf").write_bytes(b"%PDF-1.4")
    listing = read(tmp_path, config=ReadConfig(max_files=50)).parts[0].text
    assert listing is not None
    assert listing.split("\n")[50:] == ["not read:", "- and 11 more: there are more than 50 files"]


def test_a_name_like_a_reason_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "more than 5 files.pdf").write_bytes(b"%PDF-1.4")
    listing = read(tmp_path).parts[0].text
    assert listing == "a.txt (1 B)\nnot read:\n- more than 5 files.pdf: a PDF document"


def test_of_very_many_files_the_listing_names_the_directories(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"d{number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"d{number % 3}" / f"{number}.txt").write_text("x")
    (tmp_path / "top.txt").write_text("x")
    listing = read(tmp_path, name="many").parts[0].text
    assert listing is not None
    assert listing.split("\n") == [
        "251 files (251 B) in 4 directories:",
        "./ (1 file, 1 B)",
        "d0/ (84 files, 84 B)",
        "d1/ (83 files, 83 B)",
        "d2/ (83 files, 83 B)",
    ]
