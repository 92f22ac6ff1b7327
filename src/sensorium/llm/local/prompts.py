"""A conversation as a model's chat template takes it, tools included."""

import contextlib
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sensorium.core import ConfigError
from sensorium.llm.local.config import LocalModelConfig
from sensorium.llm.local.grammars import CALL_CLOSES, CALL_OPENS
from sensorium.llm.local.python_calls import TOOLS_TEXT as PYTHON_TOOLS_TEXT
from sensorium.llm.local.python_calls import described, written
from sensorium.llm.local.requests import Picture, RequestError
from sensorium.llm.local.tools import Tool
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, OtherBlock, TextBlock

if TYPE_CHECKING:
    from sensorium.llm.local.vision import Vision

_TOOLS_TEXT = """You can call the functions described here, one JSON object a line:
<tools>
{tools}
</tools>

To call a function, answer with its name and arguments as a JSON object between marks, and nothing else:
<tool_call>
{{"name": "function name", "arguments": {{"argument": "value"}}}}
</tool_call>
What it returns follows between <tool_response> marks."""


_KEPT_TEXTS = 32
"""Prompts whose text and tokens are kept: episodes of one task begin with the same."""
_CLOCK = "strftime_now"
"""In templates whose text depends on the time."""


class Prompt(NamedTuple):
    """A conversation as a model reads it."""

    tokens: tuple[int, ...]
    pictures: tuple[Picture, ...] = ()
    """That its placeholders stand for."""


class Prompts:
    """Writes prompts for one tokenizer.

    Args:
        tokenizer: Of transformers, with a chat template; or a processor that has both.
        config: What is done with what the model cannot take, and who describes tools.
        vision: Of a model that sees; None: pictures are something that it cannot take.

    Raises:
        ConfigError: There is no chat template.
    """

    def __init__(self, tokenizer: Any, config: LocalModelConfig, vision: "Vision | None" = None) -> None:
        owner = tokenizer
        tokenizer = getattr(owner, "tokenizer", owner)
        if not getattr(owner, "chat_template", None):
            owner = tokenizer
        if not owner.chat_template:
            raise ConfigError(
                f"The tokenizer of {config.model!r} has no chat template. Take the model's instruct version, "
                "or put a chat_template.jinja into its folder."
            )
        self._template_of, self._tokenizer, self._vision = owner, tokenizer, vision
        self._place = f"[{secrets.token_hex(16)}]"  # stands for a picture where nothing else can say so
        self._backend = type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        self._kept = lru_cache(maxsize=_KEPT_TEXTS)(self._written)
        self.encoded = lru_cache(maxsize=_KEPT_TEXTS)(self._encoded)
        """Token ids of a text without pictures; marks of the template are one token each."""
        self._media: Literal["refuse", "name"] = config.media
        self._tool_format = config.tool_format

    def text(self, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        """The prompt, up to and with the mark that begins the answer.

        Raises:
            RequestError: There is no message, one has content that the model cannot take, or the template
                refuses the conversation.
        """
        if not messages:
            raise RequestError("The conversation has no messages. Expected one at least.")
        in_template = self._is_in_template(tools)
        turns = self._native(messages) if in_template else self._described(messages, tools)
        if self._vision is not None:
            turns = [turn | {"content": self._parts(turn["content"])} for turn in turns]
        functions = [{"type": "function", "function": dict(tool.function)} for tool in tools]
        write = self._written if _CLOCK in str(self._template_of.chat_template) else self._kept
        try:
            return write(json.dumps([turns, functions if functions and in_template else None]))
        except Exception as error:  # a template raises what it likes
            raise RequestError(
                f"The model's chat template refuses the conversation: {type(error).__name__}: {error}"
            ) from error

    def _written(self, conversation: str) -> str:
        """What the template makes of turns and functions, which come as JSON."""
        turns, functions = json.loads(conversation)
        text: str = self._template_of.apply_chat_template(
            turns, tools=functions, add_generation_prompt=True, tokenize=False
        )
        return text

    def read(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Prompt:
        """The prompt as token ids, and the pictures in it.

        Raises:
            RequestError: As `text`.
            PictureError: A picture cannot be read, or the template has no place for it.
        """
        text = self.text(messages, tools).encode("utf-8", "replace").decode()  # no half surrogates
        if self._vision is None:
            return Prompt(self.encoded(text))
        urls = [block.url for one in messages for block in one.content if isinstance(block, ImageBlock)]
        pictures = tuple(map(self._vision.picture, urls))
        return Prompt(self._vision.tokens(text, pictures) if urls else self.encoded(text), pictures)

    def _encoded(self, text: str) -> tuple[int, ...]:
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def _is_in_template(self, tools: Sequence[Tool]) -> bool:
        if self._tool_format != "auto":
            return self._tool_format == "template"
        template = self._template_of.chat_template
        if self._template_of is self._tokenizer:
            template = self._tokenizer.get_chat_template(
                tools=[dict(tool.function) for tool in tools] or None
            )
        return "tools" in template and CALL_OPENS in template

    def _native(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Turns for a template that knows calls and their results."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            turn: dict[str, Any] = {"role": _role(message), "content": self._content(message)}
            if message.tool_calls:
                turn["tool_calls"] = [_call_with_object(call) for call in message.tool_calls]
            if message.name is not None:
                turn["name"] = message.name
            if message.tool_call_id is not None:
                turn["tool_call_id"] = message.tool_call_id
            turns.append(turn)
        return turns

    def _described(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Turns of plain text: tools in the system message, calls and results between marks."""
        turns: list[dict[str, Any]] = []
        if tools:
            turns.append({"role": "system", "content": self._tools_text(tools)})
        was_tool = False
        for message in messages:
            role, content = _role(message), self._content(message)
            if role == "tool":
                content = f"<tool_response>\n{content}\n</tool_response>"
                if was_tool:
                    turns[-1]["content"] += f"\n{content}"
                    continue
                role = "user"
            elif role == "system" and len(turns) == 1 and turns[0]["role"] == "system":
                turns[0]["content"] = f"{content}\n\n{turns[0]['content']}"
                continue
            content = "\n".join(filter(None, (content, *map(self._call_text, message.tool_calls))))
            turns.append({"role": role, "content": content})
            was_tool = message.role == "tool"
        return turns

    def _tools_text(self, tools: Sequence[Tool]) -> str:
        if self._tool_format == "python":
            return PYTHON_TOOLS_TEXT.format(tools="\n".join(map(described, tools)))
        lines = "\n".join(json.dumps(dict(tool.function), ensure_ascii=False) for tool in tools)
        return _TOOLS_TEXT.format(tools=lines)

    def _call_text(self, call: Mapping[str, Any]) -> str:
        function = _call_with_object(call)["function"]
        name, arguments = function.get("name"), function.get("arguments")
        if self._tool_format == "python":
            return written(str(name), arguments)
        said = {"name": name, "arguments": arguments}
        return f"{CALL_OPENS}\n{json.dumps(said, ensure_ascii=False)}\n{CALL_CLOSES}"

    def _content(self, message: Message) -> str:
        parts: list[str] = []
        for block in message.content:
            match block:
                case TextBlock(text=text):
                    parts.append(text if self._vision is None else self._vision.harmless(text))
                case ImageBlock() if self._vision is not None:
                    parts.append(self._place)
                case ImageBlock(width=width, height=height):
                    parts.append(self._named("picture", f"{width} x {height} pixels"))
                case AudioBlock(duration_s=duration_s):
                    parts.append(self._named("sound", f"{duration_s:.1f} s"))
                case OtherBlock(data=data):
                    parts.append(self._other(data))
        return "\n".join(filter(None, parts))

    def _parts(self, content: str) -> list[dict[str, Any]]:
        """Content as templates of models that see expect it."""
        parts: list[dict[str, Any]] = []
        for number, text in enumerate(content.split(self._place)):
            if number:
                parts.append({"type": "image"})
            if text:
                parts.append({"type": "text", "text": text})
        return parts

    def _named(self, kind: str, size: str) -> str:
        if self._media == "refuse":
            takes = "text alone" if self._vision is None else "text and pictures alone"
            raise RequestError(
                f"The conversation holds a {kind} ({size}), and the local model takes {takes}. Show it as "
                "text, ask another model, or set media: name to have a line in its place."
            )
        return f"[{kind}, {size}, which you cannot perceive]"

    def _other(self, data: Mapping[str, Any]) -> str:
        kind = str(data.get("type"))
        if isinstance(data.get("refusal"), str):
            return str(data["refusal"])
        if "reasoning" in kind or "thinking" in kind:
            return ""  # earlier thoughts are not shown again
        return self._named(kind, "content of that type")


def _role(message: Message) -> str:
    return "system" if message.role == "developer" else message.role


def _call_with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call whose arguments are an object, as templates expect, where they can be read as one."""
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):
            function["arguments"] = json.loads(arguments or "{}")
    return {**call, "function": function}
