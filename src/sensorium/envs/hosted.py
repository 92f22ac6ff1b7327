"""What a server needs of environments that a client steps by arrays."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from sensorium.core import EnvError


class MessageError(EnvError):
    """A message does not fit; nothing has happened, and the environments go on."""


@runtime_checkable
class HostedEnvs(Protocol):
    """Environments of one client. All methods are called from one thread."""

    def opened(self) -> dict[str, Any]:
        """What the client must know of them."""
        ...

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a message says.

        Raises:
            MessageError: It does not fit; nothing has happened then.
            Exception: Whatever the environments raise; they are broken then.
        """
        ...

    def close(self) -> None:
        """Close the environments."""
        ...
