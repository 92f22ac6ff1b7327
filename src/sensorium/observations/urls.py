"""Loading a picture behind an address without becoming a tool against the own network.

A host's name is resolved once, every address found is checked, and the connection goes to a checked one, so
that a name server cannot answer differently the second time. Every redirect is checked like a first request.
Proxy settings of the environment are not followed: a proxy would resolve the name again.
"""

import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

from sensorium.core import ObservationError
from sensorium.observations.config import ReadConfig

_CONTENT_TYPES = ("image/", "application/octet-stream")
"""Beginnings of content types that are accepted."""
_CHUNK_BYTES = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class UrlError(ObservationError):
    """An address could not be loaded: no connection, no success, no picture."""


class RefusedUrlError(UrlError):
    """An address must not be loaded: not allowed by config, not http(s), or inside a private network."""


class UrlLimitError(UrlError):
    """The answer took too long, is too large, or leads through too many redirects."""


class _Target(NamedTuple):
    is_secure: bool
    host: str
    port: int
    path: str
    header: str
    """Value of the Host header."""


def is_public(address: Address) -> bool:
    """Whether an IP address belongs to the public internet.

    Private, loopback, link-local, shared, multicast, reserved and unspecified addresses do not; neither do
    IPv6 forms that carry such an IPv4 address (mapped, 6to4, NAT64) nor Teredo.
    """
    if isinstance(address, ipaddress.IPv6Address):
        carried = address.ipv4_mapped or address.sixtofour
        if carried is None and address in _NAT64:
            carried = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if carried is not None:
            return is_public(carried)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def fetch(
    url: str,
    config: ReadConfig,
    *,
    _is_allowed: Callable[[Address], bool] = is_public,
) -> bytes:
    """Load what an address answers with.

    Args:
        url: ``http`` or ``https``, without user name and password.
        config: `allow_urls` must be set; `url_timeout_s` limits the whole time with all redirects and the
            look-up of names, `url_max_bytes` the answer, `url_max_redirects` the redirects.

    Returns:
        The body of the answer.

    Raises:
        RefusedUrlError: It must not be loaded.
        UrlLimitError: It takes too long, is too large or redirects too often.
        UrlError: It cannot be reached, does not answer with status 200, or not with a picture.
    """
    if not config.allow_urls:
        raise RefusedUrlError(f"{_shown(url)} is not loaded: set reading.allow_urls to allow that.")
    deadline = time.monotonic() + config.url_timeout_s
    for _ in range(config.url_max_redirects + 1):
        target = _parse(url)
        with _connect(target, url, deadline, _is_allowed) as connection:
            response = _ask(connection, target, url, deadline)
            if response.status not in _REDIRECTS:
                return _read(response, url, config.url_max_bytes)
            location = response.getheader("Location")
        if not location:
            raise UrlError(f"{_shown(url)} redirects (status {response.status}) without saying where to.")
        url = urllib.parse.urljoin(url, location)
    raise UrlLimitError(
        f"{_shown(url)} is behind more than {config.url_max_redirects} redirects (reading.url_max_redirects)."
    )


class _TimedStream(io.RawIOBase):
    """Bytes of a socket until a deadline: a server that sends one byte a second cannot stretch it."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._connection.settimeout(_remaining(self._deadline))
        return self._connection.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What ``http.client.HTTPResponse`` asks of a socket."""
        return io.BufferedReader(self)


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError("the time is up")
    return left


def _parse(url: str) -> _Target:
    if any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise RefusedUrlError(f"{_shown(url)} holds spaces or control characters.")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        host = host if ":" in host else host.encode("idna").decode("ascii")
    except ValueError as error:  # includes UnicodeError
        raise RefusedUrlError(f"{_shown(url)} is no valid address: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise RefusedUrlError(f"{_shown(url)} is not loaded: only http and https are.")
    if not host:
        raise RefusedUrlError(f"{_shown(url)} names no host.")
    if parts.username is not None or parts.password is not None:
        raise RefusedUrlError("An address with user name or password is not loaded.")
    is_secure = parts.scheme == "https"
    path = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if parts.query:
        path += "?" + urllib.parse.quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    name = f"[{host}]" if ":" in host else host
    header = name if port is None else f"{name}:{port}"
    return _Target(is_secure, host, port or (443 if is_secure else 80), path, header)


def _resolve(target: _Target, url: str, deadline: float) -> list[Address]:
    """IP addresses of a host; the look-up has no time limit of its own, so it runs in a thread."""
    found: list[Address] = []
    failure: list[OSError] = []

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
            texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries)
            found.extend(ipaddress.ip_address(text) for text in texts)
        except (OSError, UnicodeError) as error:
            failure.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=look_up, daemon=True, name="look-up of a host")
    thread.start()
    thread.join(max(deadline - time.monotonic(), 0.0))
    if thread.is_alive():
        raise UrlLimitError(f"The host of {_shown(url)} was not found in time (reading.url_timeout_s).")
    if failure or not found:
        raise UrlError(f"The host of {_shown(url)} is not known: {failure[0] if failure else 'no address'}.")
    return found


def _connect(
    target: _Target, url: str, deadline: float, is_allowed: Callable[[Address], bool]
) -> socket.socket:
    """A connection to a checked address of the host.

    A host with one forbidden address is refused altogether: its owner chose to point at a private network.
    """
    addresses = _resolve(target, url, deadline)
    for address in addresses:
        if not is_allowed(address):
            raise RefusedUrlError(
                f"{_shown(url)} is not loaded: its host is at {address}, which is not on the public internet."
            )
    failure: OSError | None = None
    for address in addresses:
        try:
            connection = socket.create_connection((str(address), target.port), _remaining(deadline))
        except OSError as error:
            failure = error
            continue
        if not target.is_secure:
            return connection
        try:
            connection.settimeout(_remaining(deadline))
            return ssl.create_default_context().wrap_socket(connection, server_hostname=target.host)
        except OSError as error:  # includes certificate errors
            connection.close()
            failure = error
    if isinstance(failure, TimeoutError):
        raise UrlLimitError(f"{_shown(url)} did not answer in time (reading.url_timeout_s).") from failure
    raise UrlError(f"{_shown(url)} cannot be reached: {failure}") from failure


def _ask(connection: socket.socket, target: _Target, url: str, deadline: float) -> http.client.HTTPResponse:
    request = (
        f"GET {target.path} HTTP/1.1\r\nHost: {target.header}\r\nUser-Agent: sensorium\r\n"
        "Accept: image/*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    )
    try:
        connection.settimeout(_remaining(deadline))
        connection.sendall(request.encode("ascii"))
        response = http.client.HTTPResponse(_TimedStream(connection, deadline), method="GET")  # type: ignore[arg-type]
        response.begin()
    except TimeoutError as error:
        raise UrlLimitError(f"{_shown(url)} did not answer in time (reading.url_timeout_s).") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UrlError(f"{_shown(url)} gave no valid answer: {type(error).__name__}: {error}") from error
    return response


def _read(response: http.client.HTTPResponse, url: str, max_bytes: int) -> bytes:
    if response.status != 200:
        raise UrlError(f"{_shown(url)} answered with status {response.status} {response.reason}.")
    kind = (response.getheader("Content-Type") or "application/octet-stream").split(";")[0].strip().lower()
    if not kind.startswith(_CONTENT_TYPES):
        raise UrlError(f"{_shown(url)} answered with {kind}; expected {' or '.join(_CONTENT_TYPES)}.")
    if (response.getheader("Content-Encoding") or "identity").strip().lower() != "identity":
        raise UrlError(f"{_shown(url)} answered in a compressed form that was not asked for.")
    too_large = UrlLimitError(
        f"{_shown(url)} is too large; at most {max_bytes:,} bytes are loaded (reading.url_max_bytes)."
    )
    if response.length is not None and response.length > max_bytes:
        raise too_large
    body = bytearray()
    try:
        while chunk := response.read(min(_CHUNK_BYTES, max_bytes + 1 - len(body))):
            body += chunk
            if len(body) > max_bytes:
                raise too_large
    except TimeoutError as error:
        raise UrlLimitError(f"{_shown(url)} was not loaded in time (reading.url_timeout_s).") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UrlError(f"{_shown(url)} broke off: {type(error).__name__}: {error}") from error
    if response.length:
        raise UrlError(f"{_shown(url)} broke off: {response.length:,} of the bytes it promised are missing.")
    return bytes(body)


def _shown(url: str) -> str:
    """An address for a message: printable, short, without user name and password."""
    text = "".join(c if c.isprintable() else "?" for c in url)
    head, at, tail = text.partition("@")
    if at and "//" in head and "/" not in head.partition("//")[2]:
        text = head.partition("//")[0] + "//" + tail
    return repr(text if len(text) <= 120 else text[:117] + "...")
