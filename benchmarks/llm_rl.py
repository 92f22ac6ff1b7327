"""GRPO of language models beside TRL's: whole steps, the loss of one batch, advantages of steps.

python benchmarks/llm_rl.py                  about 30 minutes; first: sensorium models fetch smollm2
python benchmarks/llm_rl.py --only tiny      one part
python benchmarks/llm_rl.py --quick          only whether it runs; the figures mean nothing

Both sides run on one thread, in fresh processes that take turns, on the same weights, prompts and reward, and
count the tokens that the model generated per CPU second of a whole step: answers, rewards, loss, optimiser.
"""

import sys
from collections.abc import Sequence
from typing import Any

from measuring import Benchmark, Comparison, Measurement
from parts import run_parts

FACTOR = 1.5
ESTIMATOR_FACTOR = 20.0
PACKAGES = ("sensorium", "trl", "transformers", "torch", "accelerate", "peft")
_INSTALL = "make bench"
_TIMEOUT_S = 1800.0
_NOTE = (
    "CPU time of all threads; ours plays episodes through the environment, its pipeline and the engine, and "
    "writes metrics and sample episodes; the peer calls a reward function; no checkpoints on either side"
)


def _speed(name: str, **settings: Any) -> tuple[dict[str, Measurement], Comparison]:
    """Ours and TRL on the same settings."""
    sides = {
        f"{name}, {side}": Measurement(
            target=f"llm_rl_speed:{side}",
            settings=settings,
            needs=("trl",),
            install=_INSTALL,
            timeout_s=_TIMEOUT_S,
        )
        for side in ("ours", "trl")
    }
    compared = Comparison(
        name=name,
        unit="tokens/CPU-s",
        ours=f"{name}, ours",
        peer=f"{name}, trl",
        peer_name="TRL",
        goal=f">= {FACTOR:g} x peer",
        reached=lambda _, ratio: ratio is not None and ratio >= FACTOR,
        same="prompt_tokens",
        note=_NOTE,
    )
    return sides, compared


def _steps(model: str, sizes: Sequence[tuple[int, int, int]], *, lora: bool) -> Benchmark:
    """Whole steps with short prompts and with those of an agent that has tools."""
    measurements: dict[str, Measurement] = {}
    comparisons = []
    for batch, tokens, steps in sizes:
        for prompt in ("short", "tools"):
            name = f"{model}, {batch} answers of {tokens} tokens, {prompt} prompt"
            sides, compared = _speed(
                name, model=model, batch=batch, tokens=tokens, steps=steps, lora=lora, prompt=prompt
            )
            measurements |= sides
            comparisons.append(compared)
    return Benchmark(measurements=measurements, comparisons=comparisons)


def tiny(*, quick: bool) -> Benchmark:
    """A model of 84,480 weights, all of them trained: what is measured is everything around the model."""
    return _steps("tiny", [(8, 4, 1)] if quick else [(16, 16, 20), (64, 32, 6)], lora=False)


def smollm2(*, quick: bool) -> Benchmark:
    """SmolLM2-135M with adapters of rank 16: what is measured is the model."""
    return _steps("smollm2", [(8, 2, 1)] if quick else [(8, 24, 2)], lora=True)


def loss(*, quick: bool) -> Benchmark:
    """The loss of one batch, computed by both."""
    tokens = 4 if quick else 16

    def of(model: str) -> Measurement:
        settings = {"model": model, "batch": 8, "tokens": tokens}
        return Measurement(
            target="llm_rl_speed:losses",
            settings=settings,
            needs=("trl",),
            install=_INSTALL,
            timeout_s=_TIMEOUT_S,
        )

    def compared(model: str) -> Comparison:
        return Comparison(
            name=f"loss of one batch, {model}: difference from TRL's",
            unit="x 1e-9",
            ours=model,
            goal="<= 1e-6",
            reached=lambda difference, _: difference <= 1_000,
            value="difference_1e9",
            note="DAPO's normaliser, bounds 0.2 and 0.28, answers of several lengths, old policy apart",
        )

    models = ["tiny"] if quick else ["tiny", "smollm2"]
    return Benchmark(
        measurements={model: of(model) for model in models},
        comparisons=[compared(model) for model in models],
    )


def advantages(*, quick: bool) -> Benchmark:
    """Step-level group advantages: ours, and a dictionary of groups with a loop over rows."""
    settings = {"steps": 500 if quick else 10_000, "groups": 100 if quick else 2_500}
    seconds = 0.1 if quick else 5.0

    def way(name: str) -> Measurement:
        return Measurement(
            target="llm_rl_speed:step_groups", settings=settings | {"way": name, "seconds": seconds}
        )

    compared = Comparison(
        name=f"step-group advantages of {settings['steps']:,} steps",
        unit="steps/CPU-s",
        ours="vectorised",
        peer="rows",
        peer_name="loop over rows",
        goal=f">= {ESTIMATOR_FACTOR:g} x peer",
        reached=lambda _, ratio: ratio is not None and ratio >= ESTIMATOR_FACTOR,
        same="check",
        note=f"{settings['groups']:,} groups, mean and deviation of each; the loop is written here",
    )
    measurements = {"vectorised": way("vectorised"), "rows": way("rows")}
    return Benchmark(measurements=measurements, comparisons=[compared])


BENCHMARKS = {"tiny": tiny, "smollm2": smollm2, "loss": loss, "advantages": advantages}
"""Name -> what it measures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result file."""
    return run_parts("llm_rl", __doc__ or "", BENCHMARKS, PACKAGES, arguments)


if __name__ == "__main__":
    sys.exit(main())
