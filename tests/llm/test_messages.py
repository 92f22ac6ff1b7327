import base64
import io
import json
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core import ModelError
from sensorium.llm.base import count_message
from sensorium.llm.config import EstimateConfig, FixedRule
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, OtherBlock, TextBlock, chat, text_message
from sensorium.llm.responses import from_responses, responses
from sensorium.llm.tokens import build_counter

PIXEL = "data:image/png;base64,"
PIXEL += "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAADklEQVR4nGNg"
PIXEL += "IAAw4GcAAAA5AAHvbQ9nAAAAAElFTkSuQmCC"
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}


def sound(seconds: float) -> str:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(int(seconds * 16000)))
    return base64.b64encode(buffer.getvalue()).decode()


WIRE = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": ""},
    {"role": "user", "content": "Hi", "name": "ann"},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    {"role": "user", "content": []},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [CALL],
        "reasoning_content": "hm",
        "refusal": None,
    },
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": "x", "name": None, "tool_calls": []},
    {"role": "tool", "content": "a\nb", "tool_call_id": "c1"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}],
    },
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": PIXEL, "detail": "original"}, "uuid": "7"}],
    },
    {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": sound(0.5), "format": "wav"}}],
    },
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "m4a"}}]},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "file", "n": 1},
        ],
    },
]


@pytest.mark.parametrize("wire", WIRE, ids=range(len(WIRE)))
def test_chat_messages_go_both_ways_without_loss(wire):
    message = Message.from_chat(wire)
    assert message.chat() == wire
    again = Message.model_validate_json(message.model_dump_json())
    assert again == message
    assert again.chat() == wire


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.dictionaries(
        st.sampled_from(["type", "text", "image_url", "input_audio", "x"]), json_values, max_size=4
    ),
)


@given(
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.none() | st.text(max_size=9) | st.lists(blocks, max_size=3),
    st.dictionaries(st.sampled_from(["name", "tool_call_id", "tool_calls", "extra", "audio"]), json_values),
)
def test_any_message_goes_both_ways_without_loss(role, content, others):
    wire = {"role": role, "content": content, **others}
    assert Message.from_chat(wire).chat() == wire


@pytest.mark.parametrize(
    "wire", [{"role": "bard"}, {}, {"role": "user", "content": 3}, {"role": "user", "content": [3]}]
)
def test_what_is_no_chat_message(wire):
    with pytest.raises(ModelError, match=r"chat message|content block"):
        Message.from_chat(wire)


def test_sizes_and_durations_are_read():
    picture = Message.from_chat(WIRE[10]).content[0]
    assert isinstance(picture, ImageBlock)
    assert (picture.width, picture.height) == (2, 3)
    unknown = Message.from_chat(WIRE[11]).content[0]
    assert isinstance(unknown, ImageBlock)
    assert (unknown.width, unknown.height, unknown.detail) == (0, 0, "low")
    heard = Message.from_chat(WIRE[13]).content[0]
    assert isinstance(heard, AudioBlock)
    assert heard.duration_s == pytest.approx(0.5, abs=0.01)
    block = {"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "mp3"}}
    squeezed = Message.from_chat({"role": "user", "content": [block]}).content[0]
    assert isinstance(squeezed, AudioBlock)
    assert squeezed.duration_s == 3.0


def test_text_blocks_are_sent_as_one_text():
    message = Message(role="user", content=(TextBlock(text="a"), TextBlock(text="b")))
    assert chat([message]) == [{"role": "user", "content": "a\nb"}]


def test_the_responses_dialect_goes_both_ways():
    picture = ImageBlock(url=PIXEL, width=2, height=3)
    conversation = [
        text_message("system", "Be brief."),
        Message(role="user", content=(TextBlock(text="What is it?"), picture)),
        Message(
            role="assistant",
            content=(OtherBlock(data={"type": "reasoning", "summary": []}), TextBlock(text="Let me look.")),
            tool_calls=(CALL, CALL | {"id": "c2"}),
        ),
        Message(role="tool", content=(TextBlock(text="a dot"),), tool_call_id="c1"),
        Message(role="tool", content=(TextBlock(text="see"), picture), tool_call_id="c2", as_list=True),
        text_message("assistant", "A dot."),
    ]
    items = responses(conversation)
    assert [item["type"] for item in items] == [
        "message",
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert items[1]["content"][1] == {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    assert items[3]["content"] == [{"type": "output_text", "text": "Let me look."}]
    assert items[6] == {"type": "function_call_output", "call_id": "c1", "output": "a dot"}
    assert items[7]["output"][1]["type"] == "input_image"
    assert from_responses(json.loads(json.dumps(items))) == conversation


def test_everything_in_a_message_is_counted():
    counter = build_counter(EstimateConfig(image_rule=FixedRule(tokens=100), message_overhead=7))
    assert count_message(counter, Message(role="user", content=())) == 7
    assert count_message(counter, Message.from_chat(WIRE[11])) == 107
    assert count_message(counter, Message.from_chat(WIRE[13])) == 7 + 13
    named, plain = Message.from_chat(WIRE[2]), text_message("user", "Hi")
    assert count_message(counter, named) > count_message(counter, plain)
    assert count_message(counter, Message.from_chat(WIRE[5])) > 7 + 10
    assert count_message(counter, Message.from_chat(WIRE[15])) > 7 + 5
