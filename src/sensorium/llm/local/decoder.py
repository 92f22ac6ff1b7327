"""Continuous batching: requests are read, decode together, and leave when they are done."""

import inspect
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from sensorium.core import ConfigError, ModelError, SensoriumError
from sensorium.llm.local.config import EngineConfig
from sensorium.llm.local.draw import choose, likeliest, told_of
from sensorium.llm.local.jobs import Choice, Job, Vocabulary
from sensorium.llm.local.key_values import KeyValueRows
from sensorium.llm.local.prefixes import MIN_TOKENS, PrefixStore
from sensorium.llm.local.requests import Picture
from sensorium.llm.local.token_step import token_step_of
from sensorium.llm.local.vision import picture_rows, with_pictures

_MB = 1e6
_KEPT_ENDS = 64
"""Prompts after whose end the logits are kept."""
_KEPT_PICTURES = 32
"""Pictures whose rows are kept until the weights change."""


class Decoder:
    """Runs a causal language model over requests that come and go; one thread may use it.

    Each prompt is read alone, without padding, in pieces between the steps of requests that decode already.
    A request's tokens do not depend on the others up to rounding: sums of a larger batch may be taken in
    another order.

    Args:
        model: A causal language model of transformers whose layers all have attention with keys and values.
        vocabulary: Its tokenizer.
        config: Sizes and limits.

    Raises:
        ConfigError: The model keeps another state than keys and values.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, config: EngineConfig) -> None:
        self.model = model
        self.weights_version = 0
        self._vocabulary = vocabulary
        self._config = config
        self._num_layers = _count_layers(model)
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._takes_positions = "position_ids" in parameters
        self._takes_logits_to_keep = "logits_to_keep" in parameters
        self._token_step = token_step_of(model)
        self._prefixes = PrefixStore(config.prefix_cache_mb * _MB)
        self._ends: OrderedDict[bytes, Float[Tensor, "1 vocabulary"]] = OrderedDict()
        self._seen: OrderedDict[str, Float[Tensor, "rows width"]] = OrderedDict()
        self._reading: deque[Job] = deque()
        self._running: list[Job] = []
        self._num_read = 0
        self._rows: KeyValueRows | None = None

    @property
    def num_jobs(self) -> int:
        """Requests that are read or decode."""
        return len(self._reading) + len(self._running)

    def has_room(self, prompt_tokens: int) -> bool:
        """Whether one more request may join."""
        if self.num_jobs == 0:
            return True
        if self.num_jobs >= self._config.max_batch:
            return False
        rows = self._rows or self._reading[0].own
        if rows is None:
            return True
        columns = max([rows.width, prompt_tokens, *(len(job.reads) for job in self._reading)])
        needed = (self.num_jobs + 1) * columns * rows.bytes_per_token
        return needed <= self._config.kv_memory_mb * _MB

    def start(self, job: Job) -> None:
        """Take a request."""
        job.generation.weights_version = self.weights_version
        self._reading.append(job)

    def weights_changed(self, version: int | None = None) -> None:
        """Forget what was computed with earlier weights; no request may be under way."""
        self.weights_version = self.weights_version + 1 if version is None else version
        self._prefixes.clear()
        self._ends.clear()
        self._seen.clear()

    def step(self) -> list[Job]:
        """Read a piece of waiting prompts and sample one token of every running request.

        Requests that begin while none runs wait for those that come while their prompt is read: they decode
        from the next step on.

        Returns:
            Requests that are done, failed or cancelled.
        """
        if self.model.training:
            self.model.eval()  # a trainer may have left dropout on
        done: list[Job] = []
        with torch.inference_mode():
            self._drop_cancelled(done)
            was_running, had_read = bool(self._running), self._num_read
            self._read(done)
            if self._running and (was_running or self._num_read == had_read):
                self._decode(done)
        return done

    def abandon(self) -> list[Job]:
        """Drop all requests; returns them."""
        jobs = [*self._reading, *self._running]
        self._reading.clear()
        self._running.clear()
        self._rows = None
        return jobs

    def _drop_cancelled(self, done: list[Job]) -> None:
        cancelled = [job for job in (*self._reading, *self._running) if job.is_cancelled]
        if not cancelled:
            return
        for job in cancelled:  # asked once: another thread may cancel one meanwhile
            if job in self._reading:
                self._reading.remove(job)
        self._leave([job for job in cancelled if job in self._running])
        done += cancelled

    def _read(self, done: list[Job]) -> None:
        """Read prompts, oldest first, until the tokens for one step are used up.

        Requests with one prompt begin together, and it is read once.
        """
        budget = self._config.prefill_tokens
        while self._reading and budget > 0:
            job = self._reading[0]
            begun = [job]
            try:
                if job.own is None:
                    job.own = self._begin(job)
                budget -= self._read_on(job, job.own, budget)
                if job.num_read < len(job.reads):
                    return
                begun = [other for other in self._reading if other.key == job.key]
                self._start_answers(begun, job.own)
            except Exception as error:  # of these requests alone: the others go on
                for other in begun:
                    if not other.is_done:
                        other.fail(_classified(error, "reading a prompt"))
            left = set(begun)
            self._reading = deque(other for other in self._reading if other not in left)
            job.own = job.embeddings = None
            done += [other for other in begun if other.is_done]

    def _read_on(self, job: Job, own: KeyValueRows, most: int) -> int:
        """Read at most so many tokens of a prompt; returns how many there were.

        The logits after a whole prompt are kept: further samples of it begin without reading anything.
        """
        begin, end = job.num_read, min(job.num_read + most, len(job.reads))
        if begin == end:
            self._ends.move_to_end(job.key)
            return 0
        rows = job.embeddings
        logits = self._forward(own, [job.reads[begin:end]], None if rows is None else rows[None, begin:end])
        job.num_read = end
        self._num_read += end - begin
        if end == len(job.reads):
            self._remember(job, own, 0)
            self._ends[job.key] = logits
            if len(self._ends) > _KEPT_ENDS:
                self._ends.popitem(last=False)
        return end - begin

    def _start_answers(self, jobs: Sequence[Job], own: KeyValueRows) -> None:
        """Sample the first token of requests with one prompt, which the first has read; they join."""
        for job in jobs[1:]:
            job.num_read = job.generation.reused_tokens = len(job.reads)
            job.identity = jobs[0].identity
        self._choose(jobs, self._ends[jobs[0].key].expand(len(jobs), -1))
        joining = [job for job in jobs if not job.is_done]
        if not joining:
            return
        if self._rows is not None:
            self._rows.join(own, len(joining))
        elif len(joining) == 1:
            self._rows = own
        else:
            length = own.lengths[0]
            self._rows = KeyValueRows(self._num_layers, length, len(joining))
            self._rows.load(own.copy(0, length), length)
        self._running += joining

    def _begin(self, job: Job) -> KeyValueRows:
        """A cache with as much of the prompt as is known from other conversations."""
        if job.request.pictures:
            self._look(job)
        prompt = job.identity
        rows = KeyValueRows(self._num_layers, len(prompt))
        if self._config.prefix_cache_mb == 0:
            return rows
        shared, layers = self._prefixes.find(prompt)
        # Where the logits after the prompt are not known, its last token is read in any case.
        shared = min(shared, len(prompt) - (job.key not in self._ends))
        if layers is not None and shared > 0:
            rows.load(layers, shared)
            job.num_read = job.generation.reused_tokens = shared
        return rows

    def _look(self, job: Job) -> None:
        """Put pictures into their places in the prompt."""
        rows = [self._rows_of(picture) for picture in job.request.pictures]
        ids = torch.tensor([job.reads], device=self.model.device)
        is_prompt = (torch.arange(len(job.reads), device=ids.device) < len(job.request.prompt))[None]
        job.embeddings = with_pictures(self.model, ids, is_prompt, [torch.cat(rows)])[0]
        places = np.nonzero(job.identity[: len(job.request.prompt)] == self.model.config.image_token_id)[0]
        own = [-1 - int(picture.digest[:15], 16) for picture in job.request.pictures]
        job.identity[places] = np.repeat(own, [len(one) for one in rows])

    def _rows_of(self, picture: Picture) -> Float[Tensor, "rows width"]:
        if picture.digest not in self._seen:
            self._seen[picture.digest] = picture_rows(self.model, picture)
            if len(self._seen) > _KEPT_PICTURES:
                self._seen.popitem(last=False)
        return self._seen[picture.digest]

    def _leave(self, jobs: Sequence[Job]) -> None:
        """Take requests out of the batch, and remember their conversations."""
        if self._rows is None or not jobs:
            return
        leaving = set(jobs)
        places = {row for row, job in enumerate(self._running) if job in leaving}
        for row in places:
            self._remember(self._running[row], self._rows, row)
        self._running = [self._running[row] for row in self._rows.leave(places)]
        if not self._running:
            self._rows = None

    def _remember(self, job: Job, rows: KeyValueRows, row: int) -> None:
        tokens = job.fed
        if self._config.prefix_cache_mb == 0 or len(tokens) < MIN_TOKENS or job.failure is not None:
            return
        if not self._prefixes.covers(tokens):
            self._prefixes.keep(tokens, rows.copy(row, len(tokens)))

    def _decode(self, done: list[Job]) -> None:
        """Read the last token of every running request, and sample its next."""
        try:
            rows = self._rows
            if rows is None:
                raise ModelError("Requests run without a cache.")
            logits = self._forward(rows, [[job.generation.token_ids[-1]] for job in self._running])
        except Exception as error:  # the batch is lost, the engine is not
            failure = _classified(error, "decoding")
            for job in self.abandon():
                job.fail(failure)
                done.append(job)
            return
        self._choose(self._running, logits)
        ended = [job for job in self._running if job.is_done]
        self._leave(ended)
        done += ended

    def _choose(self, jobs: Sequence[Job], logits: Float[Tensor, "jobs vocabulary"]) -> None:
        """Sample a token for each job; one whose logits or guide are broken fails alone."""
        is_finite = torch.isfinite(logits.amax(dim=-1)).tolist()
        chosen: list[tuple[Job, Choice]] = []
        for finite, job in zip(is_finite, jobs, strict=True):
            try:
                if not finite:
                    raise ModelError(
                        "The model gave logits that are not finite. Are its weights intact (did training "
                        "diverge), and is the precision enough for them?"
                    )
                chosen.append((job, job.choice()))
            except Exception as error:
                job.fail(_classified(error, "choosing a token"))
        if not chosen:
            return
        if len(chosen) < len(jobs):
            logits = logits[[row for row, job in enumerate(jobs) if not job.is_done]]
        tokens, drawn = choose(logits, [choice for _, choice in chosen])
        self._take([job for job, _ in chosen], tokens.tolist(), logits, drawn)

    def _take(
        self,
        jobs: Sequence[Job],
        tokens: Sequence[int],
        logits: Float[Tensor, "jobs vocabulary"],
        drawn: Float[Tensor, "jobs vocabulary"],
    ) -> None:
        """Add tokens to answers, or those that their guides take instead."""
        taken = list(tokens)
        for row, (job, token) in enumerate(zip(jobs, tokens, strict=True)):
            if job.request.guide is not None:
                try:
                    taken[row] = job.request.guide.accept(token, job.remaining - 1)
                except Exception as error:
                    job.fail(_classified(error, "choosing a token"))
        if any(job.request.sampling.logprobs for job in jobs):
            self._note(jobs, tokens, taken, logits, drawn)
        for job, token in zip(jobs, taken, strict=True):
            if not job.is_done:
                try:
                    job.take(token, self._vocabulary)
                except Exception as error:
                    job.fail(_classified(error, "choosing a token"))

    def _note(
        self,
        jobs: Sequence[Job],
        tokens: Sequence[int],
        taken: Sequence[int],
        logits: Float[Tensor, "jobs vocabulary"],
        drawn: Float[Tensor, "jobs vocabulary"],
    ) -> None:
        """Note log-probabilities of the tokens that are taken where they are asked for."""
        temperatures = [job.request.sampling.temperature for job in jobs]
        is_own = all(job.request.is_plain for job in jobs)
        told = told_of(taken, temperatures, logits, drawn, is_own=is_own)
        for row, job in enumerate(jobs):
            sampling = job.request.sampling
            if sampling.logprobs and not job.is_done:
                job.note(told[row], was_forced=taken[row] != tokens[row])
                if sampling.top_logprobs:
                    job.generation.top_logprobs.append(likeliest(logits[row], sampling.top_logprobs))

    def _forward(
        self,
        rows: KeyValueRows,
        tokens: Sequence[Sequence[int]],
        embeddings: Float[Tensor, "jobs tokens width"] | None = None,
    ) -> Float[Tensor, "jobs vocabulary"]:
        """Read new tokens of every row, or their embeddings; returns the logits after the last, float32."""
        num_tokens, device = len(tokens[0]), self.model.device
        rows.reserve(num_tokens)
        step = self._token_step
        if step is not None and num_tokens == 1 and embeddings is None and step.is_plain:
            logits: Tensor = step(rows, torch.tensor(tokens, device=device)).float()
            rows.advance(1)
            return logits
        inputs: dict[str, Any] = {
            "attention_mask": rows.mask(num_tokens, device),
            self._cache_name: rows.cache,
            "use_cache": True,
        }
        if embeddings is None:
            inputs["input_ids"] = torch.tensor([list(row) for row in tokens], device=device)
        else:
            inputs["inputs_embeds"] = embeddings
        if self._takes_positions:
            first = torch.tensor(rows.lengths, device=device)[:, None]
            inputs["position_ids"] = first + torch.arange(num_tokens, device=device)
        if self._takes_logits_to_keep:
            inputs["logits_to_keep"] = 1
        logits = self.model(**inputs).logits[:, -1].float()
        rows.advance(num_tokens)
        return logits


def _count_layers(model: Any) -> int:
    """Layers that keep keys and values."""
    layers = DynamicCache(config=model.config).layers
    other = next((layer for layer in layers if not isinstance(layer, DynamicLayer)), None)
    if other is not None:
        raise ConfigError(
            f"{type(model).__name__} keeps a {type(other).__name__}, not keys and values of every token. The "
            "local engine takes models with ordinary attention. Serve this one elsewhere, give its address."
        )
    return len(layers) or int(model.config.get_text_config().num_hidden_layers)


def _classified(error: Exception, what: str) -> Exception:
    if isinstance(error, SensoriumError):
        return error
    failure = ModelError(f"The local model failed while {what}: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
