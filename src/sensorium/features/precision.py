"""In which precision a frozen language model computes: measured where it runs, not assumed.

Half precision halves the memory everywhere, but on many CPUs it is slower than float32.
"""

import json
import logging
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.core import FeatureError, require
from sensorium.core.files import atomic_write_bytes
from sensorium.features.disk_cache import cache_folder

MIN_COSINE = 0.999
"""Cosine between the outputs of both precisions below which half precision is not used."""
MIN_SPEEDUP = 1.1
"""How many times as fast half precision must be; less is within what a timing varies by."""

_SENTENCES = (
    "go to the red ball",
    "pick up the small blue box behind the green door and bring it here",
    "no",
    "turn left at the second door, and when you hear the bell, walk towards it until you see a yellow key",
)
_REPEATS = 3

_logger = logging.getLogger(__name__)


class PrecisionTrial(NamedTuple):
    """float32 against bfloat16 on a few sentences."""

    float32_s: float
    """Time for all sentences, best of three, seconds."""
    bfloat16_s: float
    cosine: float
    """Smallest cosine between the two outputs of a token."""
    remembered: bool
    """Whether the trial was made by an earlier process on this machine."""

    @property
    def speedup(self) -> float:
        """How many times as fast bfloat16 is."""
        return self.float32_s / self.bfloat16_s

    @property
    def choice(self) -> str:
        """`bfloat16` where it is faster and says the same, else `float32`."""
        return "bfloat16" if self.speedup >= MIN_SPEEDUP and self.cosine >= MIN_COSINE else "float32"


def choose_precision(
    name: str, fingerprint: str, device: str, load: Callable[[str], tuple[Any, Any]]
) -> PrecisionTrial:
    """Compare float32 and bfloat16; log the figures.

    The first process that asks on a machine measures, on the model itself; later ones read what it found
    from ``cache_folder("precision")``, so that a run and its resumption compute alike.

    Args:
        name: Of the model, for the log.
        fingerprint: Hash of the model's files.
        device: Where it computes.
        load: Precision -> (tokenizer, model).

    Raises:
        FeatureError: The model could not be loaded or run.
    """
    torch = require("torch", extra="rl", purpose="the pretrained text encoder")
    machine = f"{platform.node()} {platform.processor()} {platform.machine()} {torch.get_num_threads()}"
    key = {
        "model": fingerprint,
        "device": _device_name(torch, device),
        "on": machine,
        "torch": torch.__version__,
    }
    note = cache_folder("precision") / f"{fingerprint[:24]}-{device.replace(':', '-')}.json"
    trial = _recall(note, key)
    if trial is None:
        trial = _measure(torch, device, load)
        record = {**key, **trial._asdict()}
        try:
            atomic_write_bytes(note, json.dumps(record, indent=1).encode())
        except OSError as error:
            _logger.info("the choice of precision is not remembered: %s", error)
    _logger.info(
        "%s on %s computes in %s: float32 %.1f ms, bfloat16 %.1f ms (%.2f times as fast, needed %.1f), "
        "cosine %.5f (needed %.3f)%s",
        name,
        device,
        trial.choice,
        1e3 * trial.float32_s,
        1e3 * trial.bfloat16_s,
        trial.speedup,
        MIN_SPEEDUP,
        trial.cosine,
        MIN_COSINE,
        ", measured before" if trial.remembered else "",
    )
    return trial


def _device_name(torch: Any, device: str) -> str:
    return str(torch.cuda.get_device_name(device)) if device.startswith("cuda") else device


def _recall(note: Path, key: dict[str, str]) -> PrecisionTrial | None:
    try:
        known = json.loads(note.read_text())
        if any(known[field] != value for field, value in key.items()):
            return None
        times = float(known["float32_s"]), float(known["bfloat16_s"])
        return PrecisionTrial(*times, cosine=float(known["cosine"]), remembered=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _measure(torch: Any, device: str, load: Callable[[str], tuple[Any, Any]]) -> PrecisionTrial:
    outputs: dict[str, list[Any]] = {}
    seconds: dict[str, float] = {}
    for precision in ("float32", "bfloat16"):
        tokenizer, model = load(precision)
        inputs = [tokenizer(text, return_tensors="pt").to(device) for text in _SENTENCES]
        outputs[precision] = _run(torch, model, inputs)  # the first pass also warms up
        passes = []
        for _ in range(_REPEATS):
            begin = time.perf_counter()
            _run(torch, model, inputs)
            if device.startswith("cuda"):
                torch.cuda.synchronize(device)
            passes.append(time.perf_counter() - begin)
        seconds[precision] = min(passes)
        del tokenizer, model, inputs  # never two large models at once
    cosines = [
        float(torch.nn.functional.cosine_similarity(a.float(), b.float(), dim=-1).min())
        for a, b in zip(outputs["float32"], outputs["bfloat16"], strict=True)
    ]
    if any(cosine != cosine for cosine in cosines):
        raise FeatureError("The text encoder gave values that are not finite in its trial of precisions.")
    return PrecisionTrial(seconds["float32"], seconds["bfloat16"], min(cosines), remembered=False)


def _run(torch: Any, model: Any, inputs: Sequence[Any]) -> list[Any]:
    with torch.inference_mode():
        return [model(**one).last_hidden_state[0] for one in inputs]
