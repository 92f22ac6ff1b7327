"""What was left out of an observation is fetched by page, by place, by words, or by region."""

from pathlib import Path

from sensorium import ObservationPipeline, PipelineConfig

pipeline = ObservationPipeline(PipelineConfig().updated({"observation": {"max_tokens": 900}}))
trace = pipeline.trace(Path("report.ipynb"), task="Why does the regression fail?")
print(trace.representation.references)

references = pipeline.references(trace.observation, max_tokens=128)
for arguments in (
    {"ref": "ref:report.ipynb/cell-train/output-0", "start": 391},
    {"ref": "ref:report.ipynb/cell-train/output-0", "search": "epoch 250"},
    {"ref": "ref:report.ipynb/cell-tain"},
):
    (block,) = references.call(arguments)
    print(f"\nfetch_part({arguments})\n{block.text}")

picture = pipeline.references(trace.observation)
heading, region = picture.fetch("ref:report.ipynb/cell-plot/output-0", region=(0, 0, 200, 150))
print(f"\n{heading.text}: {region.width}x{region.height}")
