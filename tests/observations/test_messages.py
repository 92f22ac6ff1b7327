from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.messages import MediaItem, looks_like_messages, read_messages
from sensorium.observations.values import MessagesValue, ProblemValue


def turns(raw: Any) -> list[tuple[str, str, str | None]]:
    value = read_messages(raw, part_id="chat").parts[0].value
    assert isinstance(value, MessagesValue)
    return [(turn.role, turn.content, turn.name) for turn in value.turns]


def test_plain_messages() -> None:
    raw = [{"role": "system", "content": "Be brief."}, {"role": "human", "content": "Hi", "name": "Ann"}]
    assert turns(raw) == [("system", "Be brief.", None), ("user", "Hi", "Ann")]
    assert turns({"messages": raw}) == turns(raw)


def test_blocks_keep_text_and_hand_out_media() -> None:
    blocks = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}},
        {"type": "input_image", "image_url": "http://x/y.png"},
    ]
    found = read_messages([{"role": "user", "content": blocks}], part_id="chat")
    assert found.media == [
        MediaItem("chat/message-0/image-0", "image", "data:image/png;base64,AAAA", "url"),
        MediaItem("chat/message-0/image-1", "image", "QUJD", "base64"),
        MediaItem("chat/message-0/audio-0", "audio", "UklGRg==", "base64"),
        MediaItem("chat/message-0/image-2", "image", "http://x/y.png", "url"),
    ]
    text = turns([{"role": "user", "content": blocks}])[0][1]
    assert text.split("\n")[:2] == ["What is this?", "[image: chat/message-0/image-0]"]


def test_tool_calls_become_text() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    raw = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "run", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}]},
    ]
    assert turns(raw) == [
        ("assistant", 'calls search({"q": "x"})', None),
        ("tool", "found", "c1"),
        ("assistant", 'calls run({"a": 1})', None),
        ("user", "ok", None),
    ]


def test_broken_messages_are_told_beside_the_good_ones() -> None:
    found = read_messages(
        [{"role": "user", "content": "a"}, 3, {"role": "wizard", "content": "b"}], part_id="c"
    )
    value, problem = found.parts[0].value, found.parts[1].value
    assert isinstance(value, MessagesValue)
    assert [turn.content for turn in value.turns] == ["a", "b"]
    assert isinstance(problem, ProblemValue)
    assert "messages 1, 2" in problem.where


def test_no_conversation_is_a_problem() -> None:
    assert read_messages(7, part_id="c").parts[0].is_error


def test_the_limit_is_for_the_whole() -> None:
    raw = [{"role": "user", "content": "x" * 60}] * 2
    found = read_messages(raw, part_id="c", config=ReadConfig(max_bytes=100))
    value = found.parts[0].value
    assert isinstance(value, MessagesValue)
    assert [len(turn.content) for turn in value.turns] == [60, 40]
    assert found.parts[0].notes == ("first 40 of 60 characters",)


def test_conversations_are_recognised() -> None:
    assert looks_like_messages([{"role": "user", "content": "x"}])
    assert not looks_like_messages([{"role": "admin", "content": "x"}])
    assert not looks_like_messages([{"role": ["user"], "content": "x"}])
    assert not looks_like_messages([])
    assert not looks_like_messages({"a": 1})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["role", "content", "name", "tool_calls", "function_call", "tool_call_id"])
BLOCK_KEYS = st.sampled_from(["type", "text", "image_url", "source", "input_audio", "content", "data", "url"])
BLOCK = st.dictionaries(
    BLOCK_KEYS, JSON | st.sampled_from(["image", "input_audio", "tool_result", "text"]), max_size=4
)


@given(st.lists(st.dictionaries(KEYS, JSON | st.lists(BLOCK, max_size=3), max_size=4) | JSON, max_size=4))
def test_anything_is_read_and_survives_json(raw: Any) -> None:
    for part in read_messages(raw, part_id="c").parts:
        assert Part.model_validate_json(part.model_dump_json()) == part
