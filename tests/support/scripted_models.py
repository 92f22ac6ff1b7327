"""Chat models without weights, for tests and benchmarks of servers."""

import asyncio
import json
import re

from sensorium.llm.base import Completion, Usage
from sensorium.llm.messages import Message, TextBlock

_QUESTION = re.compile(r"What is the (\w+) of the (\w+) of (\w+) and that of (\w+)\?")
_SIGNS = {"sum": "+", "difference": "-", "product": "*"}


def _completion(text="", call=None):
    content = (TextBlock(text=text),) if text else ()
    calls = ()
    if call is not None:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = ({"id": "c0", "type": "function", "function": function},)
    return Completion(
        message=Message(role="assistant", content=content, tool_calls=calls),
        finish_reason="tool_calls" if call else "stop",
        usage=Usage(prompt_tokens=10, completion_tokens=5),
        model="scripted",
    )


class Scripted:
    """Plays actions one after another, and keeps the prompts that it is asked with."""

    model = "scripted"

    def __init__(self, *actions, usage=None, extra=None, finish="tool_calls"):
        self._actions, self._usage, self._extra, self._finish = iter(actions), usage, extra, finish
        self.prompts = []

    async def complete(self, messages, tools=None, **sampling):
        self.prompts.append(tuple(messages))
        message = next(self._actions).message().model_copy(update={"extra": self._extra or {}})
        return Completion(
            message=message, finish_reason=self._finish, usage=self._usage or Usage(), model="m-1"
        )


class LookupExpert:
    """Solves tasks of the look-up environment from the conversation alone."""

    model = "lookup-expert"

    def __init__(self, wait_s=0.0):
        self._wait_s = wait_s

    async def complete(self, messages, tools=None, **sampling):
        await asyncio.sleep(self._wait_s)
        asked = next(m for message in messages if (m := _QUESTION.search(message.text)))
        operation, attribute, one, other = asked.groups()
        answers = [message.text for message in messages if message.role == "tool"]
        match len(answers):
            case 0:
                call = ("lookup", {"item": one, "attribute": attribute})
            case 1:
                call = ("lookup", {"item": other, "attribute": attribute})
            case 2:
                call = ("calculate", {"expression": f"{answers[0]} {_SIGNS[operation]} {answers[1]}"})
            case 3:
                call = ("submit", {"answer": float(answers[2])})
            case _:
                return _completion("done")
        return _completion(call=call)


class Says:
    """Always says the same."""

    model = "says"

    def __init__(self, text="hello", wait_s=0.0):
        self._text, self._wait_s = text, wait_s

    async def complete(self, messages, tools=None, **sampling):
        await asyncio.sleep(self._wait_s)
        return _completion(self._text)


def lookup_expert(**settings):
    return LookupExpert(**settings)


def says(**settings):
    return Says(**settings)


class Looks:
    """Looks once in the environment of pictures, then answers wrongly."""

    model = "looks"

    async def complete(self, messages, tools=None, **sampling):
        if any(message.role == "tool" for message in messages):
            assert any(block.type == "image" for message in messages for block in message.content)
            return _completion(call=("answer", {"text": "something"}))
        return _completion(call=("look", {}))


class Fails:
    """Never fits."""

    model = "fails"

    async def complete(self, messages, tools=None, **sampling):
        from sensorium.llm.base import ContextLengthError

        raise ContextLengthError("the prompt has 10 tokens, the context holds 5")


def looks(**settings):
    return Looks()


def fails(**settings):
    return Fails()
