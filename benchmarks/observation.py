"""What a language model still learns of real raw states when they are squeezed, and how fast that goes.

python benchmarks/observation.py                facts, deltas and speed: minutes on one core
python benchmarks/observation.py --only facts   one of facts, delta, speed

Facts. Random facts (an address, a setting, a measurement, an exception, an assignment, a cell of a table) are
planted at random places of real notebooks, tables, tracebacks and source files (`observation_corpus.py`), and
looked for, word for word, in what is sent with half, a fifth and a tenth of the tokens. Each state is asked
about one of its facts at a time ("asked": the task is the fact's question), and shown without any task
("unasked"). The others know no task:

- Aviary   its notebook state (the real package, `make bench-peers`), whole, and cut to the same tokens
- head and tail   the first and the last half of the tokens
- recency   the last tokens

All are counted by the same counter. The share retained is that of all facts of all states of a kind; the
interval is the 95 % Wilson interval of that share.
"""

import argparse
import ast
import gc
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from observation_corpus import Document, corpus
from recording import CONSOLE, RESULTS, describe_machine, installed_versions, load_average, write_results
from rich.table import Table

from sensorium.core import parse_config, wilson_interval
from sensorium.evals.facts import Fact, is_retained
from sensorium.evals.planting import plant_facts
from sensorium.evals.retention import representation_text
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.observations.read import read
from sensorium.observations.source import Source
from sensorium.representations.config import PipelineConfig
from sensorium.representations.pipeline import ObservationPipeline

PACKAGES = ("sensorium", "pandas", "numpy", "scipy", "scikit-learn", "statsmodels", "seaborn")
RATIOS = (2, 5, 10)
FACTS_PER_STATE = 8
FORMS = {"notebook": "notebook", "table": "table", "traceback": "log", "source": "code"}
EXTRACTORS = ("code_structure", "sentiment", "entities", "sentence")
"""Those that run without a download: syntax trees, word lists, spaCy, an embedding model."""
AVIARY = Path(__file__).parent / "peers" / "aviary" / "bin" / "python"


class State(NamedTuple):
    """A raw state with planted facts."""

    document: Document
    facts: tuple[Fact, ...]
    text: str
    """As the baselines see it: a notebook as Aviary's state, others as they are."""
    tokens: int
    """Of that text."""


def pipeline(max_tokens: int, extractors: Sequence[str] = ()) -> ObservationPipeline:
    """A pipeline with so many tokens, no reserve, no limit of lines, no plots, as for the other methods."""
    settings: dict[str, Any] = {
        "observation": {"max_tokens": max_tokens, "compression_ratio": 0.01, "reserve": 0.0},
        "multimodal": {
            "code": {"max_lines": 100_000},
            "table": {"max_rows": 100_000, "plot": "never"},
            "notebook": {"max_output_lines": 100_000},
        },
        "reading": {"keep_rows": 100_000},
        "features": {"extractors": list(extractors)},
    }
    return ObservationPipeline(parse_config(PipelineConfig, settings))


def plant(documents: Sequence[Document], seed: int) -> list[State]:
    """Plant facts in every document."""
    planted = [plant_facts(d.raw, form=FORMS[d.kind], seed=seed, count=FACTS_PER_STATE) for d in documents]
    notebooks = [p.raw for p, d in zip(planted, documents, strict=True) if d.kind == "notebook"]
    states = iter(aviary_states(notebooks))
    counter = pipeline(1000).counter
    found = []
    for document, p in zip(documents, planted, strict=True):
        text = next(states) if document.kind == "notebook" else p.raw
        found.append(State(document._replace(raw=p.raw), p.facts, text, counter.text(text)))
    return found


def aviary_states(notebooks: Sequence[Any]) -> list[str]:
    """What Aviary shows of notebooks."""
    if not AVIARY.exists():
        raise SystemExit("Aviary is not installed; run: make bench-peers")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "notebooks.json"), Path(folder, "states.json")
        source.write_text(json.dumps(list(notebooks)))
        script = str(Path(__file__).with_name("aviary_state.py"))
        subprocess.run([str(AVIARY), script, str(source), str(target)], check=True)
        states: list[str] = json.loads(target.read_text())
    return states


def raw_of(state: State) -> Any:
    """The raw state as the pipeline gets it."""
    document = state.document
    if document.kind == "notebook":
        return {"analysis.ipynb": document.raw}
    name = document.name.replace(".py", ".log") if document.kind == "traceback" else document.name
    return {name: Source(document.raw, path=name)}


def ends(text: str, tokens: int, count: Callable[[str], int], head_share: float) -> str:
    """The first and the last lines of a text within so many tokens.

    Args:
        text: The text.
        tokens: Limit.
        count: Counts tokens.
        head_share: Share of the tokens that the beginning gets; 0 for the end alone.
    """
    lines = text.split("\n")
    costs = [count(line) + 1 for line in lines]
    head, left = 0, int(tokens * head_share)
    while head < len(lines) and costs[head] <= left:
        left -= costs[head]
        head += 1
    tail, left = len(lines), tokens - sum(costs[:head])
    while tail > head and costs[tail - 1] <= left:
        tail -= 1
        left -= costs[tail]
    return "\n".join([*lines[:head], *lines[tail:]])


def measure_facts(seeds: int) -> dict[str, Any]:
    """Retained facts by kind of state, compression and method."""
    documents = corpus()
    hits: dict[tuple[str, int, str], list[bool]] = {}
    sizes: dict[tuple[str, int, str], list[int]] = {}
    whole: dict[str, list[int]] = {}
    for seed in range(seeds):
        for state in plant(documents, seed):
            kind = state.document.kind
            whole.setdefault(kind, []).append(state.tokens)
            for ratio in RATIOS:
                for method, text, fact in shown_by_all(state, ratio):
                    key = (kind, ratio, method)
                    sizes.setdefault(key, []).append(len(text.encode()))
                    hits.setdefault(key, []).extend(is_retained(f, text) for f in fact)
    return summarise(hits, sizes, whole)


def shown_by_all(state: State, ratio: int) -> list[tuple[str, str, tuple[Fact, ...]]]:
    """For every method what it shows, and the facts to look for in that."""
    limit = max(64, state.tokens // ratio)
    ours = pipeline(limit)
    count, raw = ours.counter.text, raw_of(state)
    found = [
        ("head and tail", ends(state.text, limit, count, 0.5), state.facts),
        ("recency", ends(state.text, limit, count, 0.0), state.facts),
        ("unasked", representation_text(ours(raw)), state.facts),
    ]
    if state.document.kind == "notebook":
        found.append(("Aviary, whole", state.text, state.facts))
    for fact in state.facts:
        question = pipeline(limit + count(fact.question) + 8)
        shown = question(raw, task=fact.question)
        found.append(("asked", representation_text(shown), (fact,)))
    return found


def summarise(
    hits: dict[tuple[str, int, str], list[bool]],
    sizes: dict[tuple[str, int, str], list[int]],
    whole: dict[str, list[int]],
) -> dict[str, Any]:
    """Print the table and return its rows."""
    table = Table(title="planted facts retained, % [95 %]")
    for heading in ("state", "compression", "method", "retained", "facts", "mean KB"):
        table.add_column(heading)
    rows = []
    kinds = [*dict.fromkeys(kind for kind, _, _ in hits)]
    for kind in [*kinds, "all"]:
        for ratio in RATIOS:
            for method in ("asked", "unasked", "Aviary, whole", "head and tail", "recency"):
                keys = [k for k in hits if k[1:] == (ratio, method) and kind in (k[0], "all")]
                found = [hit for key in keys for hit in hits[key]]
                if not found or (kind == "all" and method.startswith("Aviary")):
                    continue
                interval = wilson_interval(sum(found), len(found))
                size = [byte for key in keys for byte in sizes[key]]
                row = {
                    "state": kind,
                    "compression": ratio,
                    "method": method,
                    "retained": sum(found) / len(found),
                    "low": interval.low,
                    "high": interval.high,
                    "facts": len(found),
                    "mean_bytes": sum(size) / len(size),
                }
                rows.append(row)
                share = f"{row['retained'] * 100:.1f} [{interval.low * 100:.1f}, {interval.high * 100:.1f}]"
                kilo = f"{row['mean_bytes'] / 1000:.1f}"
                table.add_row(kind, f"{ratio}x", method, share, str(len(found)), kilo)
    CONSOLE.print(table)
    tokens = {kind: sum(values) / len(values) for kind, values in whole.items()}
    return {"rows": rows, "mean_tokens": tokens}


def timed(function: Callable[[], object], seconds: float) -> float:
    """Calls per second of CPU time."""
    function()
    calls, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        function()
        calls += 1
    return calls / (time.process_time() - start)


TASK = "What is the default of axis?"


def measure_speed() -> dict[str, Any]:
    """Observations per second of CPU time, reading to messages, without models.

    Every state is met for the first time, with one line of it edited (an agent's next step), and once more.
    """
    table = Table(title="observations per second of CPU time")
    for heading in ("state", "tokens at most", "never seen", "one line edited", "seen again"):
        table.add_column(heading, justify="left" if heading == "state" else "right")
    found: dict[str, Any] = {}
    every_state = speed_states()
    # The libraries whose documentation is read leave a million objects behind. To look through them in search
    # of garbage takes as long as ten notebooks, and would fall into one of the short measurements or another.
    gc.collect()
    gc.freeze()
    for name, states, squeezed in every_state:
        for limit in (8192, squeezed):
            run = pipeline(limit)
            for state in states[:5]:  # modules are loaded, parsers are built
                run(state, task=TASK)
            fresh = states[5:]
            edited = [edit(state) for state in fresh]
            rates = [rate(run, fresh), rate(run, edited), rate(run, fresh)]
            found[f"{name}, {limit}"] = dict(zip(("never_seen", "edited", "again"), rates, strict=True))
            table.add_row(name, f"{limit:,}", *(f"{r:,.0f}" for r in rates))
    CONSOLE.print(table)
    texts, code, notebooks = (states for _, states, _ in every_state)
    found["extraction"] = measure_extraction([*texts[:20], *code[:20], *notebooks[:2]])
    return found


def measure_extraction(states: Sequence[Any]) -> dict[str, Any]:
    """Milliseconds of CPU time per part that extraction takes: anew, from the cache on disk, and in memory.

    Every state is read anew each time, so that its parts are hashed again.
    """
    table = Table(title="extraction, ms of CPU time per part")
    for heading in ("extractor", "parts", "anew", "cached on disk", "cached in memory"):
        table.add_column(heading, justify="left" if heading == "extractor" else "right")
    found: dict[str, Any] = {}
    first = {"first.md": "It works in Rome.", "first.py": "first = 1"}  # for it models are loaded
    for name in EXTRACTORS:
        with tempfile.TemporaryDirectory() as folder:
            config = FeaturesConfig(extractors=(name,), cache_folder=folder, timeout_s=600.0)
            with FeatureRunner(config) as runner:
                runner.run(read(first).parts)
                anew, _ = extraction_ms(runner, states)
                in_memory, parts = extraction_ms(runner, states)
            with FeatureRunner(config) as runner:
                runner.run(read(first).parts)
                on_disk, _ = extraction_ms(runner, states)
        found[name] = {"parts": parts, "anew_ms": anew, "disk_ms": on_disk, "memory_ms": in_memory}
        table.add_row(name, f"{parts:,}", *(f"{ms:.3f}" for ms in (anew, on_disk, in_memory)))
    CONSOLE.print(table)
    return found


def extraction_ms(runner: FeatureRunner, states: Sequence[Any]) -> tuple[float, int]:
    """Milliseconds of CPU time per part, and of how many parts there are features."""
    observations = [read(state) for state in states]
    start = time.process_time()
    reports = [runner.run(observation.parts) for observation in observations]
    seconds = time.process_time() - start
    parts = sum(report.hits + report.misses for report in reports)
    return 1e3 * seconds / parts, parts


def speed_states() -> list[tuple[str, list[Any], int]]:
    """Texts and code of about 4 KB, and notebooks of 100 cells, each with a limit that squeezes it."""
    documents = corpus(notebooks=40)
    notebooks = [d.raw | {"cells": d.raw["cells"][:100]} for d in documents if d.kind == "notebook"]
    prose = [_prose(d.raw) for d in documents if d.kind == "notebook"]
    texts = [whole[at : at + 4096] for whole in prose for at in range(0, len(whole) - 4096, 4096)]
    code = [chunk for d in documents if d.kind == "source" for chunk in _statements(d.raw)]
    return [
        ("text of 4 KB", [{"notes.md": Source(text, path="notes.md")} for text in texts], 600),
        ("code of 4 KB", [{"m.py": Source(text, path="m.py")} for text in code], 600),
        ("notebook of 100 cells", notebooks, 3000),
    ]


def _statements(source: str) -> list[str]:
    """Whole statements of a module, about 4 KB at a time."""
    lines, chunks, begin = source.split("\n"), list[str](), 0
    for node in ast.parse(source).body:
        size = sum(len(line) + 1 for line in lines[begin : node.end_lineno])
        if size >= 3_600:
            if size <= 4_800:
                chunks.append("\n".join(lines[begin : node.end_lineno]))
            begin = node.end_lineno or begin
    return chunks


def edit(state: Any) -> Any:
    """The state with one line more."""
    if "cells" in state:
        cells = list(state["cells"])
        at = len(cells) // 2
        cells[at] = cells[at] | {"source": f"{cells[at]['source']}\nprint(1)"}
        return state | {"cells": cells}
    name, source = next(iter(state.items()))
    return {name: Source(f"{source.raw}\nanswer = 42", path=name)}


def rate(run: ObservationPipeline, states: Sequence[Any]) -> float:
    """States per second of CPU time, each once."""
    start = time.process_time()
    for state in states:
        run(state, task=TASK)
    return len(states) / (time.process_time() - start)


def _prose(notebook: dict[str, Any]) -> str:
    return "\n".join(c["source"] for c in notebook["cells"] if c["cell_type"] == "markdown")


def measure_delta() -> dict[str, float]:
    """Bytes and time of the delta after one edited cell of a notebook of 200 cells."""
    import copy

    from sensorium.representations.delta.observation import diff

    cells = [c for d in corpus() if d.kind == "notebook" for c in d.raw["cells"]][:1000]
    found: dict[str, float] = {}
    for count in (50, 200, 800):
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells[:count]}
        for at, cell in enumerate(notebook["cells"]):
            cell["id"] = f"n{at}"
        edited = copy.deepcopy(notebook)
        edited["cells"][count // 2]["source"] += "\nprint(df.describe())"
        old, new = read(notebook), read(edited)
        delta = diff(old, new)
        found[f"share_of_bytes_{count}"] = len(delta.model_dump_json()) / len(new.model_dump_json())
        found[f"ms_{count}"] = 1e3 / timed(lambda old=old, new=new: diff(old, new), 0.5)  # type: ignore[misc]
    CONSOLE.print(found)
    return found


MEASUREMENTS: dict[str, Callable[[int], Any]] = {
    "facts": measure_facts,
    "delta": lambda seeds: measure_delta(),
    "speed": lambda seeds: measure_speed(),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(MEASUREMENTS), default=None)
    parser.add_argument("--seeds", type=int, default=3, help="how often facts are planted, from seed 0")
    parser.add_argument("--output", type=Path, default=RESULTS / "observation.json")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of the libraries whose documentation is read
    load_before = load_average()
    found = {name: measure(args.seeds) for name, measure in MEASUREMENTS.items() if args.only in (None, name)}
    machine = describe_machine() | {"load_before": load_before, "load_after": load_average()}
    versions = installed_versions(PACKAGES)
    write_results(args.output, {"machine": machine, "versions": versions, "seeds": args.seeds} | found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
