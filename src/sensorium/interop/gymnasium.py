"""Environments of ours as a `gymnasium.Env` of texts, for clients that know nothing else.

The other direction, any Gymnasium environment as one of ours, is the environment ``embodied``
(`sensorium.envs.playable`).
"""

import json
import string
from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np

from sensorium.core import EnvError, parse_config
from sensorium.envs.base import Action, Task, ToolCall
from sensorium.envs.definition import find_env
from sensorium.envs.episode import EpisodeError, View
from sensorium.interop.loop_thread import LoopThread
from sensorium.llm.embedded_pictures import picture
from sensorium.llm.messages import ImageBlock, Message, chat
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.env_session import EnvSession

__all__ = ["AnyText", "TextGym", "read_action"]

_CHARS = string.printable
_MAX_TEXT_CHARS = 2**24


class AnyText(gymnasium.spaces.Text):
    """Any text, not only one of a list of characters; samples are of printable ASCII.

    Args:
        max_length: Longest text, characters.
    """

    def __init__(self, max_length: int = _MAX_TEXT_CHARS) -> None:
        super().__init__(max_length, min_length=0, charset=_CHARS)

    def contains(self, x: Any) -> bool:
        """Whether it is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short text."""
        number = int(self.np_random.integers(0, 33))
        return "".join(self.np_random.choice(list(self.characters), size=number)) if number else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash(self.max_length)


class TextGym(gymnasium.Env[dict[str, Any], str]):
    """Episodes of one environment of ours, synchronous, with texts as observations and actions.

    An observation has ``text`` and, with `image_size`, ``image`` (uint8, (size, size, 3)), the first picture
    of the prompt, and ``has_image`` (0 or 1). An action is plain text, something said, or JSON:
    ``{"name": ..., "arguments": {...}}`` calls a tool, a list of those several. ``info`` has the prompt with
    all its pictures in the chat-completions form (``messages``), ``results`` of the calls, and after a reset
    the ``tools``.

    Args:
        environment: Its name, or ``package.module:Definition``.
        config: Its settings.
        split: Tasks are of this split.
        num_tasks: How many of them; a reset draws one, or takes ``options["task_id"]`` or ``["task_index"]``.
        image_size: Height and width of the picture in observations, pixels; None leaves pictures out.
        pipeline: Shows states; of default settings when None.
        episode: Limits.

    Raises:
        ConfigError: There is no such environment, or its settings do not fit.

    Example:
        >>> env = TextGym("lookup")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step('{"name": "submit", "arguments": '
        ... '{"answer": 7}}')
        >>> env.close()
    """

    def __init__(
        self,
        environment: str,
        config: dict[str, Any] | None = None,
        *,
        split: str = "train",
        num_tasks: int = 100,
        image_size: int | None = None,
        pipeline: ObservationPipeline | None = None,
        episode: EpisodeConfig | None = None,
    ) -> None:
        self._definition = find_env(environment)
        self._config = parse_config(self._definition.config_type, config or {})
        self._split, self._num_tasks, self._image_size = split, num_tasks, image_size
        self._pipeline, self._episode = pipeline, episode
        self._known: Sequence[Task] | None = None
        self._session: EnvSession | None = None
        self._seen: dict[str, Any] = {}
        self._loop = LoopThread("text-gym")
        spaces: dict[str, Any] = {"text": AnyText()}
        if image_size is not None:
            shape = (image_size, image_size, 3)
            spaces["image"] = gymnasium.spaces.Box(0, 255, shape, np.uint8)
            spaces["has_image"] = gymnasium.spaces.Discrete(2)
        self.observation_space = gymnasium.spaces.Dict(spaces)
        self.action_space = AnyText(2**20)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; the seed draws the task and is the environment's.

        Raises:
            ConfigError: There is no such task.
            EpisodeError: The environment cannot be set up.
        """
        super().reset(seed=seed)
        self._end()
        task = self._task(options or {})
        if self._pipeline is None:
            self._pipeline = ObservationPipeline()
        env = self._definition.make(self._config)
        self._session = EnvSession(env, self._pipeline, self._episode, system=self._definition.system)
        opening = self._loop.run(self._session.start(task, seed=seed))
        self._seen = self._observed(opening.view)
        info = {"task_id": task.id, "tools": list(opening.tools), "messages": chat(opening.view.messages)}
        return self._seen, info

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Act; after the end the last observation is given again.

        Raises:
            EpisodeError: No episode was begun, it is over, or it broke: then it has no reward.
        """
        session = self._session
        if session is None:
            raise EnvError("No episode was begun; call reset() first.")
        turn = self._loop.run(session.act(read_action(action), session.num_steps))
        if turn.view is not None:
            self._seen = self._observed(turn.view)
        info: dict[str, Any] = {
            "results": [{"name": one.name, "text": one.text, "failure": one.failure} for one in turn.results],
            "metrics": turn.metrics,
            "reward_components": turn.reward_components,
            "messages": chat(turn.view.messages) if turn.view is not None else [],
        }
        if turn.done:
            verdict = self._loop.run(session.verdict())
            info["status"] = str(verdict.status)
            if verdict.failure is not None:
                raise EpisodeError(verdict.failure)
        return self._seen, float(turn.reward), turn.terminated, turn.truncated, info

    def close(self) -> None:
        """Close the environment and the thread that it runs in; may be called again."""
        self._end()
        self._loop.close()

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._loop.run(session.close())

    def _task(self, options: dict[str, Any]) -> Task:
        if "task_id" in options:
            return self._definition.task(self._config, str(options["task_id"]))
        if self._known is None:
            self._known = self._definition.tasks(self._config, split=self._split, count=self._num_tasks)
        number = options.get("task_index")
        if number is None:
            number = int(self.np_random.integers(len(self._known)))
        if not 0 <= int(number) < len(self._known):
            raise EnvError(f"There is no task {number}; there are {len(self._known)}.")
        return self._known[int(number)]

    def _observed(self, view: View) -> dict[str, Any]:
        seen: dict[str, Any] = {"text": _text(view.messages)}
        if self._image_size is not None:
            picture = _picture(view.messages, self._image_size)
            size = self._image_size
            seen["image"] = np.zeros((size, size, 3), np.uint8) if picture is None else picture
            seen["has_image"] = np.int64(picture is not None)
        return seen


def read_action(text: str) -> Action:
    """A text as an action: calls of tools when it is such JSON, else something said.

    Example:
        >>> read_action('{"name": "submit", "arguments": {"answer": 7}}').calls[0].name
        'submit'
        >>> read_action("What now?").text
        'What now?'
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Action(text=text)
    calls = value if isinstance(value, list) else [value]
    if not calls or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in calls):
        return Action(text=text)
    made = []
    for number, one in enumerate(calls):
        given = one.get("arguments") or {}
        known = given if isinstance(given, dict | str) else json.dumps(given)
        made.append(ToolCall(id=f"call_{number}", name=one["name"], arguments=known))
    return Action(calls=tuple(made))


def _text(messages: Sequence[Message]) -> str:
    lines = []
    for message in messages:
        lines += [message.text] if message.text else []
        pictures = [block for block in message.content if isinstance(block, ImageBlock)]
        lines += [f"[picture of {one.width} x {one.height} pixels]" for one in pictures]
    return "\n\n".join(lines)[:_MAX_TEXT_CHARS]


def _picture(messages: Sequence[Message], size: int) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """The first picture that is embedded, uint8 (size, size, 3)."""
    for message in messages:
        for block in message.content:
            if not isinstance(block, ImageBlock):
                continue
            try:
                shown = picture(block.url).resize((size, size))
            except ValueError:
                continue
            return cast("np.ndarray[Any, np.dtype[np.uint8]]", np.asarray(shown, np.uint8))
    return None
