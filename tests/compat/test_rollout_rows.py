"""Rows of our rollouts are valid for the models of NeMo Gym."""

import asyncio
import base64
import io
from typing import Any

import pytest
from capture_nemo import ask
from PIL import Image
from scripted_models import Scripted

from sensorium.envs import Action, Task, ToolEnv, tool
from sensorium.llm.base import Usage
from sensorium.llm.messages import ImageBlock
from sensorium.policies.chat_agent import ChatAgent
from sensorium.representations import ObservationPipeline, PipelineConfig
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.episode import run_episode
from sensorium.rollouts.rows import rollout_row

pytestmark = [pytest.mark.slow, pytest.mark.nemo_gym]


class Dot(ToolEnv):
    """One picture."""

    async def _reset(self, task: Task, seed: int) -> None:
        return None

    async def _observe(self) -> Any:
        return {"state": "open"}

    @tool()
    async def look(self) -> Any:
        """Look."""
        data = io.BytesIO()
        Image.new("RGB", (8, 8), (200, 30, 30)).save(data, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
        return [ImageBlock(url=url, width=8, height=8)]

    @tool()
    async def win(self) -> str:
        """Win."""
        self.finish(1.0)
        return "won"


def row(drops: bool) -> dict[str, Any]:
    settings = {"context_management": {"drop_full_history": drops}}
    pipeline = ObservationPipeline(PipelineConfig().updated(settings))
    task = Task(id="t", env="dot", instruction="Look.")
    actions = (Action.call("look"), Action(text="A dot."), Action.call("win"))
    said = {"usage": Usage(prompt_tokens=3), "extra": {"reasoning_content": "Hm."}, "finish": "stop"}
    agent = ChatAgent(Scripted(*actions, **said))
    return rollout_row(asyncio.run(run_episode(agent, EnvSession(Dot(), pipeline, system="Play."), task)))


def test_requests_responses_and_whole_rows_are_valid() -> None:
    questions = []
    for made in (row(True), row(False)):
        questions += [
            ("NeMoGymResponseCreateParamsNonStreaming", made["responses_create_params"]),
            ("NeMoGymResponse", made["response"]),
            ("BaseVerifyResponse", made),
        ]
    assert ask("validity", questions) == [True] * 6
