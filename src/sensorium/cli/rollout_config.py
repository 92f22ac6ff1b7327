"""The agent of a file for ``sensorium serve``, run in this process without sockets between its parts."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorium.core import ConfigError, ModelError, parse_config
from sensorium.core.errors import nearest
from sensorium.llm.base import Completion, ContextLengthError
from sensorium.llm.messages import Message, chat
from sensorium.llm.replies import read_completion, says_too_long
from sensorium.rollouts.runner import EpisodeRunner

if TYPE_CHECKING:
    from sensorium.servers.backends import Backend
    from sensorium.servers.layout import Instance, Layout


class BackendModel:
    """A `ChatModel` over what answers behind a model server.

    Args:
        backend: Answers requests of the chat-completions API.
    """

    def __init__(self, backend: "Backend") -> None:
        self._backend = backend

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._backend.name

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Completion:
        """Answer a conversation; see `ChatModel.complete`."""
        from sensorium.servers.errors import ServerError

        body: dict[str, Any] = {"model": self.model, "messages": chat(messages), **sampling}
        if tools:
            body["tools"] = [dict(tool) for tool in tools]
        try:
            answer = await self._backend.chat(body)
        except ServerError as error:
            kind = ContextLengthError if says_too_long(error.status, str(error)) else ModelError
            raise kind(str(error)) from error
        return read_completion(json.dumps(answer), "chat")


@contextlib.asynccontextmanager
async def open_config(
    path: Path, agent: str | None, settings: Sequence[str] = ()
) -> AsyncIterator[EpisodeRunner]:
    """The agent of a file with its environment and its model.

    Args:
        path: YAML.
        agent: Name of an agent or of the environment server in front of it; not needed when there is one.
        settings: ``key.sub=value``, laid over the file.

    Raises:
        ConfigError: The file does not fit, there is no such agent, or parts of it run elsewhere.
    """
    from sensorium.envs.definition import find_env
    from sensorium.representations import ObservationPipeline
    from sensorium.servers.backends import build_backend
    from sensorium.servers.config import AgentServerConfig, ModelConfig, ResourcesConfig
    from sensorium.servers.layout import read_layout

    layout = read_layout(path, settings)
    chosen = _agent_of(layout, agent)
    resources = _part(layout, chosen, "resources_server")
    own, config = chosen.config, resources.config
    model = _part(layout, chosen, "model_server").config
    assert isinstance(own, AgentServerConfig)
    assert isinstance(config, ResourcesConfig)
    assert isinstance(model, ModelConfig)
    definition = find_env(config.environment or resources.implementation)
    pipeline_config = config.pipeline
    if pipeline_config.multimodal.image.encoding == "url":  # nobody serves pictures here
        pipeline_config = pipeline_config.updated({"multimodal": {"image": {"encoding": "base64"}}})
    backend = build_backend(model)
    await backend.start()
    try:
        with contextlib.closing(ObservationPipeline(pipeline_config)) as pipeline:
            yield EpisodeRunner(
                definition,
                parse_config(definition.config_type, config.config),
                BackendModel(backend),
                agent=own.agent,
                pipeline=pipeline,
                episode=config.episode.updated({"max_steps": min(config.episode.max_steps, own.max_steps)}),
                name=chosen.name,
            )
    finally:
        await backend.close()


def _agent_of(layout: "Layout", name: str | None) -> "Instance":
    from sensorium.servers.config import AgentServerConfig, EnvironmentServerConfig

    agents = {one.name: one for one in layout.instances if isinstance(one.config, AgentServerConfig)}
    fronts = {
        one.name: one.config.agent_server.name
        for one in layout.instances
        if isinstance(one.config, EnvironmentServerConfig)
    }
    if name is None:
        if len(agents) != 1:
            raise ConfigError(
                f"--agent NAME is needed: the file has {', '.join(sorted(agents)) or 'no agent'}."
            )
        return next(iter(agents.values()))
    wanted = fronts.get(name) or name
    if wanted not in agents:
        raise ConfigError(f"The file has no agent {name!r}. {nearest(name, [*agents, *fronts])}")
    return agents[wanted]


def _part(layout: "Layout", agent: "Instance", field: str) -> "Instance":
    """The server of the file that an agent names."""
    from sensorium.servers.layout import references

    reference = references(agent.config).get(field)
    if reference is None:
        raise ConfigError(f"The agent {agent.name} has no {field}, so it cannot run here.")
    if reference.name is None or reference.name in layout.elsewhere:
        raise ConfigError(
            f"{field} of {agent.name} runs elsewhere, so the agent cannot run in this process. "
            "Start the file with `sensorium serve`, and leave --config out."
        )
    return layout.named(reference.name)
