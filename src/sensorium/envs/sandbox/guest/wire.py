"""The supervisor's end of the socket to the host."""

import array
import collections
import json
import socket
import struct
from typing import Any, Optional

CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
MAX_DESCRIPTORS = 64


class Wire:
    """Frames of JSON (four bytes of length, then the text), and descriptors beside them."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self._buffer = b""
        self._descriptors: collections.deque[int] = collections.deque()

    def receive(self) -> Optional[list[dict[str, Any]]]:  # noqa: UP045 - older interpreters run this too
        """Read what is there; return whole requests, or None when the host has gone."""
        space = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
        data, ancillary, _, _ = self.socket.recvmsg(1 << 16, space, CLOSE_ON_EXEC)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._descriptors.extend(numbers)
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
        payload = json.dumps(message).encode()
        data = struct.pack(">I", len(payload)) + payload
        if descriptor is None:
            self.socket.sendall(data)
            return
        rights = array.array("i", [descriptor])
        sent = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self.socket.sendall(data[sent:])
