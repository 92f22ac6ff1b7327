import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from html_page import Page
from observed import SENT_SOURCE, SOURCE, HandMadeTrace, image_block, make_trace, part, png, wav

from sensorium.analysis.observation_drawing import ViewLimits, text_views
from sensorium.analysis.observation_lines import left_out_lines, sent_lines, sent_rows
from sensorium.analysis.observation_media import MediaLimits, PageMedia
from sensorium.analysis.observation_page import budget_segments, render_page, write_page
from sensorium.analysis.observation_payload import PageLimits, block_views, page_data
from sensorium.analysis.observation_views import raw_views
from sensorium.core.types import Modality
from sensorium.features.extractors.base import Features
from sensorium.llm.messages import AudioBlock, ImageBlock, OtherBlock, TextBlock
from sensorium.observations.base import Observation
from sensorium.observations.values import (
    ArrayValue,
    CaseResult,
    CodeValue,
    ImageValue,
    StructuredValue,
    TableValue,
    TextValue,
)
from sensorium.representations.base import Account, Level, Representation
from sensorium.representations.config import PipelineConfig
from sensorium.representations.pipeline import ObservationPipeline

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> javascript:a() \u2028 &amp;"


def payload(page: str) -> dict[str, object]:
    """The data block of a page, as its script reads it."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_the_page_nests_and_names_every_modality_and_the_budget() -> None:
    trace = make_trace()
    page = Page(render_page(trace, title="run.ipynb", task="Why does the regression fail?"))
    account = trace.representation.account
    assert f"{account.num_tokens:,} of {account.max_tokens:,} tokens" in page.text
    for modality in Modality:
        assert str(modality) in page.text
    assert "Why does the regression fail?" in page.text
    assert "Extractor sentence is unavailable" in page.text


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    text = render_page(make_trace(), title="run.ipynb")
    page = Page(text)
    policy = next(a["content"] for tag, a in page.seen if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline'; script-src 'sha256-" in policy
    for _, attributes in page.seen:
        assert not {"src", "href", "onclick", "onerror", "onload"} & attributes.keys()


def test_hostile_text_stays_text_everywhere() -> None:
    hostile = part(f"x/{HOSTILE}", Modality.TEXT, TextValue(text=HOSTILE), notes=(HOSTILE,))
    page = render_page(make_trace([(hostile, Level.FULL, 9, 9, HOSTILE)]), title=HOSTILE, task=HOSTILE)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    parts = payload(page)["parts"]
    assert isinstance(parts, list)
    assert parts[-1]["id"] == f"x/{HOSTILE}"
    assert parts[-1]["raw"][0]["lines"] == [HOSTILE]
    assert "<!--" not in payload_text(page)


def payload_text(page: str) -> str:
    return page.partition('id="data">')[2].partition("</script>")[0]


def test_a_lone_surrogate_does_not_stop_the_page() -> None:
    odd = part("odd.txt", Modality.TEXT, TextValue(text="a\ud800b\0c"))
    page = render_page(make_trace([(odd, Level.FULL, 3, 3, "odd")]), title="caf\udce9.txt")
    assert page.encode("utf-8")
    assert payload(page)["parts"][-1]["raw"][0]["lines"] == ["a\ud800b\0c"]  # type: ignore[index]


def test_pictures_are_embedded_once() -> None:
    trace = make_trace()
    data = page_data(trace)
    assert len([url for url in data["media"].values() if url.startswith("data:image/png")]) == 1
    (raw,) = (view for view in data["parts"][2]["raw"] if view["t"] == "media")
    (read,) = (view for view in data["parts"][2]["reads"] if view["t"] == "media")
    assert raw["key"] == read["key"]
    assert base64.b64decode(data["media"][raw["key"]].partition(",")[2]) == png()
    assert any(view["t"] == "media" for view in data["messages"][-1]["views"])


@pytest.mark.parametrize(
    "url", ["https://example.org/a.png", "javascript:alert(1)", "data:text/html;base64,PHNjcmlwdD4=", ""]
)
def test_only_embedded_pictures_are_drawn(url: str) -> None:
    store = PageMedia()
    assert store.image_url(url).key is None
    assert store.urls == {}


def test_a_picture_that_is_too_large_is_scaled_and_one_that_is_broken_is_told() -> None:
    image_module = pytest.importorskip("PIL.Image")
    noise = np.random.default_rng(0).integers(0, 255, (1500, 1500, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    image_module.fromarray(noise).save(buffer, "PNG")
    store = PageMedia(MediaLimits(one=2_000_000))
    embedded = store.image(buffer.getvalue(), "image/png")
    assert embedded.key is not None
    assert "smaller" in embedded.note
    assert len(store.urls[embedded.key]) < 2_800_000
    broken = store.image(b"\x89PNG" + bytes(3_000_000), "image/png")
    assert broken.key is None
    assert "too large" in broken.note


def test_a_full_page_takes_no_more_media() -> None:
    store = PageMedia(MediaLimits(one=10_000, all=10_000))
    first = png(64, 48)
    assert store.image(first, "image/png").key is not None
    assert store.audio(bytes(9_990), "audio/wav").key is None


def test_long_text_keeps_beginning_end_and_true_line_numbers() -> None:
    text = "\n".join(f"line {i}" for i in range(1, 5001))
    first, gap, last = text_views(text, ViewLimits(chars=100_000, lines=400))
    assert first["first"] == 1
    assert len(first["lines"]) == 300
    assert gap["text"] == "4,600 lines are not in this page"
    assert last["first"] == 4901
    assert last["lines"][-1] == "line 5000"
    (whole,) = text_views("a\nb", ViewLimits())
    assert whole["lines"] == ["a", "b"]


def test_one_endless_line_is_cut_and_told() -> None:
    (view,) = text_views("x" * 1_000_000, ViewLimits(chars=1_000))
    assert view["lines"] == ["x" * 1_000 + "... (999,000 more characters)"]


def test_sent_lines_are_told_from_others() -> None:
    flags = sent_lines(SOURCE.split("\n"), SENT_SOURCE)
    assert flags[:7] == [True] * 7
    assert flags[7:37] == [False] * 30
    assert flags[37:] == [True, True]
    numbered = "\n".join(f"{i:>4} | {line}" for i, line in enumerate(SENT_SOURCE.split("\n"), 1))
    assert sent_lines(SOURCE.split("\n"), numbered)[7:37] == [False] * 30
    assert sent_lines(["One sentence here. And another."], "And another.") == [True]


def test_marks_of_what_is_left_out_are_found() -> None:
    text = "a\n[... lines 12-41]\nb\n[ref:a.csv: 12 rows]\n[1, 2]\n[3 more not shown; fetch_part lists them]"
    assert left_out_lines(text) == [1, 3, 5]


def test_thousands_of_parts_make_a_bounded_page() -> None:
    extra = [
        (
            part(f"logs/{i}", Modality.TEXT, TextValue(text=f"line {i}\n" * 2_000)),
            Level.DROPPED,
            5_000,
            0,
            "no room",
        )
        for i in range(2_000)
    ]
    page = render_page(make_trace(extra), title="logs", limits=PageLimits(raw_chars=1_000_000))
    assert len(page) < 4_000_000
    parts = payload(page)["parts"]
    assert isinstance(parts, list)
    assert len(parts) == 2_012
    assert all(one["raw"] for one in parts)


def test_test_results_alone_are_not_drawn_as_empty_code() -> None:
    value = CodeValue(text="", tests=(CaseResult(name="t", status="failed", message="boom"),))
    views = raw_views(part("junit.xml", Modality.CODE, value), PageMedia(MediaLimits()))
    assert [view["t"] for view in views] == ["heading", "table"]


def test_sent_rows_are_told_from_others() -> None:
    lines = ["### t: table", "5 (int64): 1 to 2", "row | a", "[... rows 0-1]", "2 | 5 | x"]
    sent = "\n".join([*lines, "4 Bonn am Rhein | 7  <- a is high", "row 6: a=1, b=2"])
    assert sent_rows([0, 1, 2, 3, 4, 5, 6], sent) == [False, False, True, False, True, False, True]


def test_rows_of_a_table_are_marked() -> None:
    names = ["Aachen", "Bonn", "Celle"] * 20
    raw = "city,people\n" + "".join(f"{name},{1000 + 7 * i}\n" for i, name in enumerate(names))
    pipeline = ObservationPipeline(PipelineConfig().updated({"observation": {"max_tokens": 300}}))
    trace = pipeline.trace({"cities.csv": raw.encode()}, task="Which city has 1007 people?")
    (part,) = page_data(trace)["parts"]
    (rows,) = [view for view in part["raw"] if "numbers" in view]
    text = trace.representation.messages[-1].text
    assert 0 < rows["sent"].count("1") < 60
    for number, flag in zip(rows["numbers"], rows["sent"], strict=True):
        assert (f"\n{number} | {names[number]} | {1000 + 7 * number}" in text) == (flag == "1")
    assert rows["sent"][1] == "1"


def test_what_is_sent_is_never_cut() -> None:
    text = "word " * 100_000
    huge = part("huge.txt", Modality.TEXT, TextValue(text=text))
    trace = make_trace([(huge, Level.FULL, 100_000, 100_000, "whole")])
    data = page_data(trace, PageLimits(part=ViewLimits(chars=100), raw_chars=10))
    assert data["parts"][-1]["reads"][0]["text"] == text
    assert data["messages"][-1]["views"][-1]["text"] == text


def test_the_bar_adds_up_to_all_tokens() -> None:
    extra = [
        (part(f"n{i}", Modality.CODE, TextValue(text="x")), Level.FULL, i + 1, i + 1, "whole")
        for i in range(100)
    ]
    account = make_trace(extra).representation.account
    segments = budget_segments(account)
    assert sum(segment.tokens for segment in segments) == account.num_tokens
    assert len(segments) < 60
    assert any(segment.name == "smaller parts, code" for segment in segments)
    assert sum(segment.share for segment in segments) <= 100.0


def test_a_vector_becomes_signed_bytes() -> None:
    trace = make_trace()
    vector = np.linspace(-2.0, 1.0, 1024, dtype=np.float32)
    features = {"body": {"v": Features(part_id="body", extractor="v", version="1", vector=vector)}}
    data = page_data(HandMadeTrace(trace.observation, features, trace.representation, trace.blocks))
    (feature,) = next(one for one in data["parts"] if one["id"] == "body")["features"]
    strip = np.frombuffer(base64.b64decode(feature["strip"]), dtype=np.int8)
    assert strip.shape == (512,)
    assert strip[0] == -127
    assert 60 <= strip[-1] <= 64
    assert feature["size"] == 1024


def test_odd_values_are_drawn() -> None:
    circle: list[object] = []
    circle.append(circle)
    store = PageMedia()
    deep = StructuredValue.model_construct(data=circle, kind="structured", format="json", fields=())
    holder = part("deep", Modality.TEXT, TextValue(text="")).model_copy(update={"value": deep})
    assert "in a circle" in str(raw_views(holder, store))
    nothing = TableValue(columns=(), num_rows=0)
    assert "0 rows, 0 columns" in str(raw_views(part("t", Modality.TABLE, nothing), store))
    wrong = ArrayValue(dtype="float32", shape=(3, 3), data=b"abc")
    assert raw_views(part("a", Modality.DEPTH, wrong), store)[0]["t"] == "pairs"
    away = ImageValue(url="https://example.org/a.png")
    (view,) = raw_views(part("i", Modality.IMAGE, away), store)[:1]
    assert view["key"] is None


def test_an_empty_observation_has_a_page() -> None:
    account = Account(entries=(), max_tokens=100, state_limit=80)
    trace = HandMadeTrace(Observation(), {}, Representation(messages=(), account=account), {})
    assert "0 of 100 tokens" in Page(render_page(trace, title="nothing")).text


def test_the_page_is_written_complete(tmp_path: Path) -> None:
    path = write_page(make_trace(), tmp_path / "deep" / "page.html", title="run.ipynb")
    assert path.read_text("utf-8").rstrip().endswith("</html>")
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]


def test_blocks_with_the_same_picture_share_it() -> None:
    block = image_block(png(8, 8), 8, 8)
    store = PageMedia()
    assert store.image_url(block.url) == store.image_url(block.url)
    assert len(store.urls) == 1


def test_every_kind_of_block_is_drawn() -> None:
    blocks = (
        TextBlock(text="a"),
        ImageBlock(url="https://example.org/a.png", width=0, height=0),
        AudioBlock(data=base64.b64encode(wav()).decode(), duration_s=0.25),
        OtherBlock(data={"type": "file"}),
    )
    said, picture, sound, other = block_views(blocks, PageMedia())
    assert said["text"] == "a"
    assert (picture["key"], picture["caption"]) == (None, "of unknown size")
    assert sound["key"] is not None
    assert '"file"' in other["text"]
