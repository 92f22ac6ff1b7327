"""Arrays that several processes see, in memory without a name: nothing can be left behind.

A file descriptor is handed to each worker, and the kernel frees the memory with the last process that holds
it, even when all of them are killed. (Named shared memory would survive that, and Python's resource tracker
would free it when the first worker ends.)
"""

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.envs.embodied.doom.settings import Layout

Arrays = Mapping[str, NDArray[Any]]
"""Named arrays; see `GameSettings.layout`."""

_ALIGNMENT = 64  # cache lines, so that workers do not slow each other down


def local_arrays(layout: Layout) -> dict[str, NDArray[Any]]:
    """Zeroed arrays for this process alone."""
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}


def create_shared(layout: Layout) -> tuple[int, dict[str, NDArray[Any]]]:
    """Zeroed arrays in anonymous shared memory.

    Returns:
        The file descriptor to hand to workers (the caller closes it) and the arrays.
    """
    size = _offsets(layout)[1]
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sensorium-doom")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor, attach_shared(descriptor, layout)


def attach_shared(descriptor: int, layout: Layout) -> dict[str, NDArray[Any]]:
    """Map the arrays that `create_shared` made with the same layout."""
    offsets, size = _offsets(layout)
    memory = mmap.mmap(descriptor, size)
    return {
        name: np.ndarray(shape, dtype, buffer=memory, offset=offsets[name])
        for name, (shape, dtype) in layout.items()
    }


def _offsets(layout: Layout) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    end = 0
    for name, (shape, dtype) in layout.items():
        offsets[name] = end
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        end += -(-max(num_bytes, 1) // _ALIGNMENT) * _ALIGNMENT
    return offsets, end
