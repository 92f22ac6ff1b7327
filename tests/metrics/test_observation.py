import math
from pathlib import Path

import numpy as np
import pytest

from sensorium.metrics import (
    Histogram,
    JsonlSink,
    Latest,
    MultiSink,
    ObservationMeter,
    ObservationSample,
    PartTokens,
    TensorBoardSink,
    meaning,
    merge_metrics,
    observation_metrics,
    read_jsonl,
)
from sensorium.metrics.observation import LATENCY_EDGES, TOKEN_EDGES, quantile


def sample(**changes: object) -> ObservationSample:
    plain: dict[str, object] = {
        "parts": [
            PartTokens(modality="code", tokens_before=100, tokens_after=40, retained=0.5, level="summary"),
            PartTokens(modality="code", tokens_before=300, tokens_after=300, level="full"),
            PartTokens(modality="text", tokens_before=0, tokens_after=0, retained=0.0, level="dropped"),
        ],
        "num_tokens": 400,
        "max_tokens": 800,
        "extraction_ms": {"code": [2.0, 4.0], "text": []},
        "cache_hits": 1,
        "cache_misses": 3,
        "facts_planted": 10,
        "facts_retained": 9,
        "similarity": 0.8,
    }
    return ObservationSample(**(plain | changes))  # type: ignore[arg-type]


def test_figures_by_hand() -> None:
    values = {name: metric.value for name, metric in observation_metrics(sample()).items()}
    assert values["observation/count"] == 1
    assert values["observation/budget_used"] == 0.5
    assert values["observation/kept_share/code"] == pytest.approx(340 / 400)
    assert values["observation/retained/code"] == pytest.approx((0.5 * 100 + 1.0 * 300) / 400)
    assert values["observation/cache_hit_rate"] == 0.25
    assert values["observation/facts_retained"] == 0.9
    assert values["observation/similarity"] == 0.8
    assert (values["observation/parts/summary"], values["observation/parts/full"]) == (1, 1)
    tokens = values["observation/tokens/code"]
    assert isinstance(tokens, dict)
    assert (tokens["count"], tokens["mean"]) == (2, 170)
    assert "observation/kept_share/text" not in values
    assert "observation/extraction_ms/text" not in values


def test_what_was_not_measured_is_left_out() -> None:
    names = set(observation_metrics(ObservationSample(num_tokens=5)))
    assert names == {"observation/count", "observation/num_tokens"}


def test_shares_of_several_are_weighted_by_what_they_count() -> None:
    small = sample(cache_hits=0, cache_misses=1, facts_planted=1, facts_retained=0)
    merged = merge_metrics([observation_metrics(sample()), observation_metrics(small)])
    assert merged["observation/cache_hit_rate"].value == pytest.approx(1 / 5)
    assert merged["observation/facts_retained"].value == pytest.approx(9 / 11)


def test_the_meter_writes_step_by_step_and_sums_up(tmp_path: Path) -> None:
    jsonl, board = tmp_path / "metrics.jsonl", tmp_path / "board"
    sink = MultiSink([JsonlSink(jsonl), TensorBoardSink(board)])
    meter = ObservationMeter(sink)
    meter.add(sample())
    meter.add(sample(num_tokens=800))
    meter.write(3)
    assert meter.write(4) == {}
    meter.add(sample())
    written = meter.write(5)
    sink.close()
    rows = read_jsonl(jsonl)
    assert [row["step"] for row in rows] == [3, 5]
    assert rows[0]["observation/count"] == 2
    assert rows[0]["observation/budget_used"] == 0.75
    assert rows[1]["observation/count"] == 1
    assert rows[0]["observation/extraction_p99_ms/code"] == pytest.approx(4.0, rel=0.06)
    assert any(board.iterdir())
    assert meter.summary()["observation/count"].value == 3
    assert isinstance(written["observation/extraction_p50_ms/code"], Latest)
    assert all(meaning(name) for name in written)


def test_latency_quantiles_are_within_a_bin_of_the_exact_ones() -> None:
    times = np.random.default_rng(0).lognormal(1.0, 1.5, 5000)
    meter = ObservationMeter()
    for chunk in np.split(times, 50):
        meter.add(ObservationSample(extraction_ms={"image": list(chunk)}))
    found = meter.summary()
    for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        value = found[f"observation/extraction_{name}_ms/image"].value
        assert value == pytest.approx(float(np.quantile(times, q)), rel=0.06)


def test_quantiles_at_the_edges() -> None:
    assert math.isnan(quantile(Histogram.of([], LATENCY_EDGES), 0.5))
    assert quantile(Histogram.of([1e9], LATENCY_EDGES), 0.5) == LATENCY_EDGES[-1]
    assert quantile(Histogram.of([0.0], LATENCY_EDGES), 0.5) == LATENCY_EDGES[0]
    assert quantile(Histogram.of([2.0, 2.0], (1.0, 4.0)), 0.5) == pytest.approx(2.0)  # 1 * 4 ** 0.5
    assert quantile(Histogram.of([0.5], (0.0, 1.0)), 0.5) == 0.5
    assert len(set(TOKEN_EDGES)) == len(TOKEN_EDGES)
    assert Histogram.of([0, 1_000_000], TOKEN_EDGES).counts[0] == 0


def test_an_account_in_its_plain_form() -> None:
    entry = {"modality": "code", "level": "summary", "tokens_before": 10, "tokens_after": 5, "retained": 0.7}
    account = {
        "entries": [entry | {"part_id": "a", "why": "x"}],
        "num_tokens": 9,
        "max_tokens": 90,
        "cache_hits": 2,
        "cache_misses": 0,
    }
    found = ObservationSample.of_account(account, extraction_ms={"code": [1.0]})
    assert found.parts == [
        PartTokens(modality="code", tokens_before=10, tokens_after=5, retained=0.7, level="summary")
    ]
    assert (found.num_tokens, found.max_tokens, found.cache_hits) == (9, 90, 2)
    with pytest.raises(KeyError):
        ObservationSample.of_account({"entries": []})
