import base64
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from html_page import Page
from language_runs import conversation, kept, make_language_run, metric_row, picture, with_tools
from PIL import Image

from sensorium.analysis import RunDirectory, read_language_summary, write_language_report
from sensorium.analysis.language_episodes import shown_updates
from sensorium.analysis.pictures import MAX_EMBEDDED_SIDE, embedded_picture
from sensorium.core import RunDirectoryError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_language_run(tmp_path / "lookup_step_grpo-1" / "7-0a1b2c3d")


def page_of(run: Path) -> Page:
    return Page(write_language_report(run).read_text())


def test_the_headline_says_what_was_learnt_and_how(run: Path) -> None:
    page = page_of(run)
    for text in (
        "lookup_step_grpo-1/7-0a1b2c3d",
        "smollm2",
        "adapters of rank 16",
        "75 %",
        "58–87 %",
        "32 tasks of split test",
        "0.125 in the first update",
        "0.375 in the last",
        "12,729",
        "4 min 12 s",
        "steps of a task in the same state; 8 episodes of each of 4 tasks per update",
    ):
        assert text in page.text.replace(" ,", ","), text


@pytest.mark.parametrize(
    ("unit", "algo", "words"),
    [
        ("trajectory", {}, "whole episodes of a task;"),
        ("gigpo", {}, "whole episodes of a task, and their steps in the same state;"),
        ("step", {"group_by": "task_step"}, "steps of a task that have the same number;"),
        ("step", {"near": {"threshold": 0.9}}, "in the same state, or in one that is nearly so;"),
        ("trajectory", {"near": {"threshold": 0.9}}, "whole episodes of a task;"),
    ],
)
def test_what_is_compared_is_said_in_words(
    tmp_path: Path, unit: str, algo: dict[str, object], words: str
) -> None:
    run = make_language_run(tmp_path / "run", unit=unit)
    config = json.loads((run / "config.json").read_text())
    config["config"]["algo"] |= algo
    shutil.rmtree(run / "episodes")
    (run / "config.json").write_text(json.dumps(config))
    assert words in page_of(run).text.replace(" ;", ";")


def test_the_page_stands_alone(run: Path) -> None:
    page = page_of(run)
    assert not [tag for tag, _ in page.seen if tag in ("script", "link", "iframe")]
    sources = [
        value or "" for _, attrs in page.seen for key, value in attrs.items() if key in ("src", "href")
    ]
    assert sources
    assert all(source.startswith("data:") for source in sources)


def test_every_chart_is_explained(run: Path) -> None:
    page = write_language_report(run).read_text()
    cards = re.findall(r'<figure class="card">(.*?)</figure>', page, re.DOTALL)
    headings = [re.findall("<h3>(.*?)</h3>", card)[0] for card in cards]
    assert all('<p class="explanation">' in card for card in cards)
    assert headings[:2] == ["Success", "Return"]
    wanted = {"Episodes without signal", "Steps alone in their group", "Entropy", "KL divergence"}
    wanted |= {"Clip fractions", "Ratio", "Length of prompts", "Length of answers", "Answers cut off"}
    wanted |= {"Tool calls per episode", "Tool calls that failed", "Tokens per second", "Seconds per update"}
    assert wanted <= set(headings)
    quiet = {"Groups left out", "Rounds of playing", "Episodes at the step limit", "Failed episodes"}
    assert not quiet & set(headings)
    assert "over updates" in page
    assert "environment steps" not in page


def test_the_outcome_is_drawn_where_groups_were_left_out(run: Path) -> None:
    assert "count in it" not in page_of(run).text
    rows = [metric_row(update) | {"rollout/outcome": 1.0, "groups/left_out": 2.0} for update in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = page_of(run).text
    assert "groups that were left out count in it" in text
    assert "Groups left out" in text


def test_episodes_of_the_first_middle_and_last_update_are_shown(run: Path) -> None:
    for number in (3, 4, 5):
        (run / "episodes" / f"{number:06d}.json").write_text(kept([with_tools("late")]))
    assert [one.update for one in shown_updates(run)] == [1, 3, 6]
    first = shown_updates(run)[0]
    assert [one.total_reward for one in first.episodes] == ["1", "0.8", "0.2", "0"]
    assert [one.status for one in first.episodes] == ["success"] * 3 + ["failure"]


@pytest.mark.parametrize(("count", "updates"), [(0, []), (1, [1]), (2, [1, 2])])
def test_few_updates_are_each_shown_once(run: Path, count: int, updates: list[int]) -> None:
    for number in range(count, 3):
        (run / "episodes" / f"{number:06d}.json").unlink()
    assert [one.update for one in shown_updates(run)] == updates
    assert ("episodes" in page_of(run).headings()) == bool(updates)


def test_an_episode_reads_as_a_conversation(run: Path) -> None:
    text = page_of(run).text
    for wanted in (
        "read 123 tokens: The shop is open.",
        "You are a clerk.",
        "look({broken)",
        "unknown_tool",
        'lookup(item="lamp", attribute="price")',
        "<script>alert('x')</script> & \\x1b[31mred",
        "cut off at the limit of tokens",
    ):
        assert wanted in text, wanted
    assert "read 123 tokens: It costs 12.5." in text
    assert "read 123 tokens: No, not 3." in text


def test_what_a_conversation_repeats_is_shown_once(run: Path) -> None:
    shown = shown_updates(run)[1].episodes[0]
    assert [one.role for one in shown.steps[0].messages] == ["user"]
    assert [piece.text for message in shown.steps[2].messages for piece in message.pieces] == ["No, not 1."]
    assert [(one.number, one.num_left_out) for one in shown.steps[7:10]] == [(8, 0), (17, 8), (18, 0)]
    assert shown.steps[8].gist == "No, not 15."
    assert "… 8 steps are not shown …" in page_of(run).text


def test_pictures_are_small_and_shown_once(run: Path) -> None:
    step = shown_updates(run)[0].episodes[0].steps[0]
    assert [piece.text for piece in step.pictures] == ["picture of 640 × 480 pixels"]
    assert step.messages[1].pieces[2].text == "picture of 640 × 480 pixels, shown below"
    data = base64.b64decode(step.pictures[0].uri.partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (MAX_EMBEDDED_SIDE, MAX_EMBEDDED_SIDE * 3 // 4)


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,!!", "data:image/png;base64,aGVsbG8=", "data:image/png", "data:,"]
)
def test_what_is_no_picture_is_said_to_be_none(url: str) -> None:
    assert embedded_picture(url) is None


def test_a_cut_picture_is_said_to_be_unreadable(run: Path) -> None:
    block = picture(50, 50)
    assert embedded_picture(block.url[:120]) is None
    whole = with_tools("a").model_dump_json()
    assert picture().url in whole
    (run / "episodes" / "000000.json").write_text(f"[{whole.replace(picture().url, block.url[:120])}]")
    assert "picture of 640 × 480 pixels, unreadable" in page_of(run).text
    far = whole.replace(picture().url, "https://example.org/a.png")
    (run / "episodes" / "000000.json").write_text(f"[{far}]")
    assert "at https://example.org/a.png, not loaded" in page_of(run).text


def test_long_texts_are_shortened_and_say_so(run: Path) -> None:
    long = conversation("a", 1).model_dump_json().replace("How many?", "x" * 10_000)
    (run / "episodes" / "000000.json").write_text(f"[{long}]")
    page = page_of(run)
    assert "… 6,000 characters left out …" in page.text
    assert "x" * 4_000 not in page.text


def test_a_run_that_could_not_be_judged_has_a_report(tmp_path: Path) -> None:
    nothing = {"success_rate": None, "success_ci95": None, "mean_return": None, "episodes": 0}
    run = make_language_run(tmp_path / "run", **nothing, first_return=None, last_return=None)
    assert "Every evaluation episode failed for a reason beside the agent." in page_of(run).text


def test_broken_files_are_named(run: Path) -> None:
    (run / "episodes" / "000000.json").write_text('[{"task": {}}]')
    with pytest.raises(RunDirectoryError, match=r"000000\.json does not hold episodes \(0\.task\.id"):
        write_language_report(run)
    (run / "episodes" / "000000.json").unlink()
    (run / "summary.json").write_text('{"task": "lookup"}')
    with pytest.raises(RunDirectoryError, match=r"summary\.json does not fit: model: .*--on-existing resume"):
        read_language_summary(RunDirectory(run))
    (run / "summary.json").unlink()
    with pytest.raises(RunDirectoryError, match=r"has no summary\.json"):
        write_language_report(run)


def test_reporting_loads_no_torch(run: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sensorium.analysis import write_language_report; "
        f"write_language_report(Path({str(run)!r})); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
