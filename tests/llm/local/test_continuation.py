"""Templates that continue what they wrote, and templates that write it anew."""

from pathlib import Path

import pytest

from sensorium.llm.local import LocalChatModel, LocalModelConfig, RequestError, tiny_model, tiny_seeing_model
from sensorium.llm.local.continuation import Rewritten

ENDS = "{{ '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}"
BEGINS = "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' }}"
WITHOUT_THOUGHTS = (
    BEGINS
    + "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1].lstrip() }}"
    + "{% else %}{{ m.content }}{% endif %}"
    + ENDS
)
LAST_ONE_MARKED = BEGINS + "{{ m.content }}{% if loop.last %}{{ ' (now)' }}{% endif %}" + ENDS
LAST_TWO = BEGINS.replace("in messages", "in messages[-2:]") + "{{ m.content }}" + ENDS
THINKS_FIRST = BEGINS + "{{ m.content }}" + ENDS.replace("assistant:'", "assistant:<think>'")
REFUSES = "{% if messages|length > 3 %}{{ raise_exception('too long') }}{% endif %}" + BEGINS + ENDS


def found(folder: Path, *, with_tools: bool = False) -> Rewritten | None:
    chat = LocalChatModel.from_config(LocalModelConfig(model=str(folder), device="cpu"))
    try:
        return chat.rewritten_message(with_tools=with_tools)
    finally:
        chat.engine.close()


@pytest.mark.parametrize("with_tools", [False, True])
def test_ordinary_templates_go_on_where_they_were(tmp_path: Path, with_tools: bool) -> None:
    assert found(tiny_model(tmp_path / "a"), with_tools=with_tools) is None
    assert found(tiny_seeing_model(tmp_path / "b"), with_tools=with_tools) is None


@pytest.mark.parametrize(
    ("template", "number", "role", "before", "after"),
    [
        (WITHOUT_THOUGHTS, 2, "assistant", "<think>\nFirst thought.", "First answer.<|im_end|>"),
        (LAST_ONE_MARKED, 1, "user", "The first question. (now)<|im_end|>", "The first question.<|im_end|>"),
        (LAST_TWO, 0, "system", "The system prompt.", "The last question."),
        (THINKS_FIRST, 2, "assistant", "First thought.", "First thought."),
    ],
)
def test_the_message_that_is_written_anew_is_named(
    tmp_path: Path, template: str, number: int, role: str, before: str, after: str
) -> None:
    made = found(tiny_model(tmp_path, template=template))
    assert made is not None
    assert (made.number, made.role) == (number, role)
    assert before in made.before
    assert after in made.after
    assert made.before != made.after
    assert str(made).startswith(f"message {number} ({role}): ")


def test_a_template_that_refuses_a_conversation_says_so(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="too long"):
        found(tiny_model(tmp_path, template=REFUSES))
