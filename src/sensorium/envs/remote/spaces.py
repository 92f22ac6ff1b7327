"""Gymnasium's spaces as values that can be sent, and batches of their members checked and restored."""

import string
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sensorium.envs.hosted import MessageError

Space = gymnasium.Space[Any]
_MAX_TEXT_CHARS = 2**20


class SpaceError(MessageError):
    """A space cannot be sent, or a value is not of a space."""


def describe(space: Space) -> dict[str, Any]:
    """A space as a value for `frames.pack`.

    A space of a class of its own whose members are texts (MiniGrid's missions) is told as a `Text`.

    Raises:
        SpaceError: Its members are no arrays and texts: `Graph`, `Sequence`, `OneOf`, or a class of its own.
    """
    match space:
        case spaces.Box():
            low, high = (_short(bound) for bound in (space.low, space.high))
            return {"type": "box", "low": low, "high": high, "shape": space.shape, "dtype": _dtype(space)}
        case spaces.Discrete():
            return {
                "type": "discrete",
                "n": int(space.n),
                "start": int(space.start),
                "dtype": _dtype(space),
            }
        case spaces.MultiDiscrete():
            start = np.asarray(space.start)
            return {
                "type": "multi_discrete",
                "nvec": space.nvec,
                "start": start,
                "dtype": _dtype(space),
            }
        case spaces.MultiBinary():
            return {"type": "multi_binary", "shape": list(space.shape)}
        case spaces.Text():
            lengths = {"min": int(space.min_length), "max": int(space.max_length)}
            return {"type": "text", **lengths, "characters": space.characters}
        case spaces.Dict():
            return {"type": "dict", "spaces": [[key, describe(one)] for key, one in space.items()]}
        case spaces.Tuple():
            return {"type": "tuple", "spaces": [describe(one) for one in space]}
    if isinstance(space.sample(), str):
        return {"type": "text", "min": 0, "max": _MAX_TEXT_CHARS, "characters": string.printable}
    raise SpaceError(
        f"The space {space} cannot be sent: Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict and Tuple "
        "can. Wrap the environment so that it has one of these."
    )


def build(told: Any) -> Space:
    """The space that `describe` told.

    Raises:
        SpaceError: It is something else.
    """
    try:
        return _built(told)
    except SpaceError:
        raise
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise SpaceError(f"What was sent is no space: {error!r}.") from error


def _built(told: Mapping[str, Any]) -> Space:
    match told["type"]:
        case "box":
            shape, dtype = tuple(told["shape"]), np.dtype(told["dtype"])
            low, high = (np.broadcast_to(np.asarray(told[end], dtype), shape) for end in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        case "discrete":
            return spaces.Discrete(told["n"], start=told["start"], dtype=np.dtype(told["dtype"]).type)
        case "multi_discrete":
            kind = np.dtype(told["dtype"]).type
            return spaces.MultiDiscrete(told["nvec"], dtype=kind, start=told["start"])
        case "multi_binary":
            return spaces.MultiBinary(tuple(told["shape"]))
        case "text":
            return spaces.Text(told["max"], min_length=told["min"], charset=told["characters"])
        case "dict":
            return spaces.Dict({key: build(one) for key, one in told["spaces"]})
        case "tuple":
            return spaces.Tuple([build(one) for one in told["spaces"]])
        case other:
            raise SpaceError(f"There are no spaces of the type {other!r}.")


def read_batch(space: Space, value: Any, num_envs: int, where: str = "action") -> Any:
    """A batch of members of a space, as Gymnasium's vector environments take it.

    Numbers may be of any type that holds the same values. Those of a `Box` must be finite, and may lie
    outside of its bounds: environments clip.

    Args:
        space: Of one environment.
        value: Arrays (num_envs, ...), sequences of texts, dicts and sequences of such.
        num_envs: How many members there must be.
        where: What it is, for the message of an error.

    Raises:
        SpaceError: It is something else; says where.
    """
    match space:
        case spaces.Dict():
            if not isinstance(value, Mapping) or value.keys() != space.keys():
                _wrong(where, f"a dict of {', '.join(space)}", value)
            return {
                key: read_batch(one, value[key], num_envs, f"{where}.{key}") for key, one in space.items()
            }
        case spaces.Tuple():
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(space):
                _wrong(where, f"{len(space)} values", value)
            parts = zip(space, value, strict=True)
            return tuple(
                read_batch(one, part, num_envs, f"{where}[{i}]") for i, (one, part) in enumerate(parts)
            )
        case spaces.Text():
            texts = value.tolist() if isinstance(value, np.ndarray) else value
            if not isinstance(texts, list | tuple) or len(texts) != num_envs:
                _wrong(where, f"{num_envs} texts", value)
            if not all(space.contains(one) for one in texts):
                _wrong(where, f"{num_envs} texts of {space}", value)
            return tuple(texts)
    return _numbers(space, value, num_envs, where)


def _numbers(space: Space, value: Any, num_envs: int, where: str) -> NDArray[Any]:
    shape, dtype = (num_envs, *(space.shape or ())), space.dtype
    assert dtype is not None, "spaces of numbers have a type"

    def expected() -> str:
        return f"numbers for {space} in {num_envs} environments: {dtype}, shape {list(shape)}"

    try:
        given = np.asarray(value)
    except (ValueError, TypeError):  # rows of different lengths, or no numbers
        _wrong(where, expected(), value)
    if given.dtype.kind not in "biuf" or given.shape != shape:
        _wrong(where, expected(), value)
    if not np.isfinite(given).all():
        raise SpaceError(f"{where} is not finite. Expected {expected()}.")
    cast = given
    if given.dtype != dtype:
        with np.errstate(all="ignore"):
            cast = given.astype(dtype)
        if dtype.kind != "f" and not (cast == given).all():
            _wrong(where, expected(), value)
    if not _in_range(space, cast):
        raise SpaceError(f"{where} is out of range: {given.min()} to {given.max()}. Expected {expected()}.")
    return cast


def _in_range(space: Space, batch: NDArray[Any]) -> bool:
    match space:
        case spaces.Discrete():
            first_one = int(space.start)
            return bool(((batch >= first_one) & (batch < first_one + int(space.n))).all())
        case spaces.MultiDiscrete():
            start = np.asarray(space.start, np.int64)
            return bool(((batch >= start) & (batch < start + np.asarray(space.nvec, np.int64))).all())
        case spaces.MultiBinary():
            return bool(((batch == 0) | (batch == 1)).all())
    return bool(np.isfinite(batch).all())  # of a Box: a number may be too large for its type


def restore(space: Space, value: Any) -> Any:
    """A batch of observations as it was before it was sent: tuples are tuples again.

    Raises:
        SpaceError: It is not of this space.
    """
    match space:
        case spaces.Dict():
            if not isinstance(value, Mapping) or not space.keys() <= value.keys():
                _wrong("observation", f"a dict of {', '.join(space)}", value)
            return {key: restore(one, value[key]) for key, one in space.items()}
        case spaces.Tuple():
            return tuple(restore(one, part) for one, part in zip(space, value, strict=True))
        case spaces.Text():
            return tuple(value)
    return value


def first(space: Space, batch: Any) -> Any:
    """The first member of a batch."""
    match space:
        case spaces.Dict():
            return {key: first(one, batch[key]) for key, one in space.items()}
        case spaces.Tuple():
            return tuple(first(one, part) for one, part in zip(space, batch, strict=True))
        case spaces.Box():
            return batch[0, ...]  # an array also where its shape is ()
    return batch[0]


def batch_of_one(space: Space, member: Any) -> Any:
    """A member as a batch of one; only its dicts and tuples are looked at.

    Raises:
        SpaceError: One of them is something else.
    """
    match space:
        case spaces.Dict():
            if not isinstance(member, Mapping) or member.keys() != space.keys():
                _wrong("action", f"a dict of {', '.join(space)}", member)
            return {key: batch_of_one(one, member[key]) for key, one in space.items()}
        case spaces.Tuple():
            if not isinstance(member, Sequence) or len(member) != len(space):
                _wrong("action", f"{len(space)} values", member)
            return tuple(batch_of_one(one, part) for one, part in zip(space, member, strict=True))
        case spaces.Text():
            return (member,)
    return np.asarray(member)[None]


def _dtype(space: Space) -> str:
    assert space.dtype is not None, "spaces of numbers have a type"
    return np.dtype(space.dtype).name


def _short(bound: NDArray[Any]) -> Any:
    """The bounds of a Box, as one number where all are the same."""
    return bound.flat[0] if bound.size and (bound == bound.flat[0]).all() else bound


def _wrong(where: str, expected: str, value: Any) -> NoReturn:
    kind = f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
    raise SpaceError(f"{where} does not fit: found {kind}, expected {expected}.")
