import asyncio
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import Asked, ChatServer, Reply
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sensorium.core import FeatureError, parse_config
from sensorium.features.extractors.base import Extractor
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.registry import build_extractor
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.features.extractors.safety import Safety
from sensorium.features.safety import ImageSafetyJudge
from sensorium.features.safety_answer import read_answer
from sensorium.features.safety_config import SafetyConfig
from sensorium.llm.client import OpenAIChatModel
from sensorium.llm.config import EstimateConfig, FixedRule, PatchesRule
from sensorium.llm.tokens import build_counter
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue, TextValue

SAFE = Reply('{"verdict": "safe", "categories": [], "reason": "A plot."}')
UNSAFE = Reply('{"verdict": "unsafe", "categories": ["private_data"], "reason": "A payment card."}')


def picture(width: int = 40, height: int = 30, seed: int = 0, kind: str = "PNG") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def judge(server: ChatServer, folder: Path | None = None, **settings: Any) -> ImageSafetyJudge:
    rule = settings.pop("image_rule", PatchesRule())
    model = OpenAIChatModel(server.base_url, "judge-7b", max_retries=1, backoff_s=0.001)
    config = parse_config(
        SafetyConfig, {"cache": folder is not None, "cache_folder": folder and str(folder), **settings}
    )
    return ImageSafetyJudge(model, build_counter(EstimateConfig(image_rule=rule)), config)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_reaches_the_judge_byte_for_byte(kind):
    data = picture(kind=kind)
    with ChatServer([UNSAFE]) as server:
        verdict = judge(server).judge(data)
    assert (verdict.verdict, verdict.categories) == ("unsafe", ("private_data",))
    assert verdict.reason == "A payment card."
    assert verdict.judge == "judge-7b"
    assert verdict.latency_s > 0.0
    (asked,) = server.asked
    assert asked.pictures == [data]
    assert asked.payload["messages"][1]["content"][0]["image_url"]["url"].startswith(
        f"data:image/{kind.lower()};base64,"
    )
    assert "payment cards" in asked.payload["messages"][0]["content"]
    assert asked.payload["temperature"] == 0.0
    assert asked.payload["max_tokens"] == 256


ANSWERS = [
    ('{"verdict": "safe"}', "safe"),
    ('{"verdict": "SAFE", "categories": []}', "safe"),
    ('Sure!\n```json\n{"verdict": "unsafe", "categories": ["hate"]}\n```\nStay well.', "unsafe"),
    ('<think>{"verdict": "unsafe"} maybe</think> {"verdict": "safe", "reason": "x {y}"}', "safe"),
    ('Set {1, 2}. {"verdict": "unsafe"} {"verdict": "unsafe"}', "unsafe"),
    ('{"verdict": "unsafe", "categories": "hate", "reason": 3}', "unsafe"),
    ("safe", "unjudged"),
    ("", "unjudged"),
    ("I cannot help with that.", "unjudged"),
    ('{"verdict": "probably safe"}', "unjudged"),
    ('{"verdict": true}', "unjudged"),
    ('{"verdict": null}', "unjudged"),
    ('{"verdict": "safe", "categories": ["violence"]}', "unjudged"),
    ('{"verdict": "safe"} or rather {"verdict": "unsafe"}', "unjudged"),
    ('{"verdict": "safe", "verdict": "unsafe"}', "unjudged"),
    ('{"verdict": "safe"', "unjudged"),
    ('<think>{"verdict": "safe"} or', "unjudged"),
    ('["safe"]', "unjudged"),
    ("{" * 30_000, "unjudged"),
    ('{"a":' * 30_000, "unjudged"),
]


@pytest.mark.parametrize(("text", "verdict"), ANSWERS, ids=range(len(ANSWERS)))
def test_answers_are_read_strictly(text, verdict):
    found = read_answer(text)
    assert found.verdict == verdict
    assert found.reason.startswith("could not be judged: ") == (verdict == "unjudged")


@given(st.text())
def test_any_words_are_no_judgement(text):
    assert read_answer(text).verdict == "unjudged"


def test_the_prompt_fits_the_window_of_the_judge():
    """4 x 3 patches of 28 px cost 14 tokens; a window one token too small makes the picture smaller."""
    data = picture(112, 84)
    with ChatServer([SAFE]) as server:
        fits = judge(server)
        needed = next(
            window
            for window in range(300, 3000)
            if judge(server, context_window=window, shrink=False).judge(data).verdict == "safe"
        )
        asked_until_here = len(server.asked)
        tight = judge(server, context_window=needed - 1, shrink=False).judge(data)
        assert tight.verdict == "unjudged"
        assert "112x84 costs 14 tokens, the window leaves 13" in tight.reason
        assert len(server.asked) == asked_until_here, "it was not asked"
        assert judge(server, context_window=needed - 1).judge(data).verdict == "safe"
        assert fits.judge(data).verdict == "safe"
    smaller = Image.open(io.BytesIO(server.asked[-2].pictures[0]))
    assert (smaller.format, smaller.size) == ("JPEG", (90, 67))
    assert server.asked[-1].pictures == [data]


def test_what_cannot_be_made_to_fit_is_not_judged():
    with ChatServer([SAFE]) as server:
        fixed = judge(server, context_window=900, image_rule=FixedRule(tokens=5000)).judge(picture(640, 480))
        assert fixed.reason.startswith("could not be judged: a picture of")
        assert "longest side of" in fixed.reason
        wordy = judge(server, policy="Never. " * 5000).judge(picture())
        assert "shorten the policy" in wordy.reason
    assert not server.asked


def test_a_picture_of_too_many_bytes_is_made_smaller():
    data = picture(300, 300)
    with ChatServer([SAFE]) as server:
        assert judge(server, max_image_bytes=50_000).judge(data).verdict == "safe"
        assert "bytes" in judge(server, max_image_bytes=50_000, shrink=False).judge(data).reason
    assert 0 < len(server.asked[0].pictures[0]) <= 50_000 < len(data)


def test_bombs_are_not_decoded():
    data = bytearray(picture())
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    with ChatServer([SAFE]) as server:
        verdict = judge(server, context_window=700).judge(bytes(data))
    assert verdict.verdict == "unjudged"
    assert "60000x60000 is too large to be shrunk" in verdict.reason


@pytest.mark.parametrize("data", [b"", b"GIF89", b"%PDF-1.7", picture()[:20]])
def test_what_is_no_picture(data):
    with ChatServer([SAFE]) as server:
        assert "no PNG, JPEG, WebP or GIF" in judge(server).judge(data).reason
    assert not server.asked


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=500, body=b"out of memory"), "500 Internal Server Error, saying: out of memory"),
        (Reply(resets=True), "no connection"),
        (Reply(cuts=True), "middle of its answer"),
        (Reply(body=b"{"), "no JSON"),
        (Reply(status=400, body=b"maximum context length is 512"), "does not fit judge-7b"),
        (Reply("no idea"), "holds no verdict: no idea"),
        (Reply("late", delay_s=5.0), "did not answer within 0.3 s"),
    ],
    ids=range(7),
)
def test_a_judge_that_fails_never_raises(reply, reason, tmp_path):
    with ChatServer([reply]) as server:
        verdict = judge(server, tmp_path, timeout_s=0.3).judge(picture())
    assert verdict.verdict == "unjudged"
    assert verdict.reason.startswith("could not be judged: ")
    assert reason in verdict.reason
    assert not list(tmp_path.rglob("*.json")), "only judgements are kept"


def test_an_answer_that_was_cut_off_is_no_judgement():
    body = {"choices": [{"finish_reason": "length", "message": {"content": '{"verdict": "safe"}'}}]}
    with ChatServer([Reply(body=json.dumps(body).encode())]) as server:
        assert "cut off" in judge(server).judge(picture()).reason


def test_no_endpoint_at_all():
    with ChatServer([SAFE]) as server:
        asking = judge(server)
    verdict = asking.judge(picture())
    assert verdict.verdict == "unjudged"
    assert "failed after 2 tries: no connection" in verdict.reason


def test_verdicts_are_kept_by_picture_policy_and_model(tmp_path):
    data = picture()
    with ChatServer([UNSAFE]) as server:
        first = judge(server, tmp_path).judge(data)
        second = judge(server, tmp_path).judge(data)
        assert second == first.model_copy(update={"is_cached": True, "latency_s": 0.0})
        assert len(server.asked) == 1
        judge(server, tmp_path, policy="Cats are unsafe.").judge(data)
        judge(server, tmp_path).judge(picture(seed=1))
        other = judge(server, tmp_path)
        other.model = OpenAIChatModel(server.base_url, "judge-72b")
        assert other.judge(data).judge == "judge-72b"
        assert len(server.asked) == 4
        for entry in tmp_path.rglob("*.json"):
            entry.write_text("{}")
        assert not judge(server, tmp_path).judge(data).is_cached
        assert len(server.asked) == 5


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path):
    (tmp_path / "file").write_text("")
    with ChatServer([SAFE]) as server:
        assert judge(server, tmp_path / "file").judge(picture()).verdict == "safe"


def test_many_are_judged_at_once_but_not_too_many():
    pictures = [picture(seed=seed) for seed in range(9)] + [picture(seed=0)]
    by_bytes = {data: index for index, data in enumerate(pictures[:9])}

    def reply(asked: Asked) -> Reply:
        chosen = UNSAFE if by_bytes[asked.pictures[0]] % 2 else SAFE
        return Reply(chosen.text, delay_s=0.02)

    with ChatServer(reply) as server:
        verdicts = asyncio.run(judge(server, max_concurrency=3).ajudge_many(pictures))
    assert [one.verdict for one in verdicts] == ["safe", "unsafe"] * 4 + ["safe", "safe"]
    assert len(server.asked) == 9, "equal pictures are judged once"
    assert 1 < server.most_at_once <= 3


def test_blocking_calls_work_inside_an_event_loop():
    async def inside(server: ChatServer) -> str:
        return judge(server).judge(picture()).verdict

    with ChatServer([SAFE]) as server:
        assert asyncio.run(inside(server)) == "safe"


def part(name: str, data: bytes | None, url: str | None = None) -> Part:
    return Part(id=name, modality="image", value=ImageValue(data=data, url=url))


def test_the_extractor_through_the_runner(tmp_path):
    bad, good = picture(seed=1), picture(seed=2)
    with ChatServer(lambda asked: UNSAFE if asked.pictures == [bad] else SAFE) as server:
        settings = {
            "judge": {"base_url": server.base_url, "model": "judge-7b"},
            "tokens": {"type": "estimate", "image_rule": {"type": "fixed", "tokens": 100}},
            "cache": False,
        }
        config = FeaturesConfig(
            extractors=("safety",), settings={"safety": settings}, cache_folder=str(tmp_path)
        )
        note = Part(id="note", modality="text", value=TextValue(text="Hi"))
        with FeatureRunner(config) as runner:
            report = runner.run(
                [part("bad", bad), part("good", good), part("far", None, "https://x/y"), note]
            )
    found = {name: features.get("safety") for name, features in report.features.items()}
    assert found["bad"].data["verdict"] == "unsafe"
    assert found["bad"].summary == "unsafe (private_data): A payment card."
    assert found["good"].data["verdict"] == "safe"
    assert "only its address" in found["far"].unavailable
    assert found["note"] is None


def test_the_extractor_by_itself():
    with ChatServer([SAFE]) as server:
        extractor = Safety(judge=judge(server))
        assert isinstance(extractor, Extractor)
        safe, far = extractor([part("a", picture()), part("b", None, "https://x/y")])
    assert (safe.data["verdict"], safe.unavailable) == ("safe", None)
    assert (far.data["verdict"], far.summary) == ("unjudged", "")
    assert far.unavailable == "could not be judged: there are no bytes of the picture, only its address"


def test_the_extractor_needs_a_judge_and_its_version_follows_its_settings():
    built = build_extractor("safety")
    with pytest.raises(FeatureError, match="no judge is configured"):
        built([part("a", picture())])
    endpoint = {"base_url": "http://localhost:1/v1", "model": "m"}
    versions = {
        build_extractor("safety", settings).version
        for settings in ({}, {"judge": endpoint}, {"judge": endpoint, "policy": "x"}, {"context_window": 999})
    }
    assert len(versions) == 4
    patient = build_extractor("safety", {"judge": endpoint, "timeout_s": 99.0})
    assert patient.version in versions
