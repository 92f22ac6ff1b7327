"""The supervisor's end of the socket to the host."""

import array
import collections
import json
import socket
import struct
from typing import Any, Optional

CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
MAX_DESCRIPTORS = 64


def frame(message: dict[str, Any]) -> bytes:
    """A message as it goes over the socket: four bytes of length, then JSON."""
    payload = json.dumps(message).encode()
    return struct.pack(">I", len(payload)) + payload


def receive_from(end: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """At most `size` bytes that are there to read (none: the other end has gone), and their descriptors."""
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, _, _ = end.recvmsg(size, space, CLOSE_ON_EXEC)
    numbers = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return data, numbers.tolist()


class Wire:
    """Frames, and descriptors beside them."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self._buffer = b""
        self._descriptors: collections.deque[int] = collections.deque()

    def receive(self) -> Optional[list[dict[str, Any]]]:  # noqa: UP045 - older interpreters run this too
        """Read what is there; return whole requests, or None when the host has gone."""
        data, descriptors = receive_from(self.socket, 1 << 16)
        self._descriptors.extend(descriptors)
        if not data:
            return None
        self._buffer += data
        requests = []
        while len(self._buffer) >= 4:
            end = 4 + int(struct.unpack(">I", self._buffer[:4])[0])
            if len(self._buffer) < end:
                break
            requests.append(json.loads(self._buffer[4:end].decode()))
            self._buffer = self._buffer[end:]
        return requests

    def take(self, count: int) -> list[int]:
        """The next descriptors that came beside a request."""
        return [self._descriptors.popleft() for _ in range(count)]

    def send(self, message: dict[str, Any], descriptor: Optional[int] = None) -> None:  # noqa: UP045
        """Write one frame, with a descriptor if there is one."""
        data = frame(message)
        if descriptor is None:
            self.socket.sendall(data)
            return
        rights = array.array("i", [descriptor])
        sent = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self.socket.sendall(data[sent:])
