"""The exact messages of ten real inputs.

A change of what an agent reads shows in the diff of ``tests/golden/messages``. To accept it, write the
files anew and look at them:

    SENSORIUM_UPDATE_GOLDEN=1 pytest tests/golden
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sensorium.llm.messages import AudioBlock, ImageBlock, Message, TextBlock
from sensorium.observations.base import Observation
from sensorium.observations.code import CodeState, read_code
from sensorium.observations.read import read
from sensorium.representations.config import PipelineConfig
from sensorium.representations.pipeline import ObservationPipeline

HERE = Path(__file__).parent
INPUTS, MESSAGES = HERE / "inputs", HERE / "messages"
UPDATE = "SENSORIUM_UPDATE_GOLDEN"


def table() -> Observation:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "city": [
                "Aachen",
                "Bonn",
                "Celle",
                "Dresden",
                "Emden",
                "Fulda",
                "Gera",
                "Halle",
                "Ilmenau",
                "Jena",
            ],
            "people": [249070, 336465, 69540, 563311, 49913, 68635, 93634, 242083, 39017, 110791],
            "area_km2": [160.85, 141.06, 176.05, 328.48, 112.34, 104.05, 152.18, 135.03, 198.69, None],
            "has_tram": [False, True, False, True, False, False, True, True, False, True],
        }
    )
    return read(frame, name="cities")


def code() -> Observation:
    parts = read_code(
        (INPUTS / "scheduler.py").read_text(),
        part_id="scheduler.py",
        path="scheduler.py",
        language="python",
        state=CodeState(cursor=46, variables={"jobs": {}, "name": "b", "start": 1.5}),
    )
    return Observation(parts=tuple(parts))


def file(name: str) -> Callable[[], Observation]:
    return lambda: read(INPUTS / name)


CASES: Mapping[str, tuple[Callable[[], Observation], int, str]] = {
    "notebook": (file("houses.ipynb"), 700, "Why does the feature matrix fail?"),
    "dataframe": (table, 400, "Which cities have a tram?"),
    "csv": (file("meters.csv"), 600, "Which meter had a brownout?"),
    "traceback": (file("crash.txt"), 250, "Fix the settlement of orders"),
    "code": (code, 420, "late() raises KeyError"),
    "json": (file("orders.json"), 500, "Who has not paid?"),
    "markdown": (file("protocol.md"), 220, "What is the tolerance of cell B?"),
    "log": (file("service.log"), 350, "Why is order 88213 unpaid?"),
    "picture": (
        lambda: read({"panel.png": INPUTS / "panel.png", "note": "The panel turned red at 14:02."}),
        600,
        "What colour is the panel?",
    ),
    "sound": (file("alarm.wav"), 200, "What is to be heard?"),
    "directory": (file("shop"), 900, "Make the tests pass"),
}
"""Name -> input, tokens and task."""


def shown(block: Any) -> dict[str, Any]:
    """A block as it is written down: of pictures the size, as encoded bytes differ between libraries."""
    match block:
        case TextBlock(text=text):
            return {"text": text.split("\n")}
        case ImageBlock(url=url, width=width, height=height):
            return {"image": [width, height], "url": url.partition(",")[0]}
        case AudioBlock(format=kind, duration_s=duration_s):
            return {"audio": kind, "duration_s": round(duration_s, 3)}
    raise AssertionError(f"a block of type {block.type}")


def written(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [shown(block) for block in message.content]}


@pytest.mark.parametrize("name", CASES)
def test_messages(name: str):
    make, max_tokens, task = CASES[name]
    config = PipelineConfig().updated({"observation": {"max_tokens": max_tokens}})
    rep = ObservationPipeline(config)(make(), task=task)
    found = {
        "task": task,
        "max_tokens": max_tokens,
        "num_tokens": rep.num_tokens,
        "messages": [written(message) for message in rep.messages],
        "account": {entry.part_id: f"{entry.level}: {entry.why}" for entry in rep.account.entries},
    }
    path = MESSAGES / f"{name}.json"
    if os.environ.get(UPDATE):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8")), (
        f"to accept it: {UPDATE}=1 pytest tests/golden"
    )


def test_every_golden_file_has_its_case():
    assert {path.stem for path in MESSAGES.iterdir()} == set(CASES)
