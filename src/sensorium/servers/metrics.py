"""Metrics of finished rows, as `sensorium.rollouts` counts them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.rollouts.aggregate import aggregate_metrics
from sensorium.servers.errors import ServerError
from sensorium.servers.http import HttpClient, TransportError
from sensorium.servers.references import Address

_TIMEOUT_S = 300.0


async def aggregate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer of ``/aggregate_metrics``.

    Raises:
        ServerError: The rows are none of rollouts (422).
    """
    try:
        return await asyncio.to_thread(aggregate_metrics, rows)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        said = f"The rows cannot be counted: {type(error).__name__}: {error}"[:500]
        raise ServerError(422, "invalid_request", said) from error


async def aggregate_at(
    address: Address, http: HttpClient, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What another server answers to ``/aggregate_metrics``: it may know more of rows; else our numbers.

    Raises:
        ServerError: The rows are none of rollouts (422).
    """
    try:
        url = f"{address.url}/aggregate_metrics"
        reply = await http.post(
            url, {"verify_responses": rows}, timeout_s=_TIMEOUT_S, repeat=True, api_key=address.api_key
        )
        theirs = reply.json() if reply.status == 200 else None
    except (TransportError, ValueError):
        theirs = None
    return theirs if isinstance(theirs, dict) and "agent_metrics" in theirs else await aggregate(rows)
