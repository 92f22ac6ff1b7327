from pathlib import Path
from typing import Any

import pytest
import transformers

from sensorium.core import ConfigError
from sensorium.llm.local import LocalModelConfig, RequestError, tiny_model
from sensorium.llm.local.prompts import Prompts
from sensorium.llm.local.tools import read_tools
from sensorium.llm.messages import ImageBlock, Message, OtherBlock, TextBlock, text_message

TOOLS = read_tools(
    [{"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}]
)
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CONVERSATION = [
    text_message("system", "Be brief."),
    text_message("user", "One and two?"),
    Message(role="assistant", content=(TextBlock(text="I add."),), tool_calls=(CALL,)),
    Message(role="tool", content=(TextBlock(text="3"),), tool_call_id="c1"),
    Message(role="tool", content=(TextBlock(text="four"),), tool_call_id="c2"),
]
KNOWS_TOOLS = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for m in messages %}{{ m['role'] }}:"
    "{{ m['content'] }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}"
    "{% endfor %}|{% endfor %}"
)
PICTURE = Message(role="user", content=(ImageBlock(url="data:", width=4, height=3), TextBlock(text="what?")))


def prompts(tokenizer: Any, **settings: Any) -> Prompts:
    return Prompts(tokenizer, LocalModelConfig(**settings))


@pytest.fixture(scope="module")
def tokenizer(loaded: tuple[Any, Any]) -> Any:
    return loaded[1]


@pytest.fixture(scope="module")
def knowing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tiny_model(tmp_path_factory.mktemp("knowing"), template=KNOWS_TOOLS)
    return transformers.AutoTokenizer.from_pretrained(folder)


def test_without_tools_a_conversation_goes_into_the_template_as_it_is(tokenizer: Any) -> None:
    text = prompts(tokenizer).text(CONVERSATION[:2], ())
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne and two?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_template_without_tools_gets_them_in_the_system_message(tokenizer: Any) -> None:
    text = prompts(tokenizer).text(CONVERSATION, TOOLS)
    assert text.startswith("<|im_start|>system\nBe brief.\n\nYou can call")
    assert (
        '{"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}' in text
    )
    assert text.endswith(
        "<|im_start|>user\nOne and two?<|im_end|>\n"
        '<|im_start|>assistant\nI add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
        "<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n3\n</tool_response>\n<tool_response>\nfour\n</tool_response>"
        "<|im_end|>\n<|im_start|>assistant\n"
    )


def test_tools_come_first_where_there_is_no_system_message(tokenizer: Any) -> None:
    assert prompts(tokenizer).text(CONVERSATION[1:2], TOOLS).startswith("<|im_start|>system\nYou can call")


def test_a_template_that_knows_tools_is_given_them(knowing: Any) -> None:
    text = prompts(knowing).text(CONVERSATION, TOOLS)
    assert text.startswith('<tools>[{"type": "function", "function": {"name": "add"')
    assert text.endswith('assistant:I add.<tool_call>{"a": 1}|tool:3|tool:four|')
    described = prompts(knowing, tool_format="system").text(CONVERSATION, TOOLS)
    assert described.startswith("system:Be brief.\n\nYou can call")


def test_tokens_are_those_of_the_text(tokenizer: Any) -> None:
    made = prompts(tokenizer)
    tokens = made.read(CONVERSATION, TOOLS).tokens
    assert tokenizer.decode(list(tokens)) == made.text(CONVERSATION, TOOLS)
    assert tokens.count(tokenizer.bos_token_id) == 5


def test_half_a_surrogate_does_not_break_a_prompt(tokenizer: Any) -> None:
    assert prompts(tokenizer).read([text_message("user", "a\ud800b")], ()).tokens


def test_pictures_are_refused_or_named(tokenizer: Any) -> None:
    with pytest.raises(RequestError, match=r"a picture \(4 x 3 pixels\)"):
        prompts(tokenizer).text([PICTURE], ())
    named = prompts(tokenizer, media="name").text([PICTURE], ())
    assert "user\n[picture, 4 x 3 pixels, which you cannot perceive]\nwhat?<|im_end|>" in named


def test_refusals_are_text_and_earlier_thoughts_are_left_out(tokenizer: Any) -> None:
    blocks = (OtherBlock(data={"type": "refusal", "refusal": "No."}), OtherBlock(data={"type": "reasoning"}))
    assert "assistant\nNo.<|im_end|>" in prompts(tokenizer).text(
        [Message(role="assistant", content=blocks)], ()
    )
    file = Message(role="user", content=(OtherBlock(data={"type": "input_file"}),))
    with pytest.raises(RequestError, match="input_file"):
        prompts(tokenizer).text([file], ())


def test_developers_are_the_system(tokenizer: Any) -> None:
    assert "<|im_start|>system\nx<|im_end|>" in prompts(tokenizer).text([text_message("developer", "x")], ())


def test_a_conversation_that_the_template_refuses_is_an_error(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, template="{{ raise_exception('roles must alternate') }}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with pytest.raises(RequestError, match="roles must alternate"):
        prompts(tokenizer).text(CONVERSATION, ())
    with pytest.raises(RequestError, match="no messages"):
        prompts(tokenizer).text([], ())


def test_a_tokenizer_without_a_template_is_refused(tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model(tmp_path))
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="no chat template"):
        prompts(tokenizer)


def test_the_same_conversation_is_written_once(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, calls = prompts(tokenizer), []
    write = tokenizer.apply_chat_template
    monkeypatch.setattr(tokenizer, "apply_chat_template", lambda *a, **k: calls.append(a) or write(*a, **k))
    first = writer.text(CONVERSATION[:2], TOOLS)
    assert writer.text(CONVERSATION[:2], TOOLS) == first
    assert len(calls) == 1
    assert writer.text(CONVERSATION[:2], ()) != first  # without tools it is another one
    assert len(calls) == 2


def test_a_template_that_tells_the_time_is_written_each_time(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = "{{ strftime_now('%f') }}"
    writer = prompts(tokenizer)
    assert len({writer.text(CONVERSATION[:2], ()) for _ in range(20)}) > 1
