"""The page of an observation in a real browser: it works, logs no errors and asks the network for nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observed import make_trace, part

from sensorium.analysis.observation_page import write_page
from sensorium.core.types import Modality
from sensorium.observations.values import TextValue
from sensorium.representations.base import Level

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"


class Watched:
    """A page in the browser, and what it complained of or asked for."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)

    def assert_quiet(self, address: str) -> None:
        assert self.complaints == []
        asked = [url for url in self.requests if not url.startswith("data:")]
        assert asked == [address.partition("#")[0]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM)
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    hostile = part(f"evil/{HOSTILE}", Modality.TEXT, TextValue(text=HOSTILE), notes=(HOSTILE,))
    many = [
        (part(f"logs/{i}", Modality.TEXT, TextValue(text=f"line {i}")), Level.DROPPED, 5, 0, "no room")
        for i in range(1_500)
    ]
    trace = make_trace([(hostile, Level.FULL, 9, 9, HOSTILE), *many])
    path = tmp_path_factory.mktemp("page") / "a page [x].html"
    return write_page(trace, path, title=HOSTILE, task=HOSTILE).as_uri()


@pytest.fixture
def watched(browser: Any, address: str) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    found = Watched(page, address)
    yield found
    found.assert_quiet(address)
    page.close()


def test_a_part_shows_raw_features_and_what_is_read(watched: Watched) -> None:
    page = watched.page
    page.click(".row[data-id='src/fit.py']")
    assert page.inner_text(".detail h3.id") == "src/fit.py"
    assert page.locator(".pane.raw .line").count() == 39
    assert page.locator(".pane.raw .line.unsent").count() == 30
    assert page.locator(".pane.reads .gap").inner_text() == "[... lines 8-37]"
    assert page.locator(".pane.features canvas").count() == 1
    assert "vaderSentiment is not installed" in page.inner_text(".pane.features")
    assert page.locator("#bar [aria-current]").get_attribute("data-part") == "src/fit.py"
    page.click(".row[data-id='notes.txt']")
    assert "Nothing." in page.inner_text(".pane.reads")


def test_pictures_and_sounds_are_there(watched: Watched) -> None:
    page = watched.page
    page.click(".row[data-id='run.ipynb/cell-3/figure-1']")
    image = page.locator(".pane.raw img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    page.click(".row[data-id='hum.wav']")
    length = page.locator(".pane.raw audio").evaluate(
        "audio => audio.readyState ? audio.duration"
        " : new Promise(done => audio.onloadedmetadata = () => done(audio.duration))"
    )
    assert length == pytest.approx(0.25, abs=0.01)
    assert page.locator("#prompt img").first.evaluate("image => image.naturalWidth") == 64


def test_filters_and_order(watched: Watched) -> None:
    page = watched.page
    page.click("[data-level='summary']")
    assert page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)") == [
        "src/fit.py",
        "rain.csv",
    ]
    page.select_option("#sort", "before")
    assert page.locator(".row").first.get_attribute("data-id") == "rain.csv"
    page.click("[data-level='summary']")
    page.fill("#search", "problem is told")
    assert page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)") == ["broken.ipynb"]
    page.fill("#search", "nothing has this name")
    assert "No part fits" in page.text_content("#list")
    page.fill("#search", "")
    page.click("[data-modality='depth']")
    assert page.locator(".row").count() == 1


def test_the_keyboard_is_enough(watched: Watched) -> None:
    page = watched.page
    page.keyboard.press("/")
    page.keyboard.type("run.ipynb")
    assert page.input_value("#search") == "run.ipynb"
    page.locator(".row").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".detail h3.id") == "run.ipynb/cell-3/output-0"
    assert page.evaluate("document.activeElement.dataset.id") == "run.ipynb/cell-3/output-0"


def test_hostile_content_stays_text(watched: Watched) -> None:
    page = watched.page
    page.fill("#search", "evil/")
    page.click(".row")
    assert page.inner_text(".detail h3.id") == f"evil/{HOSTILE}"
    assert page.locator(".pane.raw .line").inner_text() == HOSTILE
    assert page.title().startswith("</script>")
    assert page.locator("script").count() == 2


def test_thousands_of_parts_are_drawn_as_they_are_reached(watched: Watched) -> None:
    page = watched.page
    assert page.locator(".row").count() == 200
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".row").count() == 1_513


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, address: str, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 420, "height": 900}, color_scheme=scheme)
    watched = Watched(page, f"{address}#part=rain.csv")
    assert page.inner_text(".detail h3.id") == "rain.csv"
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.click(".row[data-id='src/fit.py']")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.evaluate("document.getElementById('detail').getBoundingClientRect().top") < 450
    watched.assert_quiet(address)
    page.close()


def test_it_prints(browser: Any, address: str, tmp_path: Path) -> None:
    page = browser.new_page()
    watched = Watched(page, address)
    assert page.pdf(path=tmp_path / "page.pdf").startswith(b"%PDF")
    watched.assert_quiet(address)
    page.close()
