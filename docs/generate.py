"""MkDocs hook: tables that are made from the code while the pages are built, so that they cannot drift.

A page asks for one with ``<!-- generate: NAME -->`` or ``<!-- generate: NAME ARGUMENT -->``. A name that
does not exist stops the build.
"""

import argparse
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from mkdocs.exceptions import PluginError
from run_examples import example, extractor_rows, named_constants, printed, said, source, text_of

from sensorium.core import Config

ROOT = Path(__file__).parents[1]
_REQUEST = re.compile(r"^( *)<!-- generate: ([\w-]+)(?: (\S+))? -->", re.MULTILINE)
_METRIC = re.compile(r'"((?:[a-z]+/[^"\s]+)|lr)"')
_LOSS = re.compile(r'losses\["(\w+)"\] = ')
_TRAINERS = ("ppo.py", "dapo.py", "diagnostics.py", "curriculum.py", "training.py")
"""Files of `sensorium.trainers` that write metrics."""
_LANGUAGE_TRAINERS = ("language/grpo.py", "language/told.py", "language/credit.py", "language/learner.py")
"""Those that train language models."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the tables that a page asks for."""

    def fill(match: re.Match[str]) -> str:
        indent, name, argument = match[1], match[2], match[3]
        if name not in GENERATORS:
            raise PluginError(f"{page.file.src_uri}: no table {name!r}; there are {', '.join(GENERATORS)}")
        made = GENERATORS[name](*([argument] if argument else []))
        return textwrap.indent(made, indent)  # inside a list

    return _REQUEST.sub(fill, markdown)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def _code(value: Any) -> str:
    return f"`{value}`"


def _codes(names: Iterable[Any]) -> str:
    return ", ".join(_code(name) for name in names) or "–"


def metrics(rooms: str = "") -> str:
    """Every metric that training writes, or those of some rooms (``gate,contribution``), with its meaning."""
    return _metrics_of(_TRAINERS, rooms)


def language_metrics(rooms: str = "") -> str:
    """The same of the training of language models' agents."""
    return _metrics_of(_LANGUAGE_TRAINERS, rooms)


def _metrics_of(files: Sequence[str], rooms: str) -> str:
    from sensorium.metrics.names import METRIC_MEANINGS, meaning

    written: set[str] = set()
    for name in files:
        source = (ROOT / "src/sensorium/trainers" / name).read_text()
        written |= {_without_fields(metric) for metric in _METRIC.findall(source)}
        written |= {f"loss/{term}" for term in _LOSS.findall(source)}
    own = {name: meaning(name) for name in written - {_without_fields(name) for name in METRIC_MEANINGS}}
    if unexplained := {name for name, sentence in own.items() if sentence is None}:
        raise PluginError(f"Metrics that METRIC_MEANINGS does not explain: {sorted(unexplained)}")
    wanted = rooms.split(",") if rooms else sorted({name.partition("/")[0] for name in written})
    meanings = METRIC_MEANINGS | {name: str(sentence) for name, sentence in sorted(own.items())}
    found = [
        name for name in meanings if _without_fields(name) in written and name.partition("/")[0] in wanted
    ]
    if empty := set(wanted) - {name.partition("/")[0] for name in found}:
        raise PluginError(f"Training writes no metrics in the rooms {sorted(empty)}")
    return _table(("metric", "what it says"), [(_code(name), meanings[name]) for name in found])


def metric_meanings(room: str) -> str:
    """Every metric of a room with its meaning, also those that training does not write."""
    from sensorium.metrics.names import METRIC_MEANINGS

    rows = [
        (_code(name), meaning) for name, meaning in METRIC_MEANINGS.items() if name.startswith(f"{room}/")
    ]
    return _table(("metric", "what it says"), rows)


def _without_fields(name: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", name)


def config(target: str) -> str:
    """Fields of a config class, given as ``module:Class``."""
    module, _, name = target.partition(":")
    config_type = getattr(importlib.import_module(module), name)
    rows = [
        (_code(field), _default(info), _meaning(field, info))
        for field, info in config_type.model_fields.items()
    ]
    return _table(("setting", "default", "meaning"), rows)


def _meaning(field: str, info: Any) -> str:
    if info.description or field == "type":
        return info.description or "Name of this alternative."
    default = info.get_default(call_default_factory=True)
    return (inspect.getdoc(type(default)) or "").split("\n", 1)[0] if isinstance(default, Config) else "–"


def fields(target: str) -> str:
    """Fields of a type that is no config, given as ``module:Class``."""
    module, _, name = target.partition(":")
    rows = [
        (_code(field), _type(info.annotation), info.description or "")
        for field, info in getattr(importlib.import_module(module), name).model_fields.items()
        if field != "kind"
    ]
    return _table(("field", "type", "meaning"), rows)


def _bare(annotation: Any) -> Any:
    """A type without what validators and limits add to it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bare(arguments[0])
    if not arguments or origin in (Literal, np.ndarray) or any(isinstance(one, list) for one in arguments):
        # a list: the arguments of a function
        return annotation
    bare = tuple(map(_bare, arguments))
    return reduce(or_, bare) if origin in (Union, UnionType) else origin[bare]


def _type(annotation: Any) -> str:
    annotation = _bare(annotation)
    text = (
        annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
    )
    text = re.sub(r"\b(?:typing|[a-z_]+(?:\.[a-z_]+)+)\.", "", text)
    return _code(text.replace("str | bool | int | float | None", "Cell").replace(" | ", " or "))


def _default(info: Any) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    if isinstance(default, Config):
        return "see its own table"
    if isinstance(default, tuple):
        return _code("[" + ", ".join(map(str, default)) + "]")
    return _code(
        "null" if default is None else str(default).lower() if isinstance(default, bool) else default
    )


def sizes() -> str:
    """The ladder of network sizes: what differs between them."""
    from sensorium.nn.config import SIZES, ConvConfig, SpaceTimeConfig

    def vision(encoder: ConvConfig | SpaceTimeConfig) -> str:
        if isinstance(encoder, ConvConfig):
            return f"{_code('conv')}, channels {encoder.channels}, {encoder.cell_size} pixels per token"
        return (
            f"{_code('space_time')}, patch {encoder.patch_size}, {encoder.num_frames} frames, "
            f"{encoder.depth} blocks of {encoder.embed_dim}"
        )

    rows = []
    for name, size in SIZES.items():
        fusion, images = size.fusion[0], size.image_sizes
        rows.append(
            (
                _code(name),
                "any" if images is None else "–".join(str(side) for side in dict.fromkeys(images)),
                vision(size.vision[0]),
                vision(size.depth[0]),
                f"{fusion.embed_dim}; {fusion.features} → {fusion.hidden_dim}",
            )
        )
    header = ("size", "image_size", "rgb", "depth", "summaries; fused vector → LSTM")
    return _table(header, rows)


def tasks(backend: str) -> str:
    """Tasks of a backend: what to do, what is needed, the step limit."""
    from sensorium.envs.embodied.registry import list_tasks

    rows = [
        (
            _code(task.name),
            task.summary,
            " and ".join(" or ".join(map(_code, group)) for group in task.needs) or "–",
            str(task.default_max_steps),
        )
        for task in list_tasks().values()
        if task.name.startswith(f"{backend}/")
    ]
    return _table(("task", "what to do", "needs", "steps"), rows)


def scenarios() -> str:
    """Actions and success rule of each ViZDoom scenario."""
    from sensorium.core import ActionKind
    from sensorium.envs.embodied.doom.actions import ActionTable
    from sensorium.envs.embodied.doom.scenarios import SCENARIOS

    rows = []
    for scenario in SCENARIOS.values():
        discrete, continuous, hybrid = (ActionTable(scenario, kind).spec for kind in ActionKind)
        both = f"{_codes(hybrid.option_names)} with {_codes(hybrid.continuous_names)}"
        kills = f" ({scenario.kills})" if scenario.kills else ""
        rows.append(
            (
                _code(f"doom/{scenario.name}"),
                f"{scenario.rule}{kills}",
                _codes(discrete.option_names),
                _codes(continuous.continuous_names),
                both,
            )
        )
    return _table(("task", "solved by", "discrete", "continuous", "hybrid"), rows)


def presets() -> str:
    """Name, purpose, task and sensors of each preset of a policy network."""
    from sensorium.presets import EMBODIED

    rows = []
    for name, build in EMBODIED.items():
        made = build()
        summary = (inspect.getdoc(build) or "").split("\n", 1)[0]
        rows.append((_code(name), summary, _code(made.env.task), _codes(made.env.sensor_names)))
    return _table(("preset", "what it trains", "task", "sensors"), rows)


def language_presets() -> str:
    """Name, purpose, environment and model of each preset of a language model's agent."""
    from sensorium.presets import LANGUAGE

    rows = []
    for name, build in LANGUAGE.items():
        made = build()
        summary = (inspect.getdoc(build) or "").split("\n", 1)[0]
        rows.append((_code(name), summary, _code(made.env), _code(made.model.model)))
    return _table(("preset", "what it trains", "environment", "model"), rows)


def models() -> str:
    """Packaged pretrained weights."""
    from sensorium.features.models import PACKAGED_MODELS

    rows = [(_code(m.name), m.summary, f"{m.size_mb:.0f} MB", m.licence) for m in PACKAGED_MODELS.values()]
    return _table(("name", "what it is", "size", "licence"), rows)


def senses() -> str:
    """Which sense the sensors of each setting belong to."""
    from sensorium.envs.embodied import EmbodiedEnvConfig
    from sensorium.evals.missing_modality import senses_of

    settings: dict[str, tuple[str, ...]] = {
        "visual_obs": ("rgb", "depth"),
        "audio_obs": ("speech", "env_sound"),
        "text_obs": ("instruction", "notifications"),
    }
    config = EmbodiedEnvConfig.model_validate({"task": "arena/find", "proprio": True} | settings)
    sense_of = senses_of(config)
    rows = [
        (_code(name), ", ".join(map(_code, sensors)) + " and others of a backend", sense_of[sensors[0]])
        for name, sensors in settings.items()
    ]
    rows.append((_code("proprio"), _code("proprio"), sense_of["proprio"]))
    return _table(("setting", "sensors", "sense"), rows)


def command(verb: str = "") -> str:
    """Help text of the command or of one verb."""
    from sensorium.cli.main import build_parser

    parser = build_parser()
    for name in verb.split(".") if verb else ():
        (choices,) = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        parser = choices[name]
    os.environ["COLUMNS"] = "88"
    return f"```text\n{parser.format_help().rstrip()}\n```"


OBSERVE = {
    "report": [
        "report.ipynb",
        "houses.csv",
        "--task",
        "Why does the regression fail?",
        "--max-tokens",
        "2500",
    ],
    "delta": ["report.ipynb", "fixed.ipynb", "--delta"],
}
"""Examples of the command on files in ``docs/examples``."""


def observe(example: str) -> str:
    """What ``sensorium observe`` prints for one of `OBSERVE`."""
    arguments = ["observe", *OBSERVE[example]]
    done = subprocess.run(
        [sys.executable, "-m", "sensorium.cli.main", *arguments],
        cwd=ROOT / "docs/examples",
        env=os.environ | {"COLUMNS": "110", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise PluginError(f"{shlex.join(arguments)} failed: {done.stderr}")
    printed = done.stdout.rstrip()
    return f"`````text\n$ sensorium {shlex.join(arguments)}\n{printed}\n`````"


def constants(target: str) -> str:
    """Documented constants of a module, given as ``module`` or ``module:FIRST,SECOND``."""
    rows = [(_code(name), _code(value), meaning) for name, value, meaning in named_constants(target)]
    return _table(("constant", "value", "meaning"), rows)


def extractors() -> str:
    """Every extractor: what it finds, and in which parts."""
    rows = [(_code(name), finds, reads) for name, finds, reads in extractor_rows()]
    return _table(("extractor", "what it finds", "in"), rows)


def raw_states() -> str:
    """What `sensorium.read` takes, from the table in its module's docstring."""
    from sensorium.observations import read as function

    lines = (inspect.getdoc(sys.modules[function.__module__]) or "").split("\n")
    rows = [[*re.split(r"\s{2,}", line, maxsplit=1), "what it is"][:2] for line in lines[2:] if line]
    return _table(("raw state", "is read as"), rows)


def errors() -> str:
    """The tree of errors, from the docstring of its module."""
    from sensorium.core import errors as module

    text = inspect.getdoc(module) or ""
    drawn = [line for line in text.split("\n") if line.startswith("    ")]
    return "```text\n" + inspect.cleandoc("\n".join(drawn)) + "\n```"


GENERATORS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        metrics,
        language_metrics,
        metric_meanings,
        config,
        fields,
        sizes,
        tasks,
        scenarios,
        presets,
        language_presets,
        models,
        senses,
        command,
        observe,
        example,
        source,
        printed,
        constants,
        text_of,
        said,
        raw_states,
        extractors,
        errors,
    )
}
