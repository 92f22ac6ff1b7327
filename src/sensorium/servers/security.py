"""Who may call: keys, secrets, and the addresses under which a server may listen."""

import hashlib
import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Collection
from dataclasses import dataclass, field

from sensorium.core import ConfigError
from sensorium.servers.config import ServerConfig

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})
_SIGNATURE_CHARS = 32


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call one server."""

    api_key: str | None = field(default=None, repr=False)
    hosts: frozenset[str] | None = None
    """Names that the Host header may have; None for any."""
    origins: frozenset[str] = frozenset()

    def admits_key(self, *sent: str | None) -> bool:
        """Whether one of the keys that were sent is right, in time that tells nothing of how wrong it is."""
        if self.api_key is None:
            return True
        wanted = self.api_key.encode()
        keys = [one.encode("utf-8", "replace") for one in sent if one is not None]
        return sum(hmac.compare_digest(one, wanted) for one in keys) > 0

    def admits_host(self, header: str) -> bool:
        """Whether a client may address the server so; pages that rebind a name to 127.0.0.1 may not."""
        return self.hosts is None or host_name(header) in self.hosts


def host_name(header: str) -> str:
    """The name in a Host header, without port, in lower case."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.rpartition(":")[0] if ":" in name and name.rpartition(":")[2].isdigit() else name


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.strip("[]").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)


def build_access(config: ServerConfig, name: str) -> Access:
    """Who may call the server that a config describes.

    Raises:
        ConfigError: Others could reach it, and there is no key.
    """
    key = os.environ.get(config.api_key_env) or None
    if is_loopback(config.host):
        known: Collection[str] = {
            *_LOOPBACK_NAMES,
            config.host.lower(),
            *map(str.lower, config.allowed_hosts),
        }
        return Access(key, frozenset(known), frozenset(config.allowed_origins))
    if key is None:
        raise ConfigError(
            f"{name} would listen on {config.host}, where other machines reach it, and has no key. Set the "
            f"environment variable {config.api_key_env} to a secret that clients send, or use 127.0.0.1."
        )
    return Access(key, None, frozenset(config.allowed_origins))


class Signer:
    """Makes values that clients carry and cannot forge.

    Args:
        secret: Shared by the processes of a server; made anew at each start.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self.secret = secret or secrets.token_bytes(32)

    def digest(self, text: str) -> str:
        """A keyed hash: 32 hex digits that nobody else can make."""
        return hmac.new(self.secret, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[
            :_SIGNATURE_CHARS
        ]

    def sign(self, text: str) -> str:
        """A text with its signature."""
        return f"{text}.{self.digest(text)}"

    def read(self, signed: str | None) -> str | None:
        """The text of a signed value; None when it is not one of ours."""
        text, dot, digest = (signed or "").rpartition(".")
        sent, wanted = digest.encode("utf-8", "replace"), self.digest(text).encode()
        if not dot or not hmac.compare_digest(sent, wanted):
            return None
        return text


def read_secret(variable: str | None, what: str) -> str | None:
    """What an environment variable holds; None when none is named.

    Raises:
        ConfigError: It is named and not set.
    """
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"The environment variable {variable}, which holds {what}, is not set.")
    return value
