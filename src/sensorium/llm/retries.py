"""Asking an endpoint again, after failures that may pass and within a time limit."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from sensorium.core import ModelError

_LONGEST_PAUSE_S = 30.0
ResultT = TypeVar("ResultT")


class MayPassError(Exception):
    """A failure after which the request may be sent again.

    Args:
        reason: What failed.
        wait_s: Seconds that the server asks to wait, if it does.
    """

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


async def ask_repeatedly(
    send: Callable[[], Awaitable[ResultT]],
    address: str,
    *,
    timeout_s: float,
    max_retries: int,
    backoff_s: float = 0.5,
    slot: AbstractAsyncContextManager[Any] | None = None,
) -> ResultT:
    """Send until there is an answer, tries are used up, or time is up.

    Pauses are those that the server asks for, else exponential with random jitter.

    Args:
        send: Sends once; raises `MayPassError` when that may be repeated.
        address: Of the endpoint, for messages.
        timeout_s: Of everything together, the wait for `slot` included.
        max_retries: Repetitions.
        backoff_s: First pause; each further one is twice as long, up to 30 s.
        slot: Held meanwhile.

    Raises:
        ModelError: There is no answer; the message says what failed last.
    """
    deadline = time.monotonic() + timeout_s
    failures: list[str] = []
    try:
        async with asyncio.timeout(timeout_s), slot or nullcontext():
            for attempt in range(max_retries + 1):
                try:
                    return await send()
                except MayPassError as failure:
                    failures.append(failure.reason)
                    pause = failure.wait_s
                    if pause is None:
                        jitter = random.uniform(0.5, 1.0)  # so that many clients do not come back at once
                        pause = jitter * min(_LONGEST_PAUSE_S, backoff_s * 2.0**attempt)
                    if attempt == max_retries:
                        break
                    if time.monotonic() + pause >= deadline:
                        raise ModelError(
                            f"{address} failed: {failure.reason}. The next try would be in {pause:.1f} s, "
                            f"after the time limit of {timeout_s:g} s."
                        ) from failure.__cause__
                await asyncio.sleep(pause)
    except TimeoutError as error:
        last = f" Before that: {failures[-1]}." if failures else ""
        raise ModelError(
            f"{address} did not answer within {timeout_s:g} s.{last} "
            "Is the server up, and is timeout_s long enough for this model?"
        ) from error
    tries = f"{len(failures)} tries" if len(failures) > 1 else "one try"
    raise ModelError(f"{address} failed after {tries}: {failures[-1]}.")


def retry_after_s(value: str | None) -> float | None:
    """Seconds that a ``Retry-After`` header asks to wait (RFC 9110, 10.2.3): a number, or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
