import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply
from summary_parts import LOG, table

from sensorium.core import ConfigError, FeatureError, Modality, parse_config
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.config import FeaturesConfig
from sensorium.features.extractors.model_summary import ModelSummary
from sensorium.features.extractors.registry import build_extractor
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.features.extractors.summary_config import SummaryConfig
from sensorium.observations.base import Part
from sensorium.observations.values import ImageValue, StructuredValue, TextValue
from sensorium.testing.extractor import check_extractor

GOOD = "Workers handled requests [1-19]. The database connection was lost after 30.5 s [20]."


def part(text: str = "\n".join(LOG), name: str = "run.log") -> Part:
    return Part(id=name, modality=Modality.TEXT, value=TextValue(text=text, format="log"))


def settings(server: ChatServer, **changes: Any) -> dict[str, Any]:
    model = {"base_url": server.base_url, "model": "light-1b", "max_retries": 0, "timeout_s": 5.0}
    return {"model": model | changes.pop("endpoint", {}), "min_chars": 500, **changes}


def summary(server: ChatServer, **changes: Any) -> ModelSummary:
    return ModelSummary(parse_config(SummaryConfig, settings(server, **changes)))


def shown(asked: Asked) -> str:
    return asked.payload["messages"][-1]["content"]


def numbers_shown(asked: Asked) -> list[int]:
    return [int(number) for number in re.findall(r"^(\d+)\| ", shown(asked), re.MULTILINE)]


def test_sentences_come_with_their_lines() -> None:
    with ChatServer([Reply(GOOD)]) as server:
        (found,) = summary(server)([part()])
    assert found.unavailable is None
    assert found.summary == found.data["text"]
    assert found.data == {
        "text": "Workers handled requests. The database connection was lost after 30.5 s.",
        "sentences": [
            {
                "text": "Workers handled requests.",
                "lines": [1, 19],
                "cited": [[1, 19]],
                "where": "lines 1-19",
                "verified": True,
                "doubt": "",
            },
            {
                "text": "The database connection was lost after 30.5 s.",
                "lines": [20, 20],
                "cited": [[20, 20]],
                "where": "line 20",
                "verified": True,
                "doubt": "",
            },
        ],
        "model": "light-1b",
        "num_lines": 60,
        "num_read": 60,
    }
    (asked,) = server.asked
    assert asked.payload["model"] == "light-1b"
    assert asked.payload["temperature"] == 0.0
    assert asked.payload["max_tokens"] == 1024
    assert "at most 120 words" in shown(asked)
    assert "\n20| ERROR database connection lost" in shown(asked)
    assert "run.log" not in shown(asked), "equal content must give equal answers"


def test_what_goes_beyond_the_words_is_left_out() -> None:
    with ChatServer([Reply("Workers handled many different requests here [1-9]. " * 3 + GOOD)]) as server:
        (found,) = summary(server, max_words=12)([part()])
    assert [s["text"] for s in found.data["sentences"]] == [
        "Workers handled many different requests here.",
        "Workers handled requests.",
    ]


def test_tables_and_structured_data_are_summarised() -> None:
    records = StructuredValue(data={"orders": [{"id": i, "state": "late"} for i in range(40)]})
    parts = [
        Part(id="t", modality=Modality.TABLE, value=table()),
        Part(id="s", modality=Modality.TEXT, value=records),
    ]
    answers = {"table": "The highest price is 9.0 EUR in Rome [4].", "structured": "Orders are late [1-80]."}

    def reply(asked: Asked) -> Reply:
        return Reply(next(said for kind, said in answers.items() if f"kind {kind}" in shown(asked)))

    with ChatServer(reply) as server:
        found = summary(server, min_chars=100)(parts)
    assert [f.data["sentences"][0]["where"] for f in found] == ["row 7", "orders[0].id to orders[39].state"]
    assert [f.data["sentences"][0]["verified"] for f in found] == [True, True]


def test_short_parts_and_pictures_are_left_alone() -> None:
    with ChatServer([Reply(GOOD)]) as server:
        extractor = summary(server, min_chars=500)
        assert not extractor.accepts(part("a" * 499))
        assert extractor.accepts(part("a" * 500))
        assert not extractor.accepts(Part(id="p", modality=Modality.IMAGE, value=ImageValue(url="x")))
        small = Part(id="t", modality=Modality.TABLE, value=table())
        assert extractor.accepts(small), "how long it is is only known when it is written out"
        blank = part("\n" * 600, "blank")
        found = extractor([small, part(), blank])
    assert [bool(features.data) for features in found] == [False, True, False]
    assert [features.unavailable for features in found] == [None] * 3
    assert len(server.asked) == 1
    assert not ModelSummary(SummaryConfig(min_chars=0)).accepts(part(""))


def in_pieces(asked: Asked) -> Reply:
    """Says of every piece what its first and last lines are; joins what it said of all pieces."""
    numbers = numbers_shown(asked)
    if not numbers:
        return Reply("Workers handled requests all the time [1-200]. Some unheard inventions follow [1].")
    first, last = numbers[0], numbers[-1]
    said = f"Request {first} and more were handled [{first}-{last}]. Nothing else."
    return Reply(said, delay_s=0.02)


LONG = part("\n".join(f"worker {i % 3} handled request {i} in {i * 7 % 50} ms" for i in range(1, 201)))


def test_long_parts_are_read_in_pieces_that_fit_the_model() -> None:
    with ChatServer(in_pieces) as server:
        extractor = summary(server, max_input_tokens=1000, max_words=20)
        (found,) = extractor([LONG])
    *pieces, joining = server.asked
    read = sorted(numbers_shown(asked) for asked in pieces)
    assert len(read) >= 4
    assert [number for numbers in read for number in numbers] == list(range(1, 201)), "each line once"
    assert "at most 24 words" in shown(pieces[0])
    assert f"Request 1 and more were handled [1-{read[0][-1]}].\nNothing else.\n" in shown(joining)
    assert shown(joining).count("Nothing else.") == 1
    assert found.data["text"] == "Workers handled requests all the time. Some unheard inventions follow."
    assert [s["verified"] for s in found.data["sentences"]] == [True, False]
    assert found.data["num_read"] == found.data["num_lines"] == 200
    assert 1 < server.most_at_once <= 4


def test_a_bad_joining_falls_back_to_verified_sentences_of_the_pieces() -> None:
    for bad in (Reply("Trust me."), Reply(status=400, body=b"no"), Reply("")):
        with ChatServer(lambda asked, bad=bad: in_pieces(asked) if numbers_shown(asked) else bad) as server:
            (found,) = summary(server, max_input_tokens=1000, max_words=20)([LONG])
        assert found.unavailable is None
        assert len(found.data["sentences"]) >= 2
        assert all(s["verified"] for s in found.data["sentences"])
        assert found.data["sentences"][0]["lines"][0] == 1
        assert len(found.data["text"].split()) <= 20


def test_of_very_long_parts_pieces_are_read_from_beginning_to_end() -> None:
    with ChatServer(in_pieces) as server:
        (found,) = summary(server, max_input_tokens=1000, max_words=20, max_pieces=2)([LONG])
    read = sorted(numbers_shown(asked) for asked in server.asked)
    assert (read[0][0], read[-1][-1]) == (1, 200)
    assert found.data["num_read"] == sum(map(len, read)) < 200
    assert len(server.asked) == 2, "few words need no joining"


def test_a_context_smaller_than_was_said_is_met_by_halving() -> None:
    def reply(asked: Asked) -> Reply:
        if len(numbers_shown(asked)) > 30:
            return Reply(status=400, body=b"maximum context length is 512 tokens")
        return in_pieces(asked)

    with ChatServer(reply) as server:
        (found,) = summary(server)([part()])
    assert found.unavailable is None
    assert [len(numbers_shown(asked)) for asked in server.asked] == [60, 30, 30]
    assert [s["lines"] for s in found.data["sentences"] if s["lines"]] == [[1, 30], [31, 60]]


def test_a_line_that_fits_no_prompt_is_told() -> None:
    with ChatServer([Reply(GOOD)]) as server:
        (found,) = summary(server, max_input_tokens=600, max_words=30)([part("中" * 600)])
    assert "line 1 alone takes" in (found.unavailable or "")
    assert not server.asked


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=500, body=b"out of memory"), "500 Internal Server Error, saying: out of memory"),
        (Reply(resets=True), "no connection"),
        (Reply(cuts=True), "middle of its answer"),
        (Reply(body=b"{"), "no JSON"),
        (Reply(GOOD, delay_s=5.0), "did not answer within 0.3 s"),
        (Reply(""), "light-1b answered without a sentence"),
        (
            Reply("Sorry, I cannot. It cost 99 dollars [3]. Workers handled requests [1-9]."),
            "only 1 of 3 sentences by light-1b could be verified, min_verified is 0.5; "
            'e.g. "Sorry, I cannot." names no lines',
        ),
    ],
    ids=range(7),
)
def test_a_model_that_fails_never_raises(reply: Reply, reason: str) -> None:
    with ChatServer([reply]) as server:
        (found,) = summary(server, endpoint={"timeout_s": 0.3})([part()])
    assert reason in (found.unavailable or "")
    assert not found.data


def test_an_answer_that_was_cut_off_loses_its_last_words() -> None:
    message = {"content": "Connection lost [20]. Then the wor"}
    body = json.dumps({"choices": [{"finish_reason": "length", "message": message}]}).encode()
    with ChatServer([Reply(body=body)]) as server:
        (found,) = summary(server)([part()])
    assert found.data["text"] == "Connection lost."


def test_an_endpoint_that_is_down_is_not_asked_for_every_part() -> None:
    parts = [part(f"{i}\n" + "\n".join(LOG), f"log-{i}") for i in range(20)]
    with ChatServer([Reply(status=503, body=b"loading")]) as server:
        found = summary(server)(parts)
        assert all("loading" in (features.unavailable or "") for features in found)
        assert 4 <= len(server.asked) <= 8
        asked = len(server.asked)
        summary(server)(parts[:1])
        assert len(server.asked) > asked, "the next batch tries again"


def test_without_an_endpoint_it_says_what_to_set() -> None:
    with pytest.raises(FeatureError, match=r"features\.settings\.summary\.model"):
        ModelSummary()([part()])
    config = FeaturesConfig(extractors=("summary",), cache=False)
    with FeatureRunner(config) as runner:
        (features,) = runner.run([part()]).features["run.log"].values()
    assert "no model is configured" in (features.unavailable or "")


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="allow at most 125 words"):
        build_extractor("summary", {"max_words": 200, "max_input_tokens": 1000})


def test_the_runner_keeps_summaries_by_model_prompt_and_settings(tmp_path: Path) -> None:
    def run(server: ChatServer, **changes: Any) -> Features:
        config = FeaturesConfig(
            extractors=("summary",),
            settings={"summary": settings(server, **changes)},
            cache_folder=str(tmp_path),
        )
        with FeatureRunner(config) as runner:
            return runner.run([part()]).features["run.log"]["summary"]

    with ChatServer([Reply(GOOD)]) as server:
        first, again = run(server), run(server, max_concurrency=1, endpoint={"timeout_s": 9.0})
        assert (first.is_cached, again.is_cached) == (False, True)
        assert again.data == first.data
        assert len(server.asked) == 1
        assert not run(server, max_words=50).is_cached
        assert not run(server, endpoint={"model": "other"}).is_cached
        assert len(server.asked) == 3
    with ChatServer([Reply(GOOD)]) as elsewhere:
        assert run(elsewhere).is_cached, "the same model behind another address"
    assert not elsewhere.asked


def test_it_keeps_the_contract_of_extractors() -> None:
    with ChatServer([Reply(GOOD)]) as server:
        check_extractor(summary(server), [part(), part("\n".join(LOG[::-1]), "b"), part("short", "c")])


def test_it_works_inside_an_event_loop() -> None:
    async def inside(server: ChatServer) -> str:
        return summary(server)([part()])[0].summary

    with ChatServer([Reply(GOOD)]) as server:
        assert asyncio.run(inside(server)).startswith("Workers handled requests.")
