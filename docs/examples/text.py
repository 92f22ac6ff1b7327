"""A log with one line that matters, and a conversation."""

from sensorium import ObservationPipeline, PipelineConfig

log = [f"12:{n // 60:02}:{n % 60:02} worker {n % 4}: batch {n} done in {40 + n % 7} ms" for n in range(300)]
log[211] = "12:03:31 worker 3: ERROR: disk /data is full, batch 211 was not written"
conversation = [
    {"role": "system", "content": "You operate the batch service. Never delete data without asking."},
    {"role": "user", "content": "Good morning! How is it going?"},
    {"role": "assistant", "content": "All workers are busy."},
    {"role": "user", "content": "A batch is missing. Find out which one, and why."},
]

config = PipelineConfig().updated({"observation": {"max_tokens": 300, "compression_ratio": 0.02}})
pipeline = ObservationPipeline(config)
state = {"service.log": "\n".join(log), "chat": conversation}
print(pipeline(state, task="Which batch is missing, and why?").messages[-1].text)
