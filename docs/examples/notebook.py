"""A notebook of 8,500 tokens within 900."""

from pathlib import Path

from sensorium import ObservationPipeline, PipelineConfig

config = PipelineConfig().updated({"observation": {"max_tokens": 900}})
representation = ObservationPipeline(config)(Path("report.ipynb"), task="Why does the regression fail?")
print(representation.messages[-1].text)
