import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from places import CONFIG, LIMITS, printed, run_cells, run_in_kernel, shown

QUIET = {
    "sum": "x = 20\nx + 1",
    "last": "print(x)\nx * 2",
    "error": "def f():\n    return x / 0\nf()",
    "syntax": "for for",
    "unicode": "print('ä €', '🙂')\n'\\ud800'",
    "input": "input('name? ')",
    "stdin": "import sys\nprint(repr(sys.stdin.read()))",
    "await": "import asyncio\nawait asyncio.sleep(0.01)\n'waited'",
    "magic": "%timeit -n 2 -r 1 1 + 1",
    "shell": "!ls\n!echo $((6 * 7))",
    "bash": "%%bash\necho from bash",
    "html": "from IPython.display import HTML, Markdown, display\ndisplay(HTML('<b>bold</b>'), "
    "Markdown('# big'))",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()",
    "warning": "import warnings\nwarnings.warn('careful')",
    "big": "print('z' * 3_000_000)",
    "endless": "while True: print('tick ' * 200)",
    "after": "x",
    "many": "from IPython.display import display\nfor n in range(200): display(n)",
    "files": "open('made.txt', 'w').write('made')\nopen('a.csv').read()",
    "names": "[name for name in dir() if not name.startswith('_')][:12]",
    "host": f"open({__file__!r}).read()",
    "passwd": "import os\nsorted(os.listdir('/home')) if os.path.exists('/home') else []",
    "network": "import socket\nsocket.create_connection(('1.1.1.1', 53), timeout=3)",
    "package": "import sensorium",
    "fork": "import os\nif os.fork() == 0: os._exit(0)\n'forked'",
    "still": "x",
}


@pytest.fixture(scope="module")
def ran():
    executions = run_cells(*QUIET.values(), files={"a.csv": b"a,b\n1,2\n"})
    return dict(zip(QUIET, executions, strict=True))


def test_variables_last_from_cell_to_cell(ran):
    assert shown(ran["sum"]) == ["21"]
    assert printed(ran["last"]) == "20\n"
    assert shown(ran["last"]) == ["40"]
    assert ran["last"].count == ran["sum"].count + 1
    assert shown(ran["still"]) == ["20"]


def test_errors_have_a_traceback_and_leave_the_kernel_alive(ran):
    [output] = ran["error"].collector.outputs()
    assert (output["ename"], output["evalue"]) == ("ZeroDivisionError", "division by zero")
    text = "\n".join(output["traceback"])
    assert "return x / 0" in text
    assert "\x1b" not in text
    assert ran["error"].status == "error"
    assert ran["syntax"].collector.error[0] == "SyntaxError"
    assert not ran["error"].kernel_is_new


def test_unicode_arrives_whole(ran):
    assert printed(ran["unicode"]) == "ä € 🙂\n"


def test_nobody_is_asked(ran):
    name, message = ran["input"].collector.error
    assert name == "StdinNotImplementedError"
    assert "nobody is there" in message
    assert ran["input"].wall_s < CONFIG.cell_timeout_s
    assert printed(ran["stdin"]) == "''\n"


def test_await_magics_and_shell_work(ran):
    assert shown(ran["await"]) == ["'waited'"]
    assert "per loop" in printed(ran["magic"])
    assert "a.csv" in printed(ran["shell"])
    assert "42" in printed(ran["shell"])
    assert printed(ran["bash"]) == "from bash\n"


def test_rich_displays_keep_their_forms(ran):
    html, markdown = (o["data"] for o in ran["html"].collector.outputs())
    assert html["text/html"] == "<b>bold</b>"
    assert markdown["text/markdown"] == "# big"


def test_figures_are_png(ran):
    [figure] = [o for o in ran["figure"].collector.outputs() if "image/png" in o.get("data", {})]
    assert base64.b64decode(figure["data"]["image/png"]).startswith(b"\x89PNG")


def test_standard_error_is_apart(ran):
    [output] = ran["warning"].collector.outputs()
    assert output["name"] == "stderr"
    assert "careful" in output["text"]


def test_large_outputs_are_bounded(ran):
    text = printed(ran["big"])
    assert len(text) < CONFIG.max_stream_chars + 100
    assert "characters left out" in text
    assert ran["big"].status == "ok"
    assert "150 further outputs" in ran["many"].collector.outputs()[-1]["text"]


def test_printing_for_ever_ends_with_an_error_and_keeps_variables(ran):
    assert ran["endless"].collector.error[0] == "RuntimeError"
    assert "printed more than" in ran["endless"].collector.error[1]
    assert printed(ran["endless"]).startswith("tick tick")
    assert shown(ran["after"]) == ["20"]


def test_files_of_the_work_directory_can_be_used(ran):
    assert shown(ran["files"]) == ["'a,b\\n1,2\\n'"]


def test_the_namespace_is_clean(ran):
    assert not {"set_up", "Any", "Iterator", "Sequence", "numpy"} & set(shown(ran["names"])[0].split("'"))


def test_hosts_files_network_and_this_package_are_out_of_reach(ran):
    assert ran["host"].collector.error[0] in ("FileNotFoundError", "PermissionError")
    assert shown(ran["passwd"]) == ["[]"]
    assert ran["network"].collector.error[0] in ("OSError", "PermissionError", "TimeoutError")
    assert ran["package"].collector.error[0] == "ModuleNotFoundError"


def test_a_child_process_does_no_harm(ran):
    assert shown(ran["fork"]) == ["'forked'"]


def test_a_slow_cell_is_interrupted_and_variables_are_kept():
    slow, after = run_cells(
        "x = 3\nimport time\nprint('begun', flush=True)\ntime.sleep(60)", "x", timeout_s=3.0
    )
    assert slow.status == "interrupted"
    assert "3 s" in slow.note
    assert printed(slow) == "begun\n"
    assert slow.collector.error[0] == "KeyboardInterrupt"
    assert shown(after) == ["3"]


@pytest.mark.slow
def test_a_cell_that_ignores_interrupts_costs_the_kernel():
    deaf = (
        "x = 3\nimport signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    )
    config = CONFIG.updated({"interrupt_grace_s": 1.0})
    stubborn, after = run_cells(deaf, "x", timeout_s=5.0, config=config)
    assert stubborn.status == "restarted"
    assert "variables are gone" in stubborn.note
    assert stubborn.kernel_is_new
    assert after.collector.error[0] == "NameError"
    assert after.count == 1


def test_the_death_of_a_kernel_is_an_output_of_its_cell():
    async def use(kernel, sandbox):
        await kernel.execute("open('kept.txt', 'w').write('kept')")
        runs = [
            await kernel.execute("import os\nos._exit(7)"),
            await kernel.execute("open('kept.txt').read()"),
        ]
        runs.append(await kernel.execute("print('bye')\nexit()"))
        runs.append(await kernel.execute("import os, threading\nthreading.Timer(0.3, os._exit, [1]).start()"))
        await kernel._process.wait()
        runs.append(await kernel.execute("1 + 1"))
        return runs

    died, after, left, _, later = run_in_kernel(use)
    assert died.status == "died"
    assert died.collector.error[0] == "KernelDied"
    assert "status 7" in died.note
    assert shown(after) == ["'kept'"]
    assert left.status == "died"
    assert printed(left) == "bye\n"
    assert shown(later) == ["2"]
    assert "had ended since" in later.note


def test_a_cell_that_eats_memory_costs_the_kernel_at_most():
    hog = "kept = []\nwhile True: kept.append(bytearray(20_000_000))"
    one, two, after = run_cells("bytearray(3_000_000_000)", hog, "1 + 1")
    assert one.collector.failed
    assert two.collector.failed
    assert two.collector.error[0] in ("MemoryError", "KernelDied")
    assert shown(after) == ["2"]


@pytest.mark.slow
def test_a_fork_bomb_is_survived():
    bomb, after = run_cells(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "1 + 1", timeout_s=4.0
    )
    assert bomb.collector.failed
    assert shown(after) == ["2"]


def test_messages_made_up_by_a_cell_do_no_harm():
    forged = (
        "k = get_ipython().kernel\n"
        "for kind, content in (('stream', {'text': 3}), ('status', None), ('display_data', {'data': 5}),\n"
        "                      ('error', {'traceback': 1})):\n"
        "    k.session.send(k.iopub_socket, kind, content, parent=k.get_parent())\n"
        "k.session.send(k.iopub_socket, 'stream', {'name': 'stdout', 'text': 'real'}, "
        "parent=k.get_parent())\n"
        "k.iopub_socket.send_multipart([b'x', b'<IDS|MSG>', b'y', b'{', b'}', b'{}', b'{}'])\n"
    )
    run, after = run_cells(forged, "1 + 1")
    assert printed(run) == "real"
    assert shown(after) == ["2"]


@pytest.mark.slow
def test_two_kernels_know_nothing_of_each_other():
    async def use(kernel, sandbox):
        await kernel.execute("secret = 1\nopen('secret.txt', 'w').write('x')")

        async def other(second, box):
            names = await second.execute("'secret' in dir()")
            files = await second.execute(
                "import os\n(os.listdir('.'), len([p for p in os.listdir('/proc') if p.isdigit()]))"
            )
            return names, files

        from sensorium.envs.notebook.kernel import Kernel
        from sensorium.envs.sandbox.base import Sandbox

        async with Sandbox.create(LIMITS) as box:
            second = Kernel(box, CONFIG)
            await second.start()
            try:
                return await other(second, box)
            finally:
                await second.close()

    names, files = run_in_kernel(use)
    assert shown(names) == ["False"]
    assert shown(files)[0].startswith("([],")


_OWNER = """
import asyncio, sys
sys.path.insert(0, {here!r})
from places import run_in_kernel

async def use(kernel, sandbox):
    await kernel.execute("import subprocess; subprocess.Popen(['sleep', {mark!r}])")
    print("ready", flush=True)
    await asyncio.sleep(600)

run_in_kernel(use)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are listed in /proc")
def test_nothing_outlives_an_owner_that_is_killed():
    mark = f"{600 + os.getpid() / 1e7:.7f}"
    code = _OWNER.format(here=str(Path(__file__).parent), mark=mark)
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout.readline() == "ready\n"
        assert _processes(mark)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        deadline = time.monotonic() + 20
        while _processes(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not _processes(mark)
    finally:
        owner.kill()
        owner.stdout.close()
        owner.wait()


def _processes(mark):
    """Command lines in which the mark stands, beside the owner's own."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"sleep"] and mark.encode() in words:
            found.append(place)
    return found
