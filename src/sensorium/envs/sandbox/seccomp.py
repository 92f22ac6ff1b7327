"""The system-call filter of the sandbox: a seccomp program for bubblewrap, assembled by hand.

Namespaces do not cover everything: `AF_VSOCK` reaches the hypervisor from any network namespace; memory in
`memfd`s, System V segments and message queues is counted to no process; a nested user namespace could mount
file systems without a size. These, tracing and whatever administers a kernel are refused. Everything else is
allowed: the aim is to close holes, not to list what programs may need.
"""

import errno
import platform
import struct

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16
_NEW_NAMESPACES = 0x7E020000
"""Flags of `clone` that make namespaces."""
_SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_X32_BIT = 0x40000000

_REFUSED = {
    "x86_64": (
        *(29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240),  # System V memory, semaphores, queues; mq_open
        *(101, 310, 311, 312, 438),  # ptrace, process_vm_*, kcmp, pidfd_getfd
        *(248, 249, 250),  # keys
        *(155, 161, 165, 166, 272, 308, 428, 429, 430, 431, 432, 433, 442),  # mounts and namespaces
        *(103, 163, 167, 168, 169, 175, 176, 179, 212),  # administration
        *(246, 298, 303, 304, 313, 320, 321, 323),
        *(135, 425, 426, 427),  # personality, io_uring
    ),
    "aarch64": (
        *(180, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196),
        *(117, 270, 271, 272, 438),
        *(217, 218, 219),
        *(41, 51, 40, 39, 97, 268, 428, 429, 430, 431, 432, 433, 442),
        *(116, 89, 224, 225, 142, 105, 106, 60, 18, 104, 241, 264, 265, 273, 294, 280, 282),
        *(92, 425, 426, 427),
    ),
}
_UNKNOWN = {"x86_64": (319, 435, 447), "aarch64": (279, 435, 447)}
"""memfd_create, clone3, memfd_secret: told "no such call", so that libraries fall back to older ones."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}


def is_supported(machine: str = "") -> bool:
    """Whether there is a filter for this kind of processor."""
    return (machine or platform.machine()) in _REFUSED


def build_filter(machine: str = "") -> bytes:
    """Return the program (`struct sock_filter[]`) that `bwrap --seccomp` takes.

    Args:
        machine: `x86_64` or `aarch64`; empty: this machine's.

    Raises:
        KeyError: No filter exists for it (see `is_supported`).
    """
    machine = machine or platform.machine()
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQ, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_GE, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for number in _REFUSED[machine]:
        program += [(_JUMP_EQ, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    for number in _UNKNOWN[machine]:
        program += [(_JUMP_EQ, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    program += [
        (_JUMP_EQ, 0, 4, _CLONE[machine]),
        (_LOAD, 0, 0, _ARGUMENT_0),
        (_JUMP_SET, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    families = len(_SOCKET_FAMILIES)
    program += [(_JUMP_EQ, 0, families + 2, _SOCKET[machine]), (_LOAD, 0, 0, _ARGUMENT_0)]
    for place, family in enumerate(_SOCKET_FAMILIES):
        program.append((_JUMP_EQ, families - place, 0, family))
    program += [(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
