import asyncio
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sensorium.core import ConfigError, MissingDependencyError, Modality
from sensorium.features.extractors import service as services
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.report import FeatureReport
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.observations.base import Part
from sensorium.observations.values import ProprioValue, TextValue


def text(part_id: str, content: str, modality: Modality = Modality.TEXT) -> Part:
    return Part(id=part_id, modality=modality, value=TextValue(text=content))


def standing(go: threading.Event) -> Callable[[Sequence[str]], None]:
    """Wait until the test says so."""

    def wait(texts: Sequence[str]) -> None:
        go.wait(10)

    return wait


class Counting:
    """Counts letters; keeps what it was asked, and does before that whatever a test wants."""

    def __init__(self, name: str = "counting", before: Callable[[Sequence[str]], None] | None = None) -> None:
        self.name, self.version = name, "1"
        self.calls: list[list[str]] = []
        self._before = before

    def accepts(self, part: Part) -> bool:
        return part.text is not None

    def __call__(self, parts: Sequence[Part]) -> list[Features]:
        texts = [part.text or "" for part in parts]
        self.calls.append(texts)
        if self._before is not None:
            self._before(texts)
        return [
            Features(
                part_id=part.id,
                extractor=self.name,
                version=self.version,
                vector=np.full(3, len(content), np.float32),
                data={"letters": len(content)},
                summary=f"{len(content)} letters",
            )
            for part, content in zip(parts, texts, strict=True)
        ]


@pytest.fixture(autouse=True)
def forget_what_is_missing() -> Iterator[None]:
    services.MISSING.clear()
    yield
    services.MISSING.clear()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., FeatureRunner]]:
    made: list[FeatureRunner] = []

    def build(*extractors: Any, **settings: Any) -> FeatureRunner:
        config = FeaturesConfig(**{"extractors": (), "cache_folder": str(tmp_path / "cache")} | settings)
        made.append(FeatureRunner(config, extractors=extractors))
        return made[-1]

    yield build
    for runner in made:
        runner.close()


def test_features_of_an_observation(make: Callable[..., FeatureRunner]) -> None:
    body = Part(id="body", modality=Modality.PROPRIO, value=ProprioValue(names=("x",), values=(1.0,)))
    report = make(Counting()).run([text("a", "four"), body, text("b", "seven..")])
    assert report.features["a"]["counting"].data == {"letters": 4}
    assert report.features["b"]["counting"].summary == "7 letters"
    assert report.features["b"]["counting"].part_id == "b"
    assert report.features["body"] == {}
    assert (report.hits, report.misses, report.notes) == (0, 2, ())
    assert report.milliseconds["counting"] > 0
    again = FeatureReport.model_validate_json(report.model_dump_json())
    assert again.features["a"]["counting"].vector is not None
    assert again.features["a"]["counting"].vector.tolist() == [4, 4, 4]
    assert again.features["a"]["counting"].version == "1"


def test_equal_content_is_extracted_once_for_all_environments(make: Callable[..., FeatureRunner]) -> None:
    counting = Counting()
    reports = make(counting).run_many([[text("a", "same"), text("b", "same")], [], [text("c", "same")]])
    assert counting.calls == [["same"]]
    found = [reports[0].features["a"], reports[0].features["b"], reports[2].features["c"]]
    assert [entry["counting"].part_id for entry in found] == ["a", "b", "c"]
    assert [entry["counting"].is_cached for entry in found] == [False, True, True]
    assert [(report.hits, report.misses) for report in reports] == [(1, 1), (0, 0), (1, 0)]
    found[0]["counting"].data["letters"] = "spoiled"
    assert found[1]["counting"].data == {"letters": 4}


def test_equal_content_of_another_modality_is_other_content(make: Callable[..., FeatureRunner]) -> None:
    counting = Counting()
    make(counting).run([text("a", "same"), text("b", "same", Modality.NOTEBOOK)])
    assert counting.calls == [["same", "same"]]


def test_the_second_time_comes_from_memory(make: Callable[..., FeatureRunner]) -> None:
    counting = Counting()
    runner = make(counting, cache=False)
    first = runner.run([text("a", "word")]).features["a"]["counting"]
    first.data["letters"] = "spoiled"
    report = runner.run([text("z", "word")])
    second = report.features["z"]["counting"]
    assert len(counting.calls) == 1
    assert (second.data, second.is_cached, second.seconds) == ({"letters": 4}, True, 0.0)
    assert (report.hits, report.misses, report.milliseconds) == (1, 0, {"counting": 0.0})
    assert second.vector is not None
    with pytest.raises(ValueError, match="read-only"):
        second.vector[0] = 0


def test_another_process_finds_it_on_disk(make: Callable[..., FeatureRunner]) -> None:
    make(Counting()).run([text("a", "word")])
    other = Counting()
    report = make(other, memory_mb=0).run([text("a", "word")])
    assert other.calls == []
    assert report.features["a"]["counting"].vector is not None
    assert report.features["a"]["counting"].vector.tolist() == [4, 4, 4]
    newer = Counting()
    newer.version = "2"
    make(newer).run([text("a", "word")])
    assert newer.calls == [["word"]]


def test_long_batches_are_taken_apart(make: Callable[..., FeatureRunner]) -> None:
    counting = Counting()
    report = make(counting, max_batch=2).run([text(str(n), "x" * n) for n in range(1, 6)])
    assert [len(call) for call in counting.calls] == [2, 2, 1]
    assert [report.features[str(n)]["counting"].data["letters"] for n in range(1, 6)] == [1, 2, 3, 4, 5]


def test_one_bad_part_does_not_take_the_others_along(make: Callable[..., FeatureRunner]) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "bad" in texts:
            raise ZeroDivisionError("no letters")

    counting = Counting(before=refuse)
    runner = make(counting)
    parts = [text(str(n), "bad" if n == 5 else "good" * n) for n in range(1, 9)]
    report = runner.run(parts)
    reasons = {part.id: report.features[part.id]["counting"].unavailable for part in parts}
    assert reasons.pop("5") == "ZeroDivisionError: no letters"
    assert set(reasons.values()) == {None}
    assert report.features["8"]["counting"].data == {"letters": 32}
    assert report.notes == ("counting: unavailable: ZeroDivisionError: no letters (1 part)",)
    before = len(counting.calls)
    assert runner.run(parts).features["5"]["counting"].unavailable == "ZeroDivisionError: no letters"
    assert len(counting.calls) == before  # it is not tried again and again


def test_what_is_missing_is_found_out_once_and_said_always(make: Callable[..., FeatureRunner]) -> None:
    def lack(texts: Sequence[str]) -> None:
        raise MissingDependencyError("needs lettercount. Install it with: pip install lettercount")

    counting = Counting(before=lack)
    runner = make(counting)
    for content in ("one", "two", "three"):
        report = runner.run([text("a", content)])
        assert "pip install lettercount" in (report.features["a"]["counting"].unavailable or "")
        assert report.notes == (
            "counting: unavailable: needs lettercount. Install it with: pip install lettercount (1 part)",
        )
    assert counting.calls == [["one"]]


def test_a_version_that_cannot_be_told(make: Callable[..., FeatureRunner]) -> None:
    class Versionless(Counting):
        @property
        def version(self) -> str:  # type: ignore[override]
            if threading.current_thread() is not threading.main_thread():
                raise OSError("weights are gone")
            return "1"

        @version.setter
        def version(self, value: str) -> None:
            pass

    report = make(Versionless()).run([text("a", "x")])
    assert report.features["a"]["counting"].unavailable == "OSError: weights are gone"


def test_an_extractor_that_takes_too_long(make: Callable[..., FeatureRunner]) -> None:
    go, done = threading.Event(), threading.Event()

    def linger(texts: Sequence[str]) -> None:
        if "slow" in texts:
            go.wait(10)
            done.set()

    slow, quick = Counting("slow", linger), Counting("quick")
    runner = make(slow, quick, timeout_s=60, timeouts_s={"slow": 0.5}, max_batch=1, cache=False)
    parts = [text("a", "fast"), text("b", "slow"), text("c", "later")]
    report = runner.run(parts)
    assert report.features["a"]["slow"].unavailable is None
    for part_id in ("b", "c"):
        assert report.features[part_id]["slow"].unavailable == "took longer than 0.5 s"
        assert report.features[part_id]["quick"].unavailable is None
    assert report.notes == ("slow: unavailable: took longer than 0.5 s (2 parts)",)
    assert report.milliseconds["slow"] == pytest.approx(500, abs=200)
    assert slow.calls == [["fast"], ["slow"]]  # what had not begun is given up
    go.set()
    assert done.wait(5)
    for _ in range(100):  # the late result goes to the cache
        if not runner._services["slow"]._pending:
            break
        time.sleep(0.02)
    assert runner.run(parts).features["b"]["slow"].is_cached


def test_an_extractor_that_never_comes_back_is_left_alone(make: Callable[..., FeatureRunner]) -> None:
    go = threading.Event()
    hanging = Counting("hanging", standing(go))
    quick = Counting("quick")
    runner = make(hanging, quick, timeout_s=60, timeouts_s={"hanging": 0.05}, max_workers=1, cache=False)
    reasons = []
    for n in range(4):
        report = runner.run([text("a", f"content {n}")])
        reasons.append(report.features["a"]["hanging"].unavailable)
    assert reasons[:2] == ["took longer than 0.05 s"] * 2
    assert "busy" in (reasons[3] or "")
    assert len(hanging.calls) == 2
    assert len(quick.calls) == 4  # the only place is not taken by those that hang
    go.set()
    for _ in range(100):
        if not runner._services["hanging"].worker.is_lost:
            break
        time.sleep(0.02)
    report = runner.run([text("a", "afterwards")])
    assert report.features["a"]["hanging"].data == {"letters": 10}


def test_two_that_ask_for_the_same_share_one_extraction(make: Callable[..., FeatureRunner]) -> None:
    started, go = threading.Event(), threading.Event()

    def linger(texts: Sequence[str]) -> None:
        started.set()
        go.wait(10)

    counting = Counting(before=linger)
    runner = make(counting)
    reports: list[FeatureReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(runner.run([text("a", "shared")]))) for _ in range(3)
    ]
    threads[0].start()
    assert started.wait(5)
    for thread in threads[1:]:
        thread.start()
    while (
        runner._services["counting"]._pending
        and next(iter(runner._services["counting"]._pending.values())).waiters < 3
    ):
        time.sleep(0.01)
    go.set()
    for thread in threads:
        thread.join()
    assert counting.calls == [["shared"]]
    assert [report.features["a"]["counting"].data["letters"] for report in reports] == [6, 6, 6]


def test_the_event_loop_goes_on_while_an_extractor_works(make: Callable[..., FeatureRunner]) -> None:
    go = threading.Event()
    counting = Counting(before=standing(go))
    runner = make(counting, cache=False)

    async def main() -> tuple[FeatureReport, FeatureReport]:
        tasks = [asyncio.create_task(runner.arun([text("a", "one")])) for _ in range(2)]
        await asyncio.sleep(0.05)  # the loop turns although the extractor stands
        assert not any(task.done() for task in tasks)
        go.set()
        first, second = await asyncio.gather(*tasks)
        return first, second

    for report in asyncio.run(main()):
        assert report.features["a"]["counting"].data == {"letters": 3}
    assert counting.calls == [["one"]]


def test_without_extractors_nothing_is_started(make: Callable[..., FeatureRunner], tmp_path: Path) -> None:
    runner, threads = make(), set(threading.enumerate())
    assert runner.run([text("a", "one")]) == asyncio.run(runner.arun([text("a", "one")]))
    assert runner.run([text("a", "one")]).features == {"a": {}}
    assert set(threading.enumerate()) <= threads  # those of tests before it may end meanwhile
    assert not (tmp_path / "cache").exists()


def test_a_time_out_and_a_cancellation_under_asyncio(make: Callable[..., FeatureRunner]) -> None:
    go = threading.Event()
    counting = Counting(before=standing(go))
    runner = make(counting, timeout_s=0.05, cache=False)

    async def main() -> FeatureReport:
        report = await runner.arun([text("a", "one")])
        task = asyncio.create_task(runner.arun([text("a", "two")]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return report

    report = asyncio.run(main())
    assert report.features["a"]["counting"].unavailable == "took longer than 0.05 s"
    go.set()


def test_features_that_are_not_plain(make: Callable[..., FeatureRunner]) -> None:
    class Odd(Counting):
        def __call__(self, parts: Sequence[Part]) -> list[Features]:
            return [found.model_copy(update={"data": {"set": {1, 2}}}) for found in super().__call__(parts)]

    class Short(Counting):
        def __call__(self, parts: Sequence[Part]) -> list[Features]:
            return super().__call__(parts)[:-1]

    report = make(Odd("odd"), Short("short")).run([text("a", "x"), text("b", "y")])
    assert "JSON" in (report.features["a"]["odd"].unavailable or "")
    assert "0 results for 1 parts" in (report.features["b"]["short"].unavailable or "")


def test_names_are_checked_when_it_is_built(make: Callable[..., FeatureRunner]) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sentence'"):
        make(extractors=("sentense",))
    with pytest.raises(ConfigError, match="Unknown extractor 'ocrr'"):
        make(settings={"ocrr": {}})
    with pytest.raises(ConfigError, match=r"Settings of extractor 'sentence'.*max_token"):
        make(extractors=("sentence",), settings={"sentence": {"max_token": 3}})
    with pytest.raises(ConfigError, match="Unknown extractor 'ocrr'"):
        make(timeouts_s={"ocrr": 1.0})
    with pytest.raises(ConfigError, match="there twice"):
        make(Counting(), Counting())


def test_it_can_be_pickled_closed_and_used_again(make: Callable[..., FeatureRunner]) -> None:
    runner = make(extractors=("sentiment",))
    copy = pickle.loads(pickle.dumps(runner))
    assert copy.names == ("sentiment",)
    runner.close()
    runner.close()
    for each in (runner, copy):
        assert each.run([text("a", "Thanks, well done!")]).features["a"]["sentiment"].unavailable is None
    copy.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_starts_its_own_threads(make: Callable[..., FeatureRunner]) -> None:
    runner = make(Counting())
    runner.run([text("a", "parent")])
    child = os.fork()
    if child == 0:
        found = runner.run([text("a", "child")]).features["a"]["counting"]
        os._exit(0 if found.data == {"letters": 5} else 1)
    assert os.waitpid(child, 0)[1] == 0


HANGS = """
import time
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.observations.base import Part
from sensorium.observations.values import TextValue

class Hangs:
    name, version = "hangs", "1"
    def accepts(self, part):
        return True
    def __call__(self, parts):
        time.sleep(1000)

runner = FeatureRunner(FeaturesConfig(extractors=(), timeout_s=0.05, cache=False), extractors=[Hangs()])
part = Part(id="a", modality="text", value=TextValue(text="x"))
print(runner.run([part]).features["a"]["hangs"].unavailable)
"""


def test_an_extractor_that_hangs_does_not_keep_the_process_alive() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "took longer than 0.05 s\n"
    assert done.stderr == ""


def test_threads_end_with_the_runner(make: Callable[..., FeatureRunner]) -> None:
    runner = make(Counting("ending"))
    runner.run([text("a", "x")])
    runner.close()
    for _ in range(100):
        if not any(thread.name == "sensorium-ending" for thread in threading.enumerate()):
            break
        time.sleep(0.02)
    assert not any(thread.name == "sensorium-ending" for thread in threading.enumerate())


def test_latencies_by_modality(make: Callable[..., FeatureRunner]) -> None:
    runner = make(Counting("one"), Counting("two"))
    parts = [text("a", "first"), text("b", "second", Modality.CODE)]
    report = runner.run(parts)
    found = report.latencies(parts)
    assert set(found) == {Modality.TEXT, Modality.CODE}
    assert sum(found[Modality.TEXT] + found[Modality.CODE]) == pytest.approx(
        sum(report.milliseconds.values())
    )
    assert runner.run(parts).latencies(parts) == {}
