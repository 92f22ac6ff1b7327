"""What a kernel does first of all; the source of `set_up` is sent to it, so it stands by itself."""

from collections.abc import Iterator, Sequence
from typing import Any


def set_up(modules: Sequence[str], max_chars: int) -> None:
    """Load modules, and bound what one cell prints: a loop that prints for ever ends with an error.

    Args:
        modules: Names; what cannot be imported is passed over.
        max_chars: Characters that one cell may print.
    """
    import contextlib
    import importlib
    import sys

    from IPython.core.interactiveshell import InteractiveShell

    flush_every = 1_000_000
    printed = {"cell": -1, "chars": 0, "unsent": 0}

    @contextlib.contextmanager
    def bounded(shell: Any, channel: str) -> Iterator[None]:
        """Stands in for IPython's own, which keeps a copy of everything printed."""
        stream = getattr(sys, channel)
        write = stream.write

        def bounded_write(text: str) -> int | None:
            if printed["cell"] != shell.execution_count:
                printed.update(cell=shell.execution_count, chars=0)
            room = max(0, max_chars - printed["chars"])
            printed["chars"] += len(text)
            printed["unsent"] += len(text)
            count: int | None = write(text[:room])
            if printed["unsent"] > flush_every:  # one message should not hold everything
                printed["unsent"] = 0
                stream.flush()
            if len(text) > room:
                raise RuntimeError(f"this cell printed more than {max_chars:,} characters and was stopped")
            return count

        stream.write = bounded_write
        try:
            yield
        finally:
            stream.write = write

    shells: Any = InteractiveShell
    if hasattr(shells, "_tee"):
        shells._tee = bounded
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
