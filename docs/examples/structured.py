"""The answer of an API, with one meaning that its owner knows."""

from sensorium import ObservationPipeline, PipelineConfig, Source

answer = {
    "request": {"id": "a1", "took_ms": 12.5},
    "sensors": [
        {"name": f"s{n}", "temp_c": 20 + n / 10, "battery": None if n % 4 == 0 else 3.1, "status": "ok"}
        for n in range(60)
    ],
}
answer["sensors"][17] |= {"temp_c": 97.5, "status": "overheated"}
state = {"answer.json": Source(answer, meanings={"battery": "voltage of the cell"})}

pipeline = ObservationPipeline(PipelineConfig().updated({"observation": {"max_tokens": 600}}))
print(pipeline(state, task="Which sensor is overheated?").messages[-1].text)
