"""What the servers of one process share: secrets, addresses, and what they are allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

from sensorium.core import ConfigError
from sensorium.envs.definition import EnvDefinition
from sensorium.servers.security import Signer

if TYPE_CHECKING:
    from sensorium.servers.agent import AgentHost
    from sensorium.servers.hosting import EpisodeHost
    from sensorium.servers.model import ModelAnswers


@dataclass(slots=True)
class Runtime:
    """Shared by the servers of one process."""

    signer: Signer = field(default_factory=Signer)
    worker: int = 0
    """Number of this process among those that share a server."""
    urls: dict[str, str] = field(default_factory=dict)
    """Instance -> where it is, known once its socket is bound."""
    apps: dict[str, ASGIApp] = field(default_factory=dict)
    """Address -> the server of this process that is there: the others call it without a socket."""
    episodes: "dict[str, EpisodeHost]" = field(default_factory=dict)
    """Resources server of this process -> its episodes: agents of this process play them themselves."""
    agents: "dict[str, AgentHost]" = field(default_factory=dict)
    """Agent server of this process -> its agent: environment servers of this process hand it rows."""
    models: "dict[str, ModelAnswers]" = field(default_factory=dict)
    """Model server of this process -> its answers: agents of this process are given them as they are."""
    api_key: str | None = field(default=None, repr=False)
    """That our own servers want."""
    unsafe_no_sandbox: bool = False
    """Run untrusted code without a sandbox where none is to be had."""

    def url_of(self, name: str) -> str:
        """Where an instance is.

        Raises:
            ConfigError: It is not known.
        """
        if name not in self.urls:
            raise ConfigError(
                f"The address of {name} is not known. Known: {', '.join(sorted(self.urls)) or 'none'}."
            )
        return self.urls[name]

    def environment_settings(
        self, definition: EnvDefinition[Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The settings of an environment, with what this process is allowed."""
        if self.unsafe_no_sandbox and "unsafe_no_sandbox" in definition.config_type.model_fields:
            return {"unsafe_no_sandbox": True, **settings}
        return dict(settings)
