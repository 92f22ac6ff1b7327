"""Files of the work directory, read and written by the host while programs set traps."""

import os
from pathlib import Path

import pytest
from sandbox_probing import inside, python

from sensorium.envs.sandbox import FileEntry, Sandbox, SandboxFileError, SandboxLimits


def test_files_go_in_and_come_out() -> None:
    async def body(sandbox: Sandbox) -> tuple[bytes, bytes, bytes]:
        await sandbox.write_file("deep/er/b.txt", b"old and longer")
        await sandbox.write_file("deep/er/b.txt", b"new")
        seen = await python(sandbox, "print(open('a.txt').read(), open('/box/deep/er/b.txt').read())")
        await python(sandbox, "open('c.bin', 'wb').write(bytes(range(256)) * 4096)")
        return seen.stdout, await sandbox.read_file("/box/c.bin"), await sandbox.read_file("./deep//er/b.txt")

    seen, binary, text = inside(body, files={"a.txt": b"hello"})
    assert (seen, text) == (b"hello new\n", b"new")
    assert binary == bytes(range(256)) * 4096


def test_programs_may_change_what_the_host_wrote() -> None:
    async def body(sandbox: Sandbox) -> bytes:
        done = await sandbox.run(["sh", "-c", "echo more >> x/a.txt && rm x/b.txt && mv x y"])
        assert done.ok, done
        return await sandbox.read_file("y/a.txt")

    assert inside(body, files={"x/a.txt": b"some\n", "x/b.txt": b""}) == b"some\nmore\n"


def test_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("host")

    async def body(sandbox: Sandbox) -> None:
        await python(
            sandbox,
            f"""
            import os
            os.symlink("/etc/passwd", "passwd")
            os.symlink({str(tmp_path)!r}, "outside")
            os.symlink("/proc/self/root", "root")
            os.symlink("a.txt", "inner")
            os.mkdir("real"); os.symlink("real", "alias")
            os.mkfifo("fifo")
            """,
        )
        for path in (
            "passwd",
            "outside/secret",
            "outside/new",
            "root/etc/passwd",
            "inner",
            "alias/x",
            "fifo",
            ".",
        ):
            with pytest.raises(SandboxFileError):
                await sandbox.read_file(path)
            with pytest.raises(SandboxFileError):
                await sandbox.write_file(path, b"changed")
        for path in ("outside/secret", "root/etc/passwd", "alias/x"):
            with pytest.raises(SandboxFileError):
                await sandbox.remove(path)
        await sandbox.remove("outside")
        assert await sandbox.read_file("a.txt") == b"inside"

    inside(body, files={"a.txt": b"inside"})
    assert sorted(os.listdir(tmp_path)) == ["secret"]
    assert (tmp_path / "secret").read_text() == "host"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "/boxes/x", "/box/../etc/x", "a\0b"])
def test_paths_outside_are_refused(path: str) -> None:
    async def body(sandbox: Sandbox) -> None:
        for attempt in (sandbox.read_file(path), sandbox.write_file(path, b""), sandbox.remove(path)):
            with pytest.raises(SandboxFileError, match="outside the work directory"):
                await attempt

    inside(body)


def test_a_directory_swapped_for_a_link_while_the_host_writes() -> None:
    async def body(sandbox: Sandbox) -> None:
        swapper = await sandbox.start(
            [
                sandbox.python,
                "-c",
                "import os\nos.makedirs('/tmp/elsewhere')\nwhile True:\n"
                " os.rename('d', 'e'); os.symlink('/tmp/elsewhere', 'd')\n"
                " os.unlink('d'); os.rename('e', 'd')",
            ]
        )
        for number in range(200):
            try:
                await sandbox.write_file(f"d/{number}", b"x")
            except SandboxFileError:
                continue
        await swapper.kill()
        assert (await sandbox.run(["ls", "/tmp/elsewhere"])).stdout == b""

    inside(body, files={"d/first": b""})


def test_missing_and_too_large_files_are_told() -> None:
    async def body(sandbox: Sandbox) -> None:
        with pytest.raises(SandboxFileError, match=r"'no\.txt': No such file"):
            await sandbox.read_file("no.txt")
        with pytest.raises(SandboxFileError, match=r"has 5,000 bytes; at most 4,000"):
            await sandbox.read_file("a", max_bytes=4000)
        with pytest.raises(SandboxFileError, match="disk_mb=1"):
            await sandbox.write_file("b", b"x" * (1 << 21))
        await sandbox.write_file("c", b"x" * (1 << 19))
        with pytest.raises(SandboxFileError, match="No space left"):
            await sandbox.write_file("d", b"x" * (1 << 19))

    inside(body, SandboxLimits(disk_mb=1), files={"a": b"x" * 5000})


def test_listing_is_sorted_bounded_and_tells_kinds() -> None:
    async def body(sandbox: Sandbox) -> tuple[list[FileEntry], int, list[str]]:
        await python(sandbox, "import os; os.symlink('/', 'link'); os.mkfifo('pipe'); os.mkdir('empty')")
        all_files = await sandbox.list_files()
        await python(sandbox, "for n in range(500): open(f'{n}', 'w')")
        few = await sandbox.list_files(max_entries=50)
        return all_files, len(few), [entry.path for entry in await sandbox.list_files("d")]

    found, few, below = inside(body, files={"d/b": b"22", "d/a": b"1"})
    assert [(entry.path, entry.kind, entry.size) for entry in found] == [
        ("d", "directory", 0),
        ("d/a", "file", 1),
        ("d/b", "file", 2),
        ("empty", "directory", 0),
        ("link", "link", 0),
        ("pipe", "other", 0),
    ]
    assert few == 50
    assert below == ["d/a", "d/b"]


def test_a_very_deep_tree_neither_hangs_nor_breaks() -> None:
    async def body(sandbox: Sandbox) -> tuple[int, bytes]:
        await python(
            sandbox, "import os\nfor _ in range(2000):\n os.mkdir('d'); os.chdir('d')\nopen('x', 'w')"
        )
        entries = await sandbox.list_files()
        return len(entries), (await sandbox.run(["echo", "alive"])).stdout

    depth, after = inside(body)
    assert 50 < depth < 2000
    assert after == b"alive\n"


def test_names_that_are_no_text_are_listed() -> None:
    async def body(sandbox: Sandbox) -> list[str]:
        await python(sandbox, r"open(b'\xff\xfe', 'w')")
        return [entry.path for entry in await sandbox.list_files()]

    (name,) = inside(body)
    assert os.fsencode(name) == b"\xff\xfe"


def test_removing() -> None:
    async def body(sandbox: Sandbox) -> list[str]:
        for path in ("tree", "file", "absent", "absent/deeper"):
            await sandbox.remove(path)
        with pytest.raises(SandboxFileError):
            await sandbox.remove(".")
        return [entry.path for entry in await sandbox.list_files()]

    assert inside(body, files={"tree/a/b": b"", "tree/c": b"", "file": b"", "kept": b""}) == ["kept"]
