"""A photo of 1.6 megapixels, the same one again, and a broken file."""

import io

import numpy as np
from PIL import Image

from sensorium import ObservationPipeline, PipelineConfig, Source
from sensorium.llm.messages import ImageBlock

noise = np.random.default_rng(0).normal(0, 12, (1000, 1600, 3))
photo = np.clip(noise + np.linspace(40, 210, 1600)[None, :, None], 0, 255).astype(np.uint8)
buffer = io.BytesIO()
Image.fromarray(photo).save(buffer, "PNG")

state = {
    "camera": Source(photo, alt="the conveyor belt, seen from above"),
    "same": buffer.getvalue(),
    "broken.png": buffer.getvalue()[:60],
}
config = PipelineConfig().updated({"multimodal": {"image": {"max_size_kb": 200, "max_side_px": 1024}}})
trace = ObservationPipeline(config).trace(state, task="Is the belt empty?")

for entry in trace.representation.account.entries:
    print(f"{entry.part_id:<11} {entry.level:<10} {entry.tokens_after:>4} tokens  {entry.why}")
for block in trace.representation.state:
    if isinstance(block, ImageBlock):
        print(f"[picture {block.width}x{block.height}, {len(block.url) * 3 // 4 / 1024:.0f} kB]")
    else:
        print(block.text)
