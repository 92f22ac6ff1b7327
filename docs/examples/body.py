"""A depth picture, joint angles, and readings of different rates on one clock."""

import numpy as np

from sensorium import ObservationPipeline, PipelineConfig, Source, read
from sensorium.core import Modality
from sensorium.representations.align import align

depth = np.full((48, 64), 4.0, np.float32)
depth[20:40, 10:30] = 1.25  # something stands there
depth[:, :2] = np.nan  # the sensor does not reach the edge
state = {
    "depth": Source(depth, modality=Modality.DEPTH),
    "body": Source(
        {"gripper": 0.02, "joint": np.array([0.1, -0.4, 1.2])},
        modality=Modality.PROPRIO,
        units={"gripper": "m", "joint": "rad"},
    ),
}
config = PipelineConfig().updated({"multimodal": {"table": {"plot": "never"}}})
print(ObservationPipeline(config)(state).messages[-1].text)

frames = [Source(f"frame {n}", timestamp_s=n / 10) for n in range(20)]  # 10 per second
words = [Source("start", timestamp_s=0.25), Source("stop", timestamp_s=1.4)]
parts = read({"camera": frames, "speech": words}).parts
aligned = align(parts, at=[0.3, 1.5], tolerance_s=0.5)
for step, time_s in enumerate((0.3, 1.5)):
    held = {source: part.text if part else None for source, part in aligned.row(step).items()}
    print(f"at {time_s} s: {held}, ages {aligned.age_s[step].round(2).tolist()} s")
