"""Settings of the servers; every limit is finite by default."""

from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from sensorium.core import Config
from sensorium.llm.config import ChatModelConfig
from sensorium.policies.chat_agent import AgentConfig
from sensorium.representations import PipelineConfig
from sensorium.rollouts.config import EpisodeConfig

Kind = Literal["resources_servers", "responses_api_models", "responses_api_agents", "environment_servers"]
KINDS: tuple[str, ...] = get_args(Kind)
"""The four kinds of servers, as NeMo Gym names them."""


class RequestLimits(Config):
    """What a server takes from a client."""

    max_body_mb: float = Field(default=64.0, gt=0.0)
    """Longest body of a request, megabytes of 1,048,576 bytes."""
    requests_per_s: float = Field(default=10_000.0, gt=0.0)
    """From one address, in the long run."""
    burst: int = Field(default=20_000, ge=1)
    """Requests from one address that may come at once."""
    max_in_flight: int = Field(default=4096, ge=1)
    """Requests of all clients under way at the same time."""
    request_timeout_s: float = Field(default=900.0, gt=0.0)
    """Of answering one request; 504 afterwards. What an environment does meanwhile is finished."""


class ServerConfig(Config):
    """What all servers share; several keys of NeMo Gym are taken and not used."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on. Any that other machines can reach needs a key."""
    port: int = Field(default=0, ge=0, le=65535)
    """0 takes a free one."""
    api_key_env: str = Field(default="SENSORIUM_API_KEY", min_length=1)
    """Environment variable with the key that clients must send, as bearer token or ``X-API-Key``. When it is
    not set, the server listens on the loopback address only."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which clients may address a server on the loopback address, beside the usual ones."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call, e.g. ``https://tool.example``; none by default."""
    limits: RequestLimits = RequestLimits()
    entrypoint: str | None = None
    """NeMo Gym's; not used here."""
    domain: str | None = None
    """NeMo Gym's; not used here."""
    description: str | None = None
    """For people."""
    value: str | None = None
    """NeMo Gym's; not used here."""
    verified: bool | None = None
    """NeMo Gym's; not used here."""
    verified_url: str | None = None
    """NeMo Gym's; not used here."""
    allowed_agents: tuple[str, ...] | None = None
    """NeMo Gym's; not used here."""
    datasets: tuple[dict[str, Any], ...] = ()
    """NeMo Gym's; not used here."""


class SessionLimits(Config):
    """How many episodes a server hosts, and for how long."""

    max_sessions: int = Field(default=1024, ge=1)
    """Open episodes; the next one is answered 429."""
    idle_timeout_s: float = Field(default=900.0, gt=0.0)
    """An episode of which nothing is heard for so long is closed."""
    max_age_s: float = Field(default=6 * 3600.0, gt=0.0)
    """An episode is closed so long after its beginning, whatever is heard of it."""
    sweep_every_s: float = Field(default=5.0, gt=0.0)
    """How often the server looks for those."""
    remember_closed_s: float = Field(default=3600.0, ge=0.0)
    """How long a closed episode cannot be begun again under the same name."""
    max_remembered: int = Field(default=100_000, ge=1)
    """Closed episodes that are remembered at most."""


class VectorLimits(Config):
    """Environments that clients step by arrays, at ``/vector``."""

    enabled: bool = True
    max_num_envs: int = Field(default=256, ge=1)
    """Of one client."""
    max_total_envs: int = Field(default=1024, ge=1)
    """Of all clients; who comes next is refused."""


class HostingConfig(ServerConfig, PipelineConfig):
    """Hosts episodes of one environment; sections of the observation config stand beside these keys."""

    config: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment."""
    episode: EpisodeConfig = EpisodeConfig()
    sessions: SessionLimits = SessionLimits()

    @property
    def pipeline(self) -> PipelineConfig:
        """The sections about observations."""
        return PipelineConfig.model_validate(
            {name: getattr(self, name) for name in PipelineConfig.model_fields}
        )


class ResourcesConfig(HostingConfig):
    """Hosts episodes for agents."""

    environment: str | None = None
    """Its name, or ``package.module:Definition``; by default the name of the implementation in the YAML."""
    accept_rows: bool = False
    """Also run tasks that a row brings itself. Without it clients name a task of the environment, and cannot
    make up one."""
    vector: VectorLimits = VectorLimits()
    num_workers: int = Field(default=1, ge=1, le=256)
    """Processes that share the episodes; a router picks by the session."""
    expose_tools_over_mcp: bool = False
    """Offer the tools at ``/mcp``, too."""
    public_url: str | None = None
    """Where clients reach this server, for the addresses of pictures with ``encoding: url``."""
    media_lifetime_s: float = Field(default=3600.0, gt=0.0)
    """How long a picture can be fetched."""
    media_max_mb: float = Field(default=256.0, gt=0.0)
    """Pictures that are kept; the oldest go first."""


class Reference(Config):
    """Names another server."""

    type: Kind | None = None
    name: str | None = None
    """An instance of the same file."""
    url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """Where a server outside of the file is."""
    api_key_env: str | None = None
    """Environment variable with the key of that server; by default the one of the file's servers."""

    @model_validator(mode="after")
    def _names_something(self) -> "Reference":
        if (self.name is None) == (self.url is None):
            raise ValueError("needs either name (an instance of this file) or url (a server outside of it)")
        return self


class OpenAIModelConfig(ServerConfig):
    """Passes on to an OpenAI-compatible endpoint; takes NeMo Gym's names of the keys, too."""

    base_url: str = Field(pattern=r"^https?://\S+$")
    """Up to and with the version, e.g. ``http://localhost:8000/v1``."""
    model: str = Field(min_length=1)
    """Name under which the endpoint serves it."""
    model_api_key_env: str | None = None
    """Environment variable with the endpoint's key."""
    model_api_key: str | None = Field(default=None, repr=False)
    """The key itself, for files that take it from ``env.yaml``; better name a variable."""
    dialect: Literal["chat", "responses"] = "chat"
    timeout_s: float = Field(default=120.0, gt=0.0)
    """Of one call with all its retries."""
    max_retries: int = Field(default=3, ge=0)
    max_concurrency: int = Field(default=64, ge=1)
    return_token_id_information: bool = False
    """Send the ids and log-probabilities of tokens on, where the endpoint gives them."""

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        names = {
            "openai_base_url": "base_url",
            "openai_model": "model",
            "openai_api_key": "model_api_key",
            "api_key": "model_api_key",
        }
        return {names.get(key, key): value for key, value in values.items()}

    @property
    def endpoint(self) -> ChatModelConfig:
        """The client's settings."""
        return ChatModelConfig(
            base_url=self.base_url,
            model=self.model,
            api_key_env=self.model_api_key_env,
            dialect=self.dialect,
            timeout_s=self.timeout_s,
            max_retries=self.max_retries,
            max_concurrency=self.max_concurrency,
        )


class LocalModelConfig(ServerConfig):
    """A model in the server's own process (needs torch)."""

    model: str = Field(default="smollm2", min_length=1)
    """A packaged model (``sensorium models list``)."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of `sensorium.llm.local.LocalModelConfig`."""
    return_token_id_information: bool = False


class CustomModelConfig(ServerConfig):
    """Any `ChatModel` of one's own."""

    factory: str = Field(pattern=r"^[\w.]+:\w+$")
    """``package.module:function``; called with `settings`, returns a `ChatModel`."""
    settings: dict[str, Any] = Field(default_factory=dict)
    model: str | None = None
    """Name to serve it under; its own by default."""
    return_token_id_information: bool = False


ModelConfig = OpenAIModelConfig | LocalModelConfig | CustomModelConfig
Protocol = Literal["auto", "sensorium", "tools", "gymnasium"]


class AgentServerConfig(ServerConfig):
    """Runs episodes with a model."""

    resources_server: Reference | None = None
    model_server: Reference
    protocol: Protocol = "auto"
    """How the resources server is spoken to: ``sensorium`` our own, ``tools`` NeMo Gym's seed, tools and
    verify, ``gymnasium`` its reset and step; ``auto`` asks the server."""
    max_steps: int = Field(default=30, ge=1)
    """Answers of the model in one episode."""
    agent: AgentConfig = AgentConfig()
    """How the model is asked where a row does not say."""
    episode_timeout_s: float = Field(default=1800.0, gt=0.0)
    tool_timeout_s: float = Field(default=300.0, gt=0.0)
    """Of one call to the resources server."""
    model_timeout_s: float = Field(default=600.0, gt=0.0)
    """Of one answer of the model with all tries."""
    max_concurrent_episodes: int = Field(default=256, ge=1)
    sessions: SessionLimits = SessionLimits()
    """Of ``/v1/agent_sessions``."""
    record_calls: bool = False
    """Put ``/ng-rollout/<id>`` in front of the model's path, for servers that record calls by it."""


class EnvironmentServerConfig(ServerConfig):
    """Owns episodes: admits them, and has an agent run them."""

    agent_server: Reference
    resources_server: Reference | None = None
    """NeMo Gym's; not used here: the agent names its own."""
    model_server: Reference | None = None
    """As `resources_server`."""
    max_concurrent_episodes: int = Field(default=256, ge=1)
    queue_timeout_seconds: float = Field(default=600.0, gt=0.0)
    """Waiting for a place."""
    default_episode_timeout_seconds: float = Field(default=21_600.0, gt=0.0)
    cleanup_timeout_seconds: float = Field(default=180.0, gt=0.0)


class HeadConfig(Config):
    """Tells clients which servers there are."""

    host: str = "127.0.0.1"
    port: int = Field(default=11000, ge=0, le=65535)
    """NeMo Gym's collector looks at 11000."""
    api_key_env: str = "SENSORIUM_API_KEY"
    enabled: bool = True
