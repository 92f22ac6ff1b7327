"""A chat model whose weights are in this process."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sensorium.core import ModelError
from sensorium.llm.base import Usage
from sensorium.llm.local.answers import Call, read_answer
from sensorium.llm.local.config import LocalModelConfig
from sensorium.llm.local.continuation import Rewritten, rewritten
from sensorium.llm.local.engine import Engine
from sensorium.llm.local.grammars import answer_grammar, calls_grammar, response_schema
from sensorium.llm.local.guides import CallGuide, Grammars, JsonGuide
from sensorium.llm.local.loading import LocalTokenizer, context_length, end_tokens, load_model
from sensorium.llm.local.prompts import Prompts
from sensorium.llm.local.python_calls import read_python_calls
from sensorium.llm.local.requests import Generation, Guide, LocalCompletion, Request, RequestError
from sensorium.llm.local.sampling_options import Options, read_options
from sensorium.llm.local.tools import ToolUse, read_choice, read_tools
from sensorium.llm.messages import Message, TextBlock

if TYPE_CHECKING:
    from sensorium.llm.local.vision import Vision

_SHORT_CHARS = 2_000
"""Text that is written and tokenised in about a millisecond."""


class LocalChatModel:
    """Answers conversations with a causal language model of transformers, many at a time.

    It satisfies `ChatModel`. Beside the usual settings (`temperature`, `top_p`, `top_k`, `seed`,
    `max_tokens`, `stop`, `logprobs`, `top_logprobs`, `tool_choice`, `response_format`) it takes
    `return_token_ids`; the completion is a `LocalCompletion`.

    With ``tool_choice="required"``, a named function, or a ``response_format`` of JSON, decoding is held to
    the schema; with ``"auto"`` from the moment the model opens a call. A limit of tokens then ends the
    answer early, but leaves it whole. With ``tool_format: python`` nothing is held.

    Args:
        model: A causal language model of transformers. Nobody else may change it while this is open, except
            inside ``engine.paused()``.
        tokenizer: A fast tokenizer with a chat template; of a model that is to see, its processor.
        config: Settings; ``device`` and ``dtype`` are those that the model has.

    Raises:
        ConfigError: The model keeps another state than keys and values, the tokenizer has no chat template,
            neither says what ends an answer or how long the context is, or the model takes pictures in a way
            that the engine does not know.

    Example:
        >>> async with LocalChatModel.from_config(LocalModelConfig(), find_model) as model:  # doctest: +SKIP
        ...     answer = await model.complete([text_message("user", "Hello")], max_tokens=50)
    """

    def __init__(self, model: Any, tokenizer: Any, config: LocalModelConfig) -> None:
        self.config = config
        self.model = config.name or Path(config.model).name
        processor, tokenizer = tokenizer, getattr(tokenizer, "tokenizer", tokenizer)
        self.vision = None if processor is tokenizer else _vision(model, processor, self.model)
        width = int(model.config.get_text_config().vocab_size)
        self.tokenizer = LocalTokenizer(tokenizer, end_tokens(model, tokenizer), max(width, len(tokenizer)))
        self._prompts = Prompts(processor, config, self.vision)
        self._grammars: Grammars | None = None
        self._lock = threading.Lock()
        longest = config.engine.context_tokens or context_length(model, tokenizer)
        self.engine = Engine(model, self.tokenizer, config.engine, context_tokens=longest)

    @classmethod
    def from_config(
        cls, config: LocalModelConfig, find: Callable[[str], Path | str] | None = None
    ) -> "LocalChatModel":
        """Load the model that `config` names.

        Args:
            config: Which model, and how it is run.
            find: Turns the name of a packaged model into its folder (`sensorium.features.find_model`).

        Raises:
            MissingDependencyError: torch or transformers is not installed.
            ConfigError: The model cannot be loaded or is not of a kind that the engine runs.
        """
        model, tokenizer = load_model(config, find)
        return cls(model, tokenizer, config)

    def __repr__(self) -> str:
        return f"LocalChatModel({self.model!r})"

    @property
    def context_tokens(self) -> int:
        """Longest prompt and answer together."""
        return self.engine.context_tokens

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Fail what is under way with `ModelClosedError` and let go of the thread; may be called again."""
        await asyncio.to_thread(self.engine.close)

    def prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[int, ...]:
        """Token ids of a conversation exactly as `complete` sends it to the model."""
        return self._prompts.read(messages, read_tools(tools)).tokens

    def rewritten_message(self, *, with_tools: bool) -> Rewritten | None:
        """The first message that the chat template writes anew once a conversation goes on; None: none.

        Args:
            with_tools: Whether there are tools.

        Raises:
            RequestError: The template refuses an ordinary conversation.
        """
        tools = read_tools([{"name": "probe"}] if with_tools else None)
        return rewritten(lambda messages: self._prompts.text(messages, tools), with_tools=with_tools)

    def complete_sync(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> LocalCompletion:
        """As `complete`, for code without an event loop; blocks."""
        request, use = self._prepare(messages, tools, sampling)
        return self._completion(request, use, self.engine.submit(request).result())

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> LocalCompletion:
        """Answer a conversation; see `ChatModel.complete`. Cancelling it frees its place in the batch.

        Raises:
            ContextLengthError: The conversation leaves no room for an answer.
            QueueFullError: Too many requests wait.
            RequestError: A setting, a tool or content of a message cannot be met.
            ModelClosedError: The model was closed.
            ModelError: The model failed.
        """
        if not tools and sampling.get("response_format") is None and _is_short(messages):
            request, use = self._prepare(messages, tools, sampling)
        else:  # grammars, pictures and long texts take a while, in which others may go on
            request, use = await asyncio.to_thread(self._prepare, messages, tools, sampling)
        # What others ask at the same time is prepared first: all is handed over, and decodes, together.
        await asyncio.sleep(0)
        generation = await asyncio.wrap_future(self.engine.submit(request))
        return self._completion(request, use, generation)

    def _prepare(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        sampling: Mapping[str, Any],
    ) -> tuple[Request, ToolUse]:
        options = read_options(sampling, self.config.sampling)
        use = read_choice(options.tool_choice, read_tools(tools))
        prompt, pictures = self._prompts.read(messages, use.shown)
        guide = self._guide(options, use)
        said: tuple[int, ...] = ()
        if isinstance(guide, JsonGuide) and not options.sampling.logprobs:
            room = self.context_tokens - len(prompt)
            said = guide.begin(min(room, options.sampling.max_tokens or room) - 1)
        request = Request(prompt=prompt, pictures=pictures, sampling=options.sampling, guide=guide, said=said)
        return request, use

    def _guide(self, options: Options, use: ToolUse) -> Guide | None:
        schema = response_schema(options.response_format)
        if schema is None and not use.callable:
            return None
        is_python = self.config.tool_format == "python"
        if is_python and use.is_required:
            raise RequestError(
                "With tool_format: python an answer cannot be held to a call. Leave tool_choice out, or "
                "choose another tool_format."
            )
        if is_python and schema is None:
            return None
        grammars = self._vocabulary()
        if use.is_required:
            return JsonGuide(grammars, self._calls(grammars, use, options, is_open=False))
        if schema is not None:
            if use.callable:
                raise RequestError(
                    "The local model cannot combine response_format with tools that may be called. Ask for "
                    "one of them (tool_choice='none' shows the tools without calling them)."
                )
            return JsonGuide(grammars, grammars.matcher(answer_grammar(schema)))
        return CallGuide(grammars, self._calls(grammars, use, options, is_open=True))

    def _calls(self, grammars: Grammars, use: ToolUse, options: Options, *, is_open: bool) -> Any:
        """A matcher of calls; where a schema cannot be enforced in full, of as much of it as can be."""
        is_parallel = is_open if options.is_parallel is None else options.is_parallel
        strict = calls_grammar(use.callable, is_open=is_open, is_parallel=is_parallel, lenient=False)
        try:
            return grammars.matcher(strict)
        except RequestError:
            if any(tool.is_strict for tool in use.callable):
                raise
        return grammars.matcher(
            calls_grammar(use.callable, is_open=is_open, is_parallel=is_parallel, lenient=True)
        )

    def _vocabulary(self) -> Grammars:
        """Grammars of this vocabulary, made when the first is needed: it takes a second."""
        with self._lock:
            if self._grammars is None:
                self._grammars = Grammars(self.tokenizer)
            return self._grammars

    def _completion(self, request: Request, use: ToolUse, generation: Generation) -> LocalCompletion:
        text, calls = generation.text, list[Call]()
        if use.callable and self.config.tool_format == "python":
            calls = read_python_calls(text, use.callable) or []
            text = "" if calls else text
        elif use.callable:
            text, calls = read_answer(text, {tool.name for tool in use.callable})
        if use.is_required and not calls and generation.finish_reason != "length":
            raise ModelError(f"The model was to call a tool, but its answer is no call: {text[:200]!r}.")
        message = Message(
            role="assistant",
            content=(TextBlock(text=text),) if text else (),
            tool_calls=tuple(
                {
                    "id": _call_id(request, generation, place),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for place, (name, arguments) in enumerate(calls)
            ),
        )
        reason = "tool_calls" if calls and generation.finish_reason == "stop" else generation.finish_reason
        return LocalCompletion(
            message=message,
            finish_reason=reason,
            usage=Usage(prompt_tokens=len(request.prompt), completion_tokens=len(generation.token_ids)),
            model=self.model,
            seed=generation.seed,
            weights_version=generation.weights_version,
            reused_tokens=generation.reused_tokens,
            **_details(request, generation),
        )


def _vision(model: Any, processor: Any, name: str) -> "Vision":
    from sensorium.llm.local.vision import Vision

    return Vision(model, processor, name)


def _details(request: Request, generation: Generation) -> dict[str, Any]:
    """What is told on request only."""
    sampling = request.sampling
    details: dict[str, Any] = {}
    if sampling.return_token_ids:
        details["prompt_token_ids"] = request.prompt
    if sampling.return_token_ids or sampling.logprobs:
        details["token_ids"] = tuple(generation.token_ids)
    if sampling.logprobs:
        details["logprobs"] = tuple(generation.logprobs)
        details["tempered_logprobs"] = tuple(generation.tempered_logprobs)
        details["sampled_logprobs"] = tuple(generation.sampled_logprobs)
    if sampling.top_logprobs:
        details["top_logprobs"] = tuple(tuple(best) for best in generation.top_logprobs)
    return details


def _is_short(messages: Sequence[Message]) -> bool:
    """Whether a conversation is a little text."""
    blocks = [block for message in messages for block in message.content]
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    return len(texts) == len(blocks) and sum(map(len, texts)) <= _SHORT_CHARS


def _call_id(request: Request, generation: Generation, place: int) -> str:
    """Differs between calls and samples; the same when the same is sampled again with the same seed."""
    said = repr((request.prompt, generation.token_ids, generation.seed, place)).encode()
    return f"call_{hashlib.sha256(said).hexdigest()[:24]}"
