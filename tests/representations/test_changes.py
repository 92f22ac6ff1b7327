"""Changes of pictures, and plots beside summaries of tables."""

import numpy as np
import pandas as pd
import pytest

from sensorium.core import parse_config
from sensorium.llm.messages import ImageBlock, TextBlock
from sensorium.metrics import ObservationMeter
from sensorium.observations import Part, Source
from sensorium.representations import Level, ObservationPipeline, PipelineConfig, Session, plots
from sensorium.representations.media.plot import small_plot


def pipeline(**sections: dict[str, object]) -> ObservationPipeline:
    return ObservationPipeline(parse_config(PipelineConfig, sections))


def screen() -> np.ndarray:
    pixels = np.full((600, 800, 3), 200, dtype=np.uint8)
    pixels[100:200, 100:400] = 30
    return pixels


def test_of_a_changed_screen_only_the_changed_region_is_sent():
    session = Session(pipeline(context_management={"drop_full_history": False}), "Press the button.")
    session.observe({"screen.png": screen()})
    session.acted("press")
    after = screen()
    after[120:140, 500:560] = (255, 0, 0)
    shown = session.observe({"screen.png": after})
    entry = shown.account.entry("screen.png")
    assert entry.level is Level.DELTA
    assert entry.tokens_after < 0.5 * entry.tokens_before
    (picture,) = [block for block in shown.state if isinstance(block, ImageBlock)]
    assert (picture.width, picture.height) == (60, 20)
    assert "changed since step 1: x 500-560, y 120-140" in shown.messages[-1].text


def test_an_unchanged_screen_costs_next_to_nothing_while_it_is_in_the_context():
    session = Session(pipeline(context_management={"drop_full_history": False}), "Wait.")
    session.observe({"screen.png": screen()})
    session.acted("wait")
    shown = session.observe({"screen.png": screen()})
    assert shown.account.entry("screen.png").tokens_after == 0
    assert not any(isinstance(block, ImageBlock) for block in shown.state)


def test_a_changed_screen_is_sent_whole_when_the_old_one_is_not_in_the_context():
    session = Session(pipeline(), "Press the button.")
    session.observe({"screen.png": screen()})
    session.acted("press")
    after = screen()
    after[120:140, 500:560] = (255, 0, 0)
    assert session.observe({"screen.png": after}).account.entry("screen.png").level is Level.FULL


@pytest.mark.parametrize("encoding", ["base64", "words"])
def test_a_long_table_gets_a_plot_for_models_that_take_pictures(encoding: str):
    rng = np.random.default_rng(0)
    prices = pd.DataFrame(
        {
            "hour": pd.date_range("2024-01-01", periods=5_000, freq="h"),
            "price": rng.normal(size=5_000).cumsum(),
        }
    )
    found = pipeline(observation={"max_tokens": 1500}, multimodal={"image": {"encoding": encoding}})(
        {"prices": prices}
    )
    pictures = [block for block in found.state if isinstance(block, ImageBlock)]
    assert len(pictures) == (encoding == "base64")
    assert ("and a plot" in found.account.entry("prices").why) == (encoding == "base64")
    assert isinstance(found.state[0], TextBlock)
    assert found.num_tokens <= 1500


def test_a_session_writes_metrics_of_every_step():
    meter = ObservationMeter()
    session = Session(pipeline(observation={"max_tokens": 300}), "Why?", meter=meter)
    for step in range(3):
        session.observe({"log": "\n".join(f"step {i} value {i * step}" for i in range(200))})
        session.acted("look")
    summary = meter.summary()
    assert 0.0 < summary["observation/retained/text"].value < 1.0
    assert any("tokens" in name for name in summary)


def test_parts_of_several_sensors_are_told_in_the_order_of_time():
    frames = {f"camera/{i}": Source(f"frame {i}", timestamp_s=i / 2) for i in range(3)}
    words = {"speech": Source("stop here", timestamp_s=0.7), "goal": Source("Reach the door.")}
    text = pipeline()(frames | words).messages[-1].text
    order = [text.index(name) for name in ("goal", "camera/0 at 0 s", "camera/1 at 0.5 s", "speech at 0.7 s")]
    assert order == sorted(order)
    assert text.index("speech at") < text.index("camera/2 at 1 s")


def test_what_shows_an_output_is_found_also_when_it_stands_with_its_cell():
    cell = {"id": "c1", "cell_type": "code", "source": "1 + 1", "execution_count": 1, "metadata": {}}
    result = {
        "output_type": "execute_result",
        "data": {"text/plain": "2"},
        "metadata": {},
        "execution_count": 1,
    }
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell | {"outputs": [result]}]}
    trace = pipeline().trace({"sum.ipynb": notebook})
    assert trace.shown("sum.ipynb/cell-c1/output-0") == trace.shown("sum.ipynb/cell-c1") != ()


def test_a_plot_is_drawn_once_for_a_table_that_stays_the_same(monkeypatch: pytest.MonkeyPatch):
    drawn = []

    def draw(part: Part) -> bytes | None:
        drawn.append(part.id)
        return small_plot(part)

    monkeypatch.setattr(plots, "small_plot", draw)
    walk = pd.DataFrame(
        {"step": range(5_000), "height": np.random.default_rng(7).normal(size=5_000).cumsum()}
    )
    run = pipeline(observation={"max_tokens": 1500})
    assert run({"walk": walk}) == run({"walk": walk})
    assert drawn == ["walk"]
