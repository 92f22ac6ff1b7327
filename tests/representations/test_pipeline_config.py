"""Every setting of the observation file does something, on an input for which it matters."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from media_parts import picture_part, sound_part
from pydantic import BaseModel

from sensorium.core import ConfigError, ObservationError
from sensorium.llm.messages import AudioBlock, ImageBlock
from sensorium.observations.base import Observation, Part
from sensorium.observations.read import read
from sensorium.representations.base import Level, Representation
from sensorium.representations.config import PipelineConfig
from sensorium.representations.history import History
from sensorium.representations.pipeline import ObservationPipeline

MISSION = """
observation:
  max_tokens: 8192
  compression_ratio: 0.1
multimodal:
  image:
    max_size_kb: 512
    encoding: base64
    quality: 85
  code:
    max_lines: 200
    include_comments: true
context_management:
  keep_original_instruction: true
  keep_previous_actions: 5
  keep_current_state: true
  drop_full_history: true
"""
LOG = "\n".join(
    f"2024-06-01 08:{i // 60:02d}:{i % 60:02d} INFO step {i} took {i * 7 % 90} ms" for i in range(400)
)
CODE = "\n".join(f"def f{i}(x):\n    # comment {i}\n    return x + {i}" for i in range(60))
CURVE = [math.sin(i / 20) * 50 + i for i in range(300)]
NOISE = np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)


class Call(NamedTuple):
    """What a pipeline is called with."""

    raw: Any
    task: str = ""
    history: History = History()


def represent(call: Call, settings: dict[str, Any]) -> Representation:
    pipeline = ObservationPipeline(PipelineConfig().updated(settings))
    return pipeline(call.raw, task=call.task, history=call.history)


def nested(path: str, value: Any) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def merged(*settings: dict[str, Any]) -> dict[str, Any]:
    config = PipelineConfig()
    for one in settings:
        config = config.updated(one)
    return config.model_dump(mode="json")


def picture() -> Observation:
    return Observation(parts=(picture_part(NOISE),))


def linked() -> Observation:
    """A picture that is known by its address, too."""
    part = picture_part(NOISE)
    value = part.value.model_copy(update={"url": "https://example.org/a.png", "width": 800, "height": 600})
    return Observation(parts=(part.model_copy(update={"value": value}),))


def sound() -> Observation:
    return Observation(parts=(sound_part(np.sin(np.arange(48_000) / 9.0).astype(np.float32)),))


def notebook() -> dict[str, Any]:
    output = {
        "output_type": "stream",
        "name": "stdout",
        "text": "\n".join(f"row {i} is {i * i}" for i in range(90)),
    }
    cell = {
        "cell_type": "code",
        "id": "c",
        "metadata": {},
        "execution_count": 1,
        "source": "go()",
        "outputs": [output],
    }
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}


def walked() -> History:
    """Three steps on a short state."""
    history = History()
    pipeline = ObservationPipeline()
    for number in range(3):
        observation = read(f"state number {number}")
        shown = pipeline(observation, task="Find the leak")
        history = history.after(f"look {number}", shown, observation=observation, outcome=f"seen {number}")
    return history


def code_file() -> Observation:
    return read({"a.py": CODE.encode()})


def table() -> Observation:
    rows = "\n".join(f"{a},{b:.3f}" for a, b in enumerate(CURVE))
    return read({"t.csv": f"a,b\n{rows}\n".encode()})


CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    # key: (state, one value, another, settings around them)
    "observation.max_tokens": (lambda: LOG, 2000, 300, {}),
    "observation.compression_ratio": (lambda: LOG, 0.02, 1.0, {"observation": {"max_tokens": 400}}),
    "observation.context_window": (lambda: LOG, None, 1200, {"observation": {"max_tokens": 600}}),
    "observation.reserve": (lambda: LOG, 0.2, 0.6, {"observation": {"max_tokens": 600}}),
    "multimodal.text.max_chars": (lambda: LOG, 400_000, 500, {}),
    "multimodal.code.max_lines": (code_file, 200, 20, {}),
    "multimodal.code.include_comments": (code_file, True, False, {}),
    "multimodal.notebook.max_output_lines": (notebook, 400, 10, {}),
    "multimodal.table.max_rows": (table, 50, 5, {}),
    "multimodal.table.plot": (
        table,
        "auto",
        "never",
        {"observation": {"max_tokens": 1500}, "multimodal": {"table": {"max_rows": 300}}},
    ),
    "multimodal.image.max_size_kb": (picture, 512, 20, {}),
    "multimodal.image.encoding": (linked, "base64", "url", {"multimodal": {"image": {"max_size_kb": 4096}}}),
    "multimodal.image.quality": (picture, 85, 20, {}),
    "multimodal.image.max_side_px": (picture, 2048, 200, {}),
    "multimodal.image.thumbnail_px": (
        picture,
        256,
        64,
        {"observation": {"max_tokens": 130}, "tokens": {"image_rule": {"type": "patches"}}},
    ),
    "multimodal.audio.encoding": (sound, "transcript", "native", {}),
    "multimodal.audio.max_seconds": (sound, 60, 1, {"multimodal": {"audio": {"encoding": "native"}}}),
    "context_management.keep_original_instruction": (lambda: LOG, True, False, {}),
    "context_management.keep_previous_actions": (lambda: LOG, 5, 1, {}),
    "context_management.keep_current_state": (lambda: LOG, True, False, {}),
    "context_management.drop_full_history": (lambda: LOG, True, False, {}),
}


def leaves(model: type[BaseModel], above: str) -> set[str]:
    found = set()
    for name, field in model.model_fields.items():
        kind = field.annotation
        path = f"{above}.{name}"
        found |= leaves(kind, path) if isinstance(kind, type) and issubclass(kind, BaseModel) else {path}
    return found


def test_the_missions_file_is_accepted_as_it_is(tmp_path: Path):
    path = tmp_path / "observation.yaml"
    path.write_text(MISSION)
    pipeline = ObservationPipeline.from_config(path)
    config = pipeline.config
    assert (config.observation.max_tokens, config.observation.compression_ratio) == (8192, 0.1)
    assert config.multimodal.image.max_size_kb == 512
    assert config.context_management.keep_previous_actions == 5
    rep = pipeline({"log": LOG, "a.py": CODE.encode()}, task="Which step is slowest?")
    assert rep.num_tokens <= 8192
    assert rep.messages[0].text.startswith("## Task\nWhich step is slowest?")


def test_overrides_lie_over_the_file(tmp_path: Path):
    path = tmp_path / "observation.yaml"
    path.write_text(MISSION)
    pipeline = ObservationPipeline.from_config(path, {"observation": {"max_tokens": 333}})
    assert pipeline.config.observation.max_tokens == 333
    assert pipeline.config.observation.compression_ratio == 0.1
    assert pipeline(LOG).num_tokens <= 333


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("observation.max_token", "max_tokens"),
        ("observation.compresion_ratio", "compression_ratio"),
        ("multimodal.image.max_size", "max_size_kb"),
        ("multimodal.code.max_line", "max_lines"),
        ("multimodal.images", "image"),
        ("context_management.keep_actions", "keep_previous_actions"),
        ("context_managment", "context_management"),
    ],
)
def test_unknown_keys_name_the_nearest(tmp_path: Path, path: str, near: str):
    file = tmp_path / "observation.yaml"
    file.write_text(yaml.safe_dump(nested(path, 3)))
    with pytest.raises(ConfigError) as error:
        ObservationPipeline.from_config(file)
    assert f"Unknown setting '{path}'. Did you mean" in str(error.value)
    assert repr(near) in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("observation.max_tokens", 0),
        ("observation.compression_ratio", 0),
        ("observation.compression_ratio", 1.5),
        ("observation.context_window", 100),
        ("multimodal.image.quality", 101),
        ("multimodal.image.encoding", "png"),
        ("context_management.keep_previous_actions", -1),
    ],
)
def test_values_out_of_range_are_errors_that_name_the_setting(path: str, value: Any):
    with pytest.raises(ConfigError, match=path.split(".")[0]):
        PipelineConfig().updated(nested(path, value))


def test_every_setting_of_the_three_sections_has_its_case():
    fields = PipelineConfig.model_fields
    known: set[str] = set()
    for section in ("observation", "multimodal", "context_management"):
        kind = fields[section].annotation
        assert kind is not None
        known |= leaves(kind, section)
    assert set(CASES) == known


@pytest.mark.parametrize("path", CASES)
def test_every_setting_changes_the_messages(path: str):
    make, first, second, around = CASES[path]
    history = walked() if path.startswith("context_management") else History()
    call = Call(make(), "Find the leak", history)
    one = represent(call, merged(around, nested(path, first)))
    other = represent(call, merged(around, nested(path, second)))
    assert one.messages != other.messages
    assert represent(call, merged(around, nested(path, first))).messages == one.messages


def test_the_size_limit_of_pictures_is_kept():
    for limit in (20, 5):
        rep = represent(Call(picture()), nested("multimodal.image.max_size_kb", limit))
        block = next(b for b in rep.state if isinstance(b, ImageBlock))
        assert len(block.url.partition(",")[2]) * 3 / 4 <= limit * 1024


def test_lines_of_code_are_limited_and_comments_left_out():
    short = represent(Call(code_file()), nested("multimodal.code.max_lines", 20)).messages[-1].text
    assert 10 < short.count("\n") < 40
    bare = represent(Call(code_file()), nested("multimodal.code.include_comments", False)).messages[-1].text
    assert "# comment" not in bare
    assert "return x + 59" in bare


def test_sound_is_sent_as_it_is_for_models_that_hear():
    rep = represent(Call(sound()), nested("multimodal.audio.encoding", "native"))
    assert [b.duration_s for b in rep.state if isinstance(b, AudioBlock)] == [3.0]


def test_a_ratio_of_one_sends_parts_whole_or_not_at_all():
    rep = represent(
        Call({"a.log": LOG.encode(), "b.txt": b"short"}),
        {"observation": {"max_tokens": 500, "compression_ratio": 1.0}},
    )
    assert {entry.level for entry in rep.account.entries} <= {Level.FULL, Level.REFERENCE, Level.DROPPED}


def test_four_fifths_of_the_window_are_for_the_state():
    rep = represent(Call(LOG, "Find the leak"), nested("observation.max_tokens", 1000))
    assert rep.account.state_limit == 800
    assert 600 < rep.account.state_tokens <= 800


def test_without_state_there_are_instruction_and_actions_alone():
    rep = represent(
        Call(LOG, "Find the leak", walked()), nested("context_management.keep_current_state", False)
    )
    assert rep.messages[-1].text == (
        "## Task\nFind the leak\n## Previous actions\n"
        "1. look 0 -> seen 0\n2. look 1 -> seen 1\n3. look 2 -> seen 2"
    )
    assert rep.account.entries == ()


def test_earlier_states_are_turns_when_history_is_kept():
    rep = represent(
        Call("now", "Find the leak", walked()), nested("context_management.drop_full_history", False)
    )
    assert [message.role for message in rep.messages] == ["user", "assistant"] * 3 + ["user"]
    assert "state number 1" in rep.messages[2].text
    assert rep.messages[3].text == "look 1\n-> seen 1"


def test_an_instruction_that_does_not_fit_says_what_would():
    with pytest.raises(
        ObservationError, match=r"takes \d+ tokens; observation.max_tokens is 10. Raise it to"
    ):
        represent(Call(Part, "word " * 100), nested("observation.max_tokens", 10))
