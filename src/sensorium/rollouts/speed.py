"""Summary of the records of speed that NeMo Gym's servers put into rows as ``ng_perf``."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.rollouts.columns import mean, quantile

_TOKENS = ("prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens")


def speed_summary(records: Sequence[Mapping[str, Any]], num_rollouts: int) -> dict[str, float] | None:
    """Tokens, turns and latencies of rollouts.

    Args:
        records: Of the rollouts that have one.
        num_rollouts: Of all, with and without.

    Returns:
        None when nobody kept records.
    """
    if not records or num_rollouts <= 0:
        return None
    made = {
        "overall_observability_coverage": len(records) / num_rollouts,
        "token_observability_coverage": sum(
            1 for value in _numbers(records, "token_observability_coverage") if value > 0
        )
        / num_rollouts,
    }
    for field in _TOKENS:
        if values := _numbers(records, field):
            made[f"mean_{field}"] = mean(values)
            made[f"median_{field}"] = statistics.median(values)
            made[f"total_{field}"] = sum(values)
    if turns := _numbers(records, "num_turns"):
        made |= {
            "mean_num_turns": mean(turns),
            "median_num_turns": statistics.median(turns),
            "std_num_turns": statistics.pstdev(turns),
            "min_num_turns": min(turns),
            "p90_num_turns": quantile(turns, 0.9),
            "max_num_turns": max(turns),
        }
    rates = [
        record["completion_tokens"] / record["num_turns"]
        for record in records
        if _is_number(record.get("completion_tokens"))
        and _is_number(record.get("num_turns"))
        and record["num_turns"] > 0
    ]
    if rates:
        made["mean_tokens_per_turn"] = mean(rates)
        made["median_tokens_per_turn"] = statistics.median(rates)
    if latencies := _numbers(records, "total_latency_ms"):
        for share in (50, 90, 99):
            made[f"total_latency_p{share}_ms"] = quantile(latencies, share / 100)
        made["total_latency_mean_ms"] = mean(latencies)
    return made


def _numbers(records: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [record[name] for record in records if _is_number(record.get(name))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
