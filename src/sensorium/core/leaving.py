"""The end of a process that runs foreign code in threads, some of which may never return."""

import logging
import os
import sys
import threading

_log = logging.getLogger(__name__)


def leave_within(seconds: float, status: int) -> None:
    """End this process after so long, should it not have ended by itself: Python waits for threads for ever.

    Args:
        seconds: To wait for threads.
        status: Exit status then.
    """

    def leave() -> None:
        left = [one.name for one in threading.enumerate() if one is not threading.current_thread()]
        stuck = sorted(name for name in left if name != threading.main_thread().name)
        _log.warning("left without %d threads that do not end: %s", len(stuck), ", ".join(stuck[:5]))
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
