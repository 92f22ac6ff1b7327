"""Asks a multimodal chat model whether a picture may be shown to an agent.

Before it asks, it makes sure that picture and policy fit the judge's window. What goes wrong (an endpoint
that is down, a picture that is broken, an answer without a verdict) gives the verdict ``unjudged`` with the
reason, never an exception.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sensorium.core.files import atomic_write_json
from sensorium.features.blocking import run_blocking
from sensorium.features.disk_cache import cache_folder
from sensorium.features.safety_answer import (
    POLICY,
    PROMPT_DIGEST,
    Verdict,
    question,
    read_answer,
    unjudged,
)
from sensorium.features.safety_config import SafetyConfig
from sensorium.features.safety_picture import Picture, PictureError, embedded, read_picture, shrunk
from sensorium.llm.base import ChatModel, TokenCounter, count_messages
from sensorium.llm.messages import ImageBlock, Message


class _Question(NamedTuple):
    """A picture as it is sent, and the whole prompt around it."""

    messages: tuple[Message, ...]
    key: str


class ImageSafetyJudge:
    """Judges pictures by a policy. Thread-safe.

    Args:
        model: The judge: any multimodal chat model.
        counter: Counts its tokens, pictures by its rule.
        config: Window, limits, policy, cache.

    Example:
        >>> judge = ImageSafetyJudge(model, build_counter(EstimateConfig()))  # doctest: +SKIP
        >>> judge.judge(Path("photo.jpg").read_bytes()).verdict  # doctest: +SKIP
        'safe'
    """

    def __init__(self, model: ChatModel, counter: TokenCounter, config: SafetyConfig | None = None) -> None:
        self.config = config or SafetyConfig()
        self.model = model
        self._counter = counter
        self._policy = self.config.policy or POLICY
        self._folder = None
        if self.config.cache:
            own = self.config.cache_folder
            self._folder = Path(own).expanduser() if own else cache_folder("safety")

    @property
    def version(self) -> str:
        """Changes with judge, policy, prompt, and what decides how pictures are sent."""
        sent = self.config.model_dump(mode="json", include={"sampling", "shrink", "context_window"})
        parts = [self.model.model, self._policy, PROMPT_DIGEST, self._counter.identity, sent]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    def judge(self, data: bytes) -> Verdict:
        """As `ajudge`, for code without an event loop."""
        return self.judge_many([data])[0]

    def judge_many(self, pictures: Sequence[bytes]) -> list[Verdict]:
        """As `ajudge_many`, for code without an event loop; inside of one it blocks it."""
        return run_blocking(self.ajudge_many(pictures))

    async def ajudge(self, data: bytes) -> Verdict:
        """Judge one picture.

        Args:
            data: An encoded PNG, JPEG, WebP or GIF.

        Returns:
            ``safe``, ``unsafe``, or ``unjudged`` with the reason.
        """
        return (await self.ajudge_many([data]))[0]

    async def ajudge_many(self, pictures: Sequence[bytes]) -> list[Verdict]:
        """Judge several pictures, `max_concurrency` at a time; equal ones are judged once.

        Returns:
            One verdict per picture, in order.
        """
        places = asyncio.Semaphore(self.config.max_concurrency)
        hashes = [hashlib.sha256(data).hexdigest() for data in pictures]
        unique = dict(zip(hashes, pictures, strict=True))

        async def one(sha256: str, data: bytes) -> Verdict:
            async with places:
                return await self._judge(sha256, data)

        verdicts = await asyncio.gather(*(one(sha256, data) for sha256, data in unique.items()))
        by_hash = dict(zip(unique, verdicts, strict=True))
        return [by_hash[sha256] for sha256 in hashes]

    async def _judge(self, sha256: str, data: bytes) -> Verdict:
        start, name = time.perf_counter(), self.model.model
        try:
            asked = await asyncio.to_thread(self._prepare, sha256, data)
            if (known := self._load(asked.key)) is not None:
                return known
            start = time.perf_counter()
            async with asyncio.timeout(self.config.timeout_s):
                sampling = {"max_tokens": self.config.answer_tokens, **self.config.sampling}
                completion = await self.model.complete(asked.messages, **sampling)
        except TimeoutError:
            reason = f"the judge did not answer within {self.config.timeout_s:g} s"
            return unjudged(reason, judge=name, latency_s=time.perf_counter() - start)
        except Exception as error:  # whatever a judge, a decoder or a disk raises: the agent must not stop
            reason = str(error) or type(error).__name__
            return unjudged(reason, judge=name, latency_s=time.perf_counter() - start)
        latency_s = time.perf_counter() - start
        if completion.finish_reason == "length":
            return unjudged("the judge's answer was cut off", judge=name, latency_s=latency_s)
        verdict = read_answer(completion.message.text)
        verdict = verdict.model_copy(update={"judge": name, "latency_s": latency_s})
        if verdict.verdict != "unjudged":
            self._store(asked.key, verdict)
        return verdict

    def _prepare(self, sha256: str, data: bytes) -> _Question:
        """The prompt, with a picture that fits.

        Raises:
            PictureError: It cannot be read, or does not fit.
        """
        picture = self._fitting(read_picture(data))
        block = embedded(picture)
        key = hashlib.sha256(
            "\n".join((sha256, f"{picture.width}x{picture.height}", self.version)).encode()
        ).hexdigest()
        return _Question(question(self._policy, block), key)

    def _fitting(self, picture: Picture) -> Picture:
        """The picture itself, or as large a copy as fits.

        Raises:
            PictureError: It does not fit, and must not or cannot be shrunk so far.
        """
        config = self.config
        text = count_messages(self._counter, question(self._policy, ImageBlock(url="", width=1, height=1)))
        room = config.context_window - config.answer_tokens - text + self._counter.image(1, 1)
        if room <= 0:
            raise PictureError(
                f"policy and answer need {config.context_window - room} tokens, the judge's window has "
                f"{config.context_window}; shorten the policy or use a judge with a larger window"
            )
        shown, factor = picture, 1.0
        while True:
            cost = self._counter.image(shown.width, shown.height)
            fits = cost <= room
            if fits and len(shown.data) <= config.max_image_bytes:
                return shown
            if fits:
                what = f"it has {len(shown.data):,} bytes, {config.max_image_bytes:,} are allowed"
            else:
                what = (
                    f"a picture of {shown.width}x{shown.height} costs {cost} tokens, the window leaves {room}"
                )
            if not config.shrink:
                raise PictureError(f"{what}; allow shrinking, or send a smaller picture")
            factor *= 0.8
            if factor * max(picture.width, picture.height) < config.min_side_px:
                raise PictureError(
                    f"{what}, even with a longest side of {max(shown.width, shown.height)} pixels"
                )
            wanted = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
            if self._counter.image(*wanted) > room:
                shown = Picture(b"", picture.mime, *wanted)  # only measured
                continue
            shown = shrunk(picture, *wanted, max_pixels=config.max_pixels)

    def _path(self, key: str) -> Path | None:
        return None if self._folder is None else self._folder / key[:2] / f"{key}.json"

    def _load(self, key: str) -> Verdict | None:
        path = self._path(key)
        if path is None:
            return None
        try:
            found = Verdict.model_validate_json(path.read_bytes())
        except (OSError, ValueError):  # absent or damaged: it is asked again
            return None
        return found.model_copy(update={"is_cached": True, "latency_s": 0.0})

    def _store(self, key: str, verdict: Verdict) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            atomic_write_json(path, verdict.model_dump(mode="json"))
        except OSError:
            return  # a cache that cannot be written only costs time
