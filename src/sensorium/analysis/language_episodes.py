"""Episodes of a language model's agent, read back from a run and told as conversations.

Long texts, pictures and episodes are shortened, so that a page stays a few megabytes at most whatever the
environment shows; what is left out is said.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sensorium.analysis.formatting import count, number
from sensorium.analysis.pictures import embedded_picture
from sensorium.core.errors import RunDirectoryError
from sensorium.llm.base import Usage
from sensorium.llm.messages import AnyBlock, AudioBlock, ImageBlock, Message, OtherBlock, TextBlock

EPISODES_PER_UPDATE = 4
"""Shown of each update: the best, the worst, and what lies next to them."""
_FIRST_STEPS, _LAST_STEPS = 8, 4
_HEAD_CHARS, _TAIL_CHARS = 3000, 1000
_GIST_CHARS = 160
_SHORT_CHARS = 400
_MAX_SOUND_CHARS = 400_000
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Characters that cannot be seen, as one would write them."""


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Task(_Read):
    id: str
    instruction: str = ""


class _Answer(_Read):
    message: Message
    finish_reason: str | None = None
    usage: Usage = Usage()


class _Result(_Read):
    name: str
    content: tuple[AnyBlock, ...] = ()
    failure: str | None = None


class _Step(_Read):
    prompt: tuple[Message, ...]
    completion: _Answer
    results: tuple[_Result, ...] = ()
    reward: float = 0.0
    reward_components: dict[str, float] = {}
    num_tokens: int = 0
    state_from: int = 0


class _Verdict(_Read):
    status: str
    reward: float | None = None


class _Episode(_Read):
    task: _Task
    steps: tuple[_Step, ...] = ()
    verdict: _Verdict


_EPISODES = TypeAdapter(list[_Episode])


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that was read or answered."""

    kind: str
    """``text``, ``picture``, ``sound`` or ``other``."""
    text: str
    """The text; of a picture or sound what it is."""
    uri: str = ""
    """Of a picture or sound."""

    @property
    def is_long(self) -> bool:
        """Whether it is text that is better folded."""
        return self.kind == "text" and len(self.text) > _SHORT_CHARS


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message of a prompt."""

    role: str
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call brought."""

    name: str
    failure: str | None
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One answer, what led to it and what came of it."""

    number: int
    """From 1."""
    num_left_out: int
    """Steps before it that are not shown."""
    gist: str
    """Beginning of what was read last."""
    num_tokens: int
    messages: Sequence[ReadMessage]
    """What was read; of a conversation that goes on, what was new."""
    pictures: Sequence[Piece]
    """Of the state."""
    said: str
    calls: Sequence[str]
    is_cut: bool
    answers: Sequence[ToolAnswer]
    reward: str
    reward_sign: float
    terms: str
    """The reward's terms, when there are several."""


@dataclass(frozen=True, slots=True)
class ShownEpisode:
    """An episode to read."""

    task: str
    instruction: str
    status: str
    total_reward: str
    num_steps: int
    steps: Sequence[ShownStep]


@dataclass(frozen=True, slots=True)
class ShownUpdate:
    """Some episodes of one update."""

    update: int
    """From 1."""
    episodes: Sequence[ShownEpisode]
    """The one that earned most comes first."""


def shown_updates(run: Path) -> list[ShownUpdate]:
    """Episodes of the first, the middle and the last update that kept some.

    Args:
        run: Directory of the run; ``episodes/{update, from 0}.json`` in it.

    Raises:
        RunDirectoryError: A file holds no episodes.
        MissingDependencyError: Pillow is not installed and there are pictures.
    """
    kept = sorted((p for p in (run / "episodes").glob("*.json") if p.stem.isdecimal()), key=_number_of)
    chosen = sorted({0, (len(kept) - 1) // 2, len(kept) - 1}) if kept else []
    return [
        ShownUpdate(_number_of(path) + 1, [_episode(one) for one in _best_and_worst(_read(path))])
        for path in (kept[place] for place in chosen)
    ]


def _number_of(path: Path) -> int:
    return int(path.stem)


def _read(path: Path) -> list[_Episode]:
    try:
        return _EPISODES.validate_json(path.read_bytes())
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise RunDirectoryError(
            f"{path} does not hold episodes ({problems}). Remove it; the report is made without it."
        ) from error


def _best_and_worst(episodes: Sequence[_Episode]) -> list[_Episode]:
    ordered = sorted(episodes, key=lambda one: one.verdict.reward or 0.0, reverse=True)
    half = EPISODES_PER_UPDATE // 2
    return ordered if len(ordered) <= EPISODES_PER_UPDATE else [*ordered[:half], *ordered[-half:]]


def _episode(episode: _Episode) -> ShownEpisode:
    total = len(episode.steps)
    is_short = total <= _FIRST_STEPS + _LAST_STEPS
    places = range(total) if is_short else [*range(_FIRST_STEPS), *range(total - _LAST_STEPS, total)]
    steps, before = [], -1
    for place in places:
        steps.append(_step(episode.steps, place, num_left_out=place - before - 1))
        before = place
    return ShownEpisode(
        task=_visible(episode.task.id),
        instruction=_shortened(_visible(episode.task.instruction)),
        status=episode.verdict.status,
        total_reward=number(episode.verdict.reward),
        num_steps=total,
        steps=steps,
    )


def _step(steps: Sequence[_Step], place: int, *, num_left_out: int) -> ShownStep:
    step = steps[place]
    new, continues = _new_messages(step.prompt, steps[place - 1].prompt if place else ())
    state = new[-1].content[0 if continues else step.state_from :] if new else ()
    pictures = [block for block in state if isinstance(block, ImageBlock)]
    answer = step.completion.message
    is_last = place == len(steps) - 1
    terms = step.reward_components
    return ShownStep(
        number=place + 1,
        num_left_out=num_left_out,
        gist=_gist(new, state),
        num_tokens=step.completion.usage.prompt_tokens or step.num_tokens,
        messages=[
            ReadMessage(message.role, [_piece(b, shown=pictures) for b in message.content]) for message in new
        ],
        pictures=[_piece(picture) for picture in pictures],
        said=_shortened(_visible(answer.text)),
        calls=[_call(call) for call in answer.tool_calls],
        is_cut=step.completion.finish_reason == "length",
        answers=[
            ToolAnswer(_visible(one.name), one.failure, [_piece(block) for block in one.content])
            for one in step.results
        ],
        reward=number(step.reward) if step.reward or is_last else "",
        reward_sign=step.reward,
        terms=", ".join(f"{name} {number(value)}" for name, value in terms.items()) if len(terms) > 1 else "",
    )


def _new_messages(prompt: Sequence[Message], before: Sequence[Message]) -> tuple[list[Message], bool]:
    """What a prompt adds to the one before, and whether it continues it.

    Answers of the model and of tools are not among what is added: they are shown where they were given.
    """
    continues = 0 < len(before) < len(prompt) and list(prompt[: len(before)]) == list(before)
    if not continues:
        return list(prompt), False
    return [one for one in prompt[len(before) :] if one.role not in ("assistant", "tool")], True


def _gist(messages: Sequence[Message], state: Sequence[AnyBlock]) -> str:
    """The beginning of what was read last, on one line."""
    texts = [block.text for block in state if isinstance(block, TextBlock)]
    text = " ".join(texts) or (messages[-1].text if messages else "")
    line = " ".join(_visible(text).split())
    return line if len(line) <= _GIST_CHARS else line[:_GIST_CHARS].rstrip() + " …"


def _piece(block: AnyBlock, shown: Sequence[ImageBlock] = ()) -> Piece:
    """A block for the page.

    Args:
        block: What was read.
        shown: Pictures that stand elsewhere on the page already.
    """
    match block:
        case TextBlock(text=text):
            return Piece("text", _shortened(_visible(text)))
        case ImageBlock():
            return _picture(block, is_elsewhere=any(block is one for one in shown))
        case AudioBlock(data=data, format=kind, duration_s=seconds):
            about = f"sound of {number(seconds)} s"
            if len(data) > _MAX_SOUND_CHARS:
                return Piece("other", f"{about}, too long for this page")
            return Piece("sound", about, f"data:audio/{kind};base64,{data}")
        case OtherBlock(data=data):
            return Piece("other", _shortened(_visible(json.dumps(data, ensure_ascii=False))))


def _picture(block: ImageBlock, *, is_elsewhere: bool) -> Piece:
    size = f" of {block.width} × {block.height} pixels" if block.width and block.height else ""
    if is_elsewhere:
        return Piece("other", f"picture{size}, shown below")
    if not block.url.startswith("data:"):
        return Piece("other", f"picture{size} at {_visible(block.url[:200])}, not loaded")
    uri = embedded_picture(block.url)
    return Piece("picture", f"picture{size}", uri) if uri else Piece("other", f"picture{size}, unreadable")


def _call(call: Mapping[str, Any]) -> str:
    """A call as one would write it: ``lookup(item="lamp")``."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments", "")
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, Mapping):
        given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in parsed.items())
    else:
        given = str(arguments)
    return _shortened(_visible(f"{function.get('name', '')}({given})"))


def _visible(text: str) -> str:
    """Text with every control character made visible."""
    return text.translate(_CONTROL)


def _shortened(text: str) -> str:
    """Beginning and end of a long text."""
    left_out = len(text) - _HEAD_CHARS - _TAIL_CHARS
    if left_out <= 0:
        return text
    return f"{text[:_HEAD_CHARS]}\n… {count(left_out)} characters left out …\n{text[-_TAIL_CHARS:]}"
