"""What runs one row: an agent here in this process, or a server."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from sensorium.core import ConfigError
from sensorium.envs.definition import EnvDefinition
from sensorium.envs.episode import EpisodeError, Failure
from sensorium.llm.base import ChatModel
from sensorium.policies.chat_agent import AgentConfig, ChatAgent
from sensorium.representations import ObservationPipeline
from sensorium.rollouts import row_names as names
from sensorium.rollouts.config import EpisodeConfig
from sensorium.rollouts.env_session import EnvSession
from sensorium.rollouts.episode import run_episode
from sensorium.rollouts.known_tasks import KnownTasks
from sensorium.rollouts.rows import rollout_row
from sensorium.rollouts.task_rows import extra_body, row_seed, row_task

_SAMPLING = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}


@runtime_checkable
class RowRunner(Protocol):
    """Runs rows; many at the same time."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the results beside the rows, as plain JSON; known after `open`."""
        ...

    @property
    def needs_agent(self) -> bool:
        """Whether every row must name an agent."""
        ...

    @property
    def needs_request(self) -> bool:
        """Whether every row must have a request to the model."""
        ...

    async def open(self) -> None:
        """Connect and find out what there is.

        Raises:
            SensoriumError: It cannot be used.
        """
        ...

    def problem(self, row: Mapping[str, Any]) -> str | None:
        """What is wrong with an input row, in words."""
        ...

    async def run(self, row: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Run a row.

        Args:
            row: With its media embedded.
            timeout_s: Of the whole episode.

        Returns:
            The row with its result, or a failed attempt.

        Raises:
            EpisodeError: It failed before there was anything to tell of it.
        """
        ...

    async def aggregate(self, server: str | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Metrics of finished rows as the server that ran them sees them; None when it has no view.

        Args:
            server: Its name in the rows.
            rows: Without prompts and trajectories.
        """
        ...

    async def close(self) -> None:
        """Give everything back; may be called again."""
        ...


class EpisodeRunner:
    """Runs rows in this process: an environment, a model, no sockets between them.

    Args:
        definition: The environment.
        env_config: Its settings.
        model: Is asked; closed by who made it.
        agent: How it is asked where a row does not say.
        pipeline: What the agent is shown.
        episode: Limits.
        name: Of the agent, in the rows.
    """

    def __init__(
        self,
        definition: EnvDefinition[Any],
        env_config: Any,
        model: ChatModel,
        *,
        agent: AgentConfig | None = None,
        pipeline: ObservationPipeline | None = None,
        episode: EpisodeConfig | None = None,
        name: str | None = None,
    ) -> None:
        self._definition, self._env_config, self._model = definition, env_config, model
        self._agent = agent or AgentConfig()
        self._pipeline = pipeline or ObservationPipeline()
        self._episode = episode or EpisodeConfig()
        self.name = name or definition.name
        self._find = KnownTasks(lambda task_id: definition.task(env_config, task_id))

    @property
    def identity(self) -> Mapping[str, Any]:
        """Environment, model, and what the agent is shown."""
        return {
            "env": {"name": self._definition.name, "config": self._env_config.model_dump(mode="json")},
            "model": self._model.model,
            "asked": self._agent.model_dump(mode="json"),
            "observation": self._pipeline.config.model_dump(mode="json"),
            "episode": self._episode.model_dump(
                mode="json", include={"max_steps", "max_result_tokens", "fetch_tool"}
            ),
        }

    @property
    def needs_agent(self) -> bool:
        """There is one agent."""
        return False

    @property
    def needs_request(self) -> bool:
        """The environment knows what is asked."""
        return False

    async def open(self) -> None:
        """Nothing to do."""
        return None

    def problem(self, row: Mapping[str, Any]) -> str | None:
        """Whether the environment has the task."""
        try:
            row_task(row, self._definition.name, self._find)
        except ConfigError as error:
            return str(error)
        return None

    async def run(self, row: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Run the episode of a row; see `RowRunner.run`."""
        try:
            task = row_task(row, self._definition.name, self._find)
        except ConfigError as error:
            failure = Failure(kind="task_invalid", reason=str(error), stage="seed", terminal=True)
            raise EpisodeError(failure) from error
        session = EnvSession(
            self._definition.make(self._env_config),
            self._pipeline,
            self._episode,
            system=self._definition.system,
        )
        agent = ChatAgent(self._model, self._asked(row))
        trajectory = await run_episode(agent, session, task, seed=row_seed(row), timeout_s=timeout_s)
        given = dict(row)
        given.setdefault(names.AGENT, {"name": self.name})
        return rollout_row(trajectory, given, model=self._model.model)

    async def aggregate(self, server: str | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """There is no server."""
        return None

    async def close(self) -> None:
        """Nothing to do."""
        return None

    def _asked(self, row: Mapping[str, Any]) -> AgentConfig:
        """How the model is asked: as the row says, else as is configured."""
        params = names.section(row, names.PARAMS)
        said: dict[str, Any] = {
            ours: params[name] for name, ours in _SAMPLING.items() if params.get(name) is not None
        }
        choice = params.get("tool_choice")
        if choice in ("required", "none"):
            said["tool_choice"] = choice
        body = {name: value for name, value in extra_body(row).items() if name != "seed"}
        if body:
            said["extra"] = {**self._agent.extra, **body}
        return self._agent.updated(said) if said else self._agent
