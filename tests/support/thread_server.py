"""An aiohttp server in a thread of its own, for tests of blocking code and of other processes."""

import asyncio
import contextlib
import threading

from aiohttp import web


class Serving:
    """An aiohttp server in a thread of its own, on a free port."""

    def __init__(self, *routes):
        self.app = web.Application(client_max_size=1 << 26)
        for method, path, handler in routes:
            self.app.router.add_route(method, path, handler)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def _start(self):
        self._runner = web.AppRunner(self.app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, shutdown_timeout=0.1)
        await site.start()
        return site._server.sockets[0].getsockname()[1]

    async def _stop(self):
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0.05)  # connections close some turns of the loop later

    def stop(self):
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    def __exit__(self, *error):
        with contextlib.suppress(RuntimeError):
            self.stop()
