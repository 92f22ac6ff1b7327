"""Where the servers are that a server's settings name."""

import asyncio
from dataclasses import dataclass

from sensorium.servers.config import Protocol, Reference
from sensorium.servers.http import HttpClient
from sensorium.servers.runtime import Runtime
from sensorium.servers.security import read_secret

_ASK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Address:
    """A server and the key that it wants."""

    url: str
    api_key: str | None = None


def resolve(reference: Reference, runtime: Runtime) -> Address:
    """Where a server is.

    Raises:
        ConfigError: The instance is not known, or the variable with its key is not set.
    """
    key = read_secret(reference.api_key_env, "a server's key")
    if reference.url is not None:
        return Address(reference.url.rstrip("/"), key)
    assert reference.name is not None
    return Address(runtime.url_of(reference.name).rstrip("/"), key)


class ProtocolFinder:
    """Asks resources servers how they are spoken to, each once.

    Args:
        http: Connections.
    """

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self._known: dict[str, tuple[Protocol, str]] = {}
        self._lock = asyncio.Lock()

    async def find(self, address: Address, wanted: Protocol) -> tuple[Protocol, str]:
        """The protocol of a server, and the name of its environment where it tells it.

        Raises:
            TransportError: It cannot be asked.
        """
        async with self._lock:
            if address.url not in self._known:
                self._known[address.url] = await self._ask(address)
            found, env = self._known[address.url]
        return (found if wanted == "auto" else wanted), env

    async def _ask(self, address: Address) -> tuple[Protocol, str]:
        about = await self._http.get(
            f"{address.url}/sensorium", timeout_s=_ASK_TIMEOUT_S, api_key=address.api_key
        )
        if about.status == 200:
            try:
                return "sensorium", str(about.json()["environment"])
            except (ValueError, KeyError, TypeError):
                pass
        schema = await self._http.get(
            f"{address.url}/openapi.json", timeout_s=_ASK_TIMEOUT_S, api_key=address.api_key
        )
        try:
            paths = schema.json()["paths"]
        except (ValueError, KeyError, TypeError):
            return "tools", ""
        return ("gymnasium" if "/reset" in paths and "/step" in paths else "tools"), ""
