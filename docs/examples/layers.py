"""The three layers of one observation, each by itself."""

from sensorium import ObservationPipeline, PipelineConfig, read

state = {"app.py": "def area(w, h):\n    if w < 0:\n        raise ValueError(w)\n    return w * h\n"}

observation = read(state)  # the first layer: typed parts
print([(part.id, part.modality.value, part.value.kind) for part in observation])

config = PipelineConfig().updated({"features": {"extractors": ["code_structure"]}})
trace = ObservationPipeline(config).trace(observation, task="What does area return?")

features = trace.features["app.py"]["code_structure"]  # the second: what an extractor found
print(features.summary)

print(trace.representation.messages[-1].text)  # the third: what the model reads
