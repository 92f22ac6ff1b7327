"""A trajectory as a rollout row of NeMo Gym, and back to the prompts of its steps."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sensorium.core import EpisodeStatus
from sensorium.envs.base import Action
from sensorium.llm.messages import Message
from sensorium.llm.responses import responses, responses_tool
from sensorium.policies.chat_agent import with_ids_of
from sensorium.rollouts import row_names as names
from sensorium.rollouts.failures import failure_fields
from sensorium.rollouts.trajectory import Trajectory, TrajectoryStep

FORMAT = 1
"""Version of what stands under ``sensorium``."""
CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why an answer of the chat dialect was cut -> the same in that of responses."""
Refs = list[list[Any]]
"""A prompt by reference: ``[["input", 0, 2], ["output", 0, 5]]`` are items 0-1 of the request's input and
items 0-4 of the response's output."""


def rollout_row(
    trajectory: Trajectory,
    row: Mapping[str, Any] | None = None,
    *,
    model: str = "",
    created_at: float | None = None,
) -> dict[str, Any]:
    """A finished episode as a row.

    ``response.output`` is everything after the first prompt, in order: what the model said, its calls, their
    outputs with pictures, what it was shown besides. Nothing is in it twice: ``sensorium.steps[i].prompt``
    says by reference what the model read at each step (`step_prompts` gives the items).

    Args:
        trajectory: The episode.
        row: The input row; its fields are kept, those of the same name are replaced.
        model: Name of the model, where completions do not say.
        created_at: Seconds since 1970; now by default.

    Returns:
        A row with a ``reward``; for a failed episode a row without, with the fields of a failed attempt.
    """
    record = _Record(trajectory)
    given = dict(row or {})
    tools = [row_tool(tool) for tool in trajectory.tools]
    verdict = trajectory.verdict
    made: dict[str, Any] = {
        names.PARAMS: {**names.section(given, names.PARAMS), "input": record.input, "tools": tools},
        names.RESPONSE: _response(trajectory, record, tools, model, created_at),
    }
    metrics = {
        name: value
        for name, value in verdict.metrics.items()
        if name not in names.RESERVED and not name.startswith("_")
    }
    if verdict.failure is not None or verdict.reward is None:
        made |= failure_fields(verdict.failure)
    else:
        made |= {names.REWARD: verdict.reward, **metrics}
        if verdict.reward_components:
            made[names.REWARD_COMPONENTS] = dict(verdict.reward_components)
    made[names.OURS] = {
        **names.section(given, names.OURS),
        "format": FORMAT,
        "env": trajectory.task.env,
        "task": trajectory.task.id,
        "seed": trajectory.seed,
        "status": str(verdict.status),
        "num_steps": verdict.num_steps,
        "wall_s": round(trajectory.wall_s, 6),
        "steps": record.steps,
    }
    return {**given, **made}


def row_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in the form that rows have: that of the responses API with everything NeMo Gym insists on."""
    made = responses_tool(tool)
    if made.get("type") != "function":
        return made
    return {"parameters": {"type": "object", "properties": {}}, "strict": False, **made}


def finished_item(item: dict[str, Any], number: str) -> dict[str, Any]:
    """An item of an output as NeMo Gym's models insist on it: it has an id, its texts lists of annotations.

    Args:
        item: Of `responses`.
        number: Makes its id, unless it has one.
    """
    match item.get("type"):
        case "message" if item.get("role") == "assistant":
            content = [
                {"annotations": [], **part} if part.get("type") == "output_text" else part
                for part in item["content"]
            ]
            return {"id": f"msg_{number}", **item, "content": content, "status": "completed"}
        case "function_call":
            return {"id": f"fc_{number}", **item, "status": "completed"}
        case "reasoning":
            return {"id": f"rs_{number}", "summary": [], **item}
        case _:
            return item


def step_prompts(row: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """What the model read at each step, as items of the responses API.

    Args:
        row: A row of `rollout_row`.

    Raises:
        KeyError: The row is none of ours.
        IndexError: It refers to items that it does not have.
    """
    lists = {"input": row[names.PARAMS]["input"], "output": row[names.RESPONSE]["output"]}
    for step in row[names.OURS]["steps"]:
        prompt: list[dict[str, Any]] = []
        for source, start, stop in step["prompt"]:
            items = lists[source][start:stop]
            if len(items) != stop - start:
                raise IndexError(f"a step refers to {source}[{start}:{stop}] of {len(lists[source])} items")
            prompt += items
        yield prompt


def _response(
    trajectory: Trajectory,
    record: "_Record",
    tools: list[dict[str, Any]],
    model: str,
    created_at: float | None,
) -> dict[str, Any]:
    steps = trajectory.steps
    last = steps[-1].completion if steps else None
    cut = CUT.get(last.finish_reason or "") if last is not None else None
    failed = trajectory.verdict.status is EpisodeStatus.ERROR
    named = [step.completion.model for step in steps if step.completion.model]
    return {
        "id": f"resp_{record.digest}",
        "object": "response",
        "created_at": time.time() if created_at is None else created_at,
        "model": named[-1] if named else model,
        "status": "failed" if failed else "incomplete" if cut else "completed",
        "incomplete_details": {"reason": cut} if cut else None,
        "output": record.output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": tools,
        "usage": _usage(steps),
    }


def _usage(steps: Sequence[TrajectoryStep]) -> dict[str, Any] | None:
    """Tokens of all calls, None where no endpoint counted them."""
    usages = [step.completion.usage for step in steps]
    if not any(u.prompt_tokens is not None or u.completion_tokens is not None for u in usages):
        return None
    read = sum(usage.prompt_tokens or 0 for usage in usages)
    written = sum(usage.completion_tokens or 0 for usage in usages)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": None},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": read + written,
    }


class _Record:
    """Input, output and steps of a trajectory, every item once."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.input: list[dict[str, Any]] = []
        self.output: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self._known: list[tuple[Message, Refs]] = []
        """The conversation so far, and where its messages are."""
        steps = trajectory.steps
        for number, step in enumerate(steps):
            prompt = self._prompt(step.prompt, first=number == 0)
            start = len(self.output)
            self._completion(step)
            self.steps.append(_step(step, prompt, [start, len(self.output)]))
            shown = steps[number + 1].prompt if number + 1 < len(steps) else ()
            self._results(step, shown)
        if not steps:
            instruction = trajectory.task.instruction
            self.input.append({"type": "message", "role": "user", "content": instruction})
        self.digest = steps[-1].digest if steps else "0" * 32

    def _prompt(self, messages: Sequence[Message], *, first: bool) -> Refs:
        """Where the messages of a prompt are; those that are new are added."""
        same = 0
        for message, (known, _) in zip(messages, self._known, strict=False):
            if message is not known and message != known:
                break
            same += 1
        del self._known[same:]
        for message in messages[same:]:
            source, into = ("input", self.input) if first else ("output", self.output)
            start = len(into)
            for item in responses([message]):
                into.append(item if first else self._finished(item))
            self._known.append((message, [[source, start, len(into)]]))
        refs: Refs = []
        for _, places in self._known:
            for source, start, stop in places:
                if refs and refs[-1][0] == source and refs[-1][2] == start:
                    refs[-1][2] = stop
                elif stop > start:
                    refs.append([source, start, stop])
        return refs

    def _completion(self, step: TrajectoryStep) -> None:
        said = step.completion.message
        said = with_ids_of(Action.from_message(said), said)
        thoughts = said.extra.get("reasoning_content") or said.extra.get("reasoning")
        if isinstance(thoughts, str) and thoughts:
            summary = [{"type": "summary_text", "text": thoughts}]
            self.output.append(self._finished({"type": "reasoning", "summary": summary}))
        start = len(self.output)
        for item in responses([said]):
            self.output.append(self._finished(item))
        self._known.append((said, [["output", start, len(self.output)]]))

    def _results(self, step: TrajectoryStep, shown: Sequence[Message]) -> None:
        """Outputs of calls that the next prompt does not hold as messages of their own."""
        answered = {message.tool_call_id for message in shown if message.role == "tool"}
        for result in step.results:
            if result.call_id not in answered:
                self.output.extend(responses([result.message()]))

    def _finished(self, item: dict[str, Any]) -> dict[str, Any]:
        return finished_item(item, str(len(self.output)))


def _step(step: TrajectoryStep, prompt: Refs, output: list[int]) -> dict[str, Any]:
    completion = step.completion
    made: dict[str, Any] = {
        "prompt": prompt,
        "output": output,
        "reward": step.reward,
        "terminated": step.terminated,
        "truncated": step.truncated,
        "digest": step.digest,
        "finish_reason": completion.finish_reason,
        "input_tokens": completion.usage.prompt_tokens,
        "output_tokens": completion.usage.completion_tokens,
        "num_tokens": step.num_tokens,
        "model_s": round(step.model_s, 6),
        "env_s": round(step.env_s, 6),
    }
    if step.reward_components:
        made["reward_components"] = dict(step.reward_components)
    if step.results:
        made["tools"] = [
            {"call_id": one.call_id, "name": one.name, "failure": one.failure, "wall_s": round(one.wall_s, 6)}
            for one in step.results
        ]
    if completion.logprobs is not None:
        made["logprobs"] = list(completion.logprobs)
    if completion.prompt_token_ids is not None:
        made["prompt_token_ids"] = list(completion.prompt_token_ids)
    if completion.token_ids is not None:
        made["token_ids"] = list(completion.token_ids)
    if step.account:
        made["account"] = step.account
    return made
