"""Environments of ours as environments of verifiers: ``load_environment("lookup")``.

For its protocol of `load_environment`, `MultiTurnEnv` and `Rubric`, versions 0.1.14 to 0.3. A module that
verifiers finds under the name of an environment needs one line:

    from sensorium.interop.verifiers import load_environment

Then ``vf-eval my_module -a '{"environment": "lookup"}'`` and trainers on verifiers play it.
"""

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from sensorium.core import MissingDependencyError, parse_config
from sensorium.envs.base import Action
from sensorium.envs.episode import EpisodeError, Turn, Verdict
from sensorium.interop.played import Played, PlayedConfig
from sensorium.llm.messages import Message, TextBlock, chat
from sensorium.rollouts.env_session import EnvSession

__all__ = ["VerifiersConfig", "load_environment"]

_INSTALL = "Install it with: pip install 'verifiers>=0.1.14,<0.4'"


class VerifiersConfig(PlayedConfig):
    """Which tasks verifiers plays."""

    eval_split: str | None = "test"
    """Tasks of its evaluation; None, or a split that the environment does not have: those of `split`."""


def load_environment(environment: str = "lookup", **settings: Any) -> Any:
    """A `verifiers.MultiTurnEnv` that plays an environment of ours.

    The conversation grows: answers of tools are tool messages, a new state is a user message. Pictures are
    ``image_url`` parts. The reward is the verdict's, which stands in ``state["verdict"]`` with status, reward
    components and metrics. An episode that failed for a reason beside the agent ends with ``state["error"]``
    (`verifiers.InfraError`): verifiers tries it again, trainers leave it out.

    Args:
        environment: Its name, or ``package.module:Definition``.
        **settings: Of `VerifiersConfig`, e.g. ``num_tasks=64``.

    Raises:
        MissingDependencyError: verifiers is not installed, or a version without this protocol.
        ConfigError: There is no such environment, or settings do not fit.
        EpisodeError: The environment cannot be begun, so that its tools are unknown.
    """
    try:
        verifiers = importlib.import_module("verifiers")
    except ImportError as error:
        raise MissingDependencyError(f"Environments for verifiers need it ({error}). {_INSTALL}") from error
    if not hasattr(verifiers, "MultiTurnEnv"):
        raise MissingDependencyError(f"verifiers {verifiers.__version__} has no MultiTurnEnv. {_INSTALL}")
    played = Played(parse_config(VerifiersConfig, {"environment": environment, **settings}))
    return _kind(verifiers)(played)


@functools.cache
def _kind(vf: Any) -> type[Any]:
    """The class, made once verifiers is there."""

    class SensoriumEnv(vf.MultiTurnEnv):  # type: ignore[misc]
        """Episodes of an environment of Sensorium."""

        def __init__(self, played: Played) -> None:
            self._played = played
            self._sessions: dict[str, EnvSession] = {}
            super().__init__(
                dataset=lambda: _dataset(_rows(played, played.config.split)),
                eval_dataset=lambda: _dataset(_rows(played, _eval_split(played))),
                tool_defs=[_tool(one) for one in played.tools()],
                rubric=vf.Rubric(funcs=[verdict_reward, success, num_steps], weights=[1.0, 0.0, 0.0]),
                env_id=played.definition.name,
            )

        async def setup_state(self, state: Any) -> Any:
            """Begin the episode; the prompt is what its agent is shown."""
            session = self._sessions[state["trajectory_id"]] = self._played.session()
            try:
                opening = await session.start(self._played.task(state["info"]["task_id"]))
            except EpisodeError as error:
                raise vf.InfraError(str(error)) from error
            system = [{"role": "system", "content": self._played.system}] if self._played.system else []
            state["prompt"] = [*system, *chat(opening.view.messages)]
            return state

        async def env_response(self, messages: Any, state: Any, **more: Any) -> Any:
            """Answer the model's calls, or what it said without one."""
            session = self._sessions[state["trajectory_id"]]
            try:
                turn = await session.act(_action(messages[-1]), session.num_steps)
            except EpisodeError as error:
                raise vf.InfraError(str(error)) from error
            answers = chat(_shown(turn))
            if turn.done:
                state["final_env_response"] = answers
                state["is_truncated"] = state["is_truncated"] or turn.truncated
            return answers

        @vf.cleanup  # type: ignore[untyped-decorator]
        async def judge(self, state: Any) -> None:
            """Take the verdict and give the environment back, however the rollout ended."""
            session = self._sessions.pop(state["trajectory_id"], None)
            if session is None:
                return
            verdict = await session.verdict()
            await session.close()
            state["verdict"] = verdict.model_dump(mode="json")
            if verdict.failure is not None and state["error"] is None:
                state["error"] = vf.InfraError(str(EpisodeError(verdict.failure)))

        @vf.teardown  # type: ignore[untyped-decorator]
        async def close(self) -> None:
            """Give back what is still open."""
            while self._sessions:
                await self._sessions.popitem()[1].close()

    return SensoriumEnv


async def verdict_reward(state: Mapping[str, Any]) -> float:
    """What the episode earned; 0 beside ``state["error"]``, which says that it does not count."""
    verdict = _verdict(state)
    return 0.0 if verdict is None or verdict.reward is None else verdict.reward


async def success(state: Mapping[str, Any]) -> float:
    """The environment's own measure of success, else whether the reward is at least 1."""
    verdict = _verdict(state)
    return 0.0 if verdict is None else verdict.metrics.get("success", float((verdict.reward or 0.0) >= 1.0))


async def num_steps(state: Mapping[str, Any]) -> float:
    """Actions of the episode."""
    verdict = _verdict(state)
    return 0.0 if verdict is None else float(verdict.num_steps)


def _verdict(state: Mapping[str, Any]) -> Verdict | None:
    found = state.get("verdict")
    return None if found is None else Verdict.model_validate(found)


def _eval_split(played: Played) -> str:
    wanted = getattr(played.config, "eval_split", None)
    return wanted if wanted in played.definition.splits else played.config.split


def _rows(played: Played, split: str) -> list[dict[str, Any]]:
    """One row per task, without what is hidden."""
    config = played.config
    tasks = played.definition.tasks(
        played.settings, split=split, count=config.num_tasks, seed=config.task_seed
    )
    return [
        {"prompt": [{"role": "user", "content": task.instruction}], "info": {"task_id": task.id}}
        for task in tasks
    ]


def _dataset(rows: list[dict[str, Any]]) -> Any:
    return importlib.import_module("datasets").Dataset.from_list(rows)  # verifiers needs it itself


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    parameters = {"type": "object", "properties": {}} | dict(function.get("parameters") or {})
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": parameters,
    }


def _action(message: Any) -> Action:
    """The action in an assistant message of verifiers."""
    content = message.content or ""
    if not isinstance(content, str):
        content = "\n".join(part.text for part in content if getattr(part, "type", "") == "text")
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls or ()
    ]
    said = (TextBlock(text=content),) if content else ()
    return Action.from_message(Message(role="assistant", content=said, tool_calls=tuple(calls)))


def _shown(turn: Turn) -> Sequence[Message]:
    return [result.message() for result in turn.results] if turn.view is None else turn.view.messages
