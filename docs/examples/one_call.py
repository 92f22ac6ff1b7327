"""A notebook and a table as a language model reads them."""

from pathlib import Path

from sensorium import ObservationPipeline, PipelineConfig

config = PipelineConfig().updated({"observation": {"max_tokens": 1200}})
pipeline = ObservationPipeline(config)

representation = pipeline([Path("report.ipynb"), Path("houses.csv")], task="Why does the regression fail?")

print(representation.num_tokens, "tokens;", representation.account.counts())
for entry in representation.account.entries:
    tokens = f"{entry.tokens_before} -> {entry.tokens_after}"
    print(f"{entry.part_id:<32} {entry.level:<9} {tokens:>12}  {entry.why}")
messages = representation.chat()  # for any chat-completions endpoint
