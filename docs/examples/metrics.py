"""How much of what was planted in a log survives four budgets."""

import dataclasses

from sensorium import ObservationPipeline, PipelineConfig
from sensorium.evals.planting import plant_facts
from sensorium.evals.retention import measure_retention
from sensorium.metrics.observation import ObservationMeter, ObservationSample

LOG = "\n".join(
    f"2026-05-01 12:{n // 60:02}:{n % 60:02} INFO worker {n % 4} finished batch {n} in {40 + n % 7} ms"
    for n in range(600)
)
planted = plant_facts(LOG, form="log", seed=0, count=20)
print(planted.facts[0].text)

for max_tokens in (16_000, 4_000, 2_000, 1_000):
    settings = {"observation": {"max_tokens": max_tokens, "compression_ratio": 0.01, "reserve": 0.0}}
    pipeline = ObservationPipeline(PipelineConfig().updated(settings))
    meter = ObservationMeter()
    representation = pipeline({"service.log": planted.raw})
    found = measure_retention(planted.facts, representation)
    sample = ObservationSample.of_account(representation.account.model_dump())
    meter.add(dataclasses.replace(sample, facts_planted=found.planted, facts_retained=found.retained))
    summary = meter.summary()
    print(
        f"max_tokens {max_tokens:>6}: kept {summary['observation/kept_share/text'].value:.2f} of the tokens, "
        f"facts {summary['observation/facts_retained'].value:.2f}, "
        f"estimated retained {summary['observation/retained/text'].value:.2f}"
    )
