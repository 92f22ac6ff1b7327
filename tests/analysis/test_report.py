import base64
import io
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from analysis_runs import make_film, make_summary, write_metrics
from html_page import Page
from PIL import Image

from sensorium.analysis import Film, FilmNotes, RunDirectory, SubsetResult, write_report
from sensorium.analysis.film_strip import moments_to_show
from sensorium.analysis.pictures import depth_picture, spectrogram_picture
from sensorium.analysis.senses import subset_rows, worth_of_senses
from sensorium.core import RunDirectoryError


def page_of(run_dir: Path) -> Page:
    return Page(write_report(run_dir).read_text())


def test_page_is_complete_and_holds_every_number(run_dir: Path) -> None:
    page = page_of(run_dir)
    expected = ["learning", "training-senses", "senses", "film", "details", "metrics", "config"]
    assert page.headings() == expected
    wanted = ["arena/find", "97.2 %", "95.1–98.5 %", "400 episodes", "0.941", "1,234,944", "4 min 12 s"]
    wanted += ["4,893", "ppo", "3.1e-06", "33.3 %", "gamma", "0.987", "vendor/thing", "4.25"]
    wanted += ["relies most on rgb", "falls to 24.2 %"]
    for text in wanted:
        assert text in page.text.replace(" :", ":"), text


def test_senses_are_sorted_by_size_and_shown_with_their_worth(run_dir: Path) -> None:
    page = page_of(run_dir)
    table = page.text[page.text.index("Senses present") :]
    for text in ("97.2 %", "92.8 %", "34 %", "24.2 %", "32.2 %", "14.5 %", "7.8 %", "11.4–18.3 %", "0.244"):
        assert text in table, text
    assert "Without instruction −63 points 34 % success" in page.text
    bars = [attrs["aria-label"] for tag, attrs in page.seen if tag == "svg" and attrs.get("class") == "bar"]
    assert [(bar or "").split(":")[0] for bar in bars] == [
        "rgb + env_sound + instruction",
        *("rgb + instruction", "rgb + env_sound", "env_sound + instruction"),
        *("rgb", "instruction", "env_sound"),
    ]
    assert bars[-1] == "env_sound: 7.8 % (95 % interval 5.5–10.8 %)"
    chance = [attrs["x1"] for tag, attrs in page.seen if tag == "line" and attrs.get("class") == "chance"]
    assert chance == ["33.33%"] * 7


def test_film_shows_what_was_seen_heard_and_done(run_dir: Path) -> None:
    page = page_of(run_dir)
    alts = [attrs["alt"] or "" for tag, attrs in page.seen if tag == "img"]
    shown = moments_to_show(37)
    for step in shown:
        for text in ("Camera", "Depth", "Sound", "Map"):
            assert any(alt.startswith(f"{text} at step {step}") for alt in alts), (text, step)
    for text in (
        "go to the red ball",
        "You bumped into a wall.",
        "turn right",
        "reward 1",
        "success",
        "3.6 s",
    ):
        assert text in page.text, text
    audio = next(attrs for tag, attrs in page.seen if tag == "audio")
    with wave.open(io.BytesIO(base64.b64decode((audio["src"] or "").split(",")[1]))) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (16000, 16000)


def test_every_metric_is_explained(run_dir: Path) -> None:
    text = page_of(run_dir).text
    assert "gradient/norm Length of the whole gradient before it is clipped." in text
    assert "fusion/gate/env_sound How far the gate lets env_sound through" in text
    assert "policy/kl/non_finite How many values of policy/kl were NaN" in text


def test_page_is_self_contained_accessible_and_small(run_dir: Path) -> None:
    path = write_report(run_dir)
    html = path.read_text()
    assert path.stat().st_size < 1_000_000
    assert re.findall(r"https?://|<script|<link|@import|url\(", html) == []
    page = Page(html)
    for tag, attrs in page.seen:
        if tag == "img":
            assert attrs["alt"]
        if tag in ("img", "audio"):
            assert (attrs["src"] or "").startswith("data:")
        if tag == "svg":
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
    assert "prefers-color-scheme: dark" in html
    assert ("html", {"lang": "en"}) in page.seen


def test_large_films_are_scaled_down(run_dir: Path) -> None:
    random = np.random.default_rng(0)
    film = Film(
        notes=FilmNotes(),
        rgb=random.integers(0, 256, (14, 480, 640, 3), np.uint8),
        depth=random.random((14, 480, 640, 1), np.float32),
        map=random.integers(0, 256, (14, 300, 300, 3), np.uint8),
        speech_waveform=np.zeros(16000 * 60, np.float32),
    )
    film.save(run_dir / "film")
    assert write_report(run_dir).stat().st_size < 6_000_000


def test_text_is_escaped(run_dir: Path) -> None:
    attack = "<script>alert('x')</script>"
    shutil.rmtree(run_dir / "film")
    film = make_film(instruction=attack)
    notes = film.notes.model_copy(update={"actions": (attack,) * 37, "notifications": (attack,) * 37})
    Film(notes=notes, rgb=film.rgb).save(run_dir / "film")
    (run_dir / "config.json").write_text('{"note": "</pre><script>alert(1)</script>"}')
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9999999, "wall_s": 1, "fusion/gate/<script>": 0.5}\n')
    missing = {attack: make_summary().missing_modality["rgb"]}
    RunDirectory(run_dir).write_summary(make_summary(task=attack, missing_modality=missing))
    html = write_report(run_dir).read_text()
    assert "<script" not in html
    assert Page(html).text.count(attack) >= 4


def test_missing_parts_are_left_out(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "film")
    bare = {"missing_modality": {}, "chance_success": None, "onnx_max_abs_diff": None}
    RunDirectory(run_dir).write_summary(make_summary(**bare))
    page = page_of(run_dir)
    assert page.headings() == ["learning", "training-senses", "details", "metrics", "config"]
    assert "Exported policy" not in page.text
    assert "relies most" not in page.text
    (run_dir / "metrics.jsonl").write_text("")
    assert page_of(run_dir).headings() == ["config"]


@pytest.mark.parametrize("sensor", ["rgb", "depth", "env_sound", "speech", "instruction"])
def test_a_film_of_one_sensor_shows_only_that(run_dir: Path, sensor: str) -> None:
    shutil.rmtree(run_dir / "film")
    whole = make_film()
    arrays = {} if sensor == "instruction" else {sensor: getattr(whole, sensor)}
    instruction = "go" if sensor == "instruction" else None
    Film(notes=FilmNotes(sensors=(sensor,), instruction=instruction), **arrays).save(run_dir / "film")
    page = page_of(run_dir)
    images = [attrs for tag, attrs in page.seen if tag == "img"]
    assert len(images) == {"speech": 1, "instruction": 0}.get(sensor, 12)
    assert "value" not in page.text.split("One episode")[1].split("Inside the updates")[0]


def test_a_single_update_and_an_early_stop_make_a_page(run_dir: Path) -> None:
    (run_dir / "metrics.jsonl").unlink()
    write_metrics(run_dir / "metrics.jsonl", updates=1)
    assert "learning" in page_of(run_dir).headings()


def test_a_missing_summary_is_named_and_no_page_written(run_dir: Path) -> None:
    (run_dir / "summary.json").unlink()
    with pytest.raises(RunDirectoryError, match=r"summary\.json"):
        write_report(run_dir)
    assert not (run_dir / "report.html").exists()


def test_worth_compares_with_all_senses() -> None:
    missing = make_summary().missing_modality
    worth = worth_of_senses(missing)
    assert [entry.sense for entry in worth] == ["rgb", "instruction", "env_sound"]
    assert worth[1].change == pytest.approx((136 - 389) / 400)
    assert worth_of_senses({"rgb+depth": missing["rgb"], "x": missing["rgb"]}) == []
    assert [entry.sense for entry in worth_of_senses({"a+b": missing["rgb"], "b": missing["rgb"]})] == ["a"]


def test_subset_names_may_come_in_any_order() -> None:
    result = SubsetResult(success_rate=0.5, ci95=(0.4, 0.6), episodes=10, mean_return=0.0)
    rows = subset_rows({"b": result, "c+a": result, "a+b+c": result})
    assert [row.senses for row in rows] == [("a", "b", "c"), ("a", "c"), ("b",)]


def decoded(uri: str) -> np.ndarray:
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)).convert("L"), dtype=int)


def test_near_is_bright_and_loud_is_bright() -> None:
    depth = np.array([[[1.0], [5.0], [np.inf]]], np.float32)
    near, middle, far = decoded(depth_picture(depth, (1.0, 10.0)))[0]
    assert near > middle > far
    sound = np.full((2, 3, 4), -18.0, np.float32)
    sound[0, 2, 0] = 0.0  # left ear, last frame, lowest band
    picture = decoded(spectrogram_picture(sound, (-18.0, 0.0)))
    assert picture.shape == (4 + 1 + 4, 3)
    assert np.unravel_index(picture.argmax(), picture.shape) == (3, 2)


def test_moments_are_spread_from_the_first_to_the_last_step() -> None:
    assert moments_to_show(0) == []
    assert moments_to_show(5) == [0, 1, 2, 3, 4]
    shown = moments_to_show(500)
    assert len(shown) == 12
    assert (shown[0], shown[-1]) == (0, 499)


def test_analysis_and_metric_values_do_not_load_torch() -> None:
    code = (
        "import sys, sensorium.analysis, sensorium.metrics.values, sensorium.metrics.names;"
        "print(*[m for m in ('torch', 'tensorboard', 'jinja2', 'PIL', 'numba') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
