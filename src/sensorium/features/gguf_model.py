"""From a GGUF file, as llama.cpp reads it, to a folder that transformers loads in a second."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sensorium.core import FeatureError, boundary, require
from sensorium.core.quiet import without_progress_bars


def convert_gguf(folder: Path) -> None:
    """Replace the one GGUF file in a folder by ``config.json``, a tokenizer and ``model.safetensors``.

    Quantised weights are expanded to float32: reading those back takes a second, reading GGUF most of a
    minute. The weights stay what the quantisation made of them.

    Args:
        folder: Holds exactly one ``*.gguf``; it is removed once everything else is written.

    Raises:
        MissingDependencyError: torch, transformers, gguf or accelerate is not installed.
        FeatureError: There is not exactly one GGUF file, or transformers cannot read it.
    """
    files = sorted(folder.rglob("*.gguf"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise FeatureError(f"Expected one GGUF file in {folder}, found: {found}.")
    purpose = "converting a GGUF file"
    torch = require("torch", extra="rl", purpose=purpose)
    for module in ("gguf", "accelerate"):
        require(module, extra="language", purpose=purpose)
    transformers = require("transformers", extra="language", purpose=purpose)
    safetensors = require("safetensors.torch", extra="rl", purpose=purpose)
    where: dict[str, Any] = {"gguf_file": files[0].name, "local_files_only": True}
    with boundary(FeatureError, f"transformers cannot read {files[0].name}"), _quiet(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(files[0].parent, **where)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            files[0].parent, dtype=torch.float32, **where
        )
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config  # with it, loading would look for quantised weights
        tokenizer.save_pretrained(folder)
        model.config.save_pretrained(folder)
        target = folder / "model.safetensors"
        safetensors.save_file(_untied(model), target, metadata={"format": "pt"})
    target.chmod(0o644)
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    files[0].unlink()


def _untied(model: Any) -> dict[str, Any]:
    """Weights by name, each memory once: a tied output layer is made from the input layer on loading."""
    weights: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in model.state_dict().items():
        if value.data_ptr() not in seen:
            seen.add(value.data_ptr())
            weights[name] = value.contiguous()
    return weights


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without the progress bars and remarks of transformers."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with without_progress_bars(transformers):
            yield
    finally:
        logging.set_verbosity(level)
