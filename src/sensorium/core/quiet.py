"""Loading models of transformers without their progress bars."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def without_progress_bars(transformers: Any) -> Iterator[None]:
    """No progress bar for a second of loading; the user's own setting comes back after it.

    Args:
        transformers: The imported package.
    """
    logging = transformers.utils.logging
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
