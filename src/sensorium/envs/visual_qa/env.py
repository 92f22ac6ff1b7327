"""One picture, one question: look, enlarge, answer."""

import asyncio
import base64
import struct
from typing import Annotated, Any

from pydantic import BeforeValidator

from sensorium.core import EnvError, Modality
from sensorium.envs.base import Task
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import Tool, ToolBox, ToolError
from sensorium.envs.visual_qa.answers import answer_from, is_right
from sensorium.envs.visual_qa.config import VisualQAConfig
from sensorium.envs.visual_qa.number_words import MAX_CHARS
from sensorium.envs.visual_qa.pictures import draw, enlarge
from sensorium.llm.messages import ImageBlock
from sensorium.observations import Source

_LEAST_SHARE = 0.02


def _as_text(value: Any) -> Any:
    """Models give numbers and truth values as what they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value) if isinstance(value, int) else value


class VisualQAEnv(ToolEnv):
    """A picture is shown; the answer comes by a tool or as plain text, once.

    Args:
        config: Which tools there are.
    """

    def __init__(self, config: VisualQAConfig) -> None:
        super().__init__()
        self._config = config
        tools = [Tool.from_function(self.submit_answer)]
        if config.zoom:
            tools.insert(0, Tool.from_function(self.zoom))
        self._box = ToolBox(tools)
        self._picture = b""
        self._num_zooms = 0

    async def _reset(self, task: Task, seed: int) -> None:
        try:
            shown, answer = task.hidden["picture"], task.hidden["answer"]
        except KeyError as error:
            raise EnvError(
                f"The task {task.id} has no {error} in `hidden`. Make it with the definition: "
                "find_env('visual_qa').task(config, task_id)."
            ) from error
        self._answer = answer_from(answer)
        self._num_zooms = 0
        self._picture = await asyncio.to_thread(draw, shown)

    async def _observe(self) -> Any:
        return {"picture": Source(self._picture, modality=Modality.IMAGE)}

    async def zoom(self, left: float, top: float, right: float, bottom: float) -> ImageBlock:
        """Look at a part of the picture, enlarged. Edges are shares of width and height, from 0 to 1.

        Args:
            left: Left edge; 0 is the left edge of the picture.
            top: Upper edge; 0 is the upper edge of the picture.
            right: Right edge; 1 is the right edge of the picture.
            bottom: Lower edge; 1 is the lower edge of the picture.
        """
        if not all(0.0 <= edge <= 1.0 for edge in (left, top, right, bottom)):
            raise ToolError(
                "edges are shares of the picture, from 0 to 1, e.g. left 0, right 0.5 for its left half"
            )
        if right - left < _LEAST_SHARE or bottom - top < _LEAST_SHARE:
            raise ToolError(
                f"right must be greater than left and bottom greater than top, by {_LEAST_SHARE} at least"
            )
        if self._num_zooms >= self._config.max_zooms:
            raise ToolError(f"the picture was enlarged {self._num_zooms} times already; answer now")
        self._num_zooms += 1
        part = await asyncio.to_thread(enlarge, self._picture, left, top, right, bottom)
        width, height = struct.unpack(">II", part[16:24])
        url = f"data:image/png;base64,{base64.b64encode(part).decode()}"
        return ImageBlock(url=url, width=width, height=height)

    async def submit_answer(self, answer: Annotated[str, BeforeValidator(_as_text)]) -> str:
        """Give the final answer; there is one try.

        Args:
            answer: The answer alone, e.g. 42.5, yes, blue, March.
        """
        self._judge(answer)
        return "submitted"

    async def _said(self, text: str) -> str:
        """A plain message is the answer."""
        if not text.strip():
            return "Nothing was said. Answer the question."
        self._judge(text)
        return "submitted"

    def _judge(self, text: str) -> None:
        right = is_right(text[-MAX_CHARS:], self._answer)
        self.finish(float(right), "answer", num_zooms=float(self._num_zooms))
