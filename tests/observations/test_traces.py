import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.traces import MAX_FRAMES, parse_traceback, trace_of
from sensorium.observations.values import StackTrace

PYTHON = """2024 some log line
Traceback (most recent call last):
  File "/app/run.py", line 10, in <module>
    main()
    ~~~~^^
  File "/app/lib/load.py", line 5, in load
    return json.loads(text)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
and more of it

done
"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in f
    x["k"]
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in g
    raise RuntimeError("no k")
RuntimeError: no k
"""
IPYTHON = """---------------------------------------------------------------------------
ZeroDivisionError                         Traceback (most recent call last)
Cell In[3], line 2
      1 def f(x):
----> 2     return 1 / x
      3 f(0)

File ~/lib/helper.py:12, in helper(x)
     11 def helper(x):
---> 12     return g(x)

ZeroDivisionError: division by zero"""
OLD_IPYTHON = """---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
<ipython-input-1-abc> in <module>()
----> 1 int("x")

ValueError: invalid literal for int() with base 10: 'x'"""
SYNTAX = """  File "b.py", line 2
    def f(:
          ^
SyntaxError: invalid syntax
"""
NODE = """/app/index.js:4
    throw new TypeError("x is not a function");
    ^

TypeError: x is not a function
    at inner (/app/lib/a.js:4:11)
    at Object.<anonymous> (/app/index.js:10:1)
    at async Promise.all (index 0)
    at node:internal/modules/cjs/loader:1105:14

Node.js v20.0.0
"""
JAVA = """Exception in thread "main" java.lang.RuntimeException: outer
	at com.acme.App.main(App.java:10)
Caused by: java.lang.IllegalStateException: the cause
	at com.acme.Inner.run(Inner.java:42)
	at com.acme.App.main(App.java:8)
	... 1 more
"""
RUST = """thread 'main' panicked at src/main.rs:5:10:
index out of bounds: the len is 3 but the index is 7
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:645:5
   1: demo::pick
             at ./src/main.rs:5:10
   2: demo::main
             at ./src/main.rs:9:3
"""
OLD_RUST = "thread 'main' panicked at 'boom', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1`\n"
GO = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.pick(...)
\t/app/main.go:8
main.main()
\t/app/main.go:12 +0x1d

goroutine 2 [select]:
other.thing()
\t/app/other.go:99 +0x1d
exit status 2
"""
GDB = """Program received signal SIGSEGV, Segmentation fault.
0x0000555555555131 in inner (p=0x0) at crash.c:4
#0  0x0000555555555131 in inner (p=0x0) at crash.c:4
#1  0x0000555555555150 in main () at crash.c:9
"""
ASAN = """==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60
READ of size 4 at 0x60 thread T0
    #0 0x4c3a in pick(int*) /src/a.cpp:7:12
    #1 0x4c5b in main /src/a.cpp:12:3
"""


def shape(trace: StackTrace | None) -> tuple[str, str, list[tuple[str, int | None, str | None]]]:
    assert trace is not None
    return trace.type, trace.message, [(frame.file, frame.line, frame.function) for frame in trace.frames]


@pytest.mark.parametrize(
    ("text", "kind", "message", "frames"),
    [
        (
            PYTHON,
            "JSONDecodeError",
            "Expecting value: line 1 column 1 (char 0)\nand more of it",
            [("/app/run.py", 10, "<module>"), ("/app/lib/load.py", 5, "load")],
        ),
        (CHAINED, "RuntimeError", "no k", [("a.py", 3, "g")]),
        (
            IPYTHON,
            "ZeroDivisionError",
            "division by zero",
            [("In[3]", 2, None), ("~/lib/helper.py", 12, "helper")],
        ),
        (
            OLD_IPYTHON,
            "ValueError",
            "invalid literal for int() with base 10: 'x'",
            [("<ipython-input-1-abc>", 1, "<module>")],
        ),
        (SYNTAX, "SyntaxError", "invalid syntax", [("b.py", 2, None)]),
        (
            NODE,
            "TypeError",
            "x is not a function",
            [
                ("node:internal/modules/cjs/loader", 1105, None),
                ("/app/index.js", 10, "Object.<anonymous>"),
                ("/app/lib/a.js", 4, "inner"),
            ],
        ),
        (
            JAVA,
            "IllegalStateException",
            "the cause",
            [("App.java", 8, "com.acme.App.main"), ("Inner.java", 42, "com.acme.Inner.run")],
        ),
        (
            RUST,
            "panic",
            "index out of bounds: the len is 3 but the index is 7",
            [
                ("./src/main.rs", 9, "demo::main"),
                ("./src/main.rs", 5, "demo::pick"),
                ("/rustc/abc/library/std/src/panicking.rs", 645, "rust_begin_unwind"),
            ],
        ),
        (OLD_RUST, "panic", "boom", [("src/main.rs", 2, None)]),
        (
            GO,
            "panic",
            "runtime error: index out of range [5] with length 3",
            [("/app/main.go", 12, "main.main"), ("/app/main.go", 8, "main.pick")],
        ),
        (GDB, "SIGSEGV", "Segmentation fault", [("crash.c", 9, "main"), ("crash.c", 4, "inner")]),
        (
            ASAN,
            "AddressSanitizer",
            "heap-buffer-overflow on address 0x60",
            [("/src/a.cpp", 12, "main"), ("/src/a.cpp", 7, "pick")],
        ),
    ],
)
def test_traces_are_taken_apart(text: str, kind: str, message: str, frames: list[object]) -> None:
    assert shape(parse_traceback(text)) == (kind, message, frames)


def test_lines_of_code_are_kept() -> None:
    python, ipython = parse_traceback(PYTHON), parse_traceback(IPYTHON)
    assert python is not None
    assert ipython is not None
    assert [frame.code for frame in python.frames] == ["main()", "return json.loads(text)"]
    assert [frame.code for frame in ipython.frames] == ["return 1 / x", "return g(x)"]


def test_colours_do_not_hide_a_trace() -> None:
    coloured = PYTHON.replace("Traceback", "\x1b[31mTraceback").replace("main()", "\x1b[1mmain()\x1b[0m")
    assert parse_traceback(coloured) == parse_traceback(PYTHON)


def test_text_without_a_trace_has_none() -> None:
    for text in ("", "all is well", "Error: no", "#0 is the first", "goroutine", "panicked at nothing"):
        assert parse_traceback(text) is None


def test_a_live_exception() -> None:
    def fail() -> None:
        raise KeyError("k")

    try:
        fail()
    except KeyError as error:
        trace = trace_of(error)
    assert trace.type == "KeyError"
    assert trace.message == "'k'"
    assert trace.frames[-1].function == "fail"
    assert trace.frames[-1].code == 'raise KeyError("k")'


def test_endless_recursion_keeps_both_ends() -> None:
    frames = "".join(f'  File "a.py", line {n}, in f{n}\n    g()\n' for n in range(1, 1_001))
    trace = parse_traceback(f"Traceback (most recent call last):\n{frames}RecursionError: too deep\n")
    assert trace is not None
    assert len(trace.frames) == MAX_FRAMES
    assert trace.frames[0].line == 1
    assert trace.frames[-1].line == 1_000


PIECES = st.sampled_from(
    [line + "\n" for text in (PYTHON, IPYTHON, NODE, JAVA, RUST, GO, GDB, ASAN) for line in text.split("\n")]
)


@given(st.lists(PIECES, max_size=30))
def test_shuffled_traces_never_raise(lines: list[str]) -> None:
    trace = parse_traceback("".join(lines))
    assert trace is None or StackTrace.model_validate_json(trace.model_dump_json()) == trace


@pytest.mark.parametrize("unit", ["    at a (", '  File "', "#0  0x1 in a ", "a.", "    at a.b$", "::", "<a"])
def test_of_long_lines_only_the_beginning_is_read(unit: str) -> None:
    """A pattern that goes back and forth would take minutes on these."""
    for head in ("Traceback (most recent call last):\n", "x\n    at a (b.java:1)\n", "\ngoroutine 1\n#0 \n"):
        assert parse_traceback(head + unit * 30_000) == parse_traceback(head + unit * 1_000)
    found = parse_traceback("x\n    at a (b.java:1)\n" + unit * 30_000)
    assert found is not None
    assert (found.type, found.frames[0].file, found.frames[0].line) == ("x", "b.java", 1)
