"""The one way in which backends compile their loops."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sensorium.core import require

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_numba = require("numba", extra="rl", purpose="the compiled loops of embodied environments")


def compiled(function: FunctionT) -> FunctionT:
    """Compile with numba, without the interpreter lock and with results cached on disk.

    `fastmath` stays off, so that a world's numbers do not depend on how many worlds share the loop. A type
    checker that was laid over the function (in tests) is taken off first: numba compiles the function itself.
    """
    decorate = _numba.njit(cache=True, nogil=True, error_model="numpy")
    return cast(FunctionT, decorate(inspect.unwrap(function)))
