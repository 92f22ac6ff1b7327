"""From the keyword arguments of a completion to settings of the engine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sensorium.core.errors import nearest
from sensorium.llm.local.config import SamplingDefaults
from sensorium.llm.local.requests import RequestError, Sampling

_MAX_STOPS = 16
_MAX_TOP_LOGPROBS = 20
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "stream": (False,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "logit_bias": ({},),
}
"""Settings of other servers that are understood as long as they change nothing."""
_IGNORED = frozenset({"user", "metadata", "store", "service_tier", "stream_options"})
_KNOWN = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
    "return_token_ids",
    "tool_choice",
    "response_format",
    "parallel_tool_calls",
    *_LENGTHS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a completion was asked for beside its messages and tools."""

    sampling: Sampling
    tool_choice: Any = None
    """As it was given."""
    response_format: Any = None
    """As it was given."""
    is_parallel: bool | None = None
    """Whether one answer may hold several calls; None: as the model likes, one where a call is required."""


def read_options(given: Mapping[str, Any], defaults: SamplingDefaults) -> Options:
    """Validate the keyword arguments of a completion; None counts as not given.

    Raises:
        RequestError: One is unknown, is not of its type, or is outside its range.
    """
    said = {key: value for key, value in given.items() if value is not None}
    for key, value in said.items():
        if key in _NEUTRAL and value not in _NEUTRAL[key]:
            raise RequestError(f"{key}={value!r} is not supported by the local model. Leave it out.")
        if key not in _NEUTRAL and key not in _IGNORED and key not in _KNOWN:
            raise RequestError(f"The local model knows no setting {key!r}. {nearest(key, _KNOWN)}")
    lengths = {int(_number(said, key, 1, None, whole=True)) for key in _LENGTHS if key in said}
    if len(lengths) > 1:
        raise RequestError(
            f"{' and '.join(key for key in _LENGTHS if key in said)} differ. Give one of them."
        )
    logprobs, top = _logprobs(said)
    sampling = Sampling(
        temperature=_number(said, "temperature", 0.0, 100.0, default=defaults.temperature),
        top_p=_number(said, "top_p", 0.0, 1.0, default=defaults.top_p),
        top_k=max(0, int(_number(said, "top_k", -1, None, default=defaults.top_k, whole=True))),
        seed=int(_number(said, "seed", None, None, whole=True)) if "seed" in said else None,
        max_tokens=lengths.pop() if lengths else defaults.max_tokens,
        stop=_stops(said.get("stop")),
        logprobs=logprobs,
        top_logprobs=top,
        return_token_ids=_flag(said, "return_token_ids"),
    )
    return Options(
        sampling=sampling,
        tool_choice=said.get("tool_choice"),
        response_format=said.get("response_format"),
        is_parallel=_flag(said, "parallel_tool_calls") if "parallel_tool_calls" in said else None,
    )


def _number(
    said: Mapping[str, Any],
    key: str,
    least: float | None,
    most: float | None,
    *,
    default: float = 0.0,
    whole: bool = False,
) -> float:
    value = said.get(key, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    if not is_number or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise RequestError(f"{key} is {value!r}. Expected {kind}.")
    if (least is not None and value < least) or (most is not None and value > most):
        span = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        raise RequestError(f"{key} is {value!r}. Expected a number that is {span}.")
    exact: float = value  # a whole number stays one: a seed may be larger than a float can say
    return exact


def _flag(said: Mapping[str, Any], key: str) -> bool:
    value = said.get(key, False)
    if not isinstance(value, bool):
        raise RequestError(f"{key} is {value!r}. Expected true or false.")
    return value


def _logprobs(said: Mapping[str, Any]) -> tuple[bool, int]:
    """Both forms: ``logprobs=True, top_logprobs=3`` of chat completions, ``logprobs=3`` of completions."""
    value = said.get("logprobs", False)
    if not isinstance(value, bool):
        said = {"top_logprobs": value, **said, "logprobs": True}
    top = int(_number(said, "top_logprobs", 0, _MAX_TOP_LOGPROBS, whole=True))
    return _flag(said, "logprobs") or top > 0, top


def _stops(value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else () if value is None else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        raise RequestError(f"stop is {value!r}. Expected a text or a list of texts, none of them empty.")
    if len(texts) > _MAX_STOPS:
        raise RequestError(f"stop has {len(texts)} texts. Expected at most {_MAX_STOPS}.")
    return tuple(texts)
