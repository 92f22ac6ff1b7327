"""Asks a language model for summaries: of parts that fit its context at once, of longer ones by pieces."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from sensorium.core import FeatureError, ModelError
from sensorium.features.extractors.numbered_lines import Line, Row, rows_of
from sensorium.features.extractors.summary_answer import (
    Sentence,
    joining,
    question,
    read_answer,
    shortened,
    without_repetition,
)
from sensorium.features.extractors.summary_config import SummaryConfig
from sensorium.llm.base import ChatModel, Completion, ContextLengthError, TokenCounter, count_messages
from sensorium.llm.messages import Message

_MAX_FAILURES = 4
"""So many calls in a row that fail, and the endpoint is not asked any more in this batch."""
_FEWEST_WORDS = 24
"""Of the summary of a piece."""

ResultT = TypeVar("ResultT")


class Task(NamedTuple):
    """A part to summarise."""

    title: str
    """Says what it is."""
    lines: Sequence[Line]


class Written(NamedTuple):
    """A summary."""

    sentences: list[Sentence]
    num_read: int
    """Lines that the model was shown."""


class SummaryWriter:
    """Summarises a batch of parts; made anew for each batch.

    Args:
        model: Asked.
        counter: Counts its tokens.
        config: Limits.
    """

    def __init__(self, model: ChatModel, counter: TokenCounter, config: SummaryConfig) -> None:
        self._model, self._counter, self._config = model, counter, config
        self._places = asyncio.Semaphore(config.max_concurrency)
        self._failures = 0
        self._last_failure = ""

    async def write_all(self, tasks: Sequence[Task]) -> list[Written | str]:
        """Summaries, in order; in place of one that failed the reason.

        Raises:
            MissingDependencyError: A package that the client needs is not installed.
        """
        return list(await _all([self._write_or_reason(task) for task in tasks]))

    async def _write_or_reason(self, task: Task) -> Written | str:
        try:
            written = await self._write(task)
        except (ModelError, FeatureError) as error:
            return str(error)
        count, least = len(written.sentences), self._config.min_verified
        doubted = [sentence for sentence in written.sentences if sentence.doubt]
        if count - len(doubted) >= least * count:
            return written
        example = f'"{doubted[0].text[:120]}" {doubted[0].doubt}'
        return (
            f"only {count - len(doubted)} of {count} sentences by {self._model.model} could be verified, "
            f"min_verified is {least:g}; e.g. {example}"
        )

    async def _write(self, task: Task) -> Written:
        words = self._config.max_words
        pieces = self._pieces(task)
        num_read = len({row.number for piece in pieces for row in piece})
        if len(pieces) > 1:
            words = max(_FEWEST_WORDS, 2 * words // len(pieces))
        groups = [
            group
            for found in await _all([self._read(task, piece, words) for piece in pieces])
            for group in found
        ]
        if not any(groups):
            raise FeatureError(f"{self._model.model} answered without a sentence")
        if len(groups) > 1:
            return Written(await self._joined(groups, task.lines), num_read)
        return Written(shortened(groups, self._config.max_words), num_read)

    async def _read(self, task: Task, rows: Sequence[Row], words: int) -> list[list[Sentence]]:
        """The summary of some rows; of several halves when the model's context is smaller than was said."""
        try:
            completion = await self._ask(question(task.title, "\n".join(map(str, rows)), words))
        except ContextLengthError:
            if len(rows) < 2:
                raise
            half = len(rows) // 2
            found = await _all([self._read(task, part, words) for part in (rows[:half], rows[half:])])
            return [group for groups in found for group in groups]
        return [self._sentences(completion, task.lines)]

    async def _joined(self, groups: Sequence[list[Sentence]], lines: Sequence[Line]) -> list[Sentence]:
        """One summary from those of the pieces: as the model puts it, or else their first verified sentences.

        What the model says counts only when it is verified where its pieces were.
        """
        words = self._config.max_words
        groups = without_repetition(groups)
        sound = [[sentence for sentence in group if not sentence.doubt] for group in groups]
        fallback = shortened(sound if any(sound) else groups, words)
        given = shortened(groups, 4 * words)
        if sum(sentence.num_words for sentence in given) <= words:
            return given
        try:
            said = self._sentences(await self._ask(joining(given, words)), lines)
        except ModelError:
            return fallback
        answer = shortened([said], words)
        verified = sum(not sentence.doubt for sentence in answer)
        return answer if answer and (verified or not any(sound)) else fallback

    def _sentences(self, completion: Completion, lines: Sequence[Line]) -> list[Sentence]:
        is_cut = completion.finish_reason == "length"
        return read_answer(completion.message.text, lines, is_cut=is_cut)

    async def _ask(self, messages: Sequence[Message]) -> Completion:
        sampling: dict[str, Any] = {"max_tokens": self._config.answer_tokens, **self._config.sampling}
        async with self._places:
            if self._failures >= _MAX_FAILURES:
                raise ModelError(self._last_failure)
            try:
                completion = await self._model.complete(messages, **sampling)
            except ContextLengthError:
                raise
            except ModelError as error:
                self._failures += 1
                self._last_failure = str(error)
                raise
            self._failures = 0
            return completion

    def _pieces(self, task: Task) -> list[list[Row]]:
        """Rows in stretches that fit a prompt; of very many as many as allowed, spread evenly.

        Raises:
            FeatureError: Not even one row fits.
        """
        config = self._config
        fixed = count_messages(self._counter, question(task.title, "", config.max_words))
        room = config.max_input_tokens - fixed
        pieces: list[list[Row]] = [[]]
        used = 0
        for row in rows_of(task.lines):
            cost = self._counter.text(f"{row}\n")
            if cost > room:
                raise FeatureError(
                    f"line {row.number} alone takes {cost} tokens, and a prompt has room for {room}; raise "
                    f"max_input_tokens ({config.max_input_tokens})"
                )
            if used + cost > room:
                pieces.append([])
                used = 0
            pieces[-1].append(row)
            used += cost
        count, most = len(pieces), config.max_pieces
        if count <= most:
            return pieces
        places = [round(i * (count - 1) / max(1, most - 1)) for i in range(most)]
        return [pieces[place] for place in places]


async def _all(work: Sequence[Coroutine[Any, Any, ResultT]]) -> list[ResultT]:
    """Everything at the same time; what fails is raised after the rest has ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    done = []
    for one in found:
        if isinstance(one, BaseException):
            raise one
        done.append(one)
    return done
