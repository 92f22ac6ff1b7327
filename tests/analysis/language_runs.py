"""Directories of language models' runs, made by hand."""

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from sensorium.analysis import LanguageSummary
from sensorium.core import EpisodeStatus
from sensorium.envs.base import Action, Task, ToolCall, ToolFailure, ToolResult
from sensorium.envs.episode import Verdict
from sensorium.llm.base import Completion, Usage
from sensorium.llm.messages import ImageBlock, Message, TextBlock, image_block, text_message
from sensorium.rollouts.trajectory import Trajectory, TrajectoryStep

SECRET_MARKUP = "<script>alert('x')</script> & \x1b[31mred"


def picture(width: int = 640, height: int = 480) -> ImageBlock:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(buffer, "PNG")
    return image_block("data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode())


def step(
    prompt: tuple[Message, ...],
    action: Action,
    *,
    results: tuple[ToolResult, ...] = (),
    reward: float = 0.0,
    state_from: int = 0,
    finish_reason: str = "stop",
) -> TrajectoryStep:
    usage = Usage(prompt_tokens=123, completion_tokens=7)
    completion = Completion(message=action.message(), finish_reason=finish_reason, usage=usage)
    return TrajectoryStep(
        prompt=prompt, completion=completion, results=results, reward=reward, state_from=state_from
    )


def result(call: ToolCall, *content: Any, failure: ToolFailure | None = None) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, content=content, failure=failure)


def episode(task: str, steps: tuple[TrajectoryStep, ...], status: str = "success") -> Trajectory:
    reward = sum(one.reward for one in steps)
    return Trajectory(
        task=Task(id=task, env="lookup", instruction="What is the price of a lamp?"),
        steps=steps,
        verdict=Verdict(status=EpisodeStatus(status), reward=reward, num_steps=len(steps)),
    )


def with_tools(task: str, reward: float = 1.0) -> Trajectory:
    """Every prompt is made anew: instruction, last actions, state; there are tools and pictures."""
    look = Action.call("lookup", item="lamp", attribute="price")
    wrong = Action(calls=(ToolCall(id="w", name="look", arguments="{broken"),))
    asked = TextBlock(text="## Task\nWhat is the price of a lamp?")
    state = (TextBlock(text="The shop is open."), picture())
    answer = TextBlock(text="12.5 " + "and more " * 100)
    first = (text_message("system", "You are a clerk."), Message(role="user", content=(asked, *state)))
    second = (first[0], Message(role="user", content=(asked, TextBlock(text="It costs 12.5."))))
    refused = result(wrong.calls[0], TextBlock(text="there is no tool look"), failure="unknown_tool")
    return episode(
        task,
        (
            step(first, wrong, results=(refused,), state_from=1),
            step(first, look, results=(result(look.calls[0], answer, picture(9, 9)),), state_from=1),
            step(second, Action(text=SECRET_MARKUP), reward=reward, state_from=1, finish_reason="length"),
        ),
        "success" if reward else "failure",
    )


def conversation(task: str, num_steps: int) -> Trajectory:
    """Every prompt goes on with the one before."""
    prompt: tuple[Message, ...] = (text_message("user", "How many?"),)
    steps = []
    for number in range(num_steps):
        action = Action(text=f"guess number {number}")
        steps.append(step(prompt, action))
        prompt = (*prompt, action.message(), text_message("user", f"No, not {number}."))
    return episode(task, tuple(steps), "truncated")


def kept(trajectories: list[Trajectory]) -> str:
    """As a run keeps them."""
    leaves_out = {"steps": {"__all__": {"account"}}}
    return json.dumps([one.model_dump(mode="json", exclude=leaves_out) for one in trajectories])


def metric_row(update: int) -> dict[str, float]:
    return {
        "step": update,
        "wall_s": 2.0 * update,
        "rollout/success_rate": 0.1 * update,
        "rollout/return_mean": 0.125 * update,
        "rollout/outcome": 0.125 * update,
        "rollout/return_std": 0.3,
        "rollout/episode_length": 2.5,
        "rollout/truncated_rate": 0.0,
        "tools/calls": 1.5,
        "tools/failure_rate": 0.25,
        "groups/no_signal": 0.5,
        "groups/singletons": 0.125,
        "groups/rounds": 1.0,
        "groups/left_out": 0.0,
        "tokens/prompt": 120.0,
        "tokens/answer": 7.0,
        "tokens/cut_answers": 0.1,
        "tokens/sampled": 448.0,
        "policy/entropy": 2.0 - 0.5 * update,
        "policy/kl": 0.001 * update,
        "policy/clip_fraction_low": 0.01,
        "policy/clip_fraction_high": 0.02,
        "policy/ratio_deviation": 0.2,
        "policy/first_ratio_deviation": 1e-6,
        "time/collect_s": 1.5,
        "time/learn_s": 0.5,
        "time/tokens_per_s": 224.0,
    }


def summary(**changes: Any) -> LanguageSummary:
    values: dict[str, Any] = {
        "task": "lookup",
        "model": "smollm2",
        "algorithm": "grpo-1",
        "unit": "step",
        "seed": 7,
        "updates": 3,
        "wall_s": 252.0,
        "sampled_tokens": 12729,
        "success_rate": 0.75,
        "success_ci95": (0.58, 0.87),
        "episodes": 32,
        "mean_return": 0.8,
        "first_return": 0.125,
        "last_return": 0.375,
    }
    return LanguageSummary(**values | changes)


def make_language_run(path: Path, **changes: Any) -> Path:
    """A complete run of three updates; `changes` are laid over its summary."""
    (path / "episodes").mkdir(parents=True)
    algo = {"group_by": "task_state", "near": None, "group_size": 8, "tasks_per_update": 4}
    config = {"algo": algo, "lora": {"rank": 16}, "evaluation": {"split": "test"}}
    (path / "config.json").write_text(json.dumps({"config": config, "versions": {"torch": "2.9"}}))
    rows = [metric_row(update) for update in (1, 2, 3)]
    rows[-1] |= {"eval/success_rate": 0.75, "eval/return_mean": 0.8, "eval/failed_episodes": 0.0}
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number in range(3):
        trajectories = [with_tools(f"train-{number}-{k}", reward=k / 5) for k in range(6)]
        (path / "episodes" / f"{number:06d}.json").write_text(kept(trajectories))
    (path / "episodes" / "000001.json").write_text(kept([conversation("train-long", 20)]))
    (path / "summary.json").write_text(summary(**changes).model_dump_json())
    return path
