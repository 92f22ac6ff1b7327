"""Examples of the documentation run, and show what the pages say of them."""

import contextlib
import functools
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply, completion

from sensorium import ObservationPipeline, PipelineConfig
from sensorium.features.extractors.registry import EXTRACTORS
from sensorium.llm.client import OpenAIChatModel

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
WITH_ENDPOINT = {"agent_loop", "safety"}


@functools.cache
def printed(name: str) -> str:
    """What an example prints when it runs as its page runs it."""
    out = io.StringIO()
    with contextlib.chdir(EXAMPLES), contextlib.redirect_stdout(out):
        runpy.run_path(f"{name}.py", run_name="__main__")
    return out.getvalue()


def functions(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(EXAMPLES)
    return runpy.run_path(f"{name}.py", run_name="example")


PLAIN = sorted({path.stem for path in EXAMPLES.glob("*.py")} - WITH_ENDPOINT)


@pytest.mark.parametrize("name", PLAIN)
def test_an_example_runs_and_prints(name: str) -> None:
    assert printed(name).strip()


def test_the_one_call_stays_in_its_budget_and_keeps_the_error() -> None:
    shown = printed("one_call")
    assert int(shown.split()[0]) <= 1200
    assert re.search(r"cell-fit/output-0 +full .*error", shown)


def test_the_line_that_matters_is_found_in_300() -> None:
    shown = printed("text")
    assert "batch 211 was not written" in shown
    assert "[... lines" in shown
    assert "Never delete data without asking." in shown


def test_what_the_owner_knows_of_a_field_is_told() -> None:
    shown = printed("structured")
    assert "voltage of the cell" in shown
    assert "s17" in shown


def test_code_comes_with_its_state() -> None:
    shown = printed("code")
    for said in (
        "KeyError: 'Price'",
        "tests/test_prices.py::test_mean",
        "rows = ",
        "ruff check",
        "16     prices",
    ):
        assert said in shown


def test_a_picture_meets_its_limits_and_is_sent_once() -> None:
    shown = printed("image")
    width, kilobytes = map(int, re.search(r"\[picture (\d+)x\d+, (\d+) kB\]", shown).groups())
    assert width <= 1024
    assert kilobytes <= 200
    assert shown.count("[picture") == 1
    assert "same as ref:camera" in shown


def test_beeps_and_noise_are_heard() -> None:
    shown = printed("audio")
    assert "tone" in shown
    assert "noise" in shown
    assert re.search(r"^audio 2\.0$", shown, re.MULTILINE)


def test_changes_cost_a_fraction_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = functions("notebook_steps", monkeypatch)["costs"]
    whole = costs(delta={"enabled": False})
    changes = costs(context_management={"drop_full_history": False})
    assert whole[0] == changes[0]
    for (_, state), (_, change) in zip(whole[1:], changes[1:], strict=True):
        assert change < 0.05 * state


def test_a_session_in_another_process_writes_the_same_prompt() -> None:
    assert printed("resume") == "True\n"


def test_fewer_tokens_never_say_more() -> None:
    shares = [float(share) for share in re.findall(r"facts ([\d.]+)", printed("metrics"))]
    assert len(shares) == 4
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "id": f"call-{name}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def calling(*calls: dict[str, Any]) -> Reply:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return Reply(body=json.dumps(completion("", message=message, finish_reason="tool_calls")).encode())


def test_the_agent_loop_looks_edits_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    example = functions("agent_loop", monkeypatch)
    notebook = json.loads(Path("report.ipynb").read_text())
    replies = [
        calling(call("fetch_part", ref="ref:report.ipynb/cell-train/output-0", start=400)),
        calling(call("edit_cell", cell="cell-fit", source="coef = 1")),
        Reply("The column is called price."),
    ]
    with ChatServer(replies) as server:
        session = example["repair"](OpenAIChatModel(server.base_url, "m"), notebook, "Make it work.")
    assert [step.action for step in session.history.steps] == [
        "edit_cell(cell-fit)",
        "The column is called price.",
    ]
    assert next(cell for cell in notebook["cells"] if cell["id"] == "fit")["source"] == "coef = 1"
    looked, after, last = (asked.payload["messages"] for asked in server.asked)
    assert [message["role"] for message in looked] == ["system", "user"]
    assert "epoch 399" in after[-1]["content"]
    assert after[-1]["tool_call_id"] == "call-fetch_part"
    assert "1. edit_cell(cell-fit) -> edited" in str(last[-1]["content"])


def test_unsafe_pictures_and_those_nobody_could_judge_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    observe = functions("safety", monkeypatch)["observe"]

    def judged(reply: Reply) -> Any:
        def answer(_: Asked) -> Reply:
            return reply

        with ChatServer(answer) as server:
            shown = observe(Path("report.ipynb"), server.base_url, "judge-7b", cache=False)
        return shown.account.entry("report.ipynb/cell-plot/output-0")

    assert judged(Reply('{"verdict": "safe", "categories": [], "reason": "A plot."}')).level == "full"
    unsafe = judged(Reply('{"verdict": "unsafe", "categories": ["hate"], "reason": "A symbol."}'))
    assert unsafe.level != "full"
    assert judged(Reply("I would rather not say.")).level != "full"


def test_the_configuration_on_the_page_is_accepted() -> None:
    config = ObservationPipeline.from_config(EXAMPLES / "observation.yaml").config
    assert config.observation.max_tokens == 8192
    assert config.multimodal.image.max_size_kb == 1024


def test_every_example_stands_on_a_page() -> None:
    pages = "\n".join(path.read_text() for path in DOCS.rglob("*.md"))
    shown = set(re.findall(r"<!-- generate: (?:example|source|printed) ([\w.]+) -->", pages))
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {Path(name).stem for name in shown} - {
        "observation"
    }


def test_the_readme_shows_what_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    section = Path("README.md").read_text().partition("## What an LLM sees")[2]
    names: dict[str, Any] = {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    representation = names["representation"]
    assert representation.account.entry("report.ipynb/cell-fit/output-0").why.startswith("whole (error")
    assert representation.num_tokens <= names["pipeline"].config.observation.max_tokens


def test_every_section_of_the_configuration_is_explained() -> None:
    page = (DOCS / "observations/configuration.md").read_text()
    for name in PipelineConfig.model_fields:
        assert f"\n## {name}\n" in page, name


def test_every_extractor_is_explained() -> None:
    page = (DOCS / "observations/features.md").read_text()
    for name in EXTRACTORS:
        assert f"\n### {name}\n" in page, name
        assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), name
