"""Two beeps and a stretch of noise: what is heard, without any weights."""

import numpy as np

from sensorium import ObservationPipeline, PipelineConfig

rate_hz = 16_000
time_s = np.arange(4 * rate_hz) / rate_hz
sound = np.zeros_like(time_s)
for start_s in (0.5, 1.0):
    beep = (time_s >= start_s) & (time_s < start_s + 0.3)
    sound[beep] = 0.3 * np.sin(2 * np.pi * 880 * time_s[beep])
hiss = (time_s >= 2.0) & (time_s < 3.5)
sound[hiss] = np.random.default_rng(0).normal(0, 0.05, hiss.sum())

config = PipelineConfig().updated({"features": {"extractors": ["sound_events"]}})
representation = ObservationPipeline(config)({"microphone": (sound, rate_hz)})
print(representation.messages[-1].text)

native = config.updated({"multimodal": {"audio": {"encoding": "native", "max_seconds": 2.0}}})
for block in ObservationPipeline(native)({"microphone": (sound, rate_hz)}).state:
    print(block.type, getattr(block, "duration_s", None) or block.text)
