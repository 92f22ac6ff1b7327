"""Work for a client that may go away in the meantime."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from sensorium.servers.errors import ServerError

ResultT = TypeVar("ResultT")


async def disconnected(request: Request) -> None:
    """Wait until the client of a request, whose body was read, is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def while_attended(request: Request, doing: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Do something as long as the client waits for it; cancelled when the client goes away.

    Raises:
        ServerError: The client is gone; nobody reads it.
    """
    task = asyncio.ensure_future(doing)
    gone = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    raise ServerError(499, "cancelled", "The client went away.")
