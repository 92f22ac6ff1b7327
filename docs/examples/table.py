"""A table with a unit and a meaning, and a vector."""

from pathlib import Path

import numpy as np

from sensorium import ObservationPipeline, PipelineConfig, Source

houses = Source(Path("houses.csv"), units={"size": "m²"}, meanings={"town": "where the house stands"})
residuals = np.sin(np.arange(500) / 30) * 12

config = PipelineConfig().updated(
    {"observation": {"max_tokens": 1000}, "multimodal": {"table": {"max_rows": 6}}}
)
representation = ObservationPipeline(config)({"houses": houses, "residuals": residuals})
print(representation.messages[-1].text)
